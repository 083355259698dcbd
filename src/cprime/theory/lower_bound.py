"""Lower bound of J*, the least value of the k-means objective of all clusterings of a data set."""

from dataclasses import dataclass, field
from math import ceil, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cprime._utils.messages import bytes_of
from cprime._utils.number_types import check_largest
from cprime._utils.random import Key, seed_of
from cprime._utils.threads import limited
from cprime.estimators import KMeans
from cprime.estimators.opening import as_training_data
from cprime.estimators.validation import check_integer, check_real, check_weights
from cprime.kernels import as_rows
from cprime.sources import array_of, is_source_like, open_data
from cprime.sources.checked import checked
from cprime.theory.bounding import Instance, best_bound
from cprime.theory.mixtures import Floats

Labels = NDArray[np.intp]


@dataclass(frozen=True)
class LowerBound:
    """A lower bound of J*, the least sum of squared distances of all rows to the nearest of C centers.

    Attributes
    ----------
    value : float
        The bound, in data unit². No clustering of these rows into C clusters has a smaller J; rounding errors of the
        computation are accounted for.
    inertia : float
        J of the fitted model: squared distances of the rows to its nearest centers. Without a model, J of the given
        labels, with the mean of each cluster as its center, or of the best clustering found.
    gap : float
        (inertia − value) / inertia: no clustering is better by more than this share. 0 if `inertia` is 0.
    method : {"line", "enumeration", "relaxation", "spectral"}
        How the bound was found: the exact program for one dimension, branch and bound for few rows, a dual of Peng and
        Wei's semidefinite relaxation, or the eigenvalues of the scatter matrix.
    parts : int
        Number of parts of the rows whose bounds were added; 1 if the rows were not divided.
    labels : ndarray of shape (n_samples,), intp
        The clustering that has `inertia`.

    Examples
    --------
    >>> from cprime.theory import lower_bound
    >>> found = lower_bound([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]], 2)
    >>> print(found)
    J* >= 1; J is at most 0.01 % above it (enumeration)
    """

    value: float
    inertia: float
    gap: float
    method: str
    parts: int
    labels: Labels = field(repr=False, compare=False)

    def __str__(self) -> str:
        how = f"({self.method}{f', {self.parts:,} parts' if self.parts > 1 else ''})"
        if self.value <= 0 < self.inertia:
            return f"J* >= 0: no better bound was found {how}"
        excess = self.inertia / self.value - 1 if self.inertia > 0 else 0.0
        return f"J* >= {self.value:.8g}; J is at most {ceil(1e4 * excess) / 100:.2f} % above it {how}"


