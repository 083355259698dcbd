"""Partial E-step whose candidates for a row are the neighbor lists of all components in its active set K(n).

This is the E-step of Algorithms 1 and 2 of Forster & Lücke, *Can clustering scale sublinearly with its clusters?*
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.measures import Floats, Measure, costs_of


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
        """Return the sums of weighted distances and of weights for each pair (c, c̃) of components.

        The m terms of the sums are given: one for each point of best component c and each of its candidates c̃.
        pairs (m,): number c · C + c̃ of each term's pair, in any order
        sums, weights (m,): weighted distance and weight of each term
        """
        used, place = np.unique(pairs, return_inverse=True)
        indptr = np.searchsorted(used // n_components, np.arange(n_components + 1)).astype(np.int64)
        by_pair = [np.bincount(place, terms, len(used)).astype(np.float64) for terms in (sums, weights)]
        return cls(indptr, (used % n_components).astype(np.int32), *by_pair)

    def joined(self, other: "Evidence") -> "Evidence":
        """Return the sums over the points of both instances: distances and weights are added, pair by pair."""
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
    measure, n = check.measure(components, X), len(X)
    C, n_kept = len(measure[0]), check.count(n_kept, "n_kept")
    lists = check.kept(lists, "lists", (C, check.width(lists, "lists")))
    previous = check.kept(previous, "previous", (n, check.width(previous, "previous")))
    extra = np.empty((n, 0), dtype=np.int32) if extra is None else extra
    extra = check.kept(extra, "extra", (n, check.width(extra, "extra")))
    kept, costs = np.empty((n, n_kept), dtype=np.int32), np.empty((n, n_kept), dtype=X.dtype)
    counts, weights, threads = np.empty(n, dtype=np.int32), check.weights(sample_weight, n), resolve_threads(n_threads)
    with check.naming(C, lists=(lists, -1), previous=(previous, -1), extra=(extra, -1)):
        looked = X.kernels.search_lists(
            X.core, measure, lists, previous, extra, kept, costs, counts, evidence, weights, threads
        )
    return SearchResult(kept, costs, counts, None if looked is None else Evidence(*looked))


def search_lists_twin(
    X: Floats,
    measure: tuple,
    lists: NDArray,
    previous: NDArray,
    extra: NDArray,
    kept: NDArray,
    costs: Floats,
    counts: NDArray,
    evidence: bool,
    sample_weight: NDArray | None,
    n_threads: int,
) -> tuple[NDArray, ...] | None:
    """Find the best components among each row's candidates in NumPy, row by row; write to `kept`, `costs` and `counts`.

    If `evidence` is true, return the arrays of `Evidence`: sums of distances, computed in X's dtype, for each pair of
    best component and candidate. Otherwise return None.
    """
    C, H = len(lists), kept.shape[1]
    for ids in (lists, previous, extra):
        check.inside(ids, -1, C)
    sums, weights = dict[tuple[int, int], float](), dict[tuple[int, int], float]()
    kept[:], costs[:] = -1, np.inf
    for i, x in enumerate(X):
        own = previous[i][previous[i] >= 0]
        offered = np.concatenate([own, lists[own].ravel(), extra[i]])
        offered = np.array(list(dict.fromkeys(offered[offered >= 0].tolist())), dtype=np.int32)
        theirs: list[Any] = [None if array is None else array[offered] for array in measure]
        found = costs_of(x[None], *theirs)[0].astype(X.dtype)
        order = np.lexsort((offered, found))[:H]
        counts[i] = len(offered)
        kept[i, : len(order)], costs[i, : len(order)] = offered[order], found[order]
        weight = 1.0 if sample_weight is None else sample_weight[i]
        for c, value in zip(offered.tolist(), found.tolist(), strict=True):
            if weight > 0:
                pair = int(kept[i, 0]), c
                sums[pair] = sums.get(pair, 0.0) + weight * (np.sqrt(value) if len(measure) == 1 else value)
                weights[pair] = weights.get(pair, 0.0) + weight
    if not evidence:
        return None
    pairs = np.array(sorted(sums), dtype=np.int32).reshape(-1, 2)
    indptr = np.searchsorted(pairs[:, 0], np.arange(C + 1)).astype(np.int64)
    by_pair = [np.array([of[c, other] for c, other in pairs.tolist()]) for of in (sums, weights)]
    return indptr, pairs[:, 1].copy(), *by_pair
