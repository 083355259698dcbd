"""Rows of numbers and the operations of kernels on them: the base class `Rows`, and `Dense`, the rows of an array.

Callers use only the methods of rows, never their representation. So to add a representation, add a subclass of `Rows`.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import eigh

from cprime import _core
from cprime._utils.threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.bounds import nearest_bounded
from cprime.kernels.distances import assign, distances, extent, nearest, products, spread_out
from cprime.kernels.exact import expect_all, log_sum_exp, respond, responsibilities
from cprime.kernels.factors import factor_costs, factor_moments, top_k_factors
from cprime.kernels.jumps import jumped
from cprime.kernels.many import lloyd
from cprime.kernels.measures import Floats, GaussianParameters
from cprime.kernels.partial import own_distances, reassign, search_lists, top_k
from cprime.kernels.sums import accumulate, along, moments

# For covariances, the mean is subtracted from rows in float64. Maximum number of values in a block, to limit memory.
_CENTERED = 2**21

# Least length of a row that is divided by its length. Shorter rows are scaled up first, because their squared lengths
# would be subnormal numbers, which have less precision. These lengths are powers of two, so scaling by them is exact.
LEAST_LENGTH = {np.dtype(np.float32): 2.0**-100, np.dtype(np.float64): 2.0**-480}

Ids = NDArray[np.int32]
Doubles = NDArray[np.float64]


class Rows(ABC):
    """n rows of D numbers. Methods that run a kernel are documented at the function of the same name.

    A subclass has the abstract methods and these attributes:
    core: object that is passed to kernels    kernels: namespace of the compiled kernels, or of functions of their names
    shape: (n, D)    nbytes: size in bytes    dtype: type of results and centers, float32 or float64
    observed (n, D): mask of the values that are not missing; None if no value is missing
    takes_gaussians: whether kernels can compute the costs of Gaussians for the rows, not only distances to centers
    searches_cells: whether `CenterCells` can search near centers of the rows
    copied_when_ordered: whether `ordered` makes a copy of the rows
    """

    core: Any
    shape: tuple[int, int]
    nbytes: int
    dtype: np.dtype
    observed: NDArray[np.bool_] | None = None
    kernels: ClassVar[Any] = _core
    takes_gaussians: ClassVar[bool] = True
    searches_cells: ClassVar[bool] = True
    copied_when_ordered: ClassVar[bool] = True

    nearest = nearest
    assign = assign
    lloyd = lloyd
    nearest_bounded = nearest_bounded
    reassign = reassign
    own_distances = own_distances
    top_k = top_k
    search_lists = search_lists
    distances = distances
    extent = extent
    products = products
    accumulate = accumulate
    moments = moments
    along = along
    spread_out = spread_out
    jumped = jumped
    expect_all = expect_all
    log_sum_exp = log_sum_exp
    respond = respond
    responsibilities = responsibilities
    factor_costs = factor_costs
    top_k_factors = top_k_factors
    factor_moments = factor_moments

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def __getitem__(self, rows: slice | NDArray, /) -> Self:
        """Return some of the rows, in the given order: by a slice, by indices >= 0, or by a mask."""

    @abstractmethod
    def dense(self) -> Floats:
        """Return the rows as a contiguous array (n, D); meant for a few rows."""

    @abstractmethod
    def given(self) -> Any:
        """Return the rows as a NumPy array or a SciPy sparse array, in the type in which they are stored."""

    @abstractmethod
    def as_type(self, dtype: DTypeLike) -> Self:
        """Return the same rows as an object whose kernels compute, and return results, in float32 or float64."""

    @abstractmethod
    def not_finite(self) -> tuple[int, int, Any] | None:
        """Return row, column and value of the first number that is not finite; None if all are finite."""

    @abstractmethod
    def normalized(self, order: NDArray[np.int64] | None = None) -> tuple["Rows", Doubles]:
        """Return all rows divided by their Euclidean lengths, and the lengths (n,).

        order (n,): index of the row that becomes row i, None for the present order
        """

    @abstractmethod
    def times(self, factors: Floats) -> "Rows":
        """Return the rows with every column multiplied by its factor (D,), in the same dtype."""

    @abstractmethod
    def widened(self) -> Self:
        """Return the rows with a column of zeros appended: n rows of D + 1 numbers.

        Mixtures with free weights need it: this coordinate of a center represents the weight of its component.
        """

    @abstractmethod
    def projected(self, direction: Doubles, origin: Doubles | None = None) -> NDArray:
        """Return x_n·v for every row and one direction v (D,), or (x_n − origin)·v if an origin is given: (n,)."""

    def ordered(self, order: NDArray[np.int64]) -> Self:
        """Return all n rows in the order of the given indices: row order[i] becomes row i."""
        return self[order]

    def converted(self, n_all: int) -> "Rows":
        """Return the rows in the form that is fastest to read in every pass over the data.

        Rows of narrow types are converted to a wider type if all n_all rows of the data then need little memory.
        """
        return self

    def alike(self, array: Floats) -> "Rows":
        """Return an array that was computed from these n rows (for example, the whitened rows) as a `Rows` object.

        array (n, D or more). A value that is missing in these rows is also missing in the result.
        """
        return Dense(array)

    def imputed(self, components: GaussianParameters, ids: Ids, q: Doubles, normal: Doubles | None = None) -> Doubles:
        """Return the rows (n, D) with missing values replaced by expected or random values.

        ids, q (n, H): components of each row and their responsibilities
        normal (n, D): standard normal numbers; if given, missing values are drawn from the only component (H = 1)
        """
        return self.dense().astype(np.float64)

    def first(self) -> Floats:
        """Return a point (D,) near the rows: each column's first number that is not missing, or NaN without one."""
        return self[:1].dense()[0].copy()

    def principal(self, weights: Doubles, mean: Doubles) -> tuple[float, Doubles]:
        """Return the greatest eigenvalue of the rows' covariance matrix, and its eigenvector (D,) of any sign.

        weights (n,): weights of the rows, all positive    mean (D,): weighted mean of the rows
        """
        covariance, step = np.zeros((len(mean), len(mean))), max(1, _CENTERED // max(1, len(mean)))
        for begin in range(0, len(self), step):
            piece = slice(begin, begin + step)
            centered = self[piece].dense() - mean
            covariance += np.einsum("n,nd,ne->de", weights[piece], centered, centered, optimize=True)
        last = len(covariance) - 1
        variances, directions = eigh(covariance / weights.sum(), subset_by_index=[last, last])
        return float(variances[0]), directions[:, 0]


class Dense(Rows):
    """Rows of an array of float32 or float64, whose rows are contiguous, with any stride between rows."""

    def __init__(self, array: Floats):
        self.array = self.core = array = check.matrix(array, "X")
        self.shape, self.dtype, self.nbytes = array.shape, array.dtype, array.nbytes

    def __getitem__(self, rows: slice | NDArray, /) -> Self:
        if isinstance(rows, slice):
            return type(self)(self.array[rows])
        return type(self)(gather(self, np.flatnonzero(rows) if rows.dtype == bool else rows))

    def as_type(self, dtype: DTypeLike) -> Self:
        return self if self.dtype == dtype else self.alike(self.array.astype(dtype))

    def dense(self) -> Floats:
        return np.ascontiguousarray(self.array)

    def given(self) -> Any:
        return self.array

    def alike(self, array: Floats) -> Self:
        return type(self)(array)

    def not_finite(self) -> tuple[int, int, Any] | None:
        bad = ~np.isfinite(self.array)
        if not bad.any():
            return None
        row, column = (int(i) for i in np.unravel_index(bad.argmax(), bad.shape))
        return row, column, self.array[row, column]

    def normalized(self, order: NDArray[np.int64] | None = None) -> tuple[Self, Doubles]:
        array, lengths = normalized(self, order)
        return self.alike(array), lengths

    def times(self, factors: Floats) -> Self:
        return self.alike(self.array * factors)

    def widened(self) -> Self:
        return self.alike(np.column_stack([self.array, np.zeros(len(self), dtype=self.dtype)]))

    def projected(self, direction: Doubles, origin: Doubles | None = None) -> NDArray:
        return np.einsum("nd,d->n", self.array if origin is None else self.array - origin, direction)


def gather(X: Rows, order: NDArray[np.int64], *, n_threads: int | None = None) -> Floats:
    """Return a C-contiguous copy (m, D) of the rows of an array with the m indices `order`, made by several threads."""
    order = check.array(order, "order", np.int64, -1)
    out = np.empty((len(order), X.shape[1]), dtype=X.dtype)
    X.kernels.gather(X.core, order, out, resolve_threads(n_threads))
    return out


def normalized(
    X: Rows, order: NDArray[np.int64] | None = None, *, n_threads: int | None = None
) -> tuple[Floats, NDArray[np.float64]]:
    """Return rows in the order of indices `order`, divided by their Euclidean lengths (n, D), and the lengths (n,).

    A row of zeros is unchanged, and its length is 0.
    """
    order = check.array(order, "order", np.int64, -1)
    n = len(X) if order is None else len(order)
    out, lengths = np.empty((n, X.shape[1]), dtype=X.dtype), np.empty(n)
    X.kernels.normalized(X.core, order, LEAST_LENGTH[X.dtype], out, lengths, resolve_threads(n_threads))
    return out, lengths
