"""Rows of numbers and the operations of kernels on them: the protocol `Rows`, and `Dense`, the rows of an array.

Callers use only the methods of rows, never their representation. So to add a representation, add a class with these
methods. If compiled kernels can read it, make it a subclass of `CoreTable`, with a property `core` that returns the
object to pass to kernels.
"""

from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import eigh

from cprime import _core
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.bounds import DistanceBounds, Moves, nearest_bounded
from cprime.kernels.distances import AssignResult, assign, distances, extent, nearest, products, spread_out
from cprime.kernels.exact import Expectation, Responses, expect_all, log_sum_exp, respond, responsibilities
from cprime.kernels.factors import FactorAnalysers, factor_costs, factor_moments, top_k_factors
from cprime.kernels.jumps import jumped
from cprime.kernels.many import LloydRun, lloyd
from cprime.kernels.measures import Floats, GaussianParameters, Measure
from cprime.kernels.partial import SearchResult, own_distances, reassign, search_lists, top_k
from cprime.kernels.sums import accumulate, along, gather, moments, normalized

# Covariances are computed in blocks of rows, from which the mean is subtracted in float64. Maximum number of values in
# a block.
_CENTERED = 2**21

Ids = NDArray[np.int32]
Doubles = NDArray[np.float64]


class Rows(CoreRows, Protocol):
    """Protocol of n rows of D numbers. Methods that run a kernel are documented at the kernel of the same name."""

    copied_when_ordered: ClassVar[bool]  # whether `ordered` makes a copy of the rows

    @property
    def nbytes(self) -> int: ...

    def given(self) -> Any:
        """Return the rows as a NumPy array or a SciPy sparse array, in the type in which they are stored."""
        ...

    def ordered(self, order: NDArray[np.int64]) -> Self:
        """Return all rows in the order of the given indices (n,): row order[i] becomes row i."""
        ...

    def as_type(self, dtype: DTypeLike) -> Self:
        """Return the same rows as an object whose computations are in float32 or float64."""
        ...

    def converted(self, n_all: int) -> "Rows":
        """Return the rows in the form that is fastest to read in every pass over the data.

        Rows of narrow types are converted to a wider type if all n_all rows of the data then need little memory.
        """
        ...

    def alike(self, array: Floats) -> "Rows":
        """Convert an array that was computed from these n rows to a `Rows` object, and return it.

        The array has n rows, and D columns or more. Missing values are missing in the result, too.
        """
        ...

    def not_finite(self) -> tuple[int, int, Any] | None:
        """Return row, column and value of the first number that is not finite; None if all are finite."""
        ...

    def imputed(self, components: GaussianParameters, ids: Ids, q: Doubles, normal: Doubles | None = None) -> Doubles:
        """Return the rows (n, D) with missing values replaced by expected or random values.

        ids, q (n, H): components of each row and their responsibilities
        normal (n, D): standard normal numbers; if given, missing values are drawn from the only component (H = 1)
        """
        ...

    def normalized(self, order: NDArray[np.int64] | None = None) -> tuple["Rows", Doubles]:
        """Return all rows in the order of indices (n,), divided by their Euclidean lengths, and the lengths (n,)."""
        ...

    def widened(self) -> Self:
        """Return the rows with one more column of zeros."""
        ...

    def first(self) -> Floats:
        """Return the first number of each column that is not missing: (D,), NaN if a column has none."""
        ...

    def projected(self, direction: Doubles, origin: Doubles | None = None) -> NDArray:
        """Return x_n·v for every row and one direction v (D,), or (x_n − origin)·v if an origin is given: (n,)."""
        ...

    def principal(self, weights: Doubles, mean: Doubles) -> tuple[float, Doubles]:
        """Return the greatest eigenvalue of the rows' covariance matrix, and its eigenvector (D,) of any sign.

        weights (n,): weights of the rows, all positive    mean (D,): weighted mean of the rows
        """
        ...

    def nearest(
        self, components: Measure, n_kept: int = 1, *, hint: Ids | None = None, n_threads: int | None = None
    ) -> tuple[Ids, Floats]: ...
    def assign(
        self,
        centers: Floats,
        before: Ids | None = None,
        sample_weight: Floats | None = None,
        *,
        n_threads: int | None = None,
    ) -> AssignResult: ...
    def lloyd(
        self,
        centers: Floats,
        max_iter: int,
        tol: float,
        sample_weight: Floats | None = None,
        *,
        least_shift: float | None = None,
        n_threads: int | None = None,
    ) -> LloydRun | None: ...
    def nearest_bounded(
        self, centers: Floats, bounds: DistanceBounds, moves: Moves, *, n_threads: int | None = None
    ) -> tuple[Floats, int]: ...
    def reassign(
        self,
        centers: Floats,
        lists: Ids,
        labels: Ids,
        inside: Floats | None = None,
        outside: Floats | None = None,
        share: float = 0.25,
        active: NDArray[np.bool_] | None = None,
        known: Floats | None = None,
        *,
        n_threads: int | None = None,
    ) -> tuple[Ids, Floats]: ...
    def own_distances(self, centers: Floats, labels: Ids, *, n_threads: int | None = None) -> Floats: ...
    def top_k(
        self, components: Measure, lists: Ids, previous: Ids, n_kept: int, *, n_threads: int | None = None
    ) -> tuple[Ids, Floats]: ...
    def search_lists(
        self,
        components: Measure,
        lists: Ids,
        previous: Ids,
        n_kept: int,
        extra: Ids | None = None,
        *,
        evidence: bool = False,
        sample_weight: Floats | None = None,
        n_threads: int | None = None,
    ) -> SearchResult: ...
    def distances(
        self,
        candidates: Floats,
        current: Floats | None = None,
        *,
        out: Floats | None = None,
        n_threads: int | None = None,
    ) -> Floats: ...
    def extent(self, origin: Floats | None = None, *, n_threads: int | None = None) -> tuple[float, float]: ...
    def products(
        self, B: Floats, shift: Floats | None = None, *, out: Floats | None = None, n_threads: int | None = None
    ) -> Floats: ...
    def accumulate(
        self,
        kept: Ids,
        responsibilities: Doubles | None = None,
        sample_weight: Floats | None = None,
        *,
        n_components: int,
        rows: NDArray[np.int64] | None = None,
        onto: Doubles | None = None,
        n_threads: int | None = None,
    ) -> tuple[Doubles, Doubles]: ...
    def moments(
        self,
        components: Measure,
        kept: Ids,
        responsibilities: Doubles | None = None,
        sample_weight: Floats | None = None,
        *,
        full: bool,
        n_threads: int | None = None,
    ) -> tuple[Doubles, Doubles, Doubles]: ...
    def along(self, centers: Floats, directions: Floats, labels: Ids, *, n_threads: int | None = None) -> Doubles: ...
    def spread_out(
        self,
        offsets: NDArray[np.int64],
        weights: Doubles,
        n_chosen: NDArray[np.int64],
        uniform: Doubles,
        *,
        n_threads: int | None = None,
    ) -> NDArray[np.int64]: ...
    def jumped(
        self,
        centers: Floats,
        sample_weight: Floats | None = None,
        *,
        n_tries: int = 5,
        n_iterations: int = 30,
        n_threads: int | None = None,
    ) -> tuple[Floats, float]: ...
    def expect_all(
        self,
        centers: Floats,
        variance: float,
        sample_weight: Floats | None = None,
        *,
        n_threads: int | None = None,
    ) -> Expectation: ...
    def log_sum_exp(self, centers: Floats, variance: float, *, n_threads: int | None = None) -> Doubles: ...
    def respond(
        self,
        components: GaussianParameters,
        sample_weight: Floats | None = None,
        *,
        moments: bool = True,
        n_threads: int | None = None,
    ) -> Responses: ...
    def responsibilities(self, components: GaussianParameters, *, n_threads: int | None = None) -> Doubles: ...
    def factor_costs(self, factors: FactorAnalysers, ids: Ids, *, n_threads: int | None = None) -> Floats: ...
    def top_k_factors(
        self, factors: FactorAnalysers, lists: Ids, previous: Ids, n_kept: int, *, n_threads: int | None = None
    ) -> tuple[Ids, Floats]: ...
    def factor_moments(
        self,
        means: Floats,
        directions: Doubles,
        roots: Doubles | None,
        kept: Ids,
        responsibilities: Doubles | None = None,
        sample_weight: Floats | None = None,
        *,
        n_threads: int | None = None,
    ) -> tuple[Doubles, Doubles, Doubles, Doubles, Doubles, Doubles]: ...


