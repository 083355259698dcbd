"""Every public function accepts the data type that its estimator was fitted with, or refuses it with a clear error.

An accepted input gives the result of the same numbers as an array. Warnings are errors in these tests.
"""

import copy
import re
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import get_tags

from cprime import (
    Factors,
    FuzzyKMeans,
    GaussianMixture,
    GMeans,
    KMeans,
    KMedoids,
    SoftKMeans,
    StudentTMixture,
    XMeans,
    coresets,
    seeding,
    selection,
    theory,
)
from pairwise import covering

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
plots = pytest.importorskip("cprime.plots", reason="plots need matplotlib: pip install cprime[plots]")
pytestmark = pytest.mark.filterwarnings("error")

RNG = np.random.default_rng(0)
WHOLE = np.vstack([RNG.normal(shift, 3, (40, 3)).round() for shift in (10, 40, 80)])
X = WHOLE.astype(np.float64)
GAPS = X.copy()
GAPS[::7, 1] = GAPS[3::11, 2] = np.nan
NAMES = ["a", "b", "c"]

KINDS = {
    "list": X.tolist(),
    "float32": X.astype(np.float32),
    "narrow": WHOLE.astype(np.int8),
    "pandas": pd.DataFrame(X, columns=NAMES),
    "pandas, narrow": pd.DataFrame(WHOLE.astype(np.int8), columns=NAMES),
    "polars": pl.DataFrame(X, schema=NAMES),
    "sparse": sparse.csr_array(X),
    "missing": GAPS,
    "pandas, missing": pd.DataFrame(GAPS, columns=NAMES),
    "polars, missing": pl.from_pandas(pd.DataFrame(GAPS, columns=NAMES)),
}


def library(name):
    return pytest.importorskip(name, reason=f"{name} is not installed")


# Data types that are tested for two estimators only, and functions that make them.
FURTHER_KINDS = {
    "astropy": lambda X: library("astropy.table").Table(X, names=NAMES),
    "AnnData": lambda X: library("anndata").AnnData(X),
    "polars, lazy": lambda X: pl.DataFrame(X, schema=NAMES).lazy(),
}
ESTIMATORS = {
    "KMeans": KMeans(3),
    "KMeans, cosine": KMeans(3, metric="cosine"),
    "GaussianMixture": GaussianMixture(3),
    "GaussianMixture, diag": GaussianMixture(3, covariance_type="diag"),
    "GaussianMixture, factors": GaussianMixture(3, covariance_type=Factors(1)),
    "StudentTMixture": StudentTMixture(3),
    "SoftKMeans": SoftKMeans(3),
    "FuzzyKMeans": FuzzyKMeans(3),
    "KMedoids": KMedoids(3),
    "XMeans": XMeans(),
    "GMeans": GMeans(),
}
METHODS = ("predict", "transform", "score", "score_samples", "predict_proba", "bounds", "certify", "report", "nearest")
METHODS += ("impute", "score_outliers", "aic", "bic", "partial_fit", "fit_predict", "fit_transform", "uncertainty")
FUNCTIONS = {
    "ClustersDisplay": lambda fit, X: plots.ClustersDisplay.from_estimator(fit, X).labels,
    "SizesDisplay": lambda fit, X: plots.SizesDisplay.from_estimator(fit, X).sizes,
    "StepsDisplay": lambda fit, X: plots.StepsDisplay.from_estimator(fit, X),
    "ConvergenceDisplay": lambda fit, X: plots.ConvergenceDisplay.from_estimator(fit, X),
    "ConvergenceDisplay, trace": lambda fit, X: plots.ConvergenceDisplay.from_estimator(fit, X, trace=True),
    "DecompositionDisplay": lambda fit, X: plots.DecompositionDisplay.from_estimator(fit, X),
    "sweep": lambda fit, X: selection.sweep(fit, X, [2], holdout=None, n_init=1),
    "merge": lambda fit, X: selection.merge(fit, X).cut(1),
    "ledger": lambda fit, X: theory.ledger(fit, X),
    "partition_loss": lambda fit, X: theory.partition_loss(fit, X).loss,
    "fit_assignment": lambda fit, X: theory.fit_assignment(X, START, max_iter=3).losses,
    "lightweight": lambda fit, X: coresets.lightweight(X, 20, random_state=0).points,
    "kmeans_plusplus": lambda fit, X: seeding.kmeans_plusplus(X, 3, random_state=0),
}

DRAWS = {"ClustersDisplay", "StepsDisplay", "ConvergenceDisplay, trace"}
START = theory.Gaussians.spherical(X[[0, 60]], [9.0, 9.0])
ONE_KIND = {"fit_assignment", "ledger", "partition_loss", "DecompositionDisplay", "lightweight"}


