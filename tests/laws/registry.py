"""Registry of the configurations of estimators that the laws are tested for: data, estimators, and their results.

A configuration is an estimator with a search, an assignment, C′, a type of rows, weights, an execution and a size. A
law takes the valid ones that contain every pair of two such values that occurs in a valid configuration.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

import cprime
from cprime import open_data
from cprime.persistence import model_files
from cprime.search import Bounded, Full, Graph, Papers
from pairwise import covering

# Marks of laws that also hold for fits that do not converge or search poorly.
POOR_FITS_PASS = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::cprime.SearchQualityWarning"),
]

SIZES = {"few": (40, 3, 3), "many": (1200, 4, 76)}  # rows, columns and C: full search and one step; graph, jumps
SEARCHES = {
    "full": Full(),
    "bounded": Bounded(),
    "graph": Graph(),
    "regrouped": Graph(6, regroup=True),
    "exact": Papers("exact"),
    "random lists": Papers("exact", n_neighbors=6, start="random", n_warmup=1),
    "estimated": Papers("estimated"),
}
USUAL = ("full", "bounded", "graph", "exact", "estimated")
ASSIGNMENTS = ("soft", "hard", "sampled")
ACTIVE = ("one", "some", "all")
ROWS = ("float32", "float64", "uint8")
EXECUTIONS = ("array", "chunks", "dask")
METHODS = ("predict", "transform", "predict_proba", "score", "score_samples", "score_outliers", "bounds", "encode")
METHODS += ("impute", "uncertainty")
MATRICES = ("tied", "full", "factors", "ppca")
CONSTRAINED = ("tied_diag", "VEI", "EVE", "VEV")  # a mean, iterated proportions, common axes, own axes


@dataclass(frozen=True)
class Options:
    """Estimator with the values of its arguments, of its rows and of its executions that it supports."""

    make: Callable[..., Any]
    searches: tuple[str, ...] = ("",)
    assignments: tuple[str, ...] = ("",)
    active: tuple[str, ...] = ("",)
    rows: tuple[str, ...] = ROWS
    executions: tuple[str, ...] = EXECUTIONS
    n_most: int = 10_000  # rows


class Configuration(NamedTuple):
    """Names of an estimator, of the values of its arguments, and of its data; an empty name if there is no choice."""

    estimator: str
    search: str
    assignment: str
    active: str
    rows: str
    weights: str
    execution: str
    size: str

    def __str__(self) -> str:
        return ", ".join(filter(None, self))

    @property
    def options(self) -> Options:
        return ESTIMATORS[self.estimator]

    @property
    def is_valid(self) -> bool:
        """Return whether the estimator has this combination of arguments."""
        if self.rows == "sparse" and self.execution != "array":
            return False
        if self.rows == "missing" and self.search == "bounded" and self.estimator == "KMeans":
            return False
        if (
            self.rows == "missing"
            and self.size == "many"
            and self.estimator.endswith((*MATRICES, *CONSTRAINED[3:], "StudentTMixture"))
        ):
            return False  # slow: marginal densities of each set of columns for all components
        if self.search == "bounded" and (self.active not in ("one", "") or self.assignment == "sampled"):
            return False
        if self.active == "all" and self.search not in ("full", ""):
            return False
        return not (self.assignment in ("hard", "sampled") and self.active == "one")


def k_means(*rows: str, searches: tuple[str, ...] = USUAL, **options: Any) -> Options:
    return Options(partial(cprime.KMeans, **options), searches, rows=(*ROWS, *rows))


def mixture(cls: type, *rows: str, searches: tuple[str, ...] = USUAL, **options: Any) -> Options:
    return Options(partial(cls, **options), searches, ASSIGNMENTS, ACTIVE, (*ROWS, *rows))


def in_memory(cls: type, active: tuple[str, ...] = ("",), n_most: int = 10_000, **options: Any) -> Options:
    return Options(partial(cls, **options), active=active, executions=("array",), n_most=n_most)


@model_files.register
class OfLastColumn(cprime.RegressionMixture):
    """Mixture of regressions of the last column of X on the others."""

    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X[:, :-1], X[:, -1], sample_weight)

    def predict(self, X):
        return super().predict(X[:, :-1])

    def score(self, X, y=None, sample_weight=None):
        return self.log_likelihood(X[:, :-1], X[:, -1], sample_weight)

    def bic(self, X, sample_weight=None):
        return super().bic(X[:, :-1], X[:, -1], sample_weight)

    def aic(self, X, sample_weight=None):
        return super().aic(X[:, :-1], X[:, -1], sample_weight)


ESTIMATORS = {
    "KMeans": k_means("sparse", "missing", searches=tuple(SEARCHES)),
    "KMeans, cosine": k_means("sparse", metric="cosine"),
    "KMeans, lazy": k_means(searches=("full", "bounded", "exact"), epsilon=0.1),
    **{
        f"GaussianMixture, {family}": mixture(cprime.GaussianMixture, "missing", covariance_type=family)
        for family in ("tied_spherical", "spherical", *MATRICES)
    },
    **{
        f"GaussianMixture, {family}": mixture(
            cprime.GaussianMixture, "missing", searches=("full", "graph"), covariance_type=family
        )
        for family in CONSTRAINED
    },
    "GaussianMixture, diag": mixture(
        cprime.GaussianMixture, "missing", searches=tuple(SEARCHES), covariance_type="diag"
    ),
    "GaussianMixture, prior": mixture(
        cprime.GaussianMixture, "missing", searches=("full", "graph"), covariance_type="full", prior=cprime.Prior()
    ),
    "GaussianMixture, papers": mixture(
        cprime.GaussianMixture,
        searches=("full", "exact", "estimated"),
        covariance_type="tied_spherical",
        weights="equal",
    ),
    "GaussianMixture, equal weights, full": mixture(
        cprime.GaussianMixture, searches=("full", "graph"), covariance_type="full", weights="equal"
    ),
    **{
        f"BayesianGaussianMixture, {family}": mixture(
            cprime.BayesianGaussianMixture,
            "missing",
            searches=("full", "graph"),
            covariance_type=family,
            weight_concentration_prior_type="dirichlet_process" if family in MATRICES else "dirichlet_distribution",
        )
        for family in ("full", "tied", "diag", "spherical")
    },
    "StudentTMixture": mixture(cprime.StudentTMixture, "missing"),
    "StudentTMixture, diag": mixture(
        cprime.StudentTMixture, "missing", searches=("full", "graph"), covariance_type="diag", dof="shared"
    ),
    "LaplaceMixture": mixture(cprime.LaplaceMixture, "missing"),
    "VonMisesFisherMixture": mixture(cprime.VonMisesFisherMixture, "sparse"),
    "PoissonMixture": mixture(cprime.PoissonMixture, "sparse", "missing"),
    "CategoricalMixture": mixture(cprime.CategoricalMixture, "sparse", "missing", n_init=1),
    "MixedMixture": mixture(
        cprime.MixedMixture, "missing", columns={"diag": [0], "poisson": [1], "categorical": [2]}, n_init=1
    ),
    **{
        f"RegressionMixture{name}": Options(
            partial(OfLastColumn, n_init=1, **options), ("",), ASSIGNMENTS, ACTIVE, executions=("array",)
        )
        for name, options in {"": {}, ", poisson": {"family": "poisson"}, ", concomitant": {"concomitant": [0]}}.items()
    },
    "SoftKMeans": Options(cprime.SoftKMeans, USUAL, active=ACTIVE),
    "FuzzyKMeans": in_memory(cprime.FuzzyKMeans, ACTIVE, m=1.5),
    "FuzzyKMeans, entropy": in_memory(cprime.FuzzyKMeans, ACTIVE, regularizer="entropy"),
    "FuzzyKMeans, quadratic": in_memory(cprime.FuzzyKMeans, ACTIVE, regularizer="quadratic"),
    "KMedians": Options(cprime.KMedians, rows=(*ROWS, "missing"), executions=("array",)),
    "KMedoids": in_memory(cprime.KMedoids, n_most=700),
    "KMedoids, alternate": in_memory(cprime.KMedoids, n_most=700, method="alternate", metric="manhattan"),
    "KMeans1D": in_memory(cprime.KMeans1D),
    "XMeans": in_memory(cprime.XMeans, ("one", "some"), 400),
    "GMeans": in_memory(cprime.GMeans, ("one", "some"), 400),
    "DPMeans": Options(partial(cprime.DPMeans, 20.0), ("full", "graph")),
    "ResidualKMeans": Options(partial(cprime.ResidualKMeans, n_levels=2), ("full", "graph")),
}


@cache
def valid() -> list[Configuration]:
    """Return all valid configurations."""
    found = []
    for name, has in ESTIMATORS.items():
        values = has.searches, has.assignments, has.active, has.rows, ("", "weights"), has.executions, SIZES
        found += [Configuration(name, *each) for each in product(*values)]
    return [each for each in found if each.is_valid]


def configurations(holds: Callable[[Configuration], bool] = lambda each: True) -> list[Any]:
    """Return few configurations, as values of a pytest parameter, among those for which `holds` is true.

    They contain every pair of values that occurs in any of these. Quick runs have every value; long runs every
    estimator at every size and all pairs of the other values; the rest is marked rare.
    """
    some: list[Configuration] = []
    seen: set[Any] = set()
    rows = [each for each in valid() if holds(each)]
    for i in np.random.default_rng(0).permutation(len(rows)):  # a superset, from which `covering` chooses
        values = rows[i]
        pairs = {(a, b, values[a], values[b]) for a, b in combinations(range(len(values)), 2)}
        if not pairs <= seen:
            seen |= pairs
            some.append(rows[i])
    some = [some[i] for i in covering(some)]
    last = len(Configuration._fields) - 1
    marks = tiers(len(some), covering(some, together=1), covering(some, without=[(0, i) for i in range(1, last)]))
    return [pytest.param(each, id=str(each), marks=mark) for each, mark in zip(some, marks, strict=True)]


def tiers(n: int, quick: Sequence[int], long: Sequence[int]) -> list[Any]:
    """Return the marks of n cases: none at indices `quick`, long at indices `long`, and rare elsewhere."""
    marks: dict[int, Any] = dict.fromkeys(range(n), pytest.mark.rare)
    marks |= dict.fromkeys(long, pytest.mark.long)
    marks |= dict.fromkeys(quick, ())
    return [marks[i] for i in range(n)]


def points_of(each: Configuration) -> tuple[Any, NDArray[np.float64] | None]:
    """Return rows (n, D) of the type that the configuration names, and weights (n,), some of them 0, or None.

    Rows are points around overlapping centers; counts for Poisson mixtures; codes for categorical mixtures; a column of
    each of these kinds for mixed mixtures; one column for k-means in one dimension.
    """
    n, D, C = SIZES[each.size]
    n, rng = min(n, each.options.n_most, 1300 if each.rows == "missing" else n), np.random.default_rng(C)
    if each.estimator == "CategoricalMixture":
        X = np.minimum(rng.poisson(rng.gamma(1.0, 1.5, (C, D))[rng.integers(C, size=n)]), 4)
        X[:5] = np.arange(5)[:, np.newaxis]  # every column has all codes
    elif each.estimator in ("PoissonMixture", "RegressionMixture, poisson"):
        X = rng.poisson(rng.gamma(2.0, 3.0, (C, D))[rng.integers(C, size=n)])
    else:
        D = 1 if each.estimator == "KMeans1D" else D
        n_centers = min(C, 9) if each.estimator in ("XMeans", "GMeans") else C  # well apart, so that they are found
        centers = (9.0 if n_centers < C else 3.0) * rng.standard_normal((n_centers, D))
        X = centers[rng.integers(n_centers, size=n)] + rng.standard_normal((n, D))
        if each.rows == "uint8":
            X = np.clip(np.round(60 + 8 * X), 1, 255)
        elif each.rows == "sparse":
            X[:, 2:] *= np.abs(X[:, 2:]) > 3
            X[:, 0] += 20  # no row of zeros, because its direction is not defined
        if each.estimator == "MixedMixture":
            X[:, 1:3] = rng.poisson(rng.gamma(1.0, 3.0, (n, 2)))
            X[:, 2] = np.where(np.arange(n) < 5, np.arange(n), np.minimum(X[:, 2], 4))  # all codes
    X = X.astype("uint8" if each.rows == "uint8" else "float32" if each.rows == "float32" else "float64")
    if each.rows == "missing":
        X[::7, 1] = X[3::11, 2] = np.nan
    weights = rng.integers(0, 4, size=n).astype(float) if each.weights else None
    return csr_array(X) if each.rows == "sparse" else X, weights


def estimator_of(each: Configuration, **changes: Any) -> Any:
    """Return the unfitted estimator of a configuration with one thread and few iterations; `changes` are arguments."""
    C = SIZES[each.size][2]
    some = {"one": 1, "some": 2 if each.size == "few" else 3, "all": None}
    given: dict[str, Any] = {"n_threads": 1, "random_state": 0, "max_iter": 4, "tol": 1e-12}
    given |= {"missing": "marginal"} if each.rows == "missing" else {}
    given |= {"search": SEARCHES[each.search]} if each.search else {}
    given |= {"assignment": each.assignment} if each.assignment else {}
    given |= {"n_active": some[each.active]} if each.active else {}
    estimator = each.options.make() if each.estimator in ("XMeans", "GMeans", "DPMeans") else each.options.make(C)
    names = estimator.get_params()
    return estimator.set_params(**{name: value for name, value in (given | changes).items() if name in names})


def executed(each: Configuration, X: Any) -> Any:
    """Return rows as the configuration gives them: an array, a source of chunks, or a Dask array in chunks."""
    step = X.shape[0] // 3 + 1
    if each.execution == "chunks":
        return open_data(X, chunk_rows=step)
    if each.execution == "dask":
        return pytest.importorskip("dask.array").from_array(X, chunks=(step, -1))
    return X


def leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the arrays and numbers of a value by name, except for seconds in histories and objects of other kinds."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, f"{name}[{key!r}]")
    elif isinstance(value, list | tuple) and any(isinstance(part, np.ndarray) for part in value):
        for i, part in enumerate(value):
            yield from leaves(part, f"{name}[{i}]")
    elif isinstance(value, np.ndarray) and value.dtype.names:
        for column in set(value.dtype.names) - {"seconds"}:
            yield f"{name}[{column!r}]", value[column]
    elif issparse(value):
        yield from leaves({"data": value.data, "indices": value.indices, "indptr": value.indptr}, name)
    else:
        yield name, None if value is None else np.asarray(value)


def fitted(estimator: Any) -> dict[str, Any]:
    """Return all fitted attributes as arrays by name, except for the seconds that the fit took."""
    attributes = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    return {name: leaf for key, value in attributes.items() for name, leaf in leaves(value, key)}


def answers(estimator: Any, X: Any, methods: tuple[str, ...] = METHODS) -> dict[str, Any]:
    """Return the results of the methods of a fitted estimator for X as arrays by name."""
    found = {name: getattr(estimator, name)(X) for name in methods if hasattr(estimator, name)}
    return {name: leaf for key, value in found.items() for name, leaf in leaves(value, key)}


def check_same_bits(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Check that two results of `fitted` or `answers` are bit-identical, types included."""
    assert found.keys() == expected.keys()
    assert expected
    for name, value in expected.items():
        if value is None:
            assert found[name] is None, name
            continue
        assert found[name].dtype == value.dtype, name
        np.testing.assert_array_equal(found[name], value, name)


