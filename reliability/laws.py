"""The laws: changes of the data without new information, after which a fit must give the same result.

Each law is defined once, for the tests of `tests/laws` and for the generated cases of `reliability.trial`: the change
of the data, and the comparison of the results before and after it.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reliability.properties import Wrong

FITTED = (
    *("cluster_centers_", "means_", "weights_", "covariances_", "noise_variances_", "dof_"),
    *("inertia_", "lower_bound_", "memberships_"),
)
_NOTHING = 1e-30  # a share of points below this counts as none
POWERS = {"cluster_centers_": 1, "means_": 1, "weights_": 0}
POWERS |= {"covariances_": 2, "variance_": 2, "noise_variances_": 2}
EXACT = ("KMeans", "KMeans1D", "KMedoids")  # without exponentials, so a power of two changes no digit
PLACES = ("behind", "among", "before")


def with_others(
    X: NDArray, where: str, w: ArrayLike | None = None, extra: int | None = None, seed: int = 5
) -> tuple[NDArray, NDArray[np.float64], NDArray[np.int64]]:
    """Add points of weight 0 to X; return the rows, their weights, and the indices of the rows of X.

    where: "behind" X, "among" its rows or "before" them    extra: number of added points, by default as many as X has
    """
    n, rng = len(X), np.random.default_rng(seed)
    extra = n if extra is None else extra
    at = {
        "behind": lambda: np.arange(n),
        "among": lambda: np.sort(rng.permutation(n + extra)[:n]),
        "before": lambda: np.arange(extra, n + extra),
    }[where]()
    both = (3 * np.nanmax(np.abs(X), initial=0) * rng.uniform(-1, 1, (n + extra, X.shape[1]))).astype(X.dtype)
    weights = np.zeros(n + extra)
    both[at], weights[at] = X, 1.0 if w is None else w
    return both, weights, at


def with_others_in_chunks(
    X: NDArray, chunk_rows: int, where: str, w: ArrayLike | None = None, extra: int = 1, seed: int = 5
) -> tuple[NDArray, NDArray[np.float64], NDArray[np.int64]]:
    """Add points of weight 0 to every chunk; return the rows, their weights, and the indices of the rows of X.

    Chunks of `chunk_rows + extra` rows then have the points they had before. The law needs this, because an exchange
    step limits, for each chunk, how many points it reassigns to farther centers.
    """
    w = np.ones(len(X)) if w is None else np.asarray(w)
    parts = [
        with_others(X[begin : begin + chunk_rows], where, w[begin : begin + chunk_rows], extra, seed + begin)
        for begin in range(0, len(X), chunk_rows)
    ]
    rows, weights, at = zip(*parts, strict=True)
    at = [part + i * (chunk_rows + extra) for i, part in enumerate(at)]
    return np.concatenate(rows), np.concatenate(weights), np.concatenate(at)


def check_weight_zero(alone: Any, among: Any, at: NDArray[np.int64]) -> None:
    """Check that points of weight 0 change no label, choice or draw of the others, and sums by their order only.

    Other partial sums change one iteration by some eps, and further iterations multiply this. So parameters are
    compared with a tolerance.

    alone: an estimator fitted to weighted points    among: fitted to these and points of weight 0; `at`: indices of the
    former among all rows
    """
    _check_labels(np.asarray(among.labels_)[at], alone.labels_, "among points of weight 0")
    for name in FITTED:
        if getattr(alone, name, None) is None:
            continue
        ours, theirs = (np.asarray(getattr(fit, name), dtype=float) for fit in (among, alone))
        ours = ours[at] if ours.ndim and len(ours) == len(among.labels_) > len(theirs) else ours
        _check_close(ours, theirs, 1e-7, 1e-9, f"{name} among points of weight 0")
    if getattr(among, "n_iter_", 0) != getattr(alone, "n_iter_", 0):
        raise Wrong(f"n_iter_ is {among.n_iter_} among points of weight 0, and {alone.n_iter_} without")
    if getattr(alone, "certificate_", None) is not None:
        found, expected = (fit.certificate_["agreement"] for fit in (among, alone))
        if found != expected:
            raise Wrong(f"the certificate's agreement is {found} among points of weight 0, and {expected} without")


def check_units(one: Any, other: Any, unit: float) -> None:
    """Check that a power of two changes no label, and scales parameters only; bit-identical for methods without
    logarithms.

    one: an estimator fitted to X    other: fitted to X times `unit`
    """
    when = f"in units of {unit}"
    _check_labels(other.labels_, one.labels_, when)
    exact, cosine = type(one).__name__ in EXACT, getattr(one, "metric", None) == "cosine"
    for name, power in POWERS.items():
        if getattr(one, name, None) is None:
            continue
        factor = 1.0 if cosine else unit**power
        ours, theirs = (np.asarray(getattr(fit, name), dtype=float) for fit in (other, one))
        counts = np.asarray(getattr(one, "counts_", 0.0))
        if ours.shape[:1] == theirs.shape[:1] == counts.shape:  # a component without points depends on rounding
            ours, theirs = (array[counts > _NOTHING * counts.sum()] for array in (ours, theirs))
        relative, absolute = (0.0, 0.0) if exact else (1e-4, 1e-9) if power == 2 else (1e-5, 1e-6)
        _check_close(ours / factor, theirs, relative, absolute, f"{name} {when}")


def check_rows(estimator: Any, X: NDArray, some: NDArray[np.int64]) -> None:
    """Check that predictions of a row do not depend on other rows in the call.

    some: indices of rows that are predicted in a call of their own
    """
    _check_labels(estimator.predict(X[some]), estimator.predict(X)[some], f"of {len(some)} rows")
    relative = 1e3 * float(np.finfo(X.dtype).eps)
    for name in ("predict_proba", "score_samples"):
        if hasattr(estimator, name):
            alone, all_ = getattr(estimator, name)(X[some]), getattr(estimator, name)(X)[some]
            _check_close(alone, all_, relative, relative, f"{name} of {len(some)} rows")


def _check_labels(found: ArrayLike, expected: ArrayLike, when: str) -> None:
    ours, theirs = np.asarray(found), np.asarray(expected)
    if not np.array_equal(ours, theirs):
        n = f"{np.count_nonzero(ours != theirs)} of {len(theirs)}" if ours.shape == theirs.shape else "their number"
        raise Wrong(f"labels {when} differ: {n}")


def _check_close(found: NDArray, expected: NDArray, relative: float, absolute: float, what: str) -> None:
    """Check closeness; absolute: tolerance as a share of the largest expected number."""
    if found.shape != expected.shape:
        raise Wrong(f"{what} is of shape {found.shape}, where {expected.shape} was expected")
    largest = np.abs(expected).max(initial=0.0)
    off = np.abs(found - expected) - relative * np.abs(expected) - absolute * largest
    if not (off <= 0).all():
        i = np.unravel_index(np.argmax(np.nan_to_num(off, nan=np.inf)), off.shape)
        raise Wrong(f"{what} is {found[i]}, where {expected[i]} was expected, of numbers up to {largest}")