def refusal(estimator, kind, function):
    """Return the expected error message if the estimator or the function does not accept such data, otherwise None."""
    if kind == "sparse":
        if function == "fit" and not get_tags(estimator).input_tags.sparse:
            return "Sparse data was passed for X, but dense data is required"
        if function in DRAWS:
            return "X must be dense to be drawn, got a sparse array"
        if function in ONE_KIND:
            return "Sparse data was passed for [XQ], but dense data is required"
    if "missing" in kind:
        if function == "fit" and not hasattr(estimator, "missing"):
            return r"X contains NaN in row 0, column (1|'b')\. \w+ takes no missing values: fill them"
        if function == "fit" and getattr(estimator, "metric", "") == "cosine":
            return "missing='marginal' needs metric='euclidean', got 'cosine'"
        if function == "partial_fit" and isinstance(estimator, KMeans):
            return "partial_fit needs complete rows, whatever"
        if function in ONE_KIND | {"kmeans_plusplus"}:
            return r"contains NaN in row 0, column (1|'b')\. Fill missing values"
    return None


def answer(function, fit, data):
    """Return the arrays and numbers of a result; a display, a table or a fit only has to succeed."""
    found = FUNCTIONS[function](fit, data) if function in FUNCTIONS else getattr(copy.deepcopy(fit), function)(data)
    numbers = found if isinstance(found, tuple) else (found,)
    return [np.asarray(each) for each in numbers if isinstance(each, np.ndarray | float) and "fit" not in function]


@pytest.fixture(autouse=True)
def _quiet_pyplot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


def rows_of(kind):
    return FURTHER_KINDS[kind](X) if kind in FURTHER_KINDS else KINDS[kind]


def estimator_of(name, kind):
    """Return the unfitted estimator, with missing="marginal" for missing values if it has this option."""
    estimator = copy.deepcopy(ESTIMATORS[name]).set_params(random_state=0)
    is_marginal = "missing" in kind and hasattr(estimator, "missing")
    return estimator.set_params(missing="marginal") if is_marginal else estimator


@cache
def fits(name, kind):
    """Return the estimator fitted to rows of this kind, and a copy of it without names of columns."""
    fit = estimator_of(name, kind).fit(rows_of(kind))
    unnamed = copy.copy(fit)
    vars(unnamed).pop("feature_names_in_", None)
    return fit, unnamed


def cases():
    """Return estimators with kinds of data that are refused, and a covering of those with the others and functions."""
    refused, taken = [], []
    for name, kind in product(ESTIMATORS, (*KINDS, *FURTHER_KINDS)):
        estimator = estimator_of(name, kind)
        if refusal(estimator, kind, "fit"):
            refused.append((name, kind))
            continue
        functions = [*FUNCTIONS, *(method for method in METHODS if hasattr(estimator, method))]
        if kind in FURTHER_KINDS:
            functions.remove("sweep")  # scikit-learn cannot divide such rows
        taken += [(name, kind, function) for function in functions]
    return refused, [taken[i] for i in covering(taken)]


REFUSED, TAKEN = cases()


@pytest.mark.parametrize(("name", "kind"), REFUSED)
def test_fits_refuse_data_of_a_kind_that_they_do_not_take(name, kind):
    estimator = estimator_of(name, kind)
    with pytest.raises((TypeError, ValueError), match=refusal(estimator, kind, "fit")):
        estimator.fit(rows_of(kind))


@pytest.mark.parametrize(("name", "kind", "function"), TAKEN)
def test_functions_take_what_the_fit_took(name, kind, function):
    data, (fit, unnamed) = rows_of(kind), fits(name, kind)
    try:
        usual = answer(function, unnamed, GAPS if "missing" in kind else X)
    except (TypeError, ValueError) as error:  # this estimator does not support this function for any data
        usual = error
    expected = refusal(fit, kind, function)
    if isinstance(usual, Exception) or expected:
        with pytest.raises((TypeError, ValueError)) as caught:
            answer(function, fit, data)
        said = str(caught.value)
        assert said == str(usual) or (expected and re.search(expected, said)), said
    else:
        for one, other in zip(usual, answer(function, fit, data), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", FURTHER_KINDS)
def test_displays_of_one_point_take_a_row_of_a_table(kind):
    row = FURTHER_KINDS[kind](X[:1])
    mixture, k_means = GaussianMixture(2, random_state=0).fit(X), KMeans(4, search="exact", random_state=0).fit(X)
    shares, other = (plots.ResponsibilitiesDisplay.from_estimator(mixture, x).exact for x in (row, X[0]))
    np.testing.assert_array_equal(shares, other)
    point, other = (plots.SearchSpaceDisplay.from_estimator(k_means, x).point for x in (row, X[0]))
    np.testing.assert_array_equal(point, other)


def test_displays_refuse_columns_in_another_order():
    table = KINDS["pandas"]
    fit = KMeans(4, random_state=0).fit(table)
    with pytest.raises(ValueError, match="feature names should match"):
        plots.ClustersDisplay.from_estimator(fit, table[list("cab")])
