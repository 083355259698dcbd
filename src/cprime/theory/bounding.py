"""Bounds of J* by several methods: preparation of the rows, division into parts, and choice of the best bound."""

from dataclasses import dataclass
from math import ceil, frexp, ldexp, sqrt
from time import monotonic
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from cprime._utils.random import Key, Purpose
from cprime._utils.threads import by_pieces, limited, plain_products, resolve_threads
from cprime.estimators import KMeans
from cprime.kernels import as_rows, cut_line
from cprime.theory.enumeration import best_partition
from cprime.theory.mixtures import Floats
from cprime.theory.parts import divide
from cprime.theory.relaxation import Relaxation
from cprime.theory.verified import UNIT, dual_value, growth, spectral_value, sum_of_squares

Labels = NDArray[np.intp]

_FEW = 24  # Most distinct rows for which branch and bound is tried; its time grows exponentially with their number.
_ASSIGNMENTS = 2_000_000  # Maximum number of assignments of a row to a cluster that branch and bound tries.
# Estimated seconds of an iteration of the semidefinite relaxation, divided by the cube of the number of rows.
_SECONDS = 0.02 / 500**3
_ITERATIONS = 60  # Parts of the rows are so small that 60 iterations of all relaxations take half of the time limit.
_SHARE = 0.5  # Share of the time limit that is planned for 60 iterations of the relaxations of all parts.
# Share of the time for iterations of the relaxation: with several parts, with one part. The rest is for verification.
_FOR_ITERATIONS, _OF_ONE_PART = 0.7, 0.95
_MATCHED = 0.1  # Maximum share of the time limit that the division of the rows into parts takes.
_LEAST_ROWS, _MOST_ROWS = 200, 1500  # Least and greatest number of rows of a part, if the rows are divided.
_PER_CLUSTER = 12  # Least number of rows of a part for each cluster, if the rows are divided.
_BYTES = 200  # Bytes of memory that the relaxation needs, divided by the square of the number of rows.
# Greatest ratio of two weights for the exact algorithm in one dimension: its sums of 104 bits lose smaller weights.
_LARGEST_RATIO = 2.0**64
# The rounding error of J in the one-dimensional algorithm is at most this number times N Σ w x² for N rows x of weights
# w: 2^-104 for sums of 104 bits, times 2⁸ for the number of operations.
_TWOFOLD = 2.0**-96
# Largest size of the matrix whose eigenvalues give the spectral bound: the lesser of the numbers of rows and columns.
_WIDEST = 3000
_STARTS = 20  # Number of initializations of the k-means fit to the solution of the relaxation.
# Largest number of initializations of the k-means fit to N rows, and largest product of this number and N·C·D.
_MOST_STARTS, _WORK_OF_STARTS = 50, 20_000_000


@dataclass(frozen=True)
class Instance:
    """K-means problem with distinct rows of mean 0, all of positive weight, made from original rows.

    X (n, D): the distinct rows, without constant columns, divided by a power of 2 so that their largest absolute value
    is from 1/2 to 1
    weights (n,): sums of the weights of equal original rows, divided by a power of 2    labels (n,): a good clustering
    n_clusters: C    positive (N,): mask of the original rows of positive weight
    inverse: for each original row of positive weight, its index in X
    exponent: J of the original rows is J of the rows X times 2^exponent
    n_equal: greatest number of original rows that are equal to one row of X
    """

    X: Floats
    weights: Floats
    labels: Labels
    n_clusters: int
    inverse: Labels
    positive: NDArray[np.bool_]
    exponent: int
    n_equal: int

    @classmethod
    def of(cls, X: Floats, weights: Floats, n_clusters: int, labels: Labels | None, seed: int) -> Self:
        """Return the `Instance` for original rows X (N, D), weights (N,) >= 0, and labels (N,) of a good clustering.

        If labels are None, they are those of the best of several fits, whose random numbers follow from `seed`.
        """
        positive = weights > 0
        X, weights = X[positive], weights[positive]
        of_weights = frexp(float(weights.max()))[1]
        weights = np.ldexp(weights, -of_weights)
        X = X[:, np.ptp(X, axis=0) > 0]
        first: Labels = np.arange(len(X))
        inverse: Labels = first
        if not X.shape[1]:
            X, first, inverse = np.zeros((1, 1)), first[:1], np.zeros_like(inverse)
        elif len(np.unique(_fingerprints(X))) < len(X):
            _, first, numbers = np.unique(X, axis=0, return_index=True, return_inverse=True)
            X, inverse = X[first], numbers.ravel()
        counts = np.bincount(inverse)
        if len(first) < len(weights):
            weights = np.bincount(inverse, weights).astype(np.float64)
        X, unit = _scaled(X)
        X, more = _scaled(X - np.average(X, axis=0, weights=weights))
        exponent = of_weights + 2 * (unit + more)
        own = _fitted(X, weights, n_clusters, seed) if labels is None else labels[positive][first]
        return cls(X, weights, own, n_clusters, inverse, positive, exponent, int(counts.max()))

    @property
    def rows(self) -> tuple[Floats, Floats]:
        """Return the distinct rows times the square roots of their weights, (n, D), and these roots, (n,)."""
        roots = np.sqrt(self.weights)
        return self.X * roots[:, np.newaxis], roots

    def unscaled(self, value: float) -> float:
        """Return a lower bound of J*, the least k-means error of the original rows, in their units.

        value: lower bound of J* for U, the scaled rows X times the square roots of their weights
        Rounding errors are subtracted. Let u be the unit roundoff. Each entry of U has a relative error of at most 4 u,
        and J is the squared distance of U to a subspace that depends only on the partition. So √J* changes by at most
        4 u times the Euclidean norm of U. Sums of the weights of equal rows have a relative error, which J* also has.
        """
        U, _ = self.rows
        root = sqrt(max(value, 0.0)) * (1 - 4 * UNIT) - 4.5 * UNIT * sqrt(sum_of_squares(U))
        value = max(root, 0.0) ** 2 * (1 - 4 * UNIT - 2 * growth(self.n_equal - 1))
        return ldexp(value, self.exponent)

    def labels_of_all(self, X: Floats, labels: Labels) -> Labels:
        """Return labels (N,) of all original rows X (N, D) from labels (n,) of the distinct rows.

        Rows of weight 0 are assigned to the cluster of nearest mean.
        """
        found = np.empty(len(X), dtype=np.intp)
        found[self.positive] = labels[self.inverse]
        others = X[~self.positive]
        if len(others):
            used = np.unique(labels)
            rows, own = X[self.positive], found[self.positive]
            means = np.array([rows[own == c].mean(axis=0) for c in used])
            found[~self.positive] = used[cdist(others, means).argmin(axis=1)]
        return found


