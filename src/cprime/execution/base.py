"""Interface between the EM loop and the data: `Data`, which runs passes, and `Job`, the function of one pass.

A job is a frozen, picklable function object. It is called with a block of points and their active sets (an `ActiveSet`:
best components, costs, bounds) and changes neither, except that it writes to the arrays of bounds. So it may run in any
process, in any order, and more than once, each time with a copy of the bounds. The order in which partial results are
merged depends only on `sizes`, the numbers of rows of the chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cprime.execution.block import ActiveSet, Block, Chunk
from cprime.execution.statistics import Additive
from cprime.kernels import Rows

P_co = TypeVar("P_co", bound=Additive, covariant=True)
P = TypeVar("P", bound=Additive)


class Job(Protocol[P_co]):
    """Function of one pass over the data, which is called with each block of points and its active sets.

    It returns new active sets (or None) and a partial result. Partial results of several blocks are added.
    """

    @property
    def reads(self) -> bool:
        """Return whether the job needs the rows of the data; if not, it is called with blocks without columns."""
        ...

    @property
    def keeps(self) -> bool:
        """Return whether the active sets that the job returns replace the previous ones."""
        ...

    def __call__(self, block: Block, kept: ActiveSet | None, /) -> tuple[ActiveSet | None, P_co]: ...


def merge(parts: Iterable[P]) -> P:
    """Return the sum of n parts: pairs are added, then pairs of these sums and so on, as in a binary tree.

    The tree depends only on n, so the sum is bit-identical, no matter which thread or machine computed a part. About
    log₂ n partial sums are in memory at a time.
    """
    stack: list[tuple[int, P]] = []
    for part in parts:
        size = 1
        while stack and stack[-1][0] == size:
            part, size = stack.pop()[1] + part, 2 * size
        stack.append((size, part))
    total = stack.pop()[1]
    while stack:
        total = stack.pop()[1] + total
    return total


class RowSample(NamedTuple):
    """A few rows of the data in the requested order: X (m, D), their weights (m,) or None, and their active sets."""

    X: Rows
    sample_weight: NDArray[np.float64] | None
    kept: ActiveSet | None


class Data(Protocol):
    """All points of the data, in chunks, with the active sets of the points before and after the last pass."""

    # Number of points of each chunk.
    sizes: tuple[int, ...]
    # Number of all points, N.
    n_points: int
    n_features: int
    dtype: np.dtype
    columns: list[str] | None
    weighted: bool
    # Whether rows are sparse.
    sparse: bool
    # Whether values may be missing (NaN).
    has_missing: bool
    # Whether the rows are on this machine; only then can active sets be stored in its files.
    is_local: bool
    # Number of bytes that all rows need if they are in memory together.
    n_bytes: int
    # Whether all rows are one chunk, which stays in memory after the first read.
    in_memory: bool
    # Whether a fit may copy a chunk with its rows sorted by component; False if `max_memory` excludes it.
    copies: bool = True

    @property
    def n_weighted(self) -> int:
        """Return the number of points of positive weight; the number of all points if there are no weights."""
        ...

    @property
    def placed(self) -> bool:
        """Return whether the points have active sets yet."""
        ...

    def read_by(
        self,
        rows: Callable[[Any], Rows],
        has_missing: bool,
        n_features: int | None = None,
        sparse: bool | None = None,
        dtype: Any = None,
    ) -> Data:
        """Set the function that converts arrays to `Rows` objects; return self.

        has_missing: whether values may be missing
        n_features: number of columns of the new rows; None if it does not change
        sparse: whether the new rows are sparse; None if this does not change
        dtype: data type of the new rows; None if it does not change
        """
        ...

    def prepared(self, prepare: Callable[..., Rows]) -> Data:
        """Set the function that transforms all rows before a model uses them; return self.

        prepare: picklable function, called as prepare(X, name, order, first, weights). Its arguments are rows, the name
        of the data, the order of the result (a permutation of the rows, or None), the index of the first row, and the
        weights of the rows.
        """
        ...

    def each(self, job: Job[P]) -> P:
        """Run a job (function of a pass) on all chunks; return the merged partial results.

        The active sets of all points are replaced by those that the job returns if `job.keeps` is true.
        """
        ...

    def commit(self) -> None:
        """Delete the active sets from before the last pass, so that it can no longer be undone."""
        ...

    def rollback(self) -> None:
        """Undo the last pass: restore the active sets from before it."""
        ...

    def begin(self, keep: bool) -> None:
        """Prepare a fit: delete the active sets and restore the original order of rows.

        keep: whether active sets are reduced to the best component of each point instead of being deleted
        """
        ...

    def regroup(self, n_components: int) -> None:
        """Sort the points of each chunk by their best component, so that passes access memory sequentially."""
        ...

    def take(self, rows: NDArray[np.int64]) -> RowSample:
        """Return the rows with the given indices, in this order, as a `RowSample` with weights and active sets."""
        ...

    def edit(self, rows: NDArray[np.int64], components: NDArray[np.int32]) -> None:
        """Set the best component of each point rows[i] (an index) to components[i], with cost 0; in place."""
        ...

    def labels(self) -> Any:
        """Return each point's best component, (N,) int32, in the original order; None if there are no active sets."""
        ...

    def map(
        self,
        function: Callable[..., Any],
        width: int | None,
        dtype: Any,
        out: Any = None,
        *,
        numbered: bool = False,
    ) -> Any:
        """Return the results of a function for all rows: one array (N,) or (N, width), or sparse rows.

        The function is called with a few rows at a time.

        width: number of columns of the result; None for an array (N,)
        dtype: dtype of the result; if the function returns several arrays, a tuple of dtypes, and `map` returns a tuple
        out: array or .npy path to which the result is written, or None; for several results, a tuple of these
        numbered: whether the function is also called with the index of the first of its rows
        """
        ...

    def spilled(self, folder: Path) -> AbstractContextManager[None]:
        """Context manager that stores active sets in files of a folder, and deletes the files at its end.

        Raises
        ------
        ValueError
            If the attribute `is_local` is False: these data cannot store active sets in files.
        """
        ...

    def chunks(self) -> Iterator[Chunk]:
        """Yield a `Chunk` for each chunk of the data, for checkpoints: active sets of its points, and their order."""
        ...

    def restore(self, chunks: Iterable[Chunk]) -> None:
        """Restore the active sets and orders of points in `chunks`; if the iterable raises, nothing changes."""
        ...

    def identity(self) -> dict[str, Any]:
        """Return a dict: "data" is a hash of the data, "opened" a description from which they can be opened again."""
        ...

    def without_file(self) -> dict[str, NDArray]:
        """Return a dict of the arrays that are in no file, so a checkpoint must store them: "data" and "weights"."""
        ...

    def whole(self) -> tuple[Rows, NDArray[np.float64] | None] | None:
        """Return (X, weights or None) if all rows are one chunk in memory; None for other data."""
        ...


