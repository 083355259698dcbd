"""Every cell of the table in docs/migrating.md runs."""

import importlib
import importlib.util
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import sklearn.cluster
import sklearn.mixture

import cprime

PAGE = (Path(__file__).parents[2] / "docs" / "migrating.md").read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[1:]}
COLUMNS = ("scikit-learn", "FAISS", "cprime")
RUNS = ((name, module) for name in COLUMNS for module in (("faiss", "cprime.faiss") if name == "FAISS" else (None,)))
without_faiss = pytest.mark.skipif(
    importlib.util.find_spec("faiss") is None, reason="the optional package faiss is not installed"
)


def needing(*what: str | None) -> object:
    return pytest.param(*what, marks=without_faiss if "FAISS" in str(what[0]) else ())


def cells() -> list[tuple[str, ...]]:
    """Return the rows of the table: a description and the code of each column, "" if a cell is empty."""
    table = SECTIONS["Corresponding calls"]
    rows = [line[1:-1].split("|") for line in re.findall(r"^\|.*\|$", table, re.MULTILINE)[2:]]
    assert all(len(row) == 4 for row in rows)
    return [tuple(cell.strip(" `") for cell in row) for row in rows]


@pytest.mark.parametrize(("column", "module"), [needing(*run) for run in RUNS])
@pytest.mark.filterwarnings("ignore:Best performing initialization:sklearn.exceptions.ConvergenceWarning")
def test_every_cell_runs(column, module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(2000, 8)) + 6 * rng.integers(3, size=(2000, 1))).astype(np.float32)
    np.save("rows.npy", X)
    known = {"X": X, "C": 4, "D": 8, "start": X[:4].copy(), "w": np.ones(2000, dtype=np.float32)}
    known |= {"cprime": cprime, "pickle": pickle, "KMeans": sklearn.cluster.KMeans}
    known |= {"MiniBatchKMeans": sklearn.cluster.MiniBatchKMeans, "GaussianMixture": sklearn.mixture.GaussianMixture}
    if module is not None:
        known["faiss"] = importlib.import_module(module)
    codes = [code for _, *row in cells() if (code := row[COLUMNS.index(column)])]
    assert len(codes) > 12
    for code in codes:
        exec(code, known)
