"""Every public method of a fitted estimator works, or raises an error that gives the reason in one line."""

import inspect

import numpy as np
import pytest

import cprime

pytestmark = [
    pytest.mark.filterwarnings("ignore:The fit did not converge"),
    pytest.mark.filterwarnings("ignore:predict_proba"),
]
X = np.random.default_rng(0).standard_normal((90, 2)) + 5 * np.random.default_rng(1).integers(0, 3, (90, 1))
NAMES = (
    "KMeans",
    "SoftKMeans",
    "FuzzyKMeans",
    "KMedoids",
    "GaussianMixture",
    "StudentTMixture",
    "XMeans",
    "GMeans",
    "KMeans1D",
)
OTHERS = {"set_params", "set_callbacks", "get_metadata_routing", "get_params"}  # scikit-learn's, without data


def data_for(name):
    return X[:, :1] if name == "KMeans1D" else X


def public(name):
    found = inspect.getmembers(getattr(cprime, name), callable)
    return [m for m, _ in found if m[0] != "_" and m not in OTHERS and not m.endswith("_request")]


@pytest.mark.parametrize(("name", "method"), [(name, method) for name in NAMES for method in public(name)])
def test_it_works(name, method, tmp_path):
    pytest.importorskip("jinja2")
    fit = getattr(cprime, name)().fit(data_for(name))
    call = getattr(fit, method)
    needed = [p for p in inspect.signature(call).parameters.values() if p.default is p.empty and p.kind < 2]
    given = {"X": data_for(name), "path": tmp_path / "model", "filename": tmp_path / "model"}
    given |= {"columns": [0], "values": [0.5]}
    refusal = ""
    try:
        call(*(given[p.name] for p in needed))
    except (ValueError, NotImplementedError) as error:
        refusal = str(error)
    assert "\n" not in refusal
