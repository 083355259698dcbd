"""Rows with missing values. Their costs under Gaussians are −2 log of the marginal density of the observed values."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.number_types import is_narrow
from cprime._utils.threads import by_pieces, limited
from cprime.kernels import arguments as check
from cprime.kernels.compute import as_rows
from cprime.kernels.diagonal_marginals import DiagonalMarginals
from cprime.kernels.distances import nearest
from cprime.kernels.exact import Responses
from cprime.kernels.marginals import Doubles, Ids, Marginals, Mask, Sums, no_moments
from cprime.kernels.measures import Floats, GaussianParameters, Measure
from cprime.kernels.narrow import NarrowRows
from cprime.kernels.offered import among_offered
from cprime.kernels.partial import Evidence, SearchResult, search_lists, top_k
from cprime.kernels.rows import Dense, Rows, gather
from cprime.kernels.sums import moments
from cprime.kernels.tables import Givers, Group, givers, groups

Places = NDArray[np.intp]
Arrays = tuple[NDArray, ...]


def with_nan(X: Rows) -> Floats:
    """Return the rows as an array in which missing values are NaN."""
    array = X.dense()
    return array if X.observed is None else np.where(X.observed, array, array.dtype.type(np.nan))


@dataclass(frozen=True, eq=False)
class ReadMissing:
    """Picklable function that converts an array, in which NaN means a missing value, to rows with a mask of NaNs.

    fill (D,): placeholders for missing values; None uses the first observed number of the same column
    """

    fill: NDArray[np.float64] | None = None

    def __call__(self, array: Any) -> Rows:
        return with_missing(array, self.fill) if isinstance(array, np.ndarray) else as_rows(array)


def with_missing(array: NDArray, fill: NDArray[np.float64] | None = None) -> Rows:
    """Return the rows of an array in which NaN means a missing value; `Dense` rows if no value is missing.

    fill (D,): placeholders that kernels read in place of missing values; None uses the first observed number of the
    same column
    """
    if is_narrow(array.dtype):
        rows = NarrowRows(array)
        if rows.not_finite() is None:
            return rows
        array = array.astype(np.float32)
    observed = ~np.isnan(array)
    if observed.all():
        return Dense(array)
    filled = np.where(observed, array, _firsts(array, observed, 0) if fill is None else fill)
    return MissingRows(filled.astype(array.dtype, copy=False), observed)


def _firsts(array: Floats, observed: Mask, otherwise: float) -> Floats:
    """Return the default placeholders (D,) of missing values: each column's first observed number, or `otherwise`."""
    found = array[observed.argmax(axis=0), np.arange(array.shape[1])]
    return np.where(observed.any(axis=0), found, array.dtype.type(otherwise))


