"""What every source of rows offers.

Owns ranges, chunks, precision, weights, and the checks of files and values. A format says how rows are
fetched (`_fill`) and nothing else; what is done with rows is known above.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from hashlib import blake2b
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from cprime._narrow import is_narrow
from cprime.sources.choice import Columns
from cprime.sources.kinds import FILL_MISSING, Kind, Lists, precision
from cprime.sources.stamps import Stamp

CHUNK_BYTES = 128 * 2**20
CHUNK_ROWS = 2**22  # of few columns: what a pass makes for each row of a chunk is more than the row


class Source(Columns, ABC):
    """Rows of numbers that are read block by block: an array, a file, a folder of files.

    A source only reads. It serves one thread at a time; `with_chunk_rows(None)` and its like return sources of the same
    rows that share no open file with it. Pickled, it keeps no file open and opens what it needs in the other process.

    Parameters
    ----------
    name : str
        What messages call it: the path, as it was given.
    n_rows : int
        How many rows there are.
    kinds : sequence of (np.dtype or str)
        How each column is stored; a str is the name of a type that is not numeric.
    names : sequence of str, default=None
        The columns' names, if they have any.
    files : sequence of Stamp
        What the rows are read from; `verify` watches them.

    Attributes
    ----------
    n_rows, n_features : int
        Rows, and columns that are chosen.
    dtype : np.dtype
        What `read` returns: float32 if that holds every stored value (of 8 and 16 bits, float32), else float64.
    stored : np.dtype
        What `read` can return besides, and fits compute with: the type of all that is stored if it is uint8, int8,
        bool, float16 or bfloat16 and the format is one of numbers; else `dtype`.
    columns : list of str or None
        The names of the chosen columns, in the order asked for; None where they have none, as in a matrix, or in a
        column whose every value is a list, a row.
    chunk_rows : int
        Rows of a chunk: as given, else as many as fit in 128 MiB. An array in memory is one chunk.
    sizes : tuple of int
        Rows of each chunk: `chunk_rows`, the last one fewer.
    n_bytes : int
        Bytes as stored.
    in_memory : bool
        Whether `read` costs nothing worth fetching ahead.
    """

    in_memory = False
    preparation: Any = None  # what has been done to the rows that are read, for a model to do it too
    sparse = False  # whether rows are `kernels.SparseRows`
    _keeps_narrow = False  # whether `_fill` writes arrays of the narrow type that all columns have
    _open_files: Any = None
    _watch: Callable[[int, int], None] | None = None

    def __init__(
        self,
        name: str,
        n_rows: int,
        kinds: Sequence[Kind],
        names: Sequence[str] | None = None,
        files: Sequence[Stamp] = (),
    ) -> None:
        super().__init__(name, kinds, names)
        self.n_rows = n_rows
        self._files = tuple(files)
        self._dtype: np.dtype | None = None
        self._chunk_rows: int | None = None
        self._weights: Source | None = None
        self._weights_spec: str | bool | None = None
        self._opened_with: dict[str, Any] | None = None  # arguments of `open_data`

    @abstractmethod
    def _fill(self, begin: int, end: int, out: NDArray) -> None:
        """Write the chosen columns of rows begin to end into out (end - begin, n_features), of any type of `read`."""

    @property
    def is_plain(self) -> bool:
        """Whether the array of type `stored` of all rows is all there is to them, weights apart."""
        return False

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, self.n_features

    @property
    def dtype(self) -> np.dtype:
        if self._dtype is not None:
            return self._dtype
        return precision(self._chosen_kinds)

    @property
    def stored(self) -> np.dtype:
        kinds = {kind.dtype if isinstance(kind, Lists) else kind for kind in set(self._chosen_kinds)}
        (one,) = kinds if len(kinds) == 1 else (None,)
        return one if self._keeps_narrow and is_narrow(one) else self.dtype  # type: ignore[return-value]

    @property
    def chunk_rows(self) -> int:
        return self._chunk_rows or self._default_chunk_rows()

    @property
    def sizes(self) -> tuple[int, ...]:
        full, rest = divmod(self.n_rows, self.chunk_rows)
        return (self.chunk_rows,) * full + ((rest,) if rest else ())

    @property
    def n_bytes(self) -> int:
        return sum(stamp.size for stamp in self._files)

    @property
    def n_bytes_read(self) -> int:
        """Bytes of all rows as `read` returns them."""
        return self.n_rows * self.n_features * self.dtype.itemsize

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.n_rows} x {self.n_features}, {self.dtype}>"

    def read(self, begin: int, end: int, dtype: DTypeLike | None = None) -> NDArray:
        """Rows `begin` to `end`, without `end`.

        Parameters
        ----------
        begin, end : int
            0 <= begin <= end <= n_rows.
        dtype : dtype, default=None
            `stored`, or None for `dtype`.

        Returns
        -------
        ndarray of shape (end - begin, n_features)
            Of `dtype` in C order: new, or a read-only view of what is in memory.
        """
        out = np.empty((end - begin, self.n_features), dtype or self.dtype)
        self.read_into(begin, end, out)
        return out

    def read_into(self, begin: int, end: int, out: NDArray) -> None:
        """As `read`, into an array of the right shape, in C order, of float32, float64 or `stored`."""
        self._check_range(begin, end)
        if begin < end:
            with np.errstate(over="ignore"):  # what float32 does not hold is infinite, and found by check_finite
                self._fill(begin, end, out)

    def take(self, rows: ArrayLike, dtype: DTypeLike | None = None) -> NDArray:
        """The rows with the given numbers.

        Parameters
        ----------
        rows : array-like of int, of shape (m,)
            In any order; the same row may be asked for more than once.
        dtype : dtype, default=None
            `stored`, or None for `dtype`.

        Returns
        -------
        ndarray of shape (m, n_features)
            New, of `dtype`.
        """
        rows = np.asarray(rows, dtype=np.int64)
        wanted, order = np.unique(rows, return_inverse=True)
        out = np.empty((len(wanted), self.n_features), dtype or self.dtype)
        if len(wanted):
            self._check_range(int(wanted[0]), int(wanted[-1]) + 1)
            with np.errstate(over="ignore"):
                self._gather(wanted, out)
        return out if np.array_equal(wanted, rows) else out[order]

    def weights(self, begin: int, end: int) -> NDArray[np.float64] | None:
        """The weights of rows `begin` to `end`, (end - begin,) float64; None if all rows weigh the same."""
        return None if self._weights is None else self._weights.read(begin, end)[:, 0]

    def with_weights(self, spec: Any) -> "Source":
        """The same rows with weights.

        Parameters
        ----------
        spec : None, str, path or array-like of shape (n_rows,)
            None for no weights; the name of a column of a table, which then is no data; a file with one column or a
            1-d array; or the weights.

        Returns
        -------
        Source

        Raises
        ------
        ValueError
            If weights are negative or not finite, all zero, or not one for each row; the message names the first such
            row.
        """
        from cprime.sources.weights import weighted

        return weighted(self, spec)

    def subset(self, rows: NDArray[np.int64]) -> "Source":
        """Some of the rows, by rising numbers, as a source; their weights are held in memory."""
        from cprime.sources.subset import SubsetSource

        return SubsetSource(self, np.asarray(rows, dtype=np.int64))

    def part(self, columns: NDArray[np.intp]) -> "Source":
        """Some of the columns that are read, by their numbers among these, as a source; the values of lists as well."""
        if self._list is not None:
            from cprime.sources.part import PartSource

            return PartSource(self, columns)
        return self.select([self._positions[j] for j in columns.tolist()])

    def as_type(self, dtype: DTypeLike) -> Self:
        """The same rows, read as float32 or float64."""
        wanted = np.dtype(dtype)
        if wanted not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {wanted}.")
        new = self._copy()
        new._dtype = wanted
        return new

    def widened(self) -> Self:
        """The same rows, `stored` being `dtype` where values may be missing: narrow integers say of none that it is."""
        new = self._copy()
        new._keeps_narrow = False
        return new

    def with_chunk_rows(self, chunk_rows: int | None) -> Self:
        """The same rows in chunks of another size; None for the default."""
        if chunk_rows is not None and (isinstance(chunk_rows, bool) or not isinstance(chunk_rows, Integral)):
            raise TypeError(f"chunk_rows must be an instance of int, not {type(chunk_rows).__name__}.")
        if chunk_rows is not None and chunk_rows < 1:
            raise ValueError(f"chunk_rows == {chunk_rows}, must be >= 1.")
        new = self._copy()
        new._chunk_rows = None if chunk_rows is None else int(chunk_rows)
        return new

    def watched(self, watch: Callable[[int, int], None]) -> Self:
        """The same rows; `ahead` calls `watch` with the first row of each block, and the one after its last."""
        new = self._copy()
        new._watch = watch
        return new

    @property
    def opened_from(self) -> dict[str, Any] | None:
        """What `reopened` takes to open the same rows in another process, of strings and numbers; None without a path.

        Weights that came as an array are not among it.
        """
        if self._opened_with is None:
            return None
        return {
            **self._opened_with,
            "weights": self._weights_spec,
            "columns": self._chosen,
            "chunk_rows": self._chunk_rows,
            "dtype": self.dtype.name,
        }

    def verify(self) -> None:
        """Raise ValueError for the first file that has changed or vanished since the source was opened."""
        for stamp in self._files:
            stamp.verify()
        if self._weights is not None:
            self._weights.verify()

    def fingerprint(self) -> bytes:
        """A hash that tells other data from these.

        Of files it sees names, sizes and times of change, of arrays in memory the content; moving a file to another
        folder does not change it, nor does another `chunk_rows`.
        """
        found = blake2b(digest_size=32)
        files = [(Path(stamp.path).name, stamp.size, stamp.mtime_ns) for stamp in self._files]
        found.update(repr((files, self.shape, self.dtype.str, self.columns, self._chosen)).encode())
        found.update(self._identity())
        found.update(b"" if self._weights is None else self._weights.fingerprint())
        return found.digest()

    def check_finite(self, X: NDArray, begin: int, gaps: bool = False) -> None:
        """Raise ValueError if a block read from row `begin` on holds NaN or infinity, naming the first such value.

        gaps: whether NaN is a number that is missing
        """
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(X.sum()):
                return
        bad = np.isinf(X) if gaps else ~np.isfinite(X)
        rows = np.flatnonzero(bad.any(axis=1))
        if not len(rows):
            return
        row = int(rows[0])
        j = int(bad[row].argmax())
        remedy = f"; {FILL_MISSING}" if np.isnan(X[row, j]) else ""
        raise ValueError(
            f"{self._where(begin + row)}, column {self._column_of(j)}: {X[row, j]}; values must be finite, and "
            f"{len(rows)} of the {len(X)} rows from row {begin} on hold others{remedy}"
        )

    def close(self) -> None:
        """Close what is open; the next read opens it again."""
        self._open_files = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_open_files"}

    def _copy(self) -> Self:
        """The same source with nothing open."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__getstate__())
        return new

    def _default_chunk_rows(self) -> int:
        return min(CHUNK_ROWS, max(1, CHUNK_BYTES // max(1, self.n_features * self.dtype.itemsize)))

    def _gather(self, rows: NDArray[np.int64], out: NDArray) -> None:
        """Write distinct rows in ascending order into out; those that are stored together are read together."""
        span = self._span()
        first = np.flatnonzero(np.diff(rows // span, prepend=-1))
        for a, b in zip(first, [*first[1:], len(rows)], strict=True):
            begin, end = int(rows[a]), int(rows[b - 1]) + 1
            block = np.empty((end - begin, self.n_features), out.dtype)
            self._fill(begin, end, block)
            out[a:b] = block[rows[a:b] - begin]

    def _span(self) -> int:
        """How many rows are read together when single rows are asked for."""
        return max(1, 2**16 // max(1, self.n_features * self.dtype.itemsize))

    def _identity(self) -> bytes:
        """What else tells this source from others: the array's name in a file, or the content."""
        return b""

    def _where(self, row: int) -> str:
        """Which row that is, for messages."""
        return f"{self.name}: row {row}"

    def _check_range(self, begin: int, end: int) -> None:
        if not 0 <= begin <= end <= self.n_rows:
            raise ValueError(f"rows {begin} to {end} are not among the {self.n_rows} rows of {self.name}")