@dataclass(frozen=True)
class Bound:
    """Lower bound of J*, the least k-means error of all clusterings of the original rows.

    value: the bound    method: name of the method    n_parts: number of parts of the rows whose bounds were added
    labels (n,): a clustering of the distinct rows, if the method found one, else None
    """

    value: float
    method: str
    n_parts: int = 1
    labels: Labels | None = None


def best_bound(instance: Instance, seconds: float, tol: float, memory: float, key: Key) -> Bound:
    """Return the greatest lower bound of J*, the least k-means error, that any method finds, as a `Bound`.

    seconds: time limit    memory: limit in bytes    key: random key
    tol: a method ends when its bound is below J of the instance's labels by at most this share
    """
    n, C = len(instance.X), instance.n_clusters
    if n <= C:
        return Bound(0.0, "enumeration", labels=np.arange(n))
    deadline = monotonic() + seconds
    with plain_products():
        exact = _on_a_line(instance)
        if exact is None and n <= _FEW:
            exact = _by_enumeration(instance, monotonic() + seconds / 2)
        if exact is not None:
            return exact
        found = Bound(0.0, "spectral")
        U, roots = instance.rows
        if min(U.shape) <= _WIDEST:
            found = Bound(instance.unscaled(spectral_value(U, roots, C)), "spectral")
        relaxed = None if C == 1 else _by_relaxation(instance, deadline, seconds, tol, memory, key)
    return found if relaxed is None or relaxed.value <= found.value else relaxed


def _fitted(X: Floats, weights: Floats, n_clusters: int, seed: int) -> Labels:
    """Return the labels (n,) of the best of several k-means fits to distinct rows X (n, D) with weights (n,)."""
    n = len(X)
    if n <= n_clusters:
        return np.arange(n)
    n_init = min(_MOST_STARTS, max(1, _WORK_OF_STARTS // (n * n_clusters * X.shape[1])))
    given = None if weights.min() == weights.max() else weights
    return KMeans(n_clusters, n_init=n_init, random_state=seed).fit(X, sample_weight=given).labels_.astype(np.intp)


def _fingerprints(X: Floats) -> Floats:
    """Return a number (n,) for each row of X (n, D), for a fast test whether equal rows exist.

    Equal rows have equal numbers, different rows rarely do.
    """
    found = np.zeros(len(X))
    for j, column in enumerate(X.T):
        found += sqrt(j + 2) * column
    return found


def _scaled(X: Floats) -> tuple[Floats, int]:
    """Return X / 2^e and the exponent e, for which the largest absolute value of the result is from 1/2 to 1.

    Then sums of squares do not overflow.
    """
    exponent = frexp(float(np.abs(X).max()))[1]
    return np.ldexp(X, -exponent), exponent


def _on_a_line(instance: Instance) -> Bound | None:
    """Return the least k-means error as a `Bound`, by the exact algorithm for rows in one dimension.

    Return None if there are more dimensions, or if rounding or very different weights prevent an exact result.
    """
    x, weights = instance.X[:, 0], instance.weights
    if instance.X.shape[1] > 1 or weights.max() > _LARGEST_RATIO * weights.min():
        return None
    order = np.argsort(x)
    # Distinct values may have become equal by rounding when the mean was subtracted; the algorithm needs distinct ones.
    if not (np.diff(x[order]) > 0).all():
        return None
    starts = cut_line(x[order], weights[order], instance.n_clusters)
    labels = np.empty(len(x), dtype=np.intp)
    labels[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(x))))
    masses = np.bincount(labels, weights)
    differences = x - (np.bincount(labels, weights * x) / masses)[labels]
    # The sum of squares about rounded means exceeds that about exact means, so the excess is subtracted from the bound.
    # The sum of squares of a cluster of weight W is o²/W too large if its weighted deviations from the mean sum to o.
    offsets = np.abs(np.bincount(labels, weights * differences)) + growth(len(x)) * np.bincount(
        labels, weights * np.abs(differences)
    )
    value = sum_of_squares(np.sqrt(weights) * differences) * (1 - 16 * UNIT)
    value -= 1.01 * float(np.sum(offsets * offsets / masses))
    value -= _TWOFOLD * len(x) * float(weights @ (x * x))
    return Bound(instance.unscaled(value), "line", labels=labels)