class MarginalRows(Dense):
    """Base class of rows of an array whose costs under Gaussians are −2 log of marginal densities.

    `marginals` returns the densities. Methods that take Gaussians use them; all others use the array alone.
    """

    @abstractmethod
    def marginals(self, components: GaussianParameters) -> Any:
        """Return the search structure and kernels of the marginal densities of Gaussians, for these rows."""

    def by_kind(
        self, of_complete: Callable[[Dense, Places], Arrays], of_marginal: Callable[[Self, Places], Arrays]
    ) -> Arrays:
        """Return `of_marginal` of all rows and their indices (n,): arrays of length n.

        of_complete: the same function for rows whose costs are those of the Gaussians, if a subclass has any
        """
        return of_marginal(self, np.arange(len(self)))

    def nearest(
        self, components: Measure, n_kept: int = 1, *, hint: Ids | None = None, n_threads: int | None = None
    ) -> tuple[Ids, Floats]:
        if not isinstance(components, GaussianParameters):
            return nearest(self, components, n_kept, hint=hint, n_threads=n_threads)

        with limited(n_threads):
            ids, costs = self.by_kind(
                lambda X, rows: X.nearest(components, n_kept, hint=_rows_of(hint, rows)),
                lambda X, rows: X.marginals(components).best(X, n_kept),
            )
        return ids, costs

    def top_k(
        self, components: Measure, lists: Ids, previous: Ids, n_kept: int, *, n_threads: int | None = None
    ) -> tuple[Ids, Floats]:
        if not isinstance(components, GaussianParameters):
            return top_k(self, components, lists, previous, n_kept, n_threads=n_threads)

        with limited(n_threads):
            ids, costs = self.by_kind(
                lambda X, rows: X.top_k(components, lists, previous[rows], n_kept),
                lambda X, rows: X.marginals(components).top_k(X, lists, previous[rows], n_kept),
            )
        return ids, costs

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
    ) -> SearchResult:
        if not isinstance(components, GaussianParameters):
            more: Any = {"evidence": evidence, "sample_weight": sample_weight, "n_threads": n_threads}
            return search_lists(self, components, lists, previous, n_kept, extra, **more)
        weights, looked = check.array(sample_weight, "sample_weight", np.float64, len(self)), list[Evidence]()

        def added(found: SearchResult) -> tuple[Ids, Floats, Ids]:
            if found.evidence is not None:
                looked.append(found.evidence)
            return found.kept, found.costs, found.counts

        def of_complete(X: Dense, rows: Places) -> tuple[Ids, Floats, Ids]:
            more: Any = {"evidence": evidence, "sample_weight": _rows_of(weights, rows)}
            return added(X.search_lists(components, lists, previous[rows], n_kept, _rows_of(extra, rows), **more))

        def of_marginal(X: Self, rows: Places) -> tuple[Ids, Floats, Ids]:
            costs, more, weight = X.marginals(components).costs, _rows_of(extra, rows), _rows_of(weights, rows)
            return added(among_offered(costs, X, lists, previous[rows], n_kept, more, evidence, weight))

        with limited(n_threads):
            kept, costs, counts = self.by_kind(of_complete, of_marginal)
        return SearchResult(kept, costs, counts, reduce(Evidence.joined, looked) if looked else None)

    def moments(
        self,
        components: Measure,
        kept: Ids,
        responsibilities: Doubles | None = None,
        sample_weight: Floats | None = None,
        *,
        full: bool,
        n_threads: int | None = None,
    ) -> tuple[Doubles, Doubles, Doubles]:
        if not isinstance(components, GaussianParameters):
            more: Any = {"full": full, "n_threads": n_threads}
            return moments(self, components, kept, responsibilities, sample_weight, **more)
        weight = check.array(sample_weight, "sample_weight", np.float64, len(self))
        q = np.ones(kept.shape) if responsibilities is None else responsibilities
        found: list[Sums] = []

        def of_complete(X: Dense, rows: Places) -> tuple[()]:
            found.append(X.moments(components, kept[rows], q[rows], _rows_of(weight, rows), full=full))
            return ()

        def of_marginal(X: Self, rows: Places) -> tuple[()]:
            shares = q[rows] if weight is None else q[rows] * weight[rows, np.newaxis]
            found.append(X.marginals(components).moments(X, kept[rows], shares))
            return ()

        with limited(n_threads):
            self.by_kind(of_complete, of_marginal)
        return _sums(found)

    def imputed(self, components: GaussianParameters, ids: Ids, q: Doubles, normal: Doubles | None = None) -> Doubles:
        """Return the rows (n, D) with missing values replaced by expected or random values.

        ids, q (n, H): components of each row and their responsibilities
        normal (n, D): standard normal numbers; if given, missing values are drawn from the only component (H = 1)
        """
        return self.marginals(components).imputed(self, ids, q, normal)

    def respond(
        self,
        components: GaussianParameters,
        sample_weight: Floats | None = None,
        *,
        moments: bool = True,
        n_threads: int | None = None,
    ) -> Responses:
        weight = check.array(sample_weight, "sample_weight", np.float64, len(self))
        sums: list[Sums] = []

        def of_complete(X: Dense, rows: Places) -> tuple[Ids, Doubles, Doubles]:
            found = X.respond(components, _rows_of(weight, rows), moments=moments)
            sums.append((found.counts, found.first, found.second))
            return found.labels, found.log_sum, found.mean

        def of_marginal(X: Self, rows: Places) -> tuple[Ids, Doubles, Doubles]:
            labels, log_sum, mean, own = X.marginals(components).respond(X, _rows_of(weight, rows), None, moments)
            sums.append(own)
            return labels, log_sum, mean

        with limited(n_threads):
            labels, log_sum, mean = self.by_kind(of_complete, of_marginal)
        return Responses(labels, log_sum, mean, *_sums(sums if moments else sums[:1]))

    def responsibilities(self, components: GaussianParameters, *, n_threads: int | None = None) -> Doubles:
        def of_marginal(X: Self, rows: Places) -> tuple[Doubles]:
            out = np.empty((len(X), len(components.means)))
            X.marginals(components).respond(X, None, out, moments=False)
            return (out,)

        with limited(n_threads):
            (found,) = self.by_kind(lambda X, rows: (X.responsibilities(components),), of_marginal)
        return found


