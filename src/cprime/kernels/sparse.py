"""Sparse rows, and the kernel operations that they support: all operations that use squared distances.

Conversion to a NumPy array raises TypeError, so no dense array of all rows is made by accident. Methods have the same
results as the kernels of a dense array with the same rows.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, eigsh

from cprime._utils.number_types import MOST_COLUMNS
from cprime.kernels import arguments as check
from cprime.kernels.bounded_tables import nearest_bounded_by_tables
from cprime.kernels.exact import posterior
from cprime.kernels.measures import Floats
from cprime.kernels.rows import LEAST_LENGTH, Rows

# Maximum number of distances in a table that is computed at a time, to limit memory.
_VALUES = 2**22


def _not_of_sparse(name: str) -> Any:
    def refuse(self: SparseRows, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"{name} needs rows of an array, got {self!r}: sparse ones are compared by squared distances.")

    return refuse


def _lengths(values: Floats, owners: NDArray[np.int64], n: int) -> NDArray[np.float64]:
    """Return the Euclidean lengths (n,) of n sparse rows.

    values, owners (m,): value of each stored entry, and index of its row
    """
    return np.sqrt(np.bincount(owners, np.square(values, dtype=np.float64), n))


class SparseRows(Rows):
    """n sparse rows of D numbers, stored as in a CSR matrix; only nonzero numbers are stored.

    values (m,) float32 or float64, columns (m,) int32: row i has the entries begins[i] … begins[i + 1] − 1, sorted by
    column; begins (n + 1,) int64. The arrays must not be changed.
    """

    takes_gaussians: ClassVar[bool] = False
    searches_cells: ClassVar[bool] = False
    ndim = 2

    def __init__(self, values: Floats, columns: NDArray[np.int32], begins: NDArray[np.int64], n_columns: int):
        if values.dtype not in (np.float32, np.float64):
            raise TypeError(f"values must be float32 or float64, got {values.dtype}")
        if n_columns > MOST_COLUMNS:
            raise ValueError(f"X must have at most {MOST_COLUMNS} columns, got {n_columns}")
        self.values = check.contiguous(values, values.dtype)
        self.columns = check.contiguous(columns, np.int32)
        self.begins = check.contiguous(begins, np.int64)
        self.shape = len(begins) - 1, int(n_columns)
        self.core = self.values, self.columns, self.begins, self.shape[1]
        self.dtype, self.nbytes = self.values.dtype, sum(array.nbytes for array in self.core[:3])

    @classmethod
    def from_scipy(cls, X: Any) -> SparseRows:
        """Return the rows of a CSR array or matrix of SciPy; no copy if columns are sorted and have no duplicates."""
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return cls(X.data, X.indices, X.indptr, X.shape[1])

    def __repr__(self) -> str:
        return f"<SparseRows {self.shape[0]} x {self.shape[1]}, {self.values.size} entries, {self.dtype}>"

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"{self!r} is no array: `dense` makes one of a few rows")

    def __getitem__(self, rows: slice | NDArray, /) -> SparseRows:
        """Return some of the rows in the given order; a slice of step 1 shares memory with the original."""
        if isinstance(rows, slice):
            begin, end, step = rows.indices(len(self))
            if step == 1:
                return SparseRows(self.values, self.columns, self.begins[begin : max(begin, end) + 1], self.shape[1])
            rows = np.arange(begin, end, step)
        rows = np.flatnonzero(rows) if rows.dtype == bool else check.array(rows, "order", np.int64, -1)
        lengths = np.diff(self.begins)[rows]
        begins = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.arange(begins[-1]) + np.repeat(self.begins[:-1][rows] - begins[:-1], lengths)
        return SparseRows(self.values[entries], self.columns[entries], begins, self.shape[1])

    @property
    def entries(self) -> tuple[Floats, NDArray[np.int32]]:
        """Return the values (m,) and the columns (m,) of all m stored numbers, row after row."""
        part = slice(self.begins[0], self.begins[-1])
        return self.values[part], self.columns[part]

    @property
    def owners(self) -> NDArray[np.int64]:
        """Return the row index of each of the m stored numbers (m,), in the order of `entries`."""
        return np.repeat(np.arange(len(self)), np.diff(self.begins))

    def as_type(self, dtype: DTypeLike) -> SparseRows:
        """Return the same rows in float32 or float64."""
        if self.dtype == dtype:
            return self
        return SparseRows(self.values.astype(dtype), self.columns, self.begins, self.shape[1])

    def dense(self) -> Floats:
        return self.given().toarray()

    def given(self) -> csr_array:
        """Return the rows as a SciPy CSR array, without a copy."""
        return csr_array((*self.entries, self.begins - self.begins[0]), shape=self.shape)

    def not_finite(self) -> tuple[int, int, Any] | None:
        bad = ~np.isfinite(self.entries[0])
        if not bad.any():
            return None
        first = int(bad.argmax())
        return int(self.owners[first]), int(self.entries[1][first]), self.entries[0][first]

    def normalized(self, order: NDArray[np.int64] | None = None) -> tuple[SparseRows, NDArray[np.float64]]:
        rows = self if order is None else self[order]
        (values, columns), owners = rows.entries, rows.owners
        scales, lengths = np.ones(len(rows)), _lengths(values, owners, len(rows))
        short = lengths < LEAST_LENGTH[self.dtype]
        # Short rows are scaled up first, so that their squares do not underflow. Scaling by a power of two is exact.
        if short.any():
            scales[short] = LEAST_LENGTH[self.dtype]
            values = values / scales[owners].astype(self.dtype)
            lengths = _lengths(values, owners, len(rows))
        # NumPy's warnings of invalid operations are not needed: another check reports rows that are not finite.
        with np.errstate(invalid="ignore"):
            values = (values * (1 / np.where(lengths > 0, lengths, 1))[owners]).astype(self.dtype)
        return SparseRows(values, columns, rows.begins - rows.begins[0], self.shape[1]), lengths * scales

    def times(self, factors: Floats) -> SparseRows:
        return SparseRows(self.values * factors[self.columns], self.columns, self.begins, self.shape[1])

    def widened(self) -> SparseRows:
        return SparseRows(self.values, self.columns, self.begins, self.shape[1] + 1)

    def projected(self, direction: NDArray[np.float64], origin: NDArray[np.float64] | None = None) -> NDArray:
        values, columns = self.entries
        found = np.bincount(self.owners, values * direction[columns], len(self)).astype(np.float64, copy=False)
        return found if origin is None else found - origin @ direction

    def principal(self, weights: NDArray[np.float64], mean: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the greatest eigenvalue of the rows' covariance matrix S, and its eigenvector (D,) of any sign.

        weights (n,): weights w of the rows x    mean (D,): their weighted mean m
        SciPy's `eigsh` finds both from products S v = Σ w x ((x − m)·v) / Σ w, without a D×D matrix.
        """
        rows, D = self.given().astype(np.float64), len(mean)

        def times(v: NDArray) -> NDArray:
            return rows.T @ (weights * (rows @ v - mean @ v)) / weights.sum()

        if D == 1:
            return float(times(np.ones(1))[0]), np.ones(1)
        start = np.random.RandomState(0).standard_normal(D)
        operator = LinearOperator((D, D), matvec=times, dtype=np.float64)
        variances, directions = eigsh(operator, 1, v0=start, which="LA")
        return float(variances[0]), directions[:, 0]

    def extent(self, origin: Floats | None = None, *, n_threads: int | None = None) -> tuple[float, float]:
        if not len(self) or not self.shape[1]:
            return 0.0, 0.0
        origin = self.first() if origin is None else origin
        values, columns = self.entries
        with np.errstate(invalid="ignore", over="ignore"):
            largest = float(np.abs(values).max(initial=0))
            spread = float(np.abs(values - origin[columns]).max(initial=0))
        zeros = np.bincount(columns, minlength=self.shape[1]) < len(self)  # mask of the columns that contain a zero
        return largest, max(spread, float(np.abs(origin[zeros]).max(initial=0)))

    nearest_bounded = nearest_bounded_by_tables

    def log_sum_exp(self, centers: Floats, variance: float, *, n_threads: int | None = None) -> NDArray[np.float64]:
        centers = check.matrix(centers, "centers", self, 1)
        scale = -0.5 / check.variance(variance)
        out, step = np.empty(len(self)), max(1, _VALUES // len(centers))
        for begin in range(0, len(self), step):
            rows = slice(begin, begin + step)
            squared = self[rows].distances(centers, n_threads=n_threads)
            out[rows] = posterior(np.ascontiguousarray(squared.T), scale, n_threads=n_threads).log_sum
        return out

    top_k = _not_of_sparse("top_k")
    moments = _not_of_sparse("moments")
    products = _not_of_sparse("products")
    expect_all = _not_of_sparse("expect_all")
    respond = _not_of_sparse("respond")
    responsibilities = _not_of_sparse("responsibilities")
    imputed = _not_of_sparse("imputed")
