"""Properties of every fitted estimator: ranges, types, sums, and agreement with NumPy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliability import oracles
from reliability.space import MIXTURES, Case


class Wrong(AssertionError):
    """A result without a required property."""


@dataclass(frozen=True)
class Fitted:
    """An estimator with its data: X (n, D) in the type of computation, and weights (n,) or None."""

    case: Case
    estimator: Any
    X: NDArray
    w: NDArray[np.float64] | None
    repaired: bool = False  # whether a covariance without extent was repaired (logged), which may lower F

    @property
    def rows(self) -> NDArray[np.float64]:
        return self.X.astype(np.float64)

    @property
    def weights(self) -> NDArray[np.float64]:
        return np.ones(len(self.X)) if self.w is None else self.w


def check_fit(fitted: Fitted) -> None:
    """Check all properties of this type of estimator."""
    _check_finite(fitted)
    _check_labels(fitted)
    name = fitted.case.estimator
    if name in MIXTURES:
        _check_mixture(fitted)
    elif name == "KMedoids":
        _check_medoids(fitted)
    else:
        _check_centers(fitted)
    if hasattr(fitted.estimator, "predict_proba"):
        _check_memberships(fitted)


def same_bits(a: Any, b: Any, when: str) -> None:
    """Check that two fitted estimators are bit-identical, except for times and thread counts."""
    names = [set(_attributes(estimator)) for estimator in (a, b)]
    if names[0] != names[1]:
        raise Wrong(f"attributes differ {when}: {names[0] ^ names[1]}")
    for name in sorted(names[0]):
        if not _equal(getattr(a, name), getattr(b, name)):
            raise Wrong(f"{name} differs {when}: {getattr(a, name)!r:.300} and {getattr(b, name)!r:.300}")


def _attributes(estimator: Any) -> list[str]:
    return [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        if not isinstance(b, np.ndarray) or a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype.names is not None:
            return all(_equal(a[name], b[name]) for name in a.dtype.names if name != "seconds")
        return np.array_equal(a, b) if a.dtype == object else a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    return type(a) is type(b) and (a == b or (a != a and b != b))


def _check_finite(fitted: Fitted) -> None:
    """Check that fitted attributes are finite, except J in the history of mixtures that do not compute it."""
    family = getattr(fitted.estimator, "covariance_type_", "tied_spherical")
    no_squares = family != "tied_spherical" or hasattr(fitted.estimator, "dof_")
    for name in _attributes(fitted.estimator):
        value = getattr(fitted.estimator, name)
        if name == "boundaries_" or isinstance(value, str | dict | bool | None):
            continue
        value = np.asarray(value)
        parts = [value]
        if value.dtype.names is not None:
            parts = [value[f] for f in value.dtype.names if not (no_squares and f == "quantization_error")]
        if not all(np.isfinite(part).all() for part in parts if part.dtype.kind == "f"):
            raise Wrong(f"{name} is not finite: {value!r:.400}")


def _check_labels(fitted: Fitted) -> None:
    labels, estimator = fitted.estimator.labels_, fitted.estimator
    centers = _centers(fitted)
    if labels.dtype != np.int32 or labels.shape != (len(fitted.X),):
        raise Wrong(f"labels_ are {labels.dtype} of shape {labels.shape}")
    if labels.min() < 0 or labels.max() >= len(centers):
        raise Wrong(f"labels_ are from {labels.min()} to {labels.max()} of {len(centers)}")
    if centers.dtype != fitted.X.dtype or centers.shape[1] != fitted.X.shape[1]:
        raise Wrong(f"centers are {centers.dtype} of shape {centers.shape}, X is {fitted.X.dtype} {fitted.X.shape}")
    if hasattr(estimator, "n_iter_") and estimator.n_iter_ < (fitted.case.estimator == "KMeans"):
        raise Wrong(f"n_iter_ is {estimator.n_iter_}")


def _centers(fitted: Fitted) -> NDArray:
    return fitted.estimator.means_ if fitted.case.estimator in MIXTURES else fitted.estimator.cluster_centers_


def searches_all(case: Case) -> bool:
    """Return whether the search always finds the nearest center."""
    return case.params.get("search", "auto") in ("auto", "full", "bounded")


def _check_centers(fitted: Fitted) -> None:
    """Check that labels are nearest centers, inertia_ is the sum of squared distances, and F never decreases."""
    case, estimator, X = fitted.case, fitted.estimator, fitted.rows
    n, D = X.shape
    cosine = case.params.get("metric") == "cosine"
    if cosine:
        X = oracles.unit(X)
    centers = estimator.cluster_centers_.astype(np.float64)
    distances = oracles.squared_distances(X, centers)
    relative, absolute = oracles.distance_error(D, fitted.X.dtype)
    if cosine:  # rows of length 1 are rounded before distances are computed
        absolute += 32 * float(np.finfo(fitted.X.dtype).eps) * (1 + D**0.5)
    own, least = distances[np.arange(n), estimator.labels_], distances.min(axis=1)
    far = own > least * (1 + relative) + absolute
    if searches_all(case) and far.any():
        i = int(np.argmax(own - least))
        raise Wrong(
            f"{far.sum()} labels are not nearest: point {i} is {own[i]} from {estimator.labels_[i]}, {least[i]}"
        )
    expected = float(fitted.weights @ own)
    slack = relative * expected + absolute * fitted.weights.sum()
    if not abs(estimator.inertia_ - expected) <= slack:
        raise Wrong(f"inertia_ is {estimator.inertia_}, by NumPy {expected}, slack {slack}")
    if case.estimator == "KMeans1D":
        _check_line(fitted)
    elif case.estimator in ("KMeans", "SoftKMeans"):
        _check_rising(fitted, centers)
    elif case.estimator == "FuzzyKMeans":
        step = float(np.abs(X).max(initial=0)) * float(np.finfo(fitted.X.dtype).eps)  # rounding of a center
        absolute = 64 * n * D * step**2
        if case.params.get("regularizer") == "entropy":  # its objective is a difference of larger numbers
            relative += 1e-10
            absolute += 8 * float(np.finfo(np.float64).eps) * estimator.regularization_
        _check_falling(estimator.objectives_, relative, absolute * float(fitted.weights.sum()))


def _check_line(fitted: Fitted) -> None:
    x, w, estimator = fitted.rows[:, 0], fitted.weights, fitted.estimator
    if len(x) > 80:
        return
    best = oracles.least_of_a_line(x, w, estimator.n_clusters)
    eps = float(np.finfo(fitted.X.dtype).eps)
    spread = float(w @ (x - x.mean()) ** 2)
    rounded = float(w.sum()) * (8 * eps * float(np.abs(x).max())) ** 2  # centers have the data's type
    if estimator.inertia_ > best * (1 + 1e-9) + rounded + 1e-12 * spread + 1e-300:
        raise Wrong(f"inertia_ is {estimator.inertia_}, the least is {best}")
    if not (np.diff(estimator.cluster_centers_[:, 0]) >= 0).all():
        raise Wrong("centers do not rise")


def _check_falling(objectives: list[float], relative: float, absolute: float = 0.0) -> None:
    values = np.array(objectives)
    slack = (relative + 1e-12) * np.abs(values[:-1]) * 4
    if (np.diff(values) > slack + absolute + 1e-300).any():
        raise Wrong(f"objectives_ rise: {objectives}")


def _check_rising(fitted: Fitted, centers: NDArray[np.float64]) -> None:
    """Check that F of k-means and similar methods never decreases, except for rounding of centers to their type."""
    case, estimator, X = fitted.case, fitted.estimator, fitted.rows
    D = X.shape[1]
    bounds = np.array(estimator.lower_bounds_)
    eps = float(np.finfo(fitted.X.dtype).eps)
    size = 1.0 if case.params.get("metric") == "cosine" else float(np.abs(X).max(initial=0))
    step = 8 * size * eps  # error of a center's coordinate: sums of 64 rows are in the data's type
    sigma = float(np.sqrt(estimator.variance_))
    with np.errstate(over="ignore"):
        ratio = step / sigma if sigma > 0 else np.inf
        slack = 64 * D * (D + 8) * eps + 1e-9 * (1 + np.abs(bounds[:-1])) + 16 * D * (ratio + ratio**2)
    if (np.diff(bounds) < -slack).any():
        raise Wrong(f"lower_bounds_ fall: {bounds.tolist()}, slack {slack.max()}")


def _check_medoids(fitted: Fitted) -> None:
    estimator, X = fitted.estimator, fitted.rows
    found = estimator.medoid_indices_
    if len(np.unique(found)) != estimator.n_clusters or found.min() < 0 or found.max() >= len(X):
        raise Wrong(f"medoid_indices_ are {found}")
    if not np.array_equal(estimator.cluster_centers_, fitted.X[found]):
        raise Wrong("cluster_centers_ are not rows of X")
    if not fitted.weights[found].all():
        raise Wrong("a point without weight is a medoid")
    from scipy.spatial.distance import cdist

    metric = {"manhattan": "cityblock"}.get(estimator.metric, estimator.metric)
    V = cdist(X, X[found], metric)
    relative = 8 * (X.shape[1] + 8) * float(np.finfo(fitted.X.dtype).eps)
    size = float(V.max(initial=0)) + 1e-300
    own = V[np.arange(len(X)), estimator.labels_]
    if (own > V.min(axis=1) + relative * size).any():
        raise Wrong("labels_ are not those of the nearest medoids")
    if abs(estimator.inertia_ - fitted.weights @ own) > relative * size * fitted.weights.sum():
        raise Wrong(f"inertia_ is {estimator.inertia_}, by NumPy {fitted.weights @ own}")
    _check_falling(estimator.objectives_, relative)


def _check_memberships(fitted: Fitted) -> None:
    estimator, X = fitted.estimator, fitted.X
    found = estimator.predict_proba(X)
    C, dtype = len(_centers(fitted)), _centers(fitted).dtype
    if found.shape != (len(X), C) or found.dtype != dtype:
        raise Wrong(f"predict_proba gives {found.dtype} of shape {found.shape}")
    if not ((found >= 0) & (found <= 1 + 4 * np.finfo(dtype).eps)).all() or not np.allclose(
        found.sum(axis=1), 1, rtol=1e-6
    ):
        raise Wrong(f"predict_proba has rows that are no probabilities: {found.sum(axis=1)}")
    if (np.count_nonzero(found, axis=1) > estimator.n_active_).any():
        raise Wrong(f"predict_proba has more than n_active_={estimator.n_active_} entries in a row")


def _check_mixture(fitted: Fitted) -> None:
    """Check weights, covariances, the best components, the density of every point, and F."""
    case, gm, X = fitted.case, fitted.estimator, fitted.rows
    if abs(gm.weights_.sum(dtype=np.float64) - 1) > 1e-6 or (gm.weights_ < 0).any():
        raise Wrong(f"weights_ are {gm.weights_}")
    _check_covariances(gm)
    logs, errors = oracles.log_densities(gm, X, fitted.X.dtype)
    own, best = logs[np.arange(len(X)), gm.labels_], logs.max(axis=1)
    error = errors[np.arange(len(X)), gm.labels_] + errors[np.arange(len(X)), logs.argmax(axis=1)]
    if searches_all(case) and (own < best - 2 * error).any():
        i = int(np.argmax(best - own - 2 * error))
        raise Wrong(f"labels_[{i}] is of log density {own[i]}, the best has {best[i]}, slack {2 * error[i]}")
    found, expected = gm.score_samples(fitted.X), oracles.log_sum(logs)
    worst = errors.max(axis=1) + (1e-9 + np.finfo(found.dtype).eps) * (1 + np.abs(expected))
    if not (np.abs(found - expected) <= worst).all():
        i = int(np.argmax(np.abs(found - expected) - worst))
        raise Wrong(f"score_samples gives {found[i]} for point {i}, by NumPy {expected[i]}, slack {worst[i]}")
    share = fitted.weights / fitted.weights.sum()
    with np.errstate(over="ignore", invalid="ignore"):
        slack = float((share * worst).sum())
    if not gm.lower_bound_ <= float(share @ expected) + slack:
        raise Wrong(f"lower_bound_ is {gm.lower_bound_}, the log-likelihood {share @ expected}, slack {slack}")
    soft = case.params.get("assignment", "soft") == "soft"
    if soft and case.params.get("reg_covar", 1e-6) == 0 and not fitted.repaired:
        slip = oracles.center_slip(gm, fitted.X.dtype).max()
        slack += 8 * float(slip * X.shape[1] ** 0.5 + slip**2)
        if hasattr(gm, "factors_"):  # noise is a difference of variances and has their rounding
            spread = gm.noise_variances_ + np.square(gm.factors_).sum(axis=2)
            slack += 8 * X.shape[1] * float(np.finfo(np.float64).eps * (spread / gm.noise_variances_).max())
        falls = np.diff(gm.lower_bounds_) < -(slack + 1e-7 * (1 + np.abs(gm.lower_bounds_[:-1])))
        if falls.any():
            raise Wrong(f"lower_bounds_ fall: {gm.lower_bounds_}, slack {slack}")


def _check_covariances(gm: Any) -> None:
    covariances = np.asarray(gm.noise_variances_ if hasattr(gm, "factors_") else gm.covariances_)
    if gm.covariance_type_ == "tied" or covariances.ndim == 3:
        if not np.allclose(covariances, np.swapaxes(covariances, -1, -2), rtol=1e-9, atol=0):
            raise Wrong("covariances_ are not symmetric")
        covariances = np.diagonal(covariances, axis1=-2, axis2=-1)
    if not (covariances > 0).all():
        raise Wrong(f"covariances_ have variances that are not positive: {covariances!r:.200}")