class MissingRows(MarginalRows):
    """Rows of an array with missing values.

    array (n, D): the values; missing ones are replaced by placeholders
    observed (n, D) bool: mask of the values that are not missing

    Three groups of methods use only the observed values: those that take Gaussians, `own_distances`, and `distances`.
    Searches for nearest centers, also in cells (groups of centers), read the placeholders like observed values.
    """

    observed: Mask

    def __init__(self, array: Floats, observed: Mask):
        super().__init__(array)
        self.observed = observed
        self.nbytes += observed.nbytes

    def __getitem__(self, rows: slice | NDArray, /) -> Self:
        if isinstance(rows, slice):
            return type(self)(self.array[rows], self.observed[rows])
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        return type(self)(gather(self, rows), self.observed[rows])

    def first(self) -> Floats:
        return _firsts(self.array, self.observed, np.nan)

    def extent(self, origin: Floats | None = None, *, n_threads: int | None = None) -> tuple[float, float]:
        """Return the greatest |x_nk| and |x_nk − origin_k| over the observed values x_nk [data unit]; origin (D,)."""
        if not self.observed.size:
            return 0.0, 0.0
        start = np.nan_to_num(self.first() if origin is None else origin)
        return Dense(np.where(self.observed, self.array, start)).extent(start, n_threads=n_threads)

    def alike(self, array: Floats) -> Self:
        more = array.shape[1] - self.shape[1]
        return type(self)(array, np.pad(self.observed, ((0, 0), (0, more)), constant_values=True))

    def own_distances(self, centers: Floats, labels: Ids, *, n_threads: int | None = None) -> Floats:
        """Return ‖x_n − μ_c‖² to the center c = labels[n], summed over the observed columns of each row: (n,)."""
        at = np.where(self.observed, self.array, check.matrix(centers, "centers", self, 1)[labels])
        return Dense(at).own_distances(centers, labels, n_threads=n_threads)

    def distances(
        self,
        candidates: Floats,
        current: Floats | None = None,
        *,
        out: Floats | None = None,
        n_threads: int | None = None,
    ) -> Floats:
        """Return squared distances of n rows to L candidates, summed over the observed columns of each row: (L, n).

        candidates (L, D)    current (n,): upper limit of the result for each row, or None    out: array for the result
        """
        out = np.empty((len(candidates), len(self)), dtype=self.dtype) if out is None else out
        labels = np.zeros(len(self), dtype=np.int32)
        for one, squared in zip(check.matrix(candidates, "candidates", self), out, strict=True):
            squared[:] = self.own_distances(one[np.newaxis], labels, n_threads=n_threads)
        return out if current is None else np.minimum(out, current, out=out)

    def moments(
        self,
        components: Measure,
        kept: Ids,
        responsibilities: Doubles | None = None,
        sample_weight: Floats | None = None,
        *,
        full: bool,
        n_threads: int | None = None,
    ) -> tuple[Doubles, Doubles, Doubles]:
        """Return the weighted number of rows of each component (C,), and first and second moments about its mean.

        Missing values contribute their means and covariances given the observed values. If components are centers, a
        missing value is replaced by the center's coordinate, without covariance.
        kept, responsibilities (n, H): components of each row, and responsibilities    full: whether second moments
        are matrices
        """
        if isinstance(components, GaussianParameters):
            more: Any = {"full": full, "n_threads": n_threads}
            return super().moments(components, kept, responsibilities, sample_weight, **more)
        q = np.ones(kept.shape) if responsibilities is None else responsibilities
        weight = check.array(sample_weight, "sample_weight", np.float64, len(self))
        shares = q if weight is None else q * weight[:, np.newaxis]
        with limited(n_threads):
            return _about_centers(self, check.matrix(components, "centers", self, 1), kept, shares, full)

    def squared_distances(self, components: GaussianParameters, kept: Ids) -> Doubles:
        """Return the squared Mahalanobis distances of each row's observed values to its H components: (n, H).

        kept (n, H): components of each row; the distance to −1 (no component) is 0
        """
        marginals, squared = self.marginals(components), np.zeros(kept.size)

        def measure(group: Group) -> None:
            c, places = group
            rows = places // kept.shape[1]
            squared[places] = marginals.squared_distances(self[rows], c)

        by_pieces(measure, groups(kept.reshape(-1), len(components.means)))
        return squared.reshape(kept.shape)

    def conditional_scatter(
        self, components: GaussianParameters, kept: Ids, shares: Doubles, sample_weight: Floats | None = None
    ) -> Doubles:
        """Return for each component the weighted sum over rows of covariances of missing values, given observed ones.

        kept, shares (n, H): components of each row, and the weights of the covariances, times `sample_weight` (n,)
        ->  matrices (C, D, D), or their diagonals (C, D) for diagonal covariances
        """
        shares = shares if sample_weight is None else shares * sample_weight[:, np.newaxis]
        return self.marginals(components).conditional_scatter(self.observed, kept, shares)

    def marginals(self, components: GaussianParameters) -> Marginals | DiagonalMarginals:
        """Return the search structure and kernels of marginal densities of Gaussians, for rows with missing values."""
        given = check.gaussians(components, self)
        return (DiagonalMarginals if given.factors.ndim == 2 else Marginals)(given)

    def by_kind(
        self, of_complete: Callable[[Dense, Places], Arrays], of_marginal: Callable[[Self, Places], Arrays]
    ) -> Arrays:
        """Apply a function to the complete rows, and another one to rows with missing values.

        Both functions take m rows and their indices (m,), and return arrays of length m. Returns these arrays for all
        n rows, in the order of the rows. Complete rows are computed separately, so that their results do not depend on
        whether other rows have missing values.
        """
        complete = self.observed.all(axis=1)
        places, others = np.flatnonzero(complete), np.flatnonzero(~complete)
        if not len(others):
            return of_complete(Dense(self.array), places)
        if not len(places):
            return of_marginal(self, others)
        parts = of_complete(Dense(gather(self, places)), places), of_marginal(self[others], others)
        out = [np.empty((len(self), *one.shape[1:]), one.dtype) for one in parts[0]]
        for rows, made in zip((places, others), parts, strict=True):
            for array, part in zip(out, made, strict=True):
                array[rows] = part
        return tuple(out)


