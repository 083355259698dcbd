"""Functions that run as tasks on the workers of a Dask cluster, each on a group of consecutive chunks of the data.

The functions do not change their arguments, because a task may run more than once.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from dask.sizeof import sizeof
from numpy.typing import NDArray

from cprime._utils.number_types import check_largest, is_narrow
from cprime.execution.base import Job, P, merge
from cprime.execution.block import Block, Chunk, join_active_sets
from cprime.execution.local import MakeRows, Prepare
from cprime.kernels import Rows, as_rows, computing, with_nan
from cprime.sources.kinds import FILL_MISSING


class GroupState(NamedTuple):
    """Active sets of a group of chunks, chunk by chunk, and the merged partial result of the last pass."""

    chunks: list[Chunk]
    part: Any = None


@sizeof.register(Block)
def _(block: Block) -> int:
    """Return the size of a block in bytes, which Dask uses to decide where tasks run."""
    return sum(array.nbytes for array in (block.X, block.sample_weight, block.order) if array is not None)


@sizeof.register(Chunk)
def _(chunk: Chunk) -> int:
    return sum(array.nbytes for array in chunk.arrays.values())


class Reading(NamedTuple):
    """Settings for the conversion of a block of any dtype to rows.

    dtype: data type of the computation    rows: function that converts arrays to rows
    prepare: function that transforms rows for the model, or None    columns: column names for messages, or None
    """

    dtype: np.dtype
    rows: MakeRows = as_rows
    prepare: Prepare | None = None
    columns: list[str] | None = None


@dataclass(frozen=True)
class RowFunction:
    """Function of an array that checks and transforms its rows, and returns the result of `function` for them.

    out: dtype of the result; a structured one, with a field for each result, if `function` returns several arrays
    numbered: whether `function` is also called with the index of the first row
    """

    function: Callable[..., Any]
    reading: Reading
    out: np.dtype
    numbered: bool = False

    def __call__(self, X: Any, block_info: Any = None) -> Any:
        first = block_info[0]["array-location"][0][0] if block_info else 0
        with computing(1):
            rows = checked(X, self.reading, first)
            found = self.function(rows, first) if self.numbered else self.function(rows)
        if self.out.names is None:
            return found.astype(self.out, copy=False)
        fields = np.empty(found[0].shape, self.out)
        for name, part in zip(self.out.names, found, strict=True):
            fields[name] = part
        return fields


def checked(array: Any, reading: Reading, first: int, weights: NDArray[np.float64] | None = None) -> Rows:
    """Return an array as rows, checked and transformed for the model; raise ValueError for invalid values.

    first: index of the array's first row in the data
    """
    array = np.asarray(array)
    X = reading.rows(np.ascontiguousarray(array, None if is_narrow(array.dtype) else reading.dtype))
    X = X if X.dtype == reading.dtype else X.as_type(reading.dtype)
    largest, _ = X.extent()
    if not np.isfinite(largest):
        row, j, value = X.not_finite() or (0, 0, np.nan)
        column = j if reading.columns is None else repr(reading.columns[j])
        remedy = FILL_MISSING if np.isnan(value) else "values must be finite"
        raise ValueError(f"X: row {first + row}, column {column}: {value}; {remedy}")
    check_largest(largest, X.dtype, X.shape[1], "X")
    return X if reading.prepare is None else reading.prepare(X, "X", None, int(first), weights)


def made(
    rows: list[Any],
    weights: list[Any] | None,
    first: int,
    reading: Reading,
    n_before: int | None = None,
) -> list[Block]:
    blocks = []
    for i, X in enumerate(rows):
        w = None if weights is None else np.ascontiguousarray(weights[i], dtype=np.float64)
        if w is not None and not (np.isfinite(w) & (w >= 0)).all():
            raise ValueError(f"sample_weight must be finite and not negative, got others from row {first} on.")
        blocks.append(Block(checked(X, reading, first, w), w, first, None, n_before))
        first += len(X)
        if n_before is not None and w is not None:
            n_before += heavy(w)
    return blocks


def heavy(weights: NDArray[np.float64]) -> int:
    """Return the number of positive weights of a chunk."""
    return int(np.count_nonzero(weights > 0))


def as_it_is(value: Any) -> Any:
    return value


def apply(job: Job[P], blocks: list[Block], held: GroupState | None) -> Any:
    """Run a job (function of a pass) on a group of chunks; return the merged partial result.

    If `job.keeps`, return a `GroupState` with this result and the job's new active sets.
    held: active sets of the group, None before the first pass    blocks: rows and weights of its chunks
    """
    after, parts = [], []
    with computing(1):  # use one thread, because a worker runs one task per thread
        for block, chunk in zip(blocks, [Chunk()] * len(blocks) if held is None else held.chunks, strict=True):
            before = None if chunk.kept is None else chunk.kept.unshared()
            kept, one = job(Block(block.X, block.sample_weight, block.first, block.order, block.n_before), before)
            after.append(Chunk(kept, chunk.order))
            parts.append(one)
    return GroupState(after, merge(parts)) if job.keeps else merge(parts)


def begun(held: GroupState) -> GroupState:
    return GroupState([chunk.begun() for chunk in held.chunks])


def regrouped(held: GroupState, n_components: int) -> GroupState:
    with computing(1):
        return GroupState([chunk.regrouped(n_components)[0] for chunk in held.chunks])


def in_order(blocks: list[Block], held: GroupState) -> list[Block]:
    with computing(1):
        return [
            block if chunk.order is None else block.reordered(chunk.order.astype(np.int64))
            for block, chunk in zip(blocks, held.chunks, strict=True)
        ]


def taken(blocks: list[Block], held: GroupState | None, inside: list[tuple[int, NDArray]]) -> Any:
    """Return rows X, weights and active sets of some rows of a group of chunks.

    blocks: rows and weights of the chunks    held: active sets of the group
    inside: pairs (index of a chunk, indices of rows in this chunk)
    """
    X = np.concatenate([with_nan(blocks[i].X[rows]) for i, rows in inside])
    weights = None
    if blocks[0].sample_weight is not None:
        weights = np.concatenate([blocks[i].sample_weight[rows] for i, rows in inside])  # type: ignore[index]
    begin, parts = 0, []
    for i, rows in inside:
        chunk = Chunk() if held is None else held.chunks[i]
        if chunk.kept is not None:
            parts.append((np.arange(begin, begin + len(rows)), chunk.kept.at(chunk.places(rows))))
        begin += len(rows)
    return X, weights, join_active_sets(parts, len(X))


def edited(held: GroupState, changes: list[tuple[int, NDArray, NDArray]]) -> GroupState:
    chunks = list(held.chunks)
    for i, rows, components in changes:
        chunks[i] = chunks[i].edited(rows, components)
    return GroupState(chunks)


def labels(held: GroupState, i: int) -> NDArray[np.int32]:
    return held.chunks[i].labels()


def hashes(rows: list[Any], weights: list[Any] | None, first: int, dtype: np.dtype) -> list[bytes]:
    """Return one hash (bytes) for each chunk, of its rows and weights, as a list."""
    out = []
    for i, X in enumerate(rows):
        found = blake2b(np.ascontiguousarray(X, dtype=dtype), digest_size=32)
        if weights is not None:
            found.update(np.ascontiguousarray(weights[i], dtype=np.float64))
        out.append(found.digest())
    return out


def written(held: GroupState, path: str) -> str:
    """Write the active sets of a group of chunks to a file, and return its path.

    The file is written completely or not at all, because the task is repeated if its worker is lost.
    """
    arrays: dict[str, Any] = {}
    for i, chunk in enumerate(held.chunks):
        arrays |= {f"{i}-{name}": array for name, array in chunk.arrays.items()}
    part = f"{path}.{os.getpid()}"
    with open(part, "wb") as file:
        np.savez(file, **arrays)
    os.replace(part, path)
    return path


def read(path: str) -> GroupState:
    chunks = []
    with np.load(path, allow_pickle=False) as arrays:
        for i in range(1 + max(int(name.split("-")[0]) for name in arrays.files)):
            mine = [name for name in arrays.files if name.startswith(f"{i}-")]
            chunks.append(Chunk.from_arrays({name.split("-")[1]: arrays[name] for name in mine}))
    return GroupState(chunks)
