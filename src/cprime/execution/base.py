"""Interface between the EM loop and the data: `Data`, which runs passes, and `Job`, the function of one pass.

A job is a frozen, picklable value. It is called with a block of points and their per-point state (`ActiveSet`: ids,
costs, bounds) and changes neither. So it may run in any process, in any order, and more than once. The order in which
its partial results are merged depends only on `sizes`, the numbers of rows of the chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cprime.block import ActiveSet, Block
from cprime.execution.chunk import Chunk
from cprime.kernels import Rows
from cprime.statistics import Additive

P_co = TypeVar("P_co", bound=Additive, covariant=True)
P = TypeVar("P", bound=Additive)


class Job(Protocol[P_co]):
    """One pass over the data: called with a block, it returns new per-point state and an additive partial result."""

    @property
    def reads(self) -> bool:
        """Return whether the job needs the rows; if not, its block has no columns."""
        ...

    @property
    def keeps(self) -> bool:
        """Return whether the per-point state that the job returns replaces the previous one."""
        ...

    def __call__(self, block: Block, kept: ActiveSet | None, /) -> tuple[ActiveSet | None, P_co]: ...


class RowSample(NamedTuple):
    """A few rows of the data, in the requested order: X (m, D), weights (m,) or None, and their per-point state."""

    X: Rows
    sample_weight: NDArray[np.float64] | None
    kept: ActiveSet | None


class Data(Protocol):
    """All points, in chunks, with two generations of their per-point state: before and after the last pass."""

    sizes: tuple[int, ...]  # points of each chunk
    n_points: int  # N
    n_features: int
    dtype: np.dtype
    columns: list[str] | None
    weighted: bool
    sparse: bool  # whether rows are sparse
    gaps: bool  # whether values may be missing
    spills: bool  # whether the per-point state can be stored in files of this machine

    @property
    def n_weighted(self) -> int:
        """Return the number of points of positive weight; N if the data have no weights."""
        ...

    @property
    def n_bytes(self) -> int:
        """Return the number of bytes that all rows take in memory."""
        ...

    @property
    def in_memory(self) -> bool:
        """Return whether all rows are one chunk, which stays in memory after the first read."""
        ...

    @property
    def placed(self) -> bool:
        """Return whether the points have a per-point state."""
        ...

    def read_by(self, rows: Callable[[Any], Rows], gaps: bool) -> Data:
        """Set the function that converts arrays to rows, and return the data; gaps: whether values may be missing."""
        ...

    def each(self, job: Job[P]) -> P:
        """Run a job on all chunks and return the merged partial results; replace the per-point state if `job.keeps`."""
        ...

    def commit(self) -> None:
        """Delete the per-point state from before the last pass."""
        ...

    def rollback(self) -> None:
        """Restore the per-point state from before the last pass."""
        ...

    def begin(self, keep: bool) -> None:
        """Prepare a fit: delete the per-point state and restore the original order of rows.

        keep: whether each point's best component is retained
        """
        ...

    def regroup(self, n_components: int) -> None:
        """Sort the points of each chunk by their best component, so that passes access memory sequentially."""
        ...

    def take(self, rows: NDArray[np.int64]) -> RowSample:
        """Return a few rows by their indices in the data."""
        ...

    def edit(self, rows: NDArray[np.int64], components: NDArray[np.int32]) -> None:
        """Assign a few points to the given components, at zero cost."""
        ...

    def labels(self) -> Any:
        """Return the best components in the original order of the points, (N,) int32; None without per-point state."""
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
        """Apply a function to all rows, a few at a time; return one array (N,) or (N, width), or sparse rows.

        dtype: of the result; a tuple if the function returns several arrays, so that the result is a tuple
        out: where results are written, see `results.places`; a tuple if there are several
        numbered: whether the function also gets the index of the first of the rows
        """
        ...

    def spilled(self, folder: Path) -> AbstractContextManager[None]:
        """Store the per-point state in files of a folder within this context, and delete it at the end.

        Raises
        ------
        ValueError
            If these data cannot store it in files, see `spills`.
        """
        ...

    def chunks(self) -> Iterator[Chunk]:
        """Yield the per-point state of each chunk: all that a pass needs besides the rows."""
        ...

    def restore(self, chunks: Iterable[Chunk]) -> None:
        """Restore the per-point state that `chunks` yielded; if the iterable raises, nothing changes."""
        ...

    def identity(self) -> dict[str, Any]:
        """Return a fingerprint of the data as "data", and how another process can open them as "opened"."""
        ...

    def without_file(self) -> dict[str, NDArray]:
        """Return the arrays that another process could not read again from files: "data" and "weights"."""
        ...

    def whole(self) -> tuple[Rows, NDArray[np.float64] | None] | None:
        """Return X and the weights if all rows are one chunk in memory; else None."""
        ...


@dataclass(frozen=True)
class LocateRows:
    """Job that finds the rows of points, given their ranks among the points of positive weight.

    numbers: sorted ranks, see `Block.numbers`; the result is sorted too
    """

    numbers: NDArray[np.int64]

    reads: ClassVar[bool] = False
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, ConcatenatedRows]:
        found = np.isin(block.numbers(), self.numbers)
        if block.sample_weight is not None:
            found &= block.sample_weight > 0
        return None, ConcatenatedRows(np.sort(block.rows(np.flatnonzero(found))))


class ConcatenatedRows(NamedTuple):
    """Partial result whose sum is the concatenation of row indices."""

    rows: NDArray[np.int64]

    def __add__(self, other: ConcatenatedRows) -> ConcatenatedRows:  # type: ignore[override]
        return ConcatenatedRows(np.concatenate([self.rows, other.rows]))


def rows_of(data: Data, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of points given their ranks among the points of positive weight, in the order of `numbers`."""
    if data.n_weighted == data.n_points:
        return numbers
    asked, place = np.unique(numbers, return_inverse=True)
    return data.each(LocateRows(asked)).rows[place]
