"""Data on this machine: an array in memory, usually one chunk, or a source that is read chunk by chunk.

Chunks are processed one after the other, because the kernels already use all threads. While a chunk is processed, the
next one is read.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime._utils.number_types import MOST, check_largest, check_spread
from cprime.execution.base import Data, Job, P, RowSample, merge
from cprime.execution.block import Block, Chunk, by_chunk, join_active_sets
from cprime.execution.results import cuts, places
from cprime.execution.spill import Spill
from cprime.kernels import Dense, Floats, ReadMissing, Rows, SparseRows, as_rows, with_nan
from cprime.sources import Source, SparseSource, ahead
from cprime.sources.arrays import ArraySource

MakeRows = Callable[[Any], Rows]
# Function that transforms rows before a model uses them; its arguments are described in `Data.prepared`.
Prepare = Callable[..., Rows]


class Local(Data):
    """Data in the chunks of a source; active sets are in memory, or in files within the context `spilled`.

    The blocks of an array in memory, and of a file of one chunk, are cached, also after rows were sorted by component.

    checked: whether rows are known to be finite, with squares in the range of the dtype; if not, they are checked when
    they are read first
    spread: whether to check that the squared differences of rows do not underflow, which a fit requires
    """

    is_local = True

    def __init__(self, source: Source, checked: bool = False, spread: bool = True):
        self.source = source
        self.sizes = source.sizes
        # For each chunk: index of its first row, and 1 + index of its last row.
        self._ranges = list(pairwise(accumulate(self.sizes, initial=0)))
        self.n_points = source.n_rows
        self.n_features = source.n_features
        self.n_bytes = source.read_bytes
        self.in_memory = len(self.sizes) == 1  # The block of a single chunk is cached, also that of a file.
        self.dtype = source.dtype
        self.columns = source.columns
        self.sparse = source.sparse
        self.has_missing = False
        self._rows: MakeRows = as_rows
        self.weighted = source.weights(0, 0) is not None
        self._prepare: Prepare | None = None
        self._checked = [checked] * len(self.sizes)
        self._with_spread = spread
        self._origin: Floats | None = None
        # Largest |x_d − origin_d| of the rows x checked so far; if it is small, squares of differences underflow.
        self._spread = 0.0
        self._chunks = [Chunk()] * len(self.sizes)
        self._before: list[Chunk] | None = None
        self._spill: Spill | None = None
        self._blocks: dict[int, Block] = {}
        # Memory into which chunks of a file are read; it is reused in all passes.
        self._buffers: list[NDArray] = []
        # Count of positive weights in each chunk, computed on first use.
        self._heavy: NDArray[np.int64] | None = None

    def prepared(self, prepare: Prepare) -> "Local":
        self._prepare, self._blocks = prepare, {}
        return self

    def read_by(
        self,
        rows: MakeRows,
        has_missing: bool,
        n_features: int | None = None,
        sparse: bool | None = None,
        dtype: Any = None,
    ) -> "Local":
        self.n_features = self.n_features if n_features is None else n_features
        self.sparse = self.sparse if sparse is None else sparse
        self.dtype = self.dtype if dtype is None else np.dtype(dtype)
        self._rows, self.has_missing, self._blocks, self._buffers = rows, has_missing, {}, []
        self.source = self.source.widened() if has_missing else self.source
        return self

    def _made(self, read: Any) -> Rows:
        """Convert an array that was read from the source to a `Rows` object with the data's dtype."""
        rows = self._rows(read)
        return rows if rows.dtype == self.dtype else rows.as_type(self.dtype)

    def _prepared(
        self,
        X: Rows,
        order: NDArray[np.int64] | None = None,
        first: int | NDArray[np.int64] = 0,
        weights: NDArray[np.float64] | None = None,
    ) -> Rows:
        """Return rows transformed for the model, in the given order (None: their original order).

        first: index of the first row, or indices of all rows    weights: weights of the rows in their original order
        """
        if self._prepare is not None:
            return self._prepare(X, self.source.name, order, first, weights)
        return X if order is None else X.ordered(order)

    @property
    def n_weighted(self) -> int:
        return int(self._heavy_by_chunk().sum()) if self.weighted else self.n_points

    @property
    def placed(self) -> bool:
        return self._chunks[0].kept is not None

    def each(self, job: Job[P]) -> P:
        # If all data are one cached block, the job is called directly, because overhead would dominate small fits.
        if len(self._blocks) == len(self.sizes) == 1:
            (block,), (chunk,) = self._blocks.values(), self._chunks
            kept, part = job(block, chunk.kept)
            if job.keeps:
                self._before, self._chunks = self._chunks, [self._placed(Chunk(kept, chunk.order), chunk)]
            return part
        after: list[Chunk] = []

        def parts() -> Iterator[P]:
            for block, chunk in zip(self._each_block(job.reads), self._chunks, strict=True):
                kept, part = job(block, chunk.kept)
                if job.keeps:
                    after.append(self._placed(Chunk(kept, chunk.order), chunk))
                yield part

        total = merge(parts())
        if job.keeps:
            self._before, self._chunks = self._chunks, after
        return total

    def commit(self) -> None:
        self._before = None

    def rollback(self) -> None:
        assert self._before is not None
        self._chunks, self._before = self._before, None

    def begin(self, keep: bool) -> None:
        after = []
        for chunk in self._chunks:
            if chunk.order is not None:
                self._blocks = {}
            after.append(self._placed(chunk.begun() if keep else Chunk(), chunk))
        self._chunks, self._before = after, None

    def regroup(self, n_components: int) -> None:
        # Cached blocks that can be reordered without a copy are kept, with the norms of their rows; others are freed.
        self._blocks = {i: block for i, block in self._blocks.items() if not block.X.copied_when_ordered}
        after = []
        for i, chunk in enumerate(self._chunks):
            regrouped, places = chunk.regrouped(n_components)
            after.append(self._placed(regrouped, chunk))
            if i in self._blocks:
                self._blocks[i] = self._blocks[i].reordered(places)
        self._chunks = after

    def take(self, rows: NDArray[np.int64]) -> RowSample:
        weights, kept = np.empty(len(rows)) if self.weighted else None, []
        for i, mine, inside in by_chunk(self.sizes, rows):
            if weights is not None:
                weights[mine] = self.source.weights(*self._ranges[i])[inside]  # type: ignore[index]
            chunk = self._chunks[i]
            if chunk.kept is not None:
                kept.append((mine, chunk.kept.at(chunk.places(inside))))
        X = self._made(self.source.take(rows, self.source.stored))
        if not all(self._checked) and len(X) and not X.extent()[0] <= MOST[self.dtype]:
            for _ in self._each_block(True):  # This pass raises ValueError when it reads the invalid value.
                pass
        return RowSample(
            self._prepared(X, None, rows, weights).converted(len(rows)), weights, join_active_sets(kept, len(rows))
        )

    def edit(self, rows: NDArray[np.int64], components: NDArray[np.int32]) -> None:
        for i, mine, inside in by_chunk(self.sizes, rows):
            self._chunks[i] = self._placed(self._chunks[i].edited(inside, components[mine]), self._chunks[i])

    def labels(self) -> NDArray[np.int32] | None:
        if not self.placed:
            return None
        spill, shape = self._spill, (self.n_points,)
        out = np.empty(shape, np.int32) if spill is None else spill.empty("labels", shape, np.int32)
        begin = 0
        for chunk, n in zip(self._chunks, self.sizes, strict=True):
            chunk.labels(out[begin : begin + n])
            begin += n
        return out

    def whole(self) -> tuple[Rows, NDArray[np.float64] | None] | None:
        if not self.in_memory:
            return None
        (block,) = self._each_block(True)
        return block.X, block.sample_weight

    def map(
        self,
        function: Callable[..., Any],
        width: int | None,
        dtype: Any,
        out: Any = None,
        *,
        numbered: bool = False,
    ) -> Any:
        several = isinstance(dtype, tuple)
        dtypes = dtype if several else (dtype,)
        n_bytes = (1 if width is None else width) * max(np.dtype(one).itemsize for one in dtypes)
        opened = places(self.n_points, width, dtypes, out if several else (out,))
        with opened as found, np.errstate(under="ignore"):  # Values too small for the dtype become 0.
            first = 0
            for X in self._pieces(n_bytes):
                made = function(X, first) if numbered else function(X)
                first += len(X)
                parts = made if several else (made,)
                for place, part in zip(found, parts, strict=True):
                    place.write(part)
        values = tuple(place.value for place in found)
        return values if several else values[0]

    def _pieces(self, n_bytes: int) -> Iterator[Rows]:
        """Yield all rows in their original order, as `Rows` of a few rows each, so that memory is bounded.

        Rows in memory are transformed for the model piece by piece. After the last piece, the source's files are
        checked for changes.    n_bytes: bytes of the result of one row
        """
        n_bytes = max(n_bytes, self.n_bytes // max(1, self.n_points))
        if not self.source.in_memory or self._blocks:
            for block in self._each_block(True):
                # places[i] is the present position in the block of the row that was originally row i.
                places = None if block.order is None else np.argsort(block.order)
                for begin, end in cuts(0, len(block), n_bytes):
                    if places is not None:
                        yield block.X[places[begin:end]]
                    else:
                        yield block.X if end - begin == len(block) else block.X[begin:end]
            return
        self.source.verify()
        for i in range(len(self.sizes)):
            for begin, end in cuts(*self._ranges[i], n_bytes):
                X = self._made(self.source.read(begin, end, self.source.stored))
                if not self._checked[i]:
                    self._check(X, begin)
                yield self._prepared(X, None, begin, self.source.weights(begin, end))
        self._check_spread()
        self.source.verify()

    @contextmanager
    def spilled(self, folder: Path) -> Iterator[None]:
        try:
            with closing(Spill(folder)) as self._spill:
                self._chunks = [self._placed(chunk, Chunk()) for chunk in self._chunks]
                yield
        finally:
            self._spill = None
            self.begin(keep=False)

    def _placed(self, chunk: Chunk, before: Chunk) -> Chunk:
        """Return the chunk with its arrays moved to files if active sets are stored in files, otherwise unchanged.

        Arrays that the chunk shares with `before`, its previous value, are not moved.
        """
        return chunk if self._spill is None else self._spill.placed(chunk, before)

    def chunks(self) -> Iterator[Chunk]:
        yield from self._chunks

    def restore(self, chunks: Iterable[Chunk]) -> None:
        restored = [self._placed(chunk, Chunk()) for chunk in chunks]
        self._blocks, self._before, self._chunks = {}, None, restored

    def identity(self) -> dict[str, Any]:
        return {"data": self.source.fingerprint().hex(), "opened": self.source.opened_from}

    def without_file(self) -> dict[str, NDArray]:
        source, arrays = self.source, {}
        if source.opened_from is None:
            if not source.is_plain:
                return {}
            arrays["data"] = source.read(0, source.n_rows, source.stored)
        if source.opened_from is None or source.opened_from["weights"] is None:
            weights = source.weights(0, source.n_rows)
            arrays |= {} if weights is None else {"weights": weights}
        return arrays

    def _heavy_by_chunk(self) -> NDArray[np.int64]:
        if self._heavy is None:
            weights = (self.source.weights(*rows) for rows in self._ranges)
            self._heavy = np.array([np.count_nonzero(w > 0) for w in weights])  # type: ignore[operator]
        return self._heavy

    def _each_block(self, reads: bool) -> Iterator[Block]:
        """Yield the blocks of all chunks in order. Blocks not in memory are read while the previous one is used.

        reads: whether the rows are needed; if not, blocks have no columns
        """
        if len(self._blocks) == len(self.sizes):
            for i in range(len(self.sizes)):
                yield self._blocks[i]
            return
        missing = [rows for i, rows in enumerate(self._ranges) if i not in self._blocks] if reads else []
        if missing:
            self.source.verify()
        with closing(ahead(self.source, missing, self._buffers)) as arriving:
            for i, (begin, end) in enumerate(self._ranges):
                block = self._blocks.get(i)
                if block is None:
                    X: Rows = Dense(np.empty((end - begin, 0), dtype=self.dtype))
                    order, weights = self._chunks[i].order, self.source.weights(begin, end)
                    order = None if order is None else order.astype(np.int64)
                    if reads:
                        X = self._made(next(arriving))
                        if not self._checked[i]:
                            self._check(X, begin)
                            self._checked[i] = True
                            if all(self._checked):
                                self._check_spread()
                        X = self._prepared(X, order, begin, weights).converted(self.n_points)
                    n_before = None if weights is None else int(self._heavy_by_chunk()[:i].sum())
                    w = weights if weights is None or order is None else weights[order]
                    block = Block(X, w, begin, order, n_before)
                    if reads and (self.source.in_memory or len(self._ranges) == 1):
                        self._blocks[i] = block
                yield block
        if missing:
            self.source.verify()

    def _check_spread(self) -> None:
        if self._with_spread:
            check_spread(self._spread, self.dtype, self.source.name)

    def _check(self, X: Rows, begin: int) -> None:
        """Raise ValueError unless rows are finite and their squares in the dtype's range; begin: first row's index."""
        # As long as a column had only missing values, the origin is NaN there, and is completed from these rows.
        if self._origin is None or np.isnan(self._origin).any():
            first = X.first()
            self._origin = first if self._origin is None else np.where(np.isnan(self._origin), first, self._origin)
        largest, spread = X.extent(self._origin)
        if not np.isfinite(largest):
            self.source.check_finite(X.given(), begin)
        check_largest(largest, self.dtype, self.n_features, self.source.name)
        self._spread = max(self._spread, spread)


def local(X: Any, sample_weight: NDArray[np.float64] | None = None) -> Local:
    """Return a `Local` object with rows in memory as a single chunk. X: array or `Rows` object of valid values"""
    rows = as_rows(X)
    if isinstance(rows, SparseRows):
        source: Source = SparseSource(rows)
    else:
        source = ArraySource(rows.given() if rows.observed is None else with_nan(rows), dtype=rows.dtype)
    data = Local(source if sample_weight is None else source.with_weights(sample_weight), checked=True)
    if rows.observed is not None:
        return data.read_by(ReadMissing(), has_missing=True)
    if data.sizes:  # cache the block, because passes over a single cached block are faster
        weights = data.source.weights(0, len(rows))
        data._blocks[0] = Block(rows.converted(len(rows)), weights, n_before=None if weights is None else 0)
    return data
