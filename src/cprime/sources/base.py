"""Base class of all sources of rows.

It implements row ranges, chunks, the choice of float32 or float64, weights, and checks of files and values. A subclass
for a file format only implements how rows are read (`_fill`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from cprime._utils.arguments import check_integer
from cprime._utils.files import Stamp
from cprime._utils.number_types import is_narrow
from cprime.sources.kinds import FILL_MISSING, Columns, Kind, Lists, precision

CHUNK_BYTES = 128 * 2**20
# Data of at most this size are one chunk, which a fit reads once and holds in memory.
WHOLE_BYTES = 512 * 2**20
# Largest number of rows of a chunk. It limits the memory of a pass, which has results for each row.
CHUNK_ROWS = 2**22

T = TypeVar("T", bound=Callable[..., Any])
# Maps the name of a method of `Source` to the function or class that makes its result, which another module registers.
_makers: dict[str, Callable[..., "Source"]] = {}


def makes_result_of(method: str) -> Callable[[T], T]:
    """Return a decorator of a maker, which the named method of `Source` calls with itself to make its result."""

    def register(maker: T) -> T:
        _makers[method] = maker
        return maker

    return register


class Source(Columns, ABC):
    """Rows of numbers that are read block by block from an array, a file or a folder of files.

    A source is read-only and used by one thread at a time. Methods such as `with_chunk_rows` return sources of the
    same rows that share no open file with it. A pickled source has no open file; it opens files again when it is read.

    Parameters
    ----------
    name : str
        Name in messages: the path as it was given.
    n_rows : int
        Number of rows.
    kinds : sequence of (np.dtype or str)
        Stored type of each column; a str is the name of a type that is not numeric.
    names : sequence of str, default=None
        Names of the columns, if they have any.
    files : sequence of Stamp
        Files from which the rows are read; `verify` checks them for changes.

    Attributes
    ----------
    n_rows, n_features : int
        Numbers of rows and of chosen columns.
    dtype : np.dtype
        Type that `read` returns: float32 if it can hold all values of the stored types (8 and 16 bits, float32), else
        float64.
    stored : np.dtype
        Alternative type that `read` can return and fits can use: the common type of all columns, if that is a narrow
        one (uint8, int8, bool, float16 or bfloat16) and the format stores numbers; otherwise `dtype`.
    columns : list of str or None
        Names of the chosen columns, in the requested order; None if they have none, as in a matrix or a column of
        lists.
    chunk_rows : int
        Number of rows of a chunk: the number that was set; or all rows, if they are an array in memory, or at most 2²²
        rows of at most 512 MiB; or else as many as fit in 128 MiB.
    sizes : tuple of int
        Number of rows of each chunk: `chunk_rows`, or fewer in the last chunk.
    n_bytes : int
        Size of the stored data.
    read_bytes : int
        Size of all rows in memory, in the type `dtype`.
    in_memory : bool
        Whether reading is so fast that read-ahead is unnecessary.
    """

    in_memory = False
    # Whether all rows are one chunk unless `chunk_rows` is set.
    _is_one_chunk = False
    # Name of the array or table in a file that is read; "" if a file has only one.
    _place = ""
    # Whether stored values may have any type, and are read as Arrow arrays.
    _reads_text = False
    # Whether rows are sparse: objects of the class `kernels.SparseRows`.
    sparse = False
    # Whether `_fill` can write a narrow type (such as uint8) that all columns have.
    _keeps_narrow = False
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
        self.name, self.n_rows = name, n_rows
        self._kinds = tuple(kinds)
        self._names = None if names is None else tuple(names)
        self._files = tuple(files)
        self._dtype: np.dtype | None = None
        self._chunk_rows: int | None = None
        self._weights: Source | None = None
        self._weights_spec: str | bool | None = None
        self._opened_with: dict[str, Any] | None = None  # arguments with which `open_data` opened this source

    @abstractmethod
    def _fill(self, begin: int, end: int, out: NDArray) -> None:
        """Write the chosen columns of rows begin to end into `out`, an array (end - begin, n_features).

        The type of `out` is float32, float64 or the attribute `stored`, the narrow type of the numbers in a file.
        """

    @property
    def is_plain(self) -> bool:
        """Return whether the rows are one whole array in memory that is read in its own type; there may be weights."""
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
        if self._chunk_rows is not None:
            return self._chunk_rows
        whole = self._is_one_chunk or (self.n_rows <= CHUNK_ROWS and self.read_bytes <= WHOLE_BYTES)
        return max(1, self.n_rows) if whole else self._default_chunk_rows()

    @property
    def sizes(self) -> tuple[int, ...]:
        full, rest = divmod(self.n_rows, chunk_rows := self.chunk_rows)
        return (chunk_rows,) * full + ((rest,) if rest else ())

    @property
    def n_bytes(self) -> int:
        return sum(stamp.size for stamp in self._files)

    @property
    def read_bytes(self) -> int:
        return self.n_rows * self.n_features * self.dtype.itemsize

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.n_rows} x {self.n_features}, {self.dtype}>"

    def read(self, begin: int, end: int, dtype: DTypeLike | None = None) -> NDArray:
        """Read rows `begin` to `end`, excluding `end`.

        Parameters
        ----------
        begin, end : int
            0 <= begin <= end <= n_rows.
        dtype : dtype, default=None
            Type of the result: the attribute `stored`, or None for the source's `dtype`.

        Returns
        -------
        ndarray of shape (end - begin, n_features)
            In C order: a new array, or a read-only view of an array in memory.
        """
        out = np.empty((end - begin, self.n_features), dtype or self.dtype)
        self.read_into(begin, end, out)
        return out

    def read_into(self, begin: int, end: int, out: NDArray) -> None:
        """Read rows into a C-ordered array (end - begin, n_features) of type float32, float64 or `stored`."""
        self._check_range(begin, end)
        if begin < end:
            with np.errstate(over="ignore"):  # Overflow gives infinity, which `check_finite` reports.
                self._fill(begin, end, out)

    def take(self, rows: ArrayLike, dtype: DTypeLike | None = None) -> NDArray:
        """Read the rows with the given indices.

        Parameters
        ----------
        rows : array-like of int, of shape (m,)
            In any order; rows may be repeated.
        dtype : dtype, default=None
            Type of the result: the attribute `stored`, or None for the source's `dtype`.

        Returns
        -------
        ndarray of shape (m, n_features)
            A new array.
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
        """Read the weights of rows `begin` to `end`, (end - begin,) float64; None if the source has no weights."""
        return None if self._weights is None else self._weights.read(begin, end)[:, 0]

    def with_weights(self, spec: Any) -> "Source":
        """Return a source of the same rows with weights.

        Parameters
        ----------
        spec : None, str, path or array-like of shape (n_rows,)
            The weights, the path of a file with one column or a 1-d array, or the name of a column of a table, which is
            then excluded from the data. None means no weights.

        Returns
        -------
        Source

        Raises
        ------
        ValueError
            If weights are negative or not finite (the message names the first such row), if all are zero, or if their
            number differs from that of the rows.
        """
        return _makers["with_weights"](self, spec)

    def as_stored(self, columns: Sequence[str] | None = None, as_text: bool = False) -> Self:
        """Return a source of the same rows whose method `read_stored` reads values without conversion, for example ids.

        In Arrow formats, .csv and .jsonl files the columns may have any type, including text. Fields of structures are
        columns of their own.

        Parameters
        ----------
        columns : sequence of str, default=None
            Names of columns, or numbers as text if columns have no names. None is all columns.
        as_text : bool, default=False
            Whether columns of .csv and .tsv files are read as the text in the file. Otherwise they have the types of
            their values in the whole file, which takes an additional pass.

        Raises
        ------
        ValueError
            If there is no such column.
        """
        if self._names is not None:
            return self.select(self._names if columns is None else columns)
        return self.select(None if columns is None else [int(name) if name.isdecimal() else name for name in columns])

    def read_stored(self, begin: int, end: int) -> dict[str, Any]:
        """Read rows `begin` to `end` of a source that `as_stored` returned.

        Returns
        -------
        dict of str to array of shape (end - begin,)
            The values of each column by its name, where columns may have any type as Arrow arrays. All columns of a
            matrix are one array (end - begin, n_features) with the name "values".
        """
        kind, dtype = np.result_type(*self._chosen_kinds), self.dtype
        if kind.kind in "iub":
            dtype = self.stored if self.stored.kind in "iu" else np.dtype(np.uint64 if kind == np.uint64 else np.int64)
        X = self.read(begin, end, dtype)
        if self._names is None and self._chosen is None:
            return {"values": X}
        return dict(zip(self._stored_columns or map(str, self._positions), X.T, strict=True))

    def subset(self, rows: NDArray[np.int64]) -> "Source":
        """Return a source of the rows with the given ascending indices; their weights are held in memory."""
        return _makers["subset"](self, np.asarray(rows, dtype=np.int64))

    def part(self, columns: NDArray[np.intp]) -> "Source":
        """Return a source of some of the chosen columns (or of the values in a column of lists), by their positions."""
        if self._list is not None:
            return _makers["part"](self, columns)
        return self.select([self._positions[j] for j in columns.tolist()])

    def as_type(self, dtype: DTypeLike) -> Self:
        """Return a source of the same rows that is read as float32 or float64."""
        wanted = np.dtype(dtype)
        if wanted not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {wanted}.")
        new = self._copy()
        new._dtype = wanted
        return new

    def widened(self) -> Self:
        """Return a source of the same rows that is read as floats, not as narrow integers, which have no NaN."""
        new = self._copy()
        new._keeps_narrow = False
        return new

    def with_chunk_rows(self, chunk_rows: int | None) -> Self:
        """Return a source of the same rows with `chunk_rows` rows per chunk; None means the default number."""
        new = self._copy()
        new._chunk_rows = None if chunk_rows is None else check_integer(chunk_rows, "chunk_rows", 1)
        return new

    def watched(self, watch: Callable[[int, int], None]) -> Self:
        """Return a source of the same rows that calls the function `watch(begin, end)` for each block of a pass."""
        new = self._copy()
        new._watch = watch
        return new

    @property
    def opened_from(self) -> dict[str, Any] | None:
        """Return a description from which `reopened` opens the same rows in another process; None for data in memory.

        The description consists of strings and numbers. Weights that were given as an array are not included.
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
        """Return a hash that differs for different data.

        The hash depends on names, sizes and modification times of files, and on the content of arrays in memory.
        It does not depend on the folder of a file or on `chunk_rows`.
        """
        found = blake2b(digest_size=32)
        files = [(Path(stamp.path).name, stamp.size, stamp.mtime_ns) for stamp in self._files]
        found.update(repr((files, self.shape, self.dtype.str, self.columns, self._chosen)).encode())
        found.update(self._identity())
        found.update(b"" if self._weights is None else self._weights.fingerprint())
        return found.digest()

    def check_finite(self, X: NDArray, begin: int, has_missing: bool = False) -> None:
        """Raise ValueError if a block, whose first row has index `begin`, contains NaN or infinity.

        The message names the first such value. has_missing: whether NaN is allowed, as a missing value
        """
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(X.sum()):
                return
        bad = np.isinf(X) if has_missing else ~np.isfinite(X)
        rows = np.flatnonzero(bad.any(axis=1))
        if not len(rows):
            return
        row, j = int(rows[0]), int(bad[rows[0]].argmax())
        remedy = f"; {FILL_MISSING}" if np.isnan(X[row, j]) else ""
        raise ValueError(
            f"{self._where(begin + row)}, column {self._column_of(j)}: {X[row, j]}; values must be finite, and "
            f"{len(rows)} of the {len(X)} rows from row {begin} on hold others{remedy}"
        )

    def close(self) -> None:
        """Close open files; the next read opens them again."""
        self._open_files = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_open_files"}

    def _copy(self) -> Self:
        """Return a copy of the source without open files."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__getstate__())
        return new

    def _default_chunk_rows(self) -> int:
        return min(CHUNK_ROWS, max(1, CHUNK_BYTES // max(1, self.n_features * self.dtype.itemsize)))

    def _gather(self, rows: NDArray[np.int64], out: NDArray) -> None:
        """Write the rows with the given distinct, ascending indices (m,) into `out` (m, n_features).

        Rows that are close to each other in the file are read together.
        """
        span = self._span()
        first = np.flatnonzero(np.diff(rows // span, prepend=-1))
        for a, b in zip(first, [*first[1:], len(rows)], strict=True):
            begin, end = int(rows[a]), int(rows[b - 1]) + 1
            block = np.empty((end - begin, self.n_features), out.dtype)
            self._fill(begin, end, block)
            out[a:b] = block[rows[a:b] - begin]

    def _span(self) -> int:
        """Return the number of rows of the ranges into which a file is divided; rows in one range are read together."""
        return max(1, 2**16 // max(1, self.n_features * self.dtype.itemsize))

    def _identity(self) -> bytes:
        """Return bytes for the fingerprint: the name of the array in its file, or a hash of the values in memory."""
        return self._place.encode()

    def _where(self, row: int) -> str:
        """Return text for messages that identifies a row by file and index."""
        return f"{self.name}: row {row}"

    def _check_range(self, begin: int, end: int) -> None:
        if not 0 <= begin <= end <= self.n_rows:
            raise ValueError(f"rows {begin} to {end} are not among the {self.n_rows} rows of {self.name}")
