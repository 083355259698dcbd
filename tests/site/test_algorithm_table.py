"""Every estimator in the table of docs/algorithms.md can be created by the call given there, and can be fitted."""

import re
import warnings

import numpy as np
import pytest
from page_reading import DOCS
from sklearn.exceptions import ConvergenceWarning

import cprime
from cprime.datasets import birch

ROW = re.compile(r"^\| ([^|]+) \| (.+) \| (?:.*) \|$", re.MULTILINE)
X = birch(3, random_state=0).data


def calls() -> list[tuple[str, str]]:
    """Return the algorithms of the table with the calls that create an estimator."""
    table = ROW.findall((DOCS / "algorithms.md").read_text(encoding="utf-8"))
    found = [(name, code) for name, cells in table for code in re.findall(r"`([A-Z]\w*\([^`]*\))", cells)]
    return [(name, code.partition(").")[0] + ")" if ")." in code else code) for name, code in found]


def names() -> dict[str, object]:
    """Return the abbreviations of the page: what its first Python block defines."""
    block = re.search(r"```python\n(.*?)```", (DOCS / "algorithms.md").read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    found: dict[str, object] = {}
    exec(block[1], found)
    return found


def test_the_table_is_read():
    assert len(calls()) > 40


@pytest.mark.parametrize(("name", "code"), calls())
def test_call_fits(name, code):
    estimators = {public: getattr(cprime, public) for public in cprime.__all__ if public[0].isupper()}
    estimator = eval(code.replace("\\|", "|"), {"C": 9, "β": 1.0, "X": X, **names(), **estimators})
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    discrete = isinstance(estimator, cprime.PoissonMixture | cprime.CategoricalMixture)
    data = np.abs(X).astype(int) % 5 if discrete else X[:, :1] if isinstance(estimator, cprime.KMeans1D) else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(data)
    labels = estimator.codes_[:, 0] if isinstance(estimator, cprime.ResidualKMeans) else estimator.labels_
    assert len(set(labels.tolist())) > 1