class ExposedRows(MissingRows):
    """Rows of counts with exposures (n,), which may have missing values."""

    def __init__(self, array: Floats, observed: Mask, exposure: Doubles):
        super().__init__(array, observed)
        self.exposure = exposure
        self.nbytes += exposure.nbytes

    def __getitem__(self, rows: slice | NDArray, /) -> Self:
        rows = np.flatnonzero(rows) if isinstance(rows, np.ndarray) and rows.dtype == bool else rows
        return type(self)(np.ascontiguousarray(self.array[rows]), self.observed[rows], self.exposure[rows])

    def alike(self, array: Floats) -> Self:
        return type(self)(array, super().alike(array).observed, self.exposure)


@dataclass(frozen=True, eq=False)
class ReadExposed:
    """Picklable function that converts an array of rows, with exposures as the last column, to `ExposedRows`.

    fill (D,): placeholders for missing values
    """

    fill: Doubles

    def __call__(self, array: Floats) -> ExposedRows:
        observed = ~np.isnan(array[:, :-1])
        filled = np.where(observed, array[:, :-1], self.fill).astype(array.dtype)
        return ExposedRows(filled, observed, array[:, -1].astype(np.float64))


def _rows_of(array: Any, rows: Places) -> Any:
    """Return array[rows], or None if `array` is None."""
    return None if array is None else array[rows]


def _sums(parts: list[Sums]) -> Sums:
    """Return counts, first and second moments of all rows: the sums of those of several sets of rows (`parts`)."""
    counts, first, second = (sum(arrays[1:], arrays[0]) for arrays in zip(*parts, strict=True))
    return counts, first, second


def _about_centers(X: MissingRows, centers: Floats, kept: Ids, q: Doubles, full: bool) -> Sums:
    """Return counts (C,), and first and second moments about centers that have no covariances.

    A missing value is replaced by the center's coordinate, so that it adds 0 to the moments.
    kept, q (n, H): components of each row, and responsibilities    full: whether second moments are matrices
    """
    sums = no_moments(centers, full)

    def add(given: Givers) -> None:
        c, rows, share = given
        r = np.subtract(X.array[rows], centers[c], dtype=np.float64) * X.observed[rows]
        sums[0][c], sums[1][c] = share.sum(), share @ r
        sums[2][c] = (share[:, np.newaxis] * r).T @ r if full else share @ np.square(r)

    by_pieces(add, givers(kept, q, len(centers)))
    return sums