def check_close(
    found: dict[str, Any], expected: dict[str, Any], relative: float, ignored: tuple[str, ...] = ()
) -> None:
    """Check that two results differ by rounding only: floats by `relative` of the largest number, others not at all.

    ignored: attributes (or columns of a history, as "['column']") that are not compared
    """
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if any(name.endswith(each) or name.startswith(each) for each in ignored):
            continue
        if value is None or value.dtype.kind != "f":
            np.testing.assert_array_equal(found[name], value, name)
        else:
            largest = np.abs(value[np.isfinite(value)]).max(initial=1.0 if name.startswith("certificate_") else 0.0)
            np.testing.assert_allclose(found[name], value, rtol=relative, atol=relative * largest, err_msg=name)


def rounding_of(each: Configuration) -> float:
    """Return the share of the largest number by which a few iterations may multiply rounding.

    M-steps of EVE turn common axes until a turn gains little, which depends on the order of columns.
    """
    if each.rows in ("float32", "uint8"):
        return 1e-3
    return 1e-5 if each.estimator.endswith("EVE") else 1e-7


def start_of(each: Configuration, X: Any, weights: NDArray[np.float64] | None) -> dict[str, Any]:
    """Return arguments for initial parameters: rows of positive weight, of the data, and well-conditioned variances."""
    C, rng = SIZES[each.size][2], np.random.default_rng(1)
    at = rng.permutation(X.shape[0] if weights is None else np.flatnonzero(weights))[:C]
    rows = (X.toarray() if each.rows == "sparse" else X)[at].astype(float)
    rows = np.where(np.isnan(rows), 0.5, rows)
    name = each.estimator.partition(",")[0]
    if name == "VonMisesFisherMixture":
        return {"means_init": rows}
    if name in ("GaussianMixture", "StudentTMixture", "LaplaceMixture"):
        return {"means_init": rows, "reg_covar": 0.1}
    if name == "BayesianGaussianMixture":
        return {"means_init": rows}
    if name == "PoissonMixture":
        return {"rates_init": rows + 0.5}
    if name == "CategoricalMixture":
        probabilities = [rng.dirichlet(np.ones(5), C) for _ in range(X.shape[1])]
        return {"probabilities_init": probabilities, "categories": [range(5)] * X.shape[1]}
    if name == "MixedMixture":  # means, rates and probabilities, block by block
        probabilities = rng.dirichlet(np.ones(5), C)
        means = np.column_stack([rows[:, [0, *range(3, X.shape[1])]], rows[:, 1] + 0.5, probabilities])
        return {"means_init": means, "reg_covar": 0.1, "categories": [[], [], range(5), []][: X.shape[1]]}
    if name == "RegressionMixture":
        return {"init_params": rng.integers(C, size=len(X))}
    return {"init": at if name == "KMedoids" else rows}
