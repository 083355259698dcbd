"""Searches among the candidates of each row, and copies of rows."""

import numpy as np

from cprime.kernels import arguments as check
from reference.distances import costs_of

# `reassign` processes the points of a component in parts of this size, and limits in each part how many points it
# reassigns to centers that are no nearer.
SEGMENT = 2048


def best_in_lists(
    X, means, lists, previous, extra, kept, costs, counts, evidence, sample_weight, factors, offsets, dof, n_threads
):
    """Find the best components among each row's candidates in NumPy, row by row; write to `kept`, `costs` and `counts`.

    Candidates are the active set `previous` (n, H′) of a row, the neighbor lists of the components in this set (rows of
    `lists`), and `extra` (n, E). Components are centers `means`, or Gaussians with `factors`, `offsets` and `dof`.
    If `evidence` is true, return the arrays of `Evidence`: sums of distances, computed in X's dtype, for each pair of
    best component and candidate. Otherwise return None.
    """
    C, H = len(lists), kept.shape[1]
    check.ids(C, lists=(lists, -1), previous=(previous, -1), extra=(extra, -1))
    sums, weights = dict[tuple[int, int], float](), dict[tuple[int, int], float]()
    kept[:], costs[:] = -1, np.inf
    for i, x in enumerate(X):
        own = previous[i][previous[i] >= 0]
        offered = np.concatenate([own, lists[own].ravel(), extra[i]])
        offered = np.array(list(dict.fromkeys(offered[offered >= 0].tolist())), dtype=np.int32)
        theirs = [None if array is None else array[offered] for array in (means, factors, offsets, dof)]
        found = costs_of(x[None], *theirs)[0].astype(X.dtype)
        order = np.lexsort((offered, found))[:H]
        counts[i] = len(offered)
        kept[i, : len(order)], costs[i, : len(order)] = offered[order], found[order]
        weight = 1.0 if sample_weight is None else sample_weight[i]
        for c, value in zip(offered.tolist(), found.tolist(), strict=True):
            if weight > 0:
                pair = int(kept[i, 0]), c
                sums[pair] = sums.get(pair, 0.0) + weight * (np.sqrt(value) if factors is None else value)
                weights[pair] = weights.get(pair, 0.0) + weight
    if not evidence:
        return None
    pairs = np.array(sorted(sums), dtype=np.int32).reshape(-1, 2)
    indptr = np.searchsorted(pairs[:, 0], np.arange(C + 1)).astype(np.int64)
    by_pair = [np.array([of[c, other] for c, other in pairs.tolist()]) for of in (sums, weights)]
    return indptr, pairs[:, 1].copy(), *by_pair


def reassign(X, centers, lists, inside, outside, share, active, labels, new_labels, distances, n_threads):
    """Reassign each point to the best neighbor of its center labels[n], by squared distance times factor, in NumPy.

    lists (C, G): neighbors of each center    inside, outside (C,): factors of squared distances to a point's own center
    and to others    active (C,): mask of centers whose points are processed, None for all
    Of each 2048 points of a center, at most the share `share`, but one at least, get a center that is no nearer.
    New centers are written to `new_labels` (n,), and the squared distances to them to `distances` (n,).
    """
    C = len(centers)
    check.ids(C, lists=(lists, -1))
    check.ids(len(lists), labels=(labels, 0))
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


def top_k_gaussians(X, means, factors, offsets, dof, lists, previous, kept, costs, n_threads):
    """Find for each row the best components of its active set and of its first component's neighbor list, in NumPy.

    previous (n, H′): active sets    lists (C, G): neighbor lists    means, factors, offsets, dof: the components
    Components are written to `kept` (n, H), and their costs to `costs` (n, H). The function calls `best_in_lists`
    with empty neighbor lists, and with the list of each row's first component as extra candidates.
    """
    check.ids(len(lists), lists=(lists, -1))
    check.ids(len(lists), previous=(previous[:, :1], 0))
    extra = np.where(np.minimum.accumulate(lists >= 0, axis=1), lists, np.int32(-1))[previous[:, 0]]
    counts, no_lists = np.empty(len(X), dtype=np.int32), np.empty((len(lists), 0), dtype=np.int32)
    ids, results, measure = (no_lists, previous, extra), (kept, costs, counts), (factors, offsets, dof)
    best_in_lists(X, means, *ids, *results, False, None, *measure, n_threads)


def changed(after, before, n_columns, out, n_threads):
    """Write to `out` the mask (n,) of rows whose first `n_columns` columns differ between `after` and `before`."""
    out[:] = (after[:, :n_columns] != before[:, :n_columns]).any(axis=1)


def gather(X, order, out, n_threads):
    """Copy the rows with the indices `order` to `out` in NumPy; raise ValueError if an index is out of range."""
    if order.size and not (order.min() >= 0 and order.max() < len(X)):
        raise ValueError("order has a row outside X")
    out[:] = X[order]


def normalized(X, order, least, out, lengths, n_threads):
    """Write rows of X divided by their Euclidean lengths to `out`, and the lengths to `lengths`, in NumPy.

    order (n,): index of the row of X that becomes row i, None for the present order
    Rows are first divided by their greatest absolute values to avoid overflow.
    """
    if order is None:
        out[:] = X
    else:
        gather(X, order, out, n_threads)
    largest = np.abs(out).max(axis=1, initial=0)
    largest = np.where(largest > 0, largest, 1).astype(np.float64)
    scaled = out / largest[:, np.newaxis]
    of_scaled = np.sqrt(np.square(scaled).sum(axis=1))
    lengths[:] = largest * of_scaled
    out[:] = scaled / np.where(of_scaled > 0, of_scaled, 1)[:, np.newaxis]