@dataclass(frozen=True)
class LocateRows:
    """Job that returns the row indices of points that are given by their ranks among the points of positive weight.

    Samples of points are drawn as ranks, so that points of weight 0 do not change them.
    numbers: sorted ranks; rank i means that i earlier points have positive weight. The result is sorted, too.
    """

    numbers: NDArray[np.int64]

    reads: ClassVar[bool] = False
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, ConcatenatedRows]:
        found = np.isin(block.row_numbers(), self.numbers)
        if block.sample_weight is not None:
            found &= block.sample_weight > 0
        return None, ConcatenatedRows(np.sort(block.rows(np.flatnonzero(found))))


class ConcatenatedRows(NamedTuple):
    """Row indices as a partial result of a pass; adding two of these results concatenates them."""

    rows: NDArray[np.int64]

    def __add__(self, other: ConcatenatedRows) -> ConcatenatedRows:  # type: ignore[override]
        return ConcatenatedRows(np.concatenate([self.rows, other.rows]))


def rows_of(data: Data, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row indices (m,) of points that are given by their ranks `numbers` (m,).

    A point has rank i if it has positive weight, and i earlier points have positive weight.
    """
    if data.n_weighted == data.n_points:
        return numbers
    asked, place = np.unique(numbers, return_inverse=True)
    return data.each(LocateRows(asked)).rows[place]