def _by_enumeration(instance: Instance, deadline: float) -> Bound | None:
    """Return the least k-means error as a `Bound`, by branch and bound; None if the search takes too long.

    deadline: end of the search, as a value of `time.monotonic`
    """
    rows = instance.X, instance.weights, instance.labels
    found = best_partition(*rows, instance.n_clusters, _ASSIGNMENTS, deadline)
    return None if found is None else Bound(instance.unscaled(found[0]), "enumeration", labels=found[1])


def _rows_of_part(n: int, n_clusters: int, seconds: float, memory: float) -> int:
    """Return the number of rows of each part into which n rows are divided for the semidefinite relaxation.

    The result n means that the rows are not divided. Otherwise the relaxations of all parts, one after another, take
    half of the time limit `seconds`, unless such parts are too small, or too large for the memory [bytes].
    """
    most = min(_MOST_ROWS, int(sqrt(min(memory / _BYTES, n * n))))
    if n <= most and n**3 * _SECONDS * _ITERATIONS <= _SHARE * seconds:
        return n
    rows = sqrt(_SHARE * min(seconds, 1e9) / (n * _SECONDS * _ITERATIONS))
    return int(min(most, max(rows, _LEAST_ROWS, _PER_CLUSTER * n_clusters)))


def _by_relaxation(
    instance: Instance, deadline: float, seconds: float, tol: float, memory: float, key: Key
) -> Bound | None:
    """Return a lower bound of J*, the least J of all clusterings: the sum of bounds for parts of the rows.

    Each part has a bound from its semidefinite relaxation, which needs more than C rows. Return None if the memory or
    the time is too small for parts of this size.
    deadline: end of the computation, as a value of `time.monotonic`    seconds, tol, memory, key: see `best_bound`
    """
    n, C = len(instance.X), instance.n_clusters
    size = _rows_of_part(n, C, seconds, memory)
    if size <= C:
        return None
    n_parts = ceil(n / size)
    U, roots = instance.rows
    rng = key.generator(Purpose.PARTS)
    parts = divide(U, instance.labels, n_parts, rng, deadline - (1 - _MATCHED) * min(seconds, 1e9))
    n_workers = int(min(resolve_threads(None), n_parts, max(1, memory / (_BYTES * size * size))))
    solved: list[Relaxation] = []

    def bound_of(index: int) -> float:
        rows, now = parts[index], monotonic()
        if len(rows) <= C or now > deadline:
            return 0.0
        remaining = n_parts - index
        share = _FOR_ITERATIONS if n_parts > 1 else _OF_ONE_PART
        until = now + share * (deadline - now) * min(n_workers, remaining) / remaining
        part = Relaxation(U[rows], roots[rows], C, instance.labels[rows])
        part.solve(tol, until, deadline)
        if n_parts == 1:
            solved.append(part)
        return max(dual_value(U[rows], roots[rows], C, part.best), 0.0)

    with limited(n_workers):
        values = by_pieces(bound_of, range(n_parts))
    value = float(np.sum(values)) * (1 - growth(n_parts))
    labels = _labels_of(solved[0], instance, key) if solved else None
    return Bound(instance.unscaled(value), "relaxation", n_parts, labels)


def _labels_of(relaxation: Relaxation, instance: Instance, key: Key) -> Labels:
    """Return the labels (n,) of a clustering that is near the solution Z (n, n) of the semidefinite relaxation.

    If Z is the matrix of a partition, its product with the rows replaces each row by the mean of its cluster. k-means
    of the product gives the labels from which k-means of the rows themselves starts.
    """
    roots, C = relaxation.roots[:, np.newaxis], instance.n_clusters
    smoothed = (relaxation.Z @ relaxation.U) / roots
    n_found = min(C, len(np.unique(smoothed, axis=0)))
    first = KMeans(n_found, n_init=_STARTS, random_state=key.seed).fit(smoothed, sample_weight=instance.weights)
    used, own = np.unique(first.labels_, return_inverse=True)
    places = own[:, np.newaxis].astype(np.int32)
    counts, sums = as_rows(instance.X).accumulate(places, None, instance.weights, n_components=len(used))
    means = sums / counts[:, np.newaxis]
    centers = np.concatenate([means, instance.X[: C - len(used)]])
    return KMeans(C, init=centers).fit(instance.X, sample_weight=instance.weights).labels_.astype(np.intp)
