"""Neighbour lists from centre-to-centre distances, the component itself left out."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from cprime._random import Key, Purpose
from cprime.kernels import Dense, Floats

EXACT_LISTS = 32768  # most components whose lists come from all C² distances or costs
_BLOCK = 65536  # rows at a time
_BLOCK_VALUES = 2**24  # values at a time
_FIRST = 33  # of complete lists, those that are in the order of their distances
_EXPANDED = 32  # nearest neighbours whose nearest neighbours are looked at


def without_self(lists: NDArray[np.int32], first: int = 0) -> NDArray[np.int32]:
    """The lists less the component itself, or less their last entry where it is not in them; −1 goes to the end.

    first: the component that the first row is of
    """
    out = np.empty((len(lists), max(lists.shape[1] - 1, 0)), dtype=np.int32)
    for begin, end in _blocks(len(lists)):
        block = lists[begin:end]
        own = block == np.arange(first + begin, first + end, dtype=np.int32)[:, np.newaxis]
        order = np.argsort(np.where(own, np.int8(2), block < 0), axis=1, kind="stable")
        out[begin:end] = np.take_along_axis(np.where(own, np.int32(-1), block), order, axis=1)[:, :-1]
    return out


def _blocks(n: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows that together are all n, so that what is made of them on the way stays small."""
    for begin in range(0, n, _BLOCK):
        yield begin, min(begin + _BLOCK, n)


def with_self(lists: NDArray[np.int32]) -> NDArray[np.int32]:
    """The component itself, then its list: G_c of the papers."""
    return np.column_stack([np.arange(len(lists), dtype=np.int32), lists])


def exact_lists(centers: Floats, n_neighbors: int, previous: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
    """The nearest components of each by all C² distances [F Alg. 1]: (C, min(n_neighbors, C) − 1).

    Where all of many are listed, the nearest come first, and the others by their ids.
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
    """The nearest components of each among its neighbours and the nearest of theirs: O(C G² D) at most, not C²."""
    n = min(n_neighbors, len(centers))
    expanded = np.ascontiguousarray(lists[:, :_EXPANDED])
    out = np.empty((len(lists), n - 1), dtype=np.int32)
    for begin, end in _blocks(len(lists)):
        near = np.column_stack([np.arange(begin, end, dtype=np.int32), expanded[begin:end]])
        rest = np.ascontiguousarray(lists[begin:end, _EXPANDED:])
        found = Dense(centers[begin:end]).among(centers, expanded, near, n, rest)
        out[begin:end] = without_self(found.kept, begin)
    return out


def least_lists(values: Callable[[int, int], NDArray], n_components: int, n_neighbors: int) -> NDArray[np.int32]:
    """Lists by the least of C² values, rows [begin, end) of which `values` computes: (C, min(n_neighbors, C) − 1)."""
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
    """Random lists without the component itself, the papers' start: (C, min(n_neighbors, C) − 1)."""
    n = min(n_neighbors, n_components) - 1

    def uniform(column: int) -> NDArray[np.float64]:
        return key.uniform(Purpose.LISTS, 0, n_components, column)

    step = random_sets(n_components, n_components - 1, n, uniform) + 1
    own = np.arange(n_components, dtype=np.int32)[:, np.newaxis]
    return ((own + step) % n_components).astype(np.int32)


def random_sets(
    n_rows: int, n_components: int, size: int, uniform: Callable[[int], NDArray[np.float64]]
) -> NDArray[np.int32]:
    """`size` distinct components for every row, at random: (n_rows, size) int32, by Floyd's algorithm.

    uniform: from the number of a column to numbers in [0, 1) for all rows
    """
    out = np.empty((n_rows, size), dtype=np.int32)
    for i, last in enumerate(range(n_components - size, n_components)):
        drawn = (uniform(i) * (last + 1)).astype(np.int32)
        taken = (out[:, :i] == drawn[:, np.newaxis]).any(axis=1)
        out[:, i] = np.where(taken, last, drawn)
    return out
