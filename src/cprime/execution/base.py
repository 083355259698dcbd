"""What an execution offers to the loop, and what the loop asks of it: jobs.

A job is a frozen, picklable value that is called with a block of points and what these keep, and changes neither. So it
may run anywhere, in any order, and twice. What its parts are merged to depends on `sizes`, the rows of chunks, alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cprime.block import Block, Kept
from cprime.execution.chunk import Chunk
from cprime.kernels import Rows
from cprime.statistics import Additive

P_co = TypeVar("P_co", bound=Additive, covariant=True)
P = TypeVar("P", bound=Additive)


class Job(Protocol[P_co]):
    """One pass over the data: what points keep after it, and an additive part."""

    @property
    def reads(self) -> bool:
        """Whether it needs the rows; else its block has no columns."""
        ...

    @property
    def keeps(self) -> bool:
        """Whether what it returns is what points keep from now on."""
        ...

    def __call__(self, block: Block, kept: Kept | None, /) -> tuple[Kept | None, P_co]: ...


class Taken(NamedTuple):
    """A few rows of the data, in the order asked for: X (m, D), weights (m,) or None, and what they keep."""

    X: Rows
    sample_weight: NDArray[np.float64] | None
    kept: Kept | None


class Data(Protocol):
    """All points, in chunks; what they keep has two generations, of before the last pass and of after it."""

    sizes: tuple[int, ...]  # points of each chunk
    n_points: int  # N
    n_features: int
    dtype: np.dtype
    columns: list[str] | None
    weighted: bool
    sparse: bool  # whether rows are sparse ones
    gaps: bool  # whether numbers may be missing
    spills: bool  # whether what points keep can live in files of this machine

    @property
    def n_weighted(self) -> int:
        """The points of positive weight; where none is asked for, N."""
        ...

    @property
    def n_bytes(self) -> int:
        """Bytes of all rows in memory."""
        ...

    @property
    def in_memory(self) -> bool:
        """Whether all are one chunk, which is in memory once it has been read."""
        ...

    @property
    def placed(self) -> bool:
        """Whether points keep anything."""
        ...

    def read_by(self, rows: Callable[[Any], Rows], gaps: bool) -> Data:
        """The same data, of whose arrays a function makes rows; gaps: in which numbers may be missing."""
        ...

    def each(self, job: Job[P]) -> P:
        """The only pass over the data: the merged parts of a job; what points keep is then the new generation."""
        ...

    def commit(self) -> None:
        """Forgets the generation of before the last pass."""
        ...

    def rollback(self) -> None:
        """Goes back to it."""
        ...

    def begin(self, keep: bool) -> None:
        """Before a fit: forgets what points keep, but for their winners if these are to be kept; ends a regrouping."""
        ...

    def regroup(self, n_components: int) -> None:
        """Puts the points of each chunk in the order of their winners, so that passes read memory in order."""
        ...

    def take(self, rows: NDArray[np.int64]) -> Taken:
        """A few rows by their numbers among all."""
        ...

    def edit(self, rows: NDArray[np.int64], components: NDArray[np.int32]) -> None:
        """Puts a few points into components, onto their centres."""
        ...

    def labels(self) -> Any:
        """The winners, in the order in which the points came: (N,) int32; None where nothing is kept."""
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
        """What a function makes of rows, a few at a time, as one array (N,) or (N, width) or sparse rows.

        dtype: a tuple of them where it makes several arrays, which are a tuple then
        out: places for these, see `results.result`; a tuple of them then
        numbered: whether it is given the number of the first of the rows too
        """
        ...

    def spilled(self, folder: Path) -> AbstractContextManager[None]:
        """While it lasts, what points keep lives in files of a folder; with it all of that goes.

        Raises
        ------
        ValueError
            If it cannot live there, see `spills`.
        """
        ...

    def chunks(self) -> Iterator[Chunk]:
        """What the points of each chunk keep: all that a pass needs besides the rows."""
        ...

    def restore(self, chunks: Iterable[Chunk]) -> None:
        """Puts back what `chunks` has given; where these raise, all stays as it is."""
        ...

    def identity(self) -> dict[str, Any]:
        """What tells other data from these, and how another process opens them, as "data" and "opened"."""
        ...

    def without_file(self) -> dict[str, NDArray]:
        """The arrays that another process could not open again: "data" and "weights"."""
        ...

    def whole(self) -> tuple[Rows, NDArray[np.float64] | None] | None:
        """X and the weights, where all are one chunk in memory; else None."""
        ...


@dataclass(frozen=True)
class Numbered:
    """Rows, rising, of the points of positive weight that have these numbers, rising: see `Block.numbers`."""

    numbers: NDArray[np.int64]

    reads: ClassVar[bool] = False
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: Kept | None) -> tuple[None, Joined]:
        found = np.isin(block.numbers(), self.numbers)
        if block.sample_weight is not None:
            found &= block.sample_weight > 0
        return None, Joined(np.sort(block.rows(np.flatnonzero(found))))


class Joined(NamedTuple):
    """Rows of one block after those of another."""

    rows: NDArray[np.int64]

    def __add__(self, other: Joined) -> Joined:  # type: ignore[override]
        return Joined(np.concatenate([self.rows, other.rows]))


def rows_of(data: Data, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of points by their numbers among those of positive weight, in the order asked for."""
    if data.n_weighted == data.n_points:
        return numbers
    asked, place = np.unique(numbers, return_inverse=True)
    return data.each(Numbered(asked)).rows[place]
