"""Public calls work or raise an error of one line, for any `np.errstate` of the caller and however extreme the data."""

import inspect

import numpy as np
import pytest

import cprime

pytestmark = pytest.mark.filterwarnings("ignore")

FAMILIES = ("full", "tied", "diag", "spherical", "tied_spherical")
# ResidualKMeans has no report. For factors, `nearest` does not support float32 rows with missing values.
TYPE_ERRORS = {("ResidualKMeans", "report"), ("GaussianMixture factors marginal", "nearest")}
OTHERS = {"set_params", "set_callbacks", "get_metadata_routing", "get_params"}  # of scikit-learn, without data


def estimators():
    """Return, by name, one estimator class for each kind of fit, called with the number of clusters."""
    found = {name: getattr(cprime, name) for name in ("SoftKMeans", "FuzzyKMeans", "KMedoids", "XMeans", "GMeans")}
    found |= {"KMeans": cprime.KMeans, "KMeans cosine": lambda **given: cprime.KMeans(metric="cosine", **given)}
    found["KMeans marginal"] = lambda **given: cprime.KMeans(missing="marginal", **given)
    found["ResidualKMeans"] = cprime.ResidualKMeans
    found["KMeans1D"] = lambda n_clusters, random_state: cprime.KMeans1D(n_clusters)
    for family in (*FAMILIES, "ppca", "factors"):
        for missing in ("error", "marginal") if family in ("full", "diag", "factors") else ("error",):
            found[f"GaussianMixture {family} {missing}"] = lambda n_clusters, family=family, missing=missing, **given: (
                cprime.GaussianMixture(n_clusters, covariance_type=family, missing=missing, max_iter=5, **given)
            )
    for family in FAMILIES:
        found[f"StudentTMixture {family}"] = lambda n_clusters, family=family, **given: cprime.StudentTMixture(
            n_clusters, covariance_type=family, max_iter=5, **given
        )
    return found


ESTIMATORS = estimators()


def extreme_data():
    """Yield a name and a table; all but the first have squares, variances or weights that underflow in their type."""
    rng = np.random.default_rng(0)
    base = rng.standard_normal((30, 3))
    yield "three groups", base + 5 * rng.integers(0, 3, (30, 1))
    for dtype, small, large in ((np.float32, 1e-15, 1e17), (np.float64, 1e-70, 1e66)):
        apart = base + 8 * np.repeat(np.eye(3), 10, axis=0)
        apart[:10] *= small
        yield f"small and large columns, {np.dtype(dtype).name}", (base * [large, 1, small]).astype(dtype)
        yield f"a narrow cluster, {np.dtype(dtype).name}", apart.astype(dtype)


DATA = dict(extreme_data())


def required(method):
    """Return the names of the arguments that a method needs."""
    return [p.name for p in inspect.signature(method).parameters.values() if p.default is p.empty and p.kind < 2]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_public_calls_work_or_raise_an_error_of_one_line(name, tmp_path):
    pytest.importorskip("jinja2")
    options = {"random_state": 0, "max_clusters" if name in ("XMeans", "GMeans") else "n_clusters": 3}
    raised = {}
    for data, X in DATA.items():
        X = X[:, :1].copy() if name == "KMeans1D" else X.copy()
        if name.endswith("marginal"):
            X[::7, 0] = np.nan
        given = {"X": X, "path": tmp_path / "model", "filename": tmp_path / "model", "columns": [0], "values": [0.5]}
        given["codes"] = [[0]]
        omitted = OTHERS if data == "three groups" else OTHERS | {"report"}
        with np.errstate(all="raise"):
            estimator = ESTIMATORS[name](**options)
            for member in ["fit", *dir(estimator)]:
                if member.startswith("_") or member in omitted or member.endswith("_request"):
                    continue
                try:
                    value = getattr(estimator, member)
                    if callable(value):
                        value(*(given[argument] for argument in required(value)))
                except (ValueError, NotImplementedError, AttributeError) as error:  # a refusal, which other tests check
                    if "\n" in str(error):
                        raised[data, member] = error
                except Exception as error:
                    if (name, member) not in TYPE_ERRORS or not isinstance(error, TypeError):
                        raised[data, member] = error
    assert not raised


def test_the_state_of_the_caller_is_left_as_it_was():
    with np.errstate(all="raise"):
        before = np.geterr()
        model = cprime.GaussianMixture(2, random_state=0).fit(DATA["a narrow cluster, float32"])
        model.predict(DATA["a narrow cluster, float32"])
        assert np.geterr() == before


def test_reports_raise_no_floating_point_errors():
    pytest.importorskip("jinja2")
    with np.errstate(all="raise"):
        for X in DATA.values():
            cprime.GaussianMixture(3, random_state=0).fit(X).report(X)