def lower_bound(
    X: Any,
    n_clusters: Any,
    *,
    labels: Any = None,
    time_limit: float | None = 60.0,
    tol: float = 1e-4,
    sample_weight: Any = None,
    max_memory: int | float | str | None = None,
    n_threads: int | None = None,
    random_state: Any = None,
) -> LowerBound:
    """Compute a lower bound of J*, the least k-means objective of all clusterings of X into at most C clusters.

    If the bound is near the J of a fit, neither more starts nor another program can find a much better clustering. The
    best of these bounds is returned:

    - one dimension: J* itself, by the exact program of `KMeans1D`;
    - up to 24 distinct rows: J* itself, by branch and bound, unless it takes too long;
    - otherwise Peng and Wei's semidefinite relaxation. Rows are divided into parts if they are too many for the time:
      J* of all rows is at least the sum of the J* of the parts. The parts are small copies of the whole, so that little
      is lost. The relaxation is solved approximately, and tightened by inequalities; any multipliers give a bound;
    - the spectral bound: the total scatter minus the C − 1 largest eigenvalues of the scatter matrix.

    The bound holds in exact arithmetic for the numbers of X in double precision: the rounding errors of the computation
    are bounded and subtracted. It does not depend on `n_threads` unless time runs out.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or a source
        Dense rows of finite numbers. All rows of a file or another source are read into memory.
    n_clusters : int or fitted KMeans
        C, at most the number of rows. A fitted `KMeans` provides C and the labels of X. The result is stored in its
        attribute `objective_bound_`, with the J of its centers for these rows and weights, which need not be those of
        the fit; `print`, `report` and the model file show it.
    labels : array-like of shape (n_samples,), default=None
        Integers from 0 to C − 1: the clustering to compare with, from any program. The better it is, the better is the
        bound of divided rows. None is a fit of `KMeans` with many starts.
    time_limit : float or None, default=60.0
        Seconds for the bound, without those of the fit. Within this time the bound improves; then the best bound so far
        is returned. It also determines the size of the parts. None does not limit the time.
    tol : float, default=1e-4
        The computation ends if the gap is at most this (of each part, if the rows are divided).
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 counts the row twice; None is 1 for each.
    max_memory : int, str or None, default=None
        Memory for matrices of n_p² numbers for parts of n_p rows, in bytes or as text such as "1GB". None limits parts
        to 1,500 rows, which take 450 MB in each thread. If the memory is too small for any part, the result is the
        spectral bound.
    n_threads : int or None, default=None
        Number of threads, one for each part; None is all processors.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers for the fit and the division into parts.

    Returns
    -------
    bound : LowerBound

    Raises
    ------
    ValueError
        If an argument is out of its range or the numbers of rows differ.
    TypeError
        If X is sparse, or `n_clusters` is neither an integer nor a fitted `KMeans`.

    References
    ----------
    Peng & Wei, "Approximating k-means-type clustering via semidefinite programming", SIAM J. Optim. 18 (2007).
    Sudoso & Aloise, "An anticlustering-based approach to bounds of large k-means problems", arXiv 2502.08397 (2025).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cprime.theory import lower_bound
    >>> found = lower_bound(load_iris().data, 2, random_state=0)
    >>> round(found.inertia, 3), found.gap < 0.001
    (152.348, True)
    """
    seconds = inf if time_limit is None else check_real(time_limit, "time_limit", 0.0)
    check_real(tol, "tol", 0.0)
    memory = inf if max_memory is None else bytes_of(max_memory, "max_memory")
    C, model = _clusters(n_clusters)
    if model is not None:
        if labels is not None:
            raise ValueError("labels must be None if n_clusters is a fitted KMeans, whose labels are used.")
        labels = model.predict(X)
        X = as_training_data(model, X)
    if is_source_like(X):
        source = open_data(X) if sample_weight is None else open_data(X).with_weights(sample_weight)
        X, sample_weight = source.read(0, source.n_rows), source.weights(0, source.n_rows)
    X = checked(X, dtype=np.float64)
    check_largest(float(np.abs(X).max()), X.dtype, X.shape[1], "X")
    given = check_weights(sample_weight, X)
    weights = np.ones(len(X)) if given is None else given
    if len(X) < C:
        raise ValueError(f"n_samples={len(X)} should be >= n_clusters={C}.")
    seed = seed_of(random_state)
    checked_labels = None if labels is None else _checked_labels(labels, len(X), C)
    with limited(n_threads):
        instance = Instance.of(X, weights, C, checked_labels, seed)
        found = best_bound(instance, seconds, tol, memory, Key(seed))
    if checked_labels is None:
        own = [instance.labels, *([] if found.labels is None else [found.labels])]
        candidates = [instance.labels_of_all(X, one) for one in own]
    else:
        candidates = [checked_labels]
    if model is None:
        inertias = [_inertia(X, weights, one) for one in candidates]
    else:
        distances = as_rows(X).own_distances(model.cluster_centers_.astype(np.float64), candidates[0].astype(np.int32))
        inertias = [float(weights @ distances)]
    inertia, best = min(zip(inertias, candidates, strict=True), key=lambda pair: pair[0])
    value = min(found.value, inertia)
    gap = (inertia - value) / inertia if inertia > 0 else 0.0
    bound = LowerBound(value, inertia, gap, found.method, found.n_parts, best)
    if model is not None:
        model.objective_bound_ = {name: getattr(bound, name) for name in ("value", "inertia", "gap", "method", "parts")}
    return bound


def _clusters(n_clusters: Any) -> tuple[int, KMeans | None]:
    """Return the number of clusters C, and the fitted `KMeans` if the argument is one, None if it is a number."""
    if not isinstance(n_clusters, KMeans):
        return check_integer(n_clusters, "n_clusters", 1), None
    check_is_fitted(n_clusters)
    if n_clusters.metric != "euclidean":
        raise ValueError(
            f"n_clusters must be a KMeans with metric='euclidean', got {n_clusters.metric!r}; "
            "give rows of length 1 and the labels instead."
        )
    return len(n_clusters.cluster_centers_), n_clusters


def _checked_labels(labels: Any, n: int, n_clusters: int) -> Labels:
    """Return the argument `labels` as an array (n,) of integers from 0 to C − 1; raise ValueError otherwise."""
    found = array_of(labels, "labels")
    if found.shape != (n,) or found.dtype.kind not in "iu":
        raise ValueError(f"labels must be {n} integers, got an array of shape {found.shape} and type {found.dtype}.")
    if found.min() < 0 or found.max() >= n_clusters:
        raise ValueError(
            f"labels must be from 0 to n_clusters − 1 = {n_clusters - 1}, got {found.min()} to {found.max()}."
        )
    return found.astype(np.intp)


def _inertia(X: Floats, weights: Floats, labels: Labels) -> float:
    """Return the error J of a clustering: Σ_n w_n ‖x_n − μ‖² with the weighted mean μ of each row's cluster.

    X (n, D): rows x_n    weights (n,): w_n    labels (n,): cluster of each row
    """
    X, labels, weights = X[weights > 0], labels[weights > 0], weights[weights > 0]
    _, first, own = np.unique(labels, return_index=True, return_inverse=True)
    # One row of each cluster is subtracted from all of its rows, so that a cluster of equal rows has exactly J = 0.
    differences = X - X[first][own]
    places = own[:, np.newaxis].astype(np.int32)
    counts, sums = as_rows(differences).accumulate(places, None, weights, n_components=len(first))
    differences -= (sums / counts[:, np.newaxis])[own]
    return float(weights @ np.einsum("nd,nd->n", differences, differences))
