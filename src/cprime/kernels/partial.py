"""Partial E-steps in which all points of a component share candidates: the components in its neighbor list.

These are variants of Algorithms 1 and 2 of Forster & Lücke, *Can clustering scale sublinearly with its clusters?*
"""

import numpy as np
from numpy.typing import NDArray

from cprime._utils.threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.list_search import search_lists_twin
from cprime.kernels.measures import Floats, Measure, costs_of

SEGMENT = 2048  # `reassign` processes the points of a component in parts of this many points


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
    centers = check.centers(centers, X)
    lists = check.kept(lists, "lists", (min(len(lists), len(centers)), check.width(lists, "lists")))
    labels = check.kept(labels, "labels", (len(X),))
    inside, outside = (
        None if factor is None else check.factor(factor, name, X, len(centers))
        for factor, name in ((inside, "inside"), (outside, "outside"))
    )
    if not 0 <= share <= 1:
        raise ValueError(f"share must be between 0 and 1, got {share!r}")
    threads = resolve_threads(n_threads)
    if active is None:
        mask, out, distances = None, np.empty_like(labels), np.empty(len(X), dtype=X.dtype)
    else:
        if known is None or known.shape != (len(X),):
            came = None if known is None else known.shape
            raise ValueError(f"known must have shape ({len(X)},) where active is given, got {came}")
        if np.shape(active) != (len(centers),):
            raise ValueError(f"active must have shape ({len(centers)},), got {np.shape(active)}")
        mask = check.contiguous(active, bool).view(np.uint8)
        out, distances = labels.copy(), np.array(known, dtype=X.dtype)
    with check.naming(len(centers), lists=(lists, -1)), check.naming(len(lists), labels=(labels, 0)):
        X.kernels.reassign(X.core, centers, lists, inside, outside, share, mask, labels, out, distances, threads)
    return out, distances


def own_distances(X: CoreRows, centers: Floats, labels: NDArray[np.int32], *, n_threads: int | None = None) -> Floats:
    """Return ‖x_n − μ_c‖² of each row to the center c = labels[n]: (n,) of X's dtype [data unit²]."""
    return reassign(X, centers, np.empty((len(centers), 0), dtype=np.int32), labels, n_threads=n_threads)[1]


def reassign_twin(
    X: Floats,
    centers: Floats,
    lists: NDArray,
    inside: Floats | None,
    outside: Floats | None,
    share: float,
    active: NDArray | None,
    labels: NDArray,
    new_labels: NDArray,
    distances: Floats,
    n_threads: int,
) -> None:
    """Reassign each point to the best neighbor of its center in NumPy, as `reassign` describes.

    The points of a center are processed in parts of 2048. New components are written to `new_labels` (n,), and the
    squared distances to them to `distances` (n,).
    """
    C = len(centers)
    check.inside(lists, -1, C)
    check.inside(labels, 0, len(lists))
    stay = np.ones(C) if inside is None else inside.astype(np.float64)
    go = np.ones(C) if outside is None else outside.astype(np.float64)
    for c in range(len(lists)) if active is None else np.flatnonzero(active):
        members = np.flatnonzero(labels == c)
        end = np.append(np.flatnonzero(lists[c] == -1), lists.shape[1])[0]
        offered = np.append(c, lists[c, :end])
        for first in range(0, len(members), SEGMENT):
            points = members[first : first + SEGMENT]
            squared = costs_of(X[points], centers[offered])
            score = squared * np.append(stay[c], go[offered[1:]])
            best = score.argmin(axis=1)
            row = np.arange(len(points))
            gain = score[:, 0] - score[row, best]
            farther = np.flatnonzero((gain > 0) & (squared[row, best] >= squared[:, 0]))
            order = farther[np.argsort(-gain[farther], kind="stable")]
            best[order[max(1, int(share * len(points))) :]] = 0
            new_labels[points] = offered[best]
            distances[points] = squared[row, best]


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
    measure = check.measure(components, X)
    C, n_kept = len(measure[0]), check.count(n_kept, "n_kept")
    lists = check.kept(lists, "lists", (C, check.width(lists, "lists")))
    previous = check.kept(previous, "previous", (len(X), max(1, check.width(previous, "previous"))))
    kept, costs = np.empty((len(X), n_kept), dtype=np.int32), np.empty((len(X), n_kept), dtype=X.dtype)
    with check.naming(C, lists=(lists, -1), previous=(previous, -1)), check.naming(C, previous=(previous[:, :1], 0)):
        X.kernels.top_k(X.core, measure, lists, previous, kept, costs, resolve_threads(n_threads))
    return kept, costs


def top_k_twin(
    X: Floats, measure: tuple, lists: NDArray, previous: NDArray, kept: NDArray, costs: Floats, n_threads: int
) -> None:
    """Find for each row the best components of its active set and of its first component's neighbor list, in NumPy.

    Components are written to `kept` (n, H), and their costs to `costs` (n, H). The function calls `search_lists_twin`
    with empty neighbor lists, and with the list of each row's first component as extra candidates.
    """
    check.inside(lists, -1, len(lists))
    check.inside(previous[:, 0], 0, len(lists))
    offered = np.where(np.minimum.accumulate(lists >= 0, axis=1), lists, np.int32(-1))[previous[:, 0]]
    counts, no_lists = np.empty(len(X), dtype=np.int32), np.empty((len(lists), 0), dtype=np.int32)
    search_lists_twin(X, measure, no_lists, previous, offered, kept, costs, counts, False, None, n_threads)
