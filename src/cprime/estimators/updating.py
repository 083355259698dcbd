"""Continuation of a fit on changed data: it starts from the fitted parameters, and clusters keep their ids.

`update` is the method of `KMeans`; that of mixtures uses `updated`, too.
"""

import logging
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from cprime._utils.random import Key, Purpose, seed_of
from cprime.em.hard import SetLabels
from cprime.em.joins import children_of, cluster_of, sums_by, ward_joins
from cprime.estimators.constraints import n_fixed, refuse_labels
from cprime.estimators.fitted import centers_of, data_for, size_of
from cprime.estimators.opening import as_training_data
from cprime.estimators.solutions import history_of
from cprime.estimators.validation import check_integer, check_jumps
from cprime.execution import Data
from cprime.kernels import computing
from cprime.model.unit import directions
from cprime.seeding.extension import extended, rows_in_memory

logger = logging.getLogger("cprime")

T = TypeVar("T")

_RISEN = 1.01  # If J per point rises by more than this factor in an update of k-means, a fit with jumps follows.
# Attributes of the former fit that its continuation on changed data does not inherit, because they describe one fit.
_OF_ONE_FIT = ("lower_bounds_", "origin_")


@dataclass(frozen=True, eq=False)
class _KnownStart:
    """Initialization by given centers (C, D), with a known near center of each point.

    known (C, D): the centers    labels (N,): index of a center for each point, which becomes its first active set
    """

    known: NDArray
    labels: NDArray[np.int32]

    name: ClassVar[str] = "known"

    def centers(self, data: Data, n_clusters: int, rng: np.random.RandomState) -> NDArray:
        data.each(SetLabels(self.labels))
        return self.known.astype(data.dtype)


class _Start(NamedTuple):
    """Starting centers of a fit on changed data, and their relation to the clusters of the former fit.

    centers (C, D): the starting centers
    successors (C_before,): index of the starting center that replaces each former center; joined centers have the same
    ids (m,): former id of each of the first m starting centers; the other C − m centers are new
    """

    centers: NDArray
    successors: NDArray[np.int32]
    ids: NDArray[np.int32]


def update(self: T, X: Any, n_clusters: int | None = None, sample_weight: Any = None) -> T:
    """Continue the fit on changed data, for example with some rows replaced; ids of clusters keep their meaning.

    The fit starts from the fitted centers and takes steps of Lloyd's algorithm. If J per point is then more than 1 %
    above that of the former fit, jumps of centers follow, unless `jumps` is False.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or a source
        The data as they are now, with the columns of the fit.
    n_clusters : int or None, default=None
        New number of clusters; None keeps the present one. Additional clusters start at distant points (D²
        sampling). If there are fewer, centers are joined by Ward's criterion, and the heaviest one keeps its id.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the points; None is 1 for each.

    Returns
    -------
    self : the estimator
        Fitted attributes are those of the new data. `origin_` has the former id of each cluster, or −1 for a new
        cluster. A cluster continues a former one if they share more than half of the points of either; the log
        names clusters that are new and clusters that ended. `history_` and `lower_bounds_` continue. After an error
        the estimator is unchanged. No checkpoint is written.

    Raises
    ------
    ValueError
        If X has other columns than the training data, or fewer points than clusters.
    """
    self.__dict__ = updated(self, X, n_clusters, sample_weight)
    return self


def updated(estimator: Any, X: Any, n_components: int | None, sample_weight: Any) -> dict[str, Any]:
    """Continue the fit of a k-means or a mixture on changed data.

    Returns a dictionary of all attributes that the estimator has afterwards. The estimator itself is not changed.
    X: the data as they are now    n_components: the new number of clusters, or None for the present one
    """
    check_is_fitted(estimator)
    refuse_labels(estimator, "update")
    C_before = len(centers_of(estimator))
    C = C_before if n_components is None else check_integer(n_components, estimator._size_name, 1)
    if not hasattr(estimator, "counts_"):
        raise ValueError("update continues a fit: parameters set by hand or derived have no counts_.")
    if C_before != C and not {"init", "means_init"} & set(estimator.get_params(deep=False)):
        kind = type(estimator).__name__
        raise ValueError(f"n_components={C} must be that of the fit, {C_before}, for an update of a {kind}.")
    before = np.asarray(estimator.predict(X, approximate=True))
    start, rows = _start(estimator, X, sample_weight, C), as_training_data(estimator, X)
    if hasattr(estimator, "init"):
        fits = _k_means_fits(estimator, start, before, rows, sample_weight)
    else:
        fits = [_mixture_fit(estimator, start.centers, rows, sample_weight)]
    origin = _origins(start, before, np.asarray(fits[-1].labels_), C)
    _log_changes(origin, C_before)
    history = np.concatenate([history_of(estimator), *(fit.history_ for fit in fits)])
    kept = {key: value for key, value in vars(estimator).items() if key[-1] != "_"} | size_of(estimator, C)
    fitted = {key: value for key, value in vars(fits[-1]).items() if key[-1] == "_"} | {
        "origin_": origin,
        "history_": history,
        "n_iter_": len(history),
        "lower_bounds_": history["lower_bound"].tolist(),
    }
    return kept | fitted


