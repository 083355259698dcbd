"""Partial E-steps, which compare each row with few candidate components, and changes of active sets.

The candidates are the neighbor lists of components in the row's active set K(n). These are the E-steps of Algorithms 1
and 2 of Forster & Lücke, *Can clustering scale sublinearly with its clusters?*, and a variant in which all points of a
component share candidates.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cprime import _core
from cprime._utils.threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.measures import Floats, Measure


class Evidence(NamedTuple):
    """Sums of distances for pairs (c, c̃) of components, for the mean distances of eq. 8 of Forster & Lücke (2018).

    The sums of a pair (c, c̃) are over the points x_n whose best component is c, and which have c̃ among their
    candidates. Points of weight w_n = 0 are left out. All pairs form a sparse matrix (C, C) in CSR format: row c has
    entries for the components c̃ in indices[indptr[c] : indptr[c + 1]], ascending.
    sums (one entry a pair): Σ w_n times the distance (for Gaussians the cost) of x_n to c̃    weights: Σ w_n
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    sums: NDArray[np.float64]
    weights: NDArray[np.float64]

    @classmethod
    def of_pairs(
        cls,
        pairs: NDArray[np.int64],
        sums: NDArray[np.float64],
        weights: NDArray[np.float64],
        n_components: int,
    ) -> Self:
        """Add up m weighted distances, and m weights, for each pair (c, c̃) of components; return an instance.

        Each of the m distances is that of one point, whose best component is c, to one of its candidates c̃.
        pairs (m,): number c · C + c̃ of each distance's pair, in any order
        sums, weights (m,): each distance times the weight of its point, and this weight
        """
        used, place = np.unique(pairs, return_inverse=True)
        indptr = np.searchsorted(used // n_components, np.arange(n_components + 1)).astype(np.int64)
        by_pair = [np.bincount(place, terms, len(used)).astype(np.float64) for terms in (sums, weights)]
        return cls(indptr, (used % n_components).astype(np.int32), *by_pair)

    def joined(self, other: "Evidence") -> "Evidence":
        """Return the sums of both instances together: weighted distances and weights are added, pair by pair."""
        C = len(self.indptr) - 1
        pairs = [np.repeat(np.arange(C), np.diff(one.indptr)) * C + one.indices for one in (self, other)]
        sums, weights = np.append(self.sums, other.sums), np.append(self.weights, other.weights)
        return self.of_pairs(np.concatenate(pairs), sums, weights, C)


class SearchResult(NamedTuple):
    """Result of the search `search_lists`, in which each of n rows has its own candidates.

    kept (n, H): the H components of least cost among the candidates    costs (n, H): costs of these components
    counts (n,): number of candidates of each row
    evidence: sums of distances for each pair of best component and candidate, or None
    """

    kept: NDArray[np.int32]
    costs: Floats
    counts: NDArray[np.int32]
    evidence: Evidence | None


def search_lists(
    X: CoreRows,
    components: Measure,
    lists: NDArray[np.int32],
    previous: NDArray[np.int32],
    n_kept: int,
    extra: NDArray[np.int32] | None = None,
    *,
    evidence: bool = False,
    sample_weight: Floats | None = None,
    n_threads: int | None = None,
) -> SearchResult:
    """Find for each row n the `n_kept` components of least cost in its set of candidates G(n).

    G(n) = K(n) ∪ ⋃_{c ∈ K(n)} G_c ∪ extra(n)

    components: centers (C, D) or Gaussians    lists (C, G) int32: neighbor list G_c of each component
    previous (n, H′) int32: active sets K(n)    extra (n, E) int32: further candidates
    In `lists`, `previous` and `extra`, −1 means no component, and repetitions are allowed.
    ->  kept (n, H) int32: components found, sorted by (cost, id), −1 if G(n) is smaller; costs (n, H), infinite for −1;
    counts (n,): |G(n)|, the number of evaluated distances; if `evidence` is true, also sums of distances (not squared),
    or of costs of Gaussians, weighted by `sample_weight` (n,), for each pair of best component and candidate.
    If two costs are equal up to rounding, the order of the two components is not defined, because the order in which
    the terms of a cost are added varies between rows.
    """
    means, *gaussians = check.measure(components, X)
    n, C, n_kept = len(X), len(means), check.count(n_kept, "n_kept")
    lists, previous = check.array(lists, "lists", np.int32, C, -1), check.array(previous, "previous", np.int32, n, -1)
    extra = np.empty((n, 0), dtype=np.int32) if extra is None else check.array(extra, "extra", np.int32, n, -1)
    weights = check.array(sample_weight, "sample_weight", np.float64, n)
    results = np.empty((n, n_kept), dtype=np.int32), np.empty((n, n_kept), dtype=X.dtype), np.empty(n, dtype=np.int32)
    more = evidence, weights, *gaussians, resolve_threads(n_threads)
    try:
        looked = X.kernels.best_in_lists(X.core, means, lists, previous, extra, *results, *more)
    except ValueError:
        check.ids(C, lists=(lists, -1), previous=(previous, -1), extra=(extra, -1))
        raise
    return SearchResult(*results, None if looked is None else Evidence(*looked))


def reassign(
    X: CoreRows,
    centers: Floats,
    lists: NDArray[np.int32],
    labels: NDArray[np.int32],
    inside: Floats | None = None,
    outside: Floats | None = None,
    share: float = 0.25,
    active: NDArray[np.bool_] | None = None,
    known: Floats | None = None,
    *,
    n_threads: int | None = None,
) -> tuple[NDArray[np.int32], Floats]:
    """Compare the component of every point with the neighbors of this component: the partial E-step for C′ = 1.

    A point of component c is reassigned to the neighbor b of least outside_b ‖x − μ_b‖² (the first, if several are
    equal), if that is less than inside_c ‖x − μ_c‖². If two values are equal up to rounding, it is not defined which of
    them is taken as the lesser, because points of a component are computed together.
    With factors inside and outside, a point can be reassigned to a center that is no nearer: ‖x − μ_b‖ ≥ ‖x − μ_c‖. The
    factors predict the change of J for one point, not for many at once. So of each 2048 points of c, in the order of X,
    at most max(1, ⌊share · size⌋) are reassigned to a center that is no nearer: those of greatest difference (the
    first, if several are equal). The others stay at c.

    centers (C, D)    lists (C, G) int32: neighbors without the component itself, padded with −1; fewer rows suffice if
    no point has a later component    labels (n,) int32: component c of each point
    inside, outside (C,) >= 0: factors of squared distances to a point's own center and to others, None for ones
    active (C,) bool: only points of these components are processed; others have unchanged labels and the distances
    `known` (n,)  ->  labels (n,) int32, squared distances (n,)
    """
    n, centers = len(X), check.matrix(centers, "centers", X, 1)
    C = len(centers)
    lists = check.array(lists, "lists", np.int32, min(len(lists), C), -1)
    labels = check.array(labels, "labels", np.int32, n)
    inside, outside = check.array(inside, "inside", X.dtype, C), check.array(outside, "outside", X.dtype, C)
    for name, factors in (("inside", inside), ("outside", outside)):
        if factors is not None and not (np.isfinite(factors) & (factors >= 0)).all():
            raise ValueError(f"{name} must be >= 0 and finite")
    if not 0 <= share <= 1:
        raise ValueError(f"share must be between 0 and 1, got {share!r}")
    if active is None:
        mask, out, distances = None, np.empty_like(labels), np.empty(n, dtype=X.dtype)
    else:
        if known is None:
            raise ValueError(f"known must have shape ({n},) where active is given, got None")
        mask = check.array(active, "active", bool, C).view(np.uint8)
        out, distances = labels.copy(), check.array(known, "known", X.dtype, n).copy()
    threads = resolve_threads(n_threads)
    try:
        X.kernels.reassign(X.core, centers, lists, inside, outside, share, mask, labels, out, distances, threads)
    except ValueError:
        check.ids(C, lists=(lists, -1))
        check.ids(len(lists), labels=(labels, 0))
        raise
    return out, distances


def own_distances(X: CoreRows, centers: Floats, labels: NDArray[np.int32], *, n_threads: int | None = None) -> Floats:
    """Return ‖x_n − μ_c‖² of each row to the center c = labels[n]: (n,) of X's dtype [data unit²]."""
    return reassign(X, centers, np.empty((len(centers), 0), dtype=np.int32), labels, n_threads=n_threads)[1]


def top_k(
    X: CoreRows,
    components: Measure,
    lists: NDArray[np.int32],
    previous: NDArray[np.int32],
    n_kept: int,
    *,
    n_threads: int | None = None,
) -> tuple[NDArray[np.int32], Floats]:
    """Find for each row n the `n_kept` components of least cost in G(n) = K(n) ∪ G_c, where c is the first in K(n).

    components: centers (C, D) or Gaussians    lists (C, G) int32: neighbors G_c without c itself, padded with −1
    previous (n, H′) int32: active sets K(n), best first, −1 means no component
    ->  kept (n, H) int32: components found, sorted by (cost, id), −1 if G(n) is smaller; costs (n, H), infinite for −1
    """
    (means, *gaussians), n_kept = check.measure(components, X), check.count(n_kept, "n_kept")
    n, C = len(X), len(means)
    lists, previous = check.array(lists, "lists", np.int32, C, -1), check.array(previous, "previous", np.int32, n, -1)
    if not previous.shape[1]:
        raise ValueError("previous must have at least one column, got none")
    kept, costs = np.empty((n, n_kept), dtype=np.int32), np.empty((n, n_kept), dtype=X.dtype)
    rest = lists, previous, kept, costs, resolve_threads(n_threads)
    try:
        if gaussians[0] is None:
            X.kernels.top_k(X.core, means, *rest)
        else:
            X.kernels.top_k_gaussians(X.core, means, *gaussians, *rest)
    except ValueError:
        check.ids(C, lists=(lists, -1), previous=(previous, -1))
        check.ids(C, previous=(previous[:, :1], 0))
        raise
    return kept, costs


def changed(
    after: NDArray[np.int32],
    before: NDArray[np.int32],
    n_columns: int | None = None,
    *,
    n_threads: int | None = None,
    kernels: Any = _core,
) -> NDArray[np.bool_]:
    """Return the mask (n,) of points whose components (active sets) have changed.

    after (n, H), before (n, H') int32: components of each point
    n_columns: number of columns to compare; None compares all, which requires H = H'
    """
    after = check.array(after, "after", np.int32, -1, -1)
    n, H = after.shape
    before = check.array(before, "before", np.int32, n, H if n_columns is None else -1)
    n_columns, most = H if n_columns is None else check.count(n_columns, "n_columns"), min(H, before.shape[1])
    if n_columns > most:
        raise ValueError(f"n_columns must be at most {most}, the columns of both, got {n_columns}")
    out = np.empty(len(after), dtype=bool)
    kernels.changed(after, before, n_columns, out, resolve_threads(n_threads))
    return out