Table = TypeVar("Table", bound=Rows)


class CoreTable:
    """Base class of rows whose methods call kernels (compiled functions or their NumPy twins).

    A subclass defines `core`, the object that is passed to kernels, and `kernels`, the namespace of the kernels.
    """

    copied_when_ordered: ClassVar[bool] = True
    takes_gaussians: ClassVar[bool] = True
    searches_cells: ClassVar[bool] = True
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

    def __len__(self: Rows) -> int:
        return self.shape[0]

    def ordered(self: Table, order: NDArray[np.int64]) -> Table:
        return self[order]

    def converted(self: Rows, n_all: int) -> Rows:
        return self

    def alike(self, array: Floats) -> "Dense":
        return Dense(array)

    def imputed(
        self: Rows, components: GaussianParameters, ids: Ids, q: Doubles, normal: Doubles | None = None
    ) -> Doubles:
        return self.dense().astype(np.float64)

    def first(self: Rows) -> Floats:
        return self[:1].dense()[0].copy()

    def principal(self: Rows, weights: Doubles, mean: Doubles) -> tuple[float, Doubles]:
        covariance, step = np.zeros((len(mean), len(mean))), max(1, _CENTERED // max(1, len(mean)))
        for begin in range(0, len(self), step):
            piece = slice(begin, begin + step)
            centered = self[piece].dense() - mean
            covariance += np.einsum("n,nd,ne->de", weights[piece], centered, centered, optimize=True)
        last = len(covariance) - 1
        variances, directions = eigh(covariance / weights.sum(), subset_by_index=[last, last])
        return float(variances[0]), directions[:, 0]


class Dense(CoreTable):
    """Rows of an array of float32 or float64, whose rows are contiguous, with any stride between rows."""

    kernels: ClassVar[Any] = _core
    observed: NDArray[np.bool_] | None = None

    def __init__(self, array: Floats):
        self.array = self.core = array = check.matrix(array, "X")
        self.shape: tuple[int, int] = array.shape
        self.dtype, self.nbytes = array.dtype, array.nbytes

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
