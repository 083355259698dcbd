"""Data of this machine: an array in memory, one chunk as a rule, or a source that is read chunk by chunk.

Kernels use the threads, so chunks are computed one after the other, while the next one is read.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.block import Block, Kept
from cprime.execution.base import Job, P, Taken
from cprime.kernels.native import Floats
from cprime.sources import Source, ahead, open_data
from cprime.statistics import merge


class Local:
    """The chunks of a source; what points keep is in memory.

    Of an array in memory the blocks are kept too, regrouped ones among them. checked: whether rows are known to be
    finite; else each chunk is checked when it is first read.
    """

    def __init__(self, source: Source, checked: bool = False):
        self.source = source
        self._checked = [checked] * len(source.sizes)
        self._prepare: Callable[[Floats, str], Floats] | None = None
        self.sizes = source.sizes
        self.n_features = source.n_features
        self.dtype = source.dtype
        self.weighted = source.weights(0, 0) is not None
        ends = np.cumsum(self.sizes)
        self._ranges = [(int(end - size), int(end)) for size, end in zip(self.sizes, ends, strict=True)]
        self._orders: list[NDArray[np.int64] | None] = [None] * len(self.sizes)
        self._blocks: dict[int, Block] = {}
        self._kept: list[Kept | None] = [None] * len(self.sizes)
        self._before: list[Kept | None] | None = None

    def prepared(self, prepare: Callable[[Floats, str], Floats]) -> "Local":
        """The same data with every block of rows as a function makes it, which is given their name for messages too."""
        self._prepare = prepare
        return self

    @property
    def n_points(self) -> int:
        return self.source.n_rows

    @property
    def placed(self) -> bool:
        return self._kept[0] is not None

    def each(self, job: Job[P]) -> P:
        kept: list[Kept | None] = []

        def parts() -> Iterator[P]:
            for block, before in zip(self._each_block(job.reads), self._kept, strict=True):
                after, part = job(block, before)
                kept.append(after)
                yield part

        total = merge(parts())
        if job.keeps:
            self._before, self._kept = self._kept, kept
        return total

    def commit(self) -> None:
        self._before = None

    def rollback(self) -> None:
        assert self._before is not None
        self._kept, self._before = self._before, None

    def begin(self, keep: bool) -> None:
        kept = [self._kept_as_they_came(i) if keep else None for i in range(len(self.sizes))]
        self._kept = [None if one is None else Kept(one.ids[:, :1].copy()) for one in kept]
        self._before = None
        if any(order is not None for order in self._orders):
            self._orders, self._blocks = [None] * len(self.sizes), {}

    def regroup(self, n_components: int) -> None:
        self._blocks = {}
        for i, kept in enumerate(self._kept):
            assert kept is not None
            order = kernels.grouped_order(np.ascontiguousarray(kept.winners), n_components)
            self._orders[i], self._kept[i] = order, kept.at(order)

    def take(self, rows: NDArray[np.int64]) -> Taken:
        weights = np.empty(len(rows)) if self.weighted else None
        kept: Kept | None = None
        for i, mine in self._by_chunk(rows):
            begin, end = self._ranges[i]
            if weights is not None:
                weights[mine] = self.source.weights(begin, end)[rows[mine] - begin]
            one = self._kept[i]
            if one is None:
                continue
            there = one.at(self._places(i, rows[mine] - begin))
            if kept is None:
                costs = None if there.costs is None else np.empty((len(rows), there.ids.shape[1]), there.costs.dtype)
                kept = Kept(np.empty((len(rows), there.ids.shape[1]), dtype=np.int32), costs)
            kept.ids[mine] = there.ids
            if kept.costs is not None:
                kept.costs[mine] = there.costs
        X = self.source.take(rows)
        return Taken(X if self._prepare is None else self._prepare(X, self.source.name), weights, kept)

    def state(self) -> Iterator[dict[str, Any]]:
        """What the points of each chunk keep, and their order: all that a pass needs besides the rows."""
        for kept, order in zip(self._kept, self._orders, strict=True):
            yield {"kept": kept, "order": order}

    def restore(self, states: Sequence[dict[str, Any]]) -> None:
        """Puts back what `state` has given."""
        self._blocks, self._before = {}, None
        self._kept = [state["kept"] for state in states]
        self._orders = [state["order"] for state in states]

    def edit(self, rows: NDArray[np.int64], components: NDArray[np.int32]) -> None:
        for i, mine in self._by_chunk(rows):
            kept = self._kept[i]
            assert kept is not None
            assert kept.costs is not None
            places = self._places(i, rows[mine] - self._ranges[i][0])
            ids, costs = kept.ids.copy(), kept.costs.copy()
            ids[places, 0], costs[places, 0] = components[mine], 0
            self._kept[i] = replace(kept, ids=ids, costs=costs)

    def labels(self) -> NDArray[np.int32] | None:
        if not self.placed:
            return None
        out = np.empty(self.n_points, dtype=np.int32)
        for i, (begin, end) in enumerate(self._ranges):
            kept, order = self._kept[i], self._orders[i]
            assert kept is not None
            out[begin:end][slice(None) if order is None else order] = kept.winners
        return out

    def whole(self) -> tuple[Floats, NDArray[np.float64] | None] | None:
        if len(self.sizes) > 1 or not self.source.in_memory:
            return None
        (block,) = self._each_block(True)
        return block.X, block.sample_weight

    def map(self, function: Callable[[Floats], NDArray]) -> NDArray:
        """What a function makes of every block of rows, one after the other."""
        parts = [function(block.X) for block in self._each_block(True)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _each_block(self, reads: bool) -> Iterator[Block]:
        """The blocks in order; those that are not in memory are read ahead."""
        missing = [chunk for i, chunk in enumerate(self._ranges) if i not in self._blocks] if reads else []
        if missing:
            self.source.verify()
        with closing(ahead(self.source, missing)) as arriving:
            for i, (begin, end) in enumerate(self._ranges):
                if not reads:
                    yield self._block(i, np.empty((end - begin, 0), dtype=self.dtype))
                elif i in self._blocks:
                    yield self._blocks[i]
                else:
                    block = self._block(i, self._read(i, next(arriving)))
                    if self.source.in_memory:
                        self._blocks[i] = block
                    yield block

    def _read(self, i: int, X: Floats) -> Floats:
        """Rows as they have arrived, checked once, and prepared."""
        if not self._checked[i]:
            self.source.check_finite(X, self._ranges[i][0])
            self._checked[i] = True
        return X if self._prepare is None else self._prepare(X, self.source.name)

    def _block(self, i: int, X: Floats) -> Block:
        begin, end = self._ranges[i]
        weights, order = self.source.weights(begin, end), self._orders[i]
        if order is None:
            return Block(X, weights, begin)
        X = kernels.gather(X, order) if X.shape[1] else X
        return Block(X, None if weights is None else weights[order], begin, order)

    def _by_chunk(self, rows: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """Which of the rows lie in each chunk, for those that have any."""
        chunk = np.searchsorted([end for _, end in self._ranges], rows, side="right")
        for i in np.unique(chunk):
            yield int(i), np.flatnonzero(chunk == i)

    def _places(self, i: int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where rows of a chunk, by their numbers in it, lie in its block."""
        order = self._orders[i]
        if order is None:
            return rows
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        return places[rows]

    def _kept_as_they_came(self, i: int) -> Kept | None:
        kept, order = self._kept[i], self._orders[i]
        return kept if kept is None or order is None else kept.at(self._places(i, np.arange(self.sizes[i])))


def local(X: Floats, sample_weight: NDArray[np.float64] | None = None) -> Local:
    """An array of checked rows as one chunk in memory."""
    return Local(open_data(X).with_weights(sample_weight))
