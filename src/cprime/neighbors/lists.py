"""Neighbor lists of components, from distances between centers; a component is not in its own list."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key, Purpose
from cprime.kernels import Dense, Floats

# Up to this number of components, neighbor lists are computed from all C² distances or costs.
EXACT_LISTS = 32768
# Number of lists that are processed at a time.
_BLOCK = 65536
# Number of distances or costs that are computed at a time.
_BLOCK_VALUES = 2**24
# If a list contains all of many components, only this number of its first entries are sorted by distance.
_FIRST = 33
# `refined_lists` evaluates the neighbors of this number of a component's nearest neighbors.
_EXPANDED = 32


def without_self(lists: NDArray[np.int32], first: int = 0) -> NDArray[np.int32]:
    """Return neighbor lists in which each component is removed from its own list; −1 (no entry) is moved to the end.

    From a list that does not contain its own component, the last entry is removed.
    first: id of the component to which the first row belongs
    """
    out = np.empty((len(lists), max(lists.shape[1] - 1, 0)), dtype=np.int32)
    ids = np.arange(first, first + len(lists), dtype=np.int32)[:, np.newaxis]
    for begin in range(0, len(lists), _BLOCK):
        rows = slice(begin, begin + _BLOCK)
        own = lists[rows] == ids[rows]
        order = np.argsort(np.where(own, np.int8(2), lists[rows] < 0), axis=1, kind="stable")
        out[rows] = np.take_along_axis(np.where(own, np.int32(-1), lists[rows]), order, axis=1)[:, :-1]
    return out


def with_self(lists: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return neighbor lists (C, G) with each component prepended to its own list: the sets G_c of Forster & Lücke 2018.

    lists (C, G − 1): neighbors of each component
    """
    return np.column_stack([np.arange(len(lists), dtype=np.int32), lists])


def put_first(lists: NDArray[np.int32], rows: NDArray, ids: NDArray[np.int32]) -> None:
    """Insert component ids[i] at the front of the neighbor list lists[rows[i]] and remove the last entry, in place.

    A list is not changed if it already contains this component, or if it is the component's own list.
    """
    new = (lists[rows] != ids[:, np.newaxis]).all(axis=1) & (rows != ids)
    rows, first = np.unique(rows[new], return_index=True)
    lists[rows] = np.column_stack([ids[new][first], lists[rows, :-1]])


def exact_lists(centers: Floats, n_neighbors: int, previous: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
    """Return ids of the nearest other components of each component: (C, min(n_neighbors, C) − 1).

    All C² distances between centers are computed. This is the update of lists in Algorithm 1 of Forster & Lücke 2018.
    If lists contain all of many components, only the nearest ones are sorted by distance; the others are sorted by id.
    previous: earlier lists, which affect only the time, or None
    """
    C, n = len(centers), min(n_neighbors, len(centers))
    H = _FIRST if n == C > 8 * _FIRST else n
    given = previous is not None and previous.shape[1] == n - 1 and not (previous < 0).any()
    hint = with_self(previous[:, : H - 1]) if given and previous is not None else None
    kept = Dense(centers).nearest(centers, H, hint=hint)[0]
    if n > H:
        others = np.ones((C, C), dtype=bool)
        np.put_along_axis(others, kept, False, axis=1)
        kept = np.column_stack([kept, np.nonzero(others)[1].reshape(C, n - H).astype(np.int32)])
    return without_self(kept)


def refined_lists(centers: Floats, lists: NDArray[np.int32], n_neighbors: int) -> NDArray[np.int32]:
    """Return new neighbor lists: the nearest components among each component's neighbors, and the neighbors of these.

    lists (C, G − 1): ids of the G − 1 current neighbors of each component, without the component itself
    Returns ids (C, min(n_neighbors, C) − 1). This takes at most O(C G² D) time.
    """
    n = min(n_neighbors, len(centers))
    expanded = np.ascontiguousarray(lists[:, :_EXPANDED])
    ids = np.arange(len(lists), dtype=np.int32)
    out = np.empty((len(lists), n - 1), dtype=np.int32)
    for begin in range(0, len(lists), _BLOCK):
        rows = slice(begin, begin + _BLOCK)
        rest = np.ascontiguousarray(lists[rows, _EXPANDED:])
        near = np.column_stack([ids[rows], expanded[rows]])
        found = Dense(centers[rows]).search_lists(centers, expanded, near, n, rest)
        out[rows] = without_self(found.kept, begin)
    return out


def least_lists(values: Callable[[int, int], NDArray], n_components: int, n_neighbors: int) -> NDArray[np.int32]:
    """Return for each component c the other components of least value in row c of a (C, C) table.

    values: function that computes the rows [begin, end) of the table
    Returns ids (C, min(n_neighbors, C) − 1), those of least value first.
    """
    n = min(n_neighbors, n_components) - 1
    out = np.empty((n_components, n), dtype=np.int32)
    if n == 0:
        return out
    step = max(1, _BLOCK_VALUES // n_components)
    for begin in range(0, n_components, step):
        end = min(begin + step, n_components)
        block = values(begin, end)
        block[np.arange(end - begin), np.arange(begin, end)] = np.inf
        nearest = np.argpartition(block, n - 1, axis=1)[:, :n] if n < n_components else np.argsort(block)[:, :n]
        order = np.lexsort((nearest, np.take_along_axis(block, nearest, axis=1)))
        out[begin:end] = np.take_along_axis(nearest, order, axis=1)
    return out


def random_lists(n_components: int, n_neighbors: int, key: Key) -> NDArray[np.int32]:
    """Draw random neighbor lists, as Forster & Lücke 2018 do before the first pass.

    key: counter-based random key    Returns ids of other components (C, min(n_neighbors, C) − 1).
    """
    n = min(n_neighbors, n_components) - 1
    step = 1 + random_sets(
        n_components, n_components - 1, n, lambda column: key.uniform(Purpose.LISTS, 0, n_components, column)
    )
    own = np.arange(n_components, dtype=np.int32)[:, np.newaxis]
    return ((own + step) % n_components).astype(np.int32)


def random_sets(
    n_rows: int, n_components: int, size: int, uniform: Callable[[int], NDArray[np.float64]]
) -> NDArray[np.int32]:
    """Draw `size` distinct components for every row by Floyd's algorithm: (n_rows, size) int32.

    uniform: function that takes the index of a column of the result, and returns random numbers (n_rows,) in [0, 1)
    """
    out = np.empty((n_rows, size), dtype=np.int32)
    for i, last in enumerate(range(n_components - size, n_components)):
        drawn = (uniform(i) * (last + 1)).astype(np.int32)
        taken = (out[:, :i] == drawn[:, np.newaxis]).any(axis=1)
        out[:, i] = np.where(taken, last, drawn)
    return out
