"""Checks of an estimator's fitted attributes after it was read from a model file.

A corrupt file raises an error before compiled code reads its arrays. A table contains one check per attribute name, for
all estimators. The checks do not depend on file formats.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cprime._utils.number_types import check_largest
from cprime.em import HISTORY, fuzzy
from cprime.model import TiedSpherical

_LOOP = ("n_iter_", "converged_", "history_", "n_active_")
_EM = (*_LOOP, "variance_", "lower_bound_", "lower_bounds_", "neighbors_", "certificate_")
_MIXTURE = (
    *(name for name in _EM if name != "variance_"),
    *("weights_", "covariance_type_", "equal_weights_", "counts_"),
)
_FLOATS = (np.float32, np.float64)
_SPLIT = (*_LOOP, "variance_", "lower_bound_", "n_clusters_", "inertia_")
NEEDED = {
    "KMeans": (*_EM, "counts_", "inertia_"),
    "SoftKMeans": (*_EM, "stiffness_", "inertia_"),
    "GaussianMixture": _MIXTURE,
    "StudentTMixture": _MIXTURE,
    "PoissonMixture": _MIXTURE,
    "CategoricalMixture": _MIXTURE,
    "KMeans1D": ("boundaries_", "inertia_"),
    "ResidualKMeans": ("codebooks_", "codes_", "errors_", "n_iter_"),
    "KMedians": ("inertia_", "n_iter_", "converged_", "history_"),
    "KMedoids": ("medoid_indices_", "inertia_", "n_iter_", "converged_"),
    "FuzzyKMeans": (*_LOOP, "m_", "regularization_", "inertia_"),
    "XMeans": _SPLIT,
    "GMeans": _SPLIT,
}
# Attributes that describe the iterations of a fit. Estimators without a fit of their own, such as marginals, lack them.
_COURSE = {*_EM, "labels_"} - {"variance_", "n_active_", "lower_bound_"}
_MAY_LACK = {"KMeans": _COURSE} | {  # Attributes, by class, that an estimator derived from others may lack.
    kind: _COURSE | {"counts_", "lower_bound_"} for kind, needed in NEEDED.items() if needed is _MIXTURE
}
_COLUMNS = {kind: HISTORY.names for kind, needed in NEEDED.items() if "certificate_" in needed} | {
    "KMedians": ("inertia", "n_moved", "seconds"),
    "FuzzyKMeans": fuzzy.HISTORY.names,
    "XMeans": ("n_clusters", "criterion"),
    "GMeans": ("n_clusters", "criterion"),
}


class _Sizes(NamedTuple):
    """Sizes with which the shapes of fitted attributes must agree: C components and D features of a model family."""

    C: int
    D: int
    family: Any = TiedSpherical
    n_columns: int = 0  # Number of columns of X. It is not D if columns are categorical (one feature per category).
    n_levels: int = 1  # Number of levels of a residual k-means.


def check_fitted(estimator: Any) -> None:
    """Raise ValueError if a fitted attribute of the estimator is missing or has a value that a fit cannot produce."""
    kind = next(base.__name__ for base in type(estimator).__mro__ if base.__name__ in NEEDED)
    found = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    derived = kind in _MAY_LACK and _COURSE.isdisjoint(found)
    needed = {*NEEDED[kind], "n_features_in_"} | (set() if kind == "ResidualKMeans" else {"labels_"})
    _refuse_missing(needed - (_MAY_LACK[kind] if derived else set()) - found.keys())
    sizes = _sizes(estimator, kind)
    if NEEDED[kind] is _MIXTURE:
        _refuse_missing(set(sizes.family.attribute_names) - found.keys())
    for name, value in found.items():
        if name in _CHECKS and not _CHECKS[name](value, sizes):
            raise ValueError(f"{name} is not what a fit of {sizes.C} components in {sizes.D} dimensions leaves")
    columns = None if derived else _COLUMNS.get(kind)
    if columns is not None and (found["history_"].dtype.names != columns or len(found["history_"]) < 1):
        raise ValueError(f"history_ must have the columns {', '.join(columns)}, and a row")


def _refuse_missing(names: set[str]) -> None:
    if names:
        raise ValueError(f"it has no {min(names)}")


def _sizes(estimator: Any, kind: str) -> _Sizes:
    """Check the centers (or medoids) and the covariance type of an estimator, and return its sizes.

    Raises ValueError if they are invalid.    kind: name of the estimator's class, a key of `NEEDED`
    """
    if kind == "ResidualKMeans":
        codebooks = estimator.codebooks_
        if not (_numbers(codebooks, "f", (None, None, None)) and codebooks.dtype in _FLOATS and codebooks.size):
            raise ValueError("codebooks_ must be an array (L, C, D) of finite float32 or float64")
        L, C, D = codebooks.shape
        return _Sizes(C, D, n_columns=D, n_levels=L)
    mixture = NEEDED[kind] is _MIXTURE
    name = "means_" if mixture else "cluster_centers_"
    centers: Any = getattr(estimator, name, None)
    if kind == "KMedoids" and name in vars(estimator) and centers is None:
        medoids = estimator.medoid_indices_
        if not (_numbers(medoids, "i", (None,)) and len(medoids)):
            raise ValueError("medoid_indices_ is not what a fit leaves")
        return _Sizes(len(medoids), estimator.n_features_in_, n_columns=estimator.n_features_in_)
    if not (_numbers(centers, "f", (None, None)) and centers.dtype in _FLOATS and centers.size):
        raise ValueError(f"{name} must be a matrix of finite float32 or float64")
    check_largest(float(np.abs(centers).max()), centers.dtype, centers.shape[1], name)
    if not mixture:
        return _Sizes(len(centers), centers.shape[1], n_columns=centers.shape[1])
    families, name = estimator._families, estimator.covariance_type_
    if not (isinstance(name, str) and name in families):
        raise ValueError(f"covariance_type_ must be one of {', '.join(families)}")
    n_columns = len(getattr(estimator, "n_categories_", range(centers.shape[1])))
    return _Sizes(len(centers), centers.shape[1], families[name], n_columns)


def _numbers(value: Any, kinds: str, shape: tuple[int | None, ...]) -> bool:
    """Return whether a value is an array of finite numbers with the given shape and dtype kind.

    kinds: allowed kinds of dtypes, such as "fi" for floats and integers
    shape: required length of each axis; None allows any length
    """
    return (
        isinstance(value, np.ndarray)
        and value.dtype.kind in kinds
        and value.ndim == len(shape)
        and all(wanted in (None, length) for wanted, length in zip(shape, value.shape, strict=True))
        and bool(np.isfinite(value).all())
    )


def _ids(value: Any, shape: tuple[int | None, ...], least: int, end: int) -> bool:
    fits = _numbers(value, "i", shape) and value.dtype == np.int32
    return fits and (not value.size or bool(value.min() >= least and value.max() < end))


def _number(value: Any, least: float = -np.inf) -> bool:
    """Return whether a value is a float of at least `least`; False for NaN."""
    return isinstance(value, float | np.floating) and bool(value >= least)


def _count(value: Any, least: int = 0, limit: float = np.inf) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(least <= value <= limit)


def _positive(value: Any) -> bool:
    return _number(value, 0.0) and 0 < value < np.inf


def _covariances(value: Any, sizes: _Sizes) -> bool:
    """Return whether `value` is a valid attribute `covariances_` of the model family in `sizes`.

    Valid are variances >= 0, or symmetric matrices whose diagonals are >= 0.
    """
    if not _matrices(value, sizes) or not sizes.family.has_matrices:
        return bool(_matrices(value, sizes) and np.all(value >= 0))
    return bool((value.diagonal(0, -2, -1) >= 0).all() and np.allclose(value, value.swapaxes(-2, -1)))


def _matrices(value: Any, sizes: _Sizes) -> bool:
    shape = sizes.family.shape(sizes.C, sizes.D)
    if shape is None:
        return True
    return _positive(value) if shape == () else _numbers(value, "f", shape)


def _factors(value: Any, sizes: _Sizes) -> bool:
    """Return whether `value` is a valid attribute `precisions_cholesky_` of the model family in `sizes`.

    Valid are numbers > 0, or upper triangular matrices whose diagonals are > 0.
    """
    if not _matrices(value, sizes) or not sizes.family.has_matrices:
        return bool(_matrices(value, sizes) and np.all(value > 0))
    return bool((value.diagonal(0, -2, -1) > 0).all() and (np.triu(value) == value).all())


def _weights(value: Any, sizes: _Sizes) -> bool:
    return _numbers(value, "f", (sizes.C,)) and bool((value >= 0).all() and abs(value.sum(dtype=np.float64) - 1) < 1e-6)


def _names(value: Any, sizes: _Sizes) -> bool:
    shape = (sizes.n_columns,)
    return isinstance(value, np.ndarray) and value.shape == shape and all(isinstance(name, str) for name in value)


def _structure(value: Any, sizes: _Sizes) -> bool:
    """Return whether `value` is a valid attribute `structure_`, a dictionary that describes cells of centers.

    A cell is a group of nearby centers. `KMeans.partial_fit` uses the cells to find nearest centers.
    """
    names = {"coarse", "order", "begins", "clumped", "home", "won", "won_astray", "n_rows"}
    if not (isinstance(value, dict) and value.keys() == names and _numbers(value["coarse"], "f", (None, sizes.D))):
        return False
    coarse, order, begins, C = value["coarse"], value["order"], value["begins"], sizes.C
    return (
        coarse.dtype in (np.float32, np.float64)
        and 1 <= len(coarse) <= C
        and _ids(order, (None,), 0, C)
        and 1 <= len(order) <= C
        and bool((np.bincount(order, minlength=C) <= 1).all())
        and _numbers(begins, "i", (len(coarse) + 1,))
        and begins.dtype == np.int64
        and bool(begins[0] == 0 and begins[-1] == len(order) and (np.diff(begins) > 0).all())
        and isinstance(value["clumped"], bool | np.bool_)
        and _ids(value["home"], (len(order),), 0, len(coarse))
        and all(_number(value[name], 0.0) for name in ("won", "won_astray"))
        and _count(value["n_rows"])
    )


def _recent(value: Any, sizes: _Sizes) -> bool:
    """Return whether a value is a valid attribute `recent_`: rows that `KMeans.partial_fit` stores between batches."""
    names = {"weights", "labels", "n_fitted", "shares"}
    if not (isinstance(value, dict) and names <= value.keys() and _numbers(value["weights"], "f", (None,))):
        return False
    n, rows = len(value["weights"]), value.keys() - names
    sound = (
        bool((value["weights"] > 0).all())
        and _ids(value["labels"], (n,), 0, sizes.C)
        and _count(value["n_fitted"])
        and _numbers(value["shares"], "f", (sizes.C,))
        and bool((value["shares"] >= 0).all())
    )
    if rows == {"data", "indices", "indptr"}:
        begins, n_stored = value["indptr"], len(value["data"])
        return (
            sound
            and _numbers(value["data"], "f", (None,))
            and _numbers(value["indices"], "i", (n_stored,))
            and bool(((value["indices"] >= 0) & (value["indices"] < sizes.D)).all())
            and _numbers(begins, "i", (n + 1,))
            and bool(begins[0] == 0 and begins[-1] == n_stored and (np.diff(begins) >= 0).all())
        )
    return sound and (_numbers(value["X"], "f", (n, sizes.D)) if rows == {"X"} else not (rows or n))


def _preparation(value: Any, sizes: _Sizes) -> bool:
    """Return whether `value` is a valid attribute `preparation_` for D columns.

    It is a dictionary of fill values, shifts and scales > 0, each (D,) or None.
    """
    return (
        isinstance(value, dict)
        and value.keys() == {"fill", "shift", "scale"}
        and all(
            item is None or (_numbers(item, "f", (sizes.D,)) and item.dtype == np.float64) for item in value.values()
        )
        and (value["shift"] is None) == (value["scale"] is None)
        and (value["scale"] is None or bool((value["scale"] > 0).all()))
    )


def _categories(value: Any, sizes: _Sizes) -> bool:
    """Return whether a value is a valid attribute `categories_`: a list of integers or text for each column."""
    return (
        isinstance(value, list)
        and len(value) == sizes.n_columns
        and all(
            _numbers(table, "i", (None,))
            or (isinstance(table, np.ndarray) and table.ndim == 1 and all(isinstance(each, str) for each in table))
            for table in value
        )
        and all(len(set(table.tolist())) == len(table) for table in value)
    )


_CHECKS: dict[str, Callable[[Any, _Sizes], bool]] = {
    "n_features_in_": lambda value, s: _count(value, 1) and value == s.n_columns,
    "feature_names_in_": _names,
    "labels_": lambda value, s: _ids(value, (None,), 0, s.C),
    "neighbors_": lambda value, s: value is None or _ids(value, (s.C, None), -1, s.C),
    "medoid_indices_": lambda value, s: _numbers(value, "i", (s.C,)) and bool((value >= 0).all()),
    "boundaries_": lambda value, s: (
        isinstance(value, np.ndarray)
        and value.shape == (s.C - 1,)
        and value.dtype == np.float64
        and bool((value[1:] >= value[:-1]).all() and not np.isnan(value).any())
    ),
    "structure_": _structure,
    "recent_": _recent,
    "codes_": lambda value, s: _numbers(value, "u", (None, s.n_levels)) and (not value.size or bool(value.max() < s.C)),
    "errors_": lambda value, s: _numbers(value, "f", (s.n_levels,)) and bool((value >= 0).all()),
    "counts_": lambda value, s: _numbers(value, "f", (s.C,)) and bool((value >= 0).all()),
    "weights_": _weights,
    "covariances_": _covariances,
    "precisions_": _matrices,
    "precisions_cholesky_": _factors,
    "factors_": lambda value, s: _numbers(value, "f", (s.C, s.D, None)) and value.shape[2] < s.D,
    "noise_variances_": lambda value, s: _numbers(value, "f", (s.C, s.D)) and bool((value > 0).all()),
    "dof_": lambda value, s: _numbers(value, "f", (s.C,)) and bool((value > 0).all()),
    "equal_weights_": lambda value, s: isinstance(value, bool | np.bool_),
    "rates_": lambda value, s: _numbers(value, "f", (s.C, s.D)) and bool((value >= 0).all()),
    "n_categories_": lambda value, s: _numbers(value, "i", (None,)) and value.sum() == s.D and bool((value > 0).all()),
    "categories_": _categories,
    "probabilities_": lambda value, s: (
        isinstance(value, list)
        and all(_numbers(part, "f", (s.C, None)) and bool((part >= 0).all()) for part in value)
        and sum(part.shape[1] for part in value) == s.D
    ),
    "variance_": lambda value, s: _positive(value),
    "stiffness_": lambda value, s: _positive(value),
    "m_": lambda value, s: _number(value, 1.0),
    "regularizer_": lambda value, s: value in (None, *fuzzy.REGULARIZED),
    "regularization_": lambda value, s: value is None or _positive(value),
    "inertia_": lambda value, s: _number(value, 0.0),
    "lower_bound_": lambda value, s: _number(value),
    "n_active_": lambda value, s: _count(value, 1, s.C),
    "n_clusters_": lambda value, s: _count(value, 1) and value == s.C,
    "n_iter_": lambda value, s: _count(value),
    "preparation_": _preparation,
    "metric_": lambda value, s: value in ("euclidean", "cosine"),
    "final_assignment_": lambda value, s: isinstance(value, str) and value in ("exact", "found", "bounded", "labeled"),
    "converged_": lambda value, s: isinstance(value, bool | np.bool_),
    "objective_bound_": lambda value, s: (
        isinstance(value, dict) and all(_number(value.get(name), 0.0) for name in ("value", "inertia", "gap"))
    ),
    "certificate_": lambda value, s: value is None or isinstance(value, dict),
    "lower_bounds_": lambda value, s: isinstance(value, list) and all(map(_number, value)),
    "history_": lambda value, s: isinstance(value, np.ndarray) and value.ndim == 1,
}