def _k_means_fits(estimator: Any, start: _Start, before: NDArray, X: Any, sample_weight: Any) -> list[Any]:
    """Fit a k-means to X from the starting centers; return a list of the fitted estimators, the final one last.

    If J per point is more than 1 % above its former value, a second fit follows, in which centers jump: clusters are
    merged and others are split.
    before (N,): nearest former cluster of each point
    """
    fit = clone(estimator).set_params(n_clusters=len(start.centers), n_init=1, checkpoint=None)
    fit.init = _KnownStart(start.centers, start.successors[before])
    adapts = check_jumps(fit.jumps) is None and fit.epsilon == 0 and fit.missing == "error" and not issparse(X)
    adapts &= fit.fixed is None
    if adapts:
        fit.jumps = False
    fit.fit(X, sample_weight=sample_weight)
    least = _RISEN * estimator.inertia_ / estimator.counts_.sum()
    if not adapts or len(start.centers) == 1 or fit.inertia_ / fit.counts_.sum() <= least:
        return [fit]
    second = clone(fit).set_params(jumps=True, init=_KnownStart(fit.cluster_centers_, np.asarray(fit.labels_)))
    return [fit, second.fit(X, sample_weight=sample_weight)]


def _mixture_fit(estimator: Any, means: NDArray, X: Any, sample_weight: Any) -> Any:
    """Fit a mixture to X and return it.

    The fit starts from the former parameters, or only from `means` (C, D) if the number of components changes.
    """
    fit, C, C_before = clone(estimator), len(means), len(estimator.means_)
    if C_before == C:
        continue_from(fit.set_params(checkpoint=None), estimator)
    else:
        fit.set_params(
            n_init=1, checkpoint=None, weights_init=None, precisions_init=None, means_init=means, **size_of(fit, C)
        )
    return fit.fit(X, sample_weight=sample_weight)


def continue_from(fit: Any, estimator: Any) -> None:
    """Let the next fit of the mixture `fit` start from all parameters of a fitted mixture of the same class."""
    attributes = {key: value for key, value in vars(estimator).items() if key[-1] == "_" and key not in _OF_ONE_FIT}
    vars(fit.set_params(warm_start=True)).update(attributes)


def _start(estimator: Any, X: Any, sample_weight: Any, C: int) -> _Start:
    """Return C starting centers for a further fit, as a `_Start`.

    These are the former centers. If C is greater than their number, centers at distant points are added (D² sampling).
    If C is smaller, centers that are not fixed are joined by Ward's criterion.
    """
    centers = centers_of(estimator, None)
    m = n_fixed(estimator)  # The centers of the first m clusters are fixed.
    if m >= C < len(centers):
        raise ValueError(f"{estimator._size_name}={C} must be more than {m}, the number of fixed ones, or as fitted.")
    ids = np.arange(len(centers), dtype=np.int32)
    if len(centers) < C:
        rng = Key(seed_of(estimator.random_state)).random_state(Purpose.START)
        with computing(estimator.n_threads):
            rows, weights, _ = rows_in_memory(data_for(estimator, X, sample_weight), rng)
            more = extended(rows, centers, C - len(centers), weights, rng, estimator.n_threads)
        return _Start(more, ids, ids)
    if len(centers) == C:
        return _Start(centers, ids, ids)
    counts = np.asarray(estimator.counts_, dtype=np.float64)
    joins = ward_joins(centers[m:].astype(np.float64), counts[m:])
    groups = cluster_of(children_of(joins.pairs, len(centers) - m), C - m)
    groups = np.concatenate([np.arange(m), m + groups])
    heaviest = np.lexsort((-counts, groups))[np.searchsorted(np.sort(groups), np.arange(C))]
    kept, successors = np.unique(heaviest[groups], return_inverse=True)
    sums = np.column_stack([sums_by(successors, counts * column, C) for column in centers.T])
    weights, present = sums_by(successors, counts, C), centers[kept].astype(np.float64)
    if getattr(estimator, "metric", "") == "cosine":
        means = directions(weights, sums, present)[0]
    else:
        means = np.divide(sums, weights[:, np.newaxis], out=present, where=weights[:, np.newaxis] > 0)
    return _Start(means.astype(centers.dtype), successors.astype(np.int32), kept.astype(np.int32))


def _origins(start: _Start, before: NDArray, labels: NDArray, C: int) -> NDArray[np.int32]:
    """Return, for each of the C clusters, the id of the former cluster that it continues, or −1 if it is new: (C,).

    A cluster continues a former cluster if the points that both have are more than half of the points of the one or of
    the other, or if both are empty.
    start: relation of the starting centers to the former clusters
    before (N,): nearest former cluster of each point    labels (N,): clusters after the update
    """
    m = len(start.ids)
    former = start.successors[before]
    shared, *sizes = (np.bincount(some, minlength=C)[:m] for some in (former[former == labels], former, labels))
    continues = (2 * shared > sizes[0]) | (2 * shared > sizes[1]) | ((sizes[0] == 0) & (sizes[1] == 0))
    origin = np.full(C, -1, dtype=np.int32)
    origin[:m] = np.where(continues, start.ids, -1)
    return origin


def _log_changes(origin: NDArray[np.int32], n_before: int) -> None:
    new, ended = np.flatnonzero(origin < 0), np.setdiff1d(np.arange(n_before), origin)
    logger.info(
        "update: %d new clusters %s, %d former clusters ended %s", len(new), new.tolist(), len(ended), ended.tolist()
    )
