"""Division of rows into parts for lower bounds: the sum of the least J of all parts is at most J* of all rows.

The bound is good if each part is a small copy of the whole (anticlustering): every cluster has the same share of rows
in each part, and the mean of these rows is that of the cluster. Otherwise the clusters of a part have other means than
those of all rows, which lowers J of the part, and with it the bound.
"""

from time import monotonic

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import as_rows
from cprime.theory.mixtures import Floats

_SWEEPS = 12  # Number of passes over random pairs of parts, in which rows are swapped to make sums of rows equal.
_SWAPS = 3  # Maximum number of swaps of rows of a cluster between two parts in one pass.


def divide(
    U: Floats, labels: NDArray[np.intp], n_parts: int, rng: np.random.Generator, deadline: float
) -> list[NDArray[np.intp]]:
    """Return n_parts arrays of row indices, ascending: a division of the rows in which parts are small copies of all.

    U (n, D): rows times square roots of weights    labels (n,): clusters of a good partition
    rng: random numbers for the first division, and for the pairs of parts between which rows are swapped
    deadline: a value of `time.monotonic`, after which no rows are swapped
    """
    order = np.lexsort((_positions(U, labels), labels))
    part = np.empty(len(U), dtype=np.intp)
    for begin in range(0, len(U), n_parts):
        rows = order[begin : begin + n_parts]
        part[rows] = rng.permutation(n_parts)[: len(rows)]
    if n_parts > 1:
        for rows in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
            _match_means(U, rows, part, n_parts, rng, deadline)
    order = np.argsort(part, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(part[order])) + 1)


def _positions(U: Floats, labels: NDArray[np.intp]) -> Floats:
    """Return the coordinate (n,) of each row along the direction in which rows vary most within their clusters.

    Rows of a cluster that follow one another along this direction are put into different parts.
    """
    counts, sums = as_rows(U).accumulate(labels[:, np.newaxis].astype(np.int32), n_components=int(labels.max()) + 1)
    within = U - (sums / np.maximum(counts, 1)[:, np.newaxis])[labels]
    axis = np.ones(U.shape[1])
    for _ in range(20):
        axis = within.T @ (within @ axis)
        axis /= max(float(np.linalg.norm(axis)), np.finfo(np.float64).tiny)
    return within @ axis


def _match_means(
    U: Floats,
    rows: NDArray[np.intp],
    part: NDArray[np.intp],
    n_parts: int,
    rng: np.random.Generator,
    deadline: float,
) -> None:
    """Swap rows of one cluster between parts until the sums over its rows are approximately equal in all parts.

    rows: indices of the rows of the cluster    part (n,): the part of each row, changed in place
    """
    V = U[rows] - U[rows].mean(axis=0)
    squares = np.square(V).sum(axis=1)
    own = part[rows]
    members = [np.flatnonzero(own == p) for p in range(n_parts)]
    sums = np.array([V[m].sum(axis=0) for m in members])
    for _ in range(_SWEEPS):
        if monotonic() > deadline:
            break
        for a, b in rng.permutation(n_parts)[: n_parts // 2 * 2].reshape(-1, 2):
            left, right = members[a], members[b]
            if not (len(left) and len(right)):
                continue
            products = V[left] @ V[right].T
            for _ in range(_SWAPS):
                # A swap of row i of part a and row j of part b changes ‖sum of a‖² + ‖sum of b‖² by 2 · change[i, j].
                difference = sums[a] - sums[b]
                gain_left = squares[left] - V[left] @ difference
                gain_right = squares[right] + V[right] @ difference
                change = gain_left[:, np.newaxis] + gain_right - 2 * products
                i, j = np.unravel_index(int(change.argmin()), change.shape)
                if change[i, j] >= -1e-12 * (squares[left[i]] + squares[right[j]]):
                    break
                moved = V[right[j]] - V[left[i]]
                sums[a] += moved
                sums[b] -= moved
                left[i], right[j] = right[j], left[i]
                products = V[left] @ V[right].T
    for p, m in enumerate(members):
        part[rows[m]] = p
