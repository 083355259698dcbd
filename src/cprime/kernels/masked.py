"""Rows of which some numbers are missing: among Gaussians by what is observed, see `marginals.py`."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime._threads import by_pieces, limited
from cprime.kernels import arguments as check
from cprime.kernels.among import Found, among
from cprime.kernels.compute import as_rows
from cprime.kernels.diagonal_marginals import DiagonalMarginals
from cprime.kernels.exact import Responses
from cprime.kernels.marginals import Doubles, Ids, Marginals, Mask, Sums, no_moments
from cprime.kernels.measures import Floats, Gaussians, Measure
from cprime.kernels.nearest import nearest
from cprime.kernels.offered import among_offered
from cprime.kernels.order import gather
from cprime.kernels.partial import keep
from cprime.kernels.rows import Dense, Rows
from cprime.kernels.tables import Givers, givers


def with_nan(X: Rows) -> Floats:
    """The rows as an array, NaN where a number is missing."""
    array = X.dense()
    return array if X.observed is None else np.where(X.observed, array, array.dtype.type(np.nan))


@dataclass(frozen=True, eq=False)
class ReadGaps:
    """Makes rows of an array as it is read, as `with_gaps` does; fill (D,): None is any number of the column."""

    fill: NDArray[np.float64] | None = None

    def __call__(self, array: Any) -> Rows:
        return with_gaps(array, self.fill) if isinstance(array, np.ndarray) else as_rows(array)


def with_gaps(array: Floats, fill: NDArray[np.float64] | None = None) -> Dense:
    """Rows of an array in which NaN is a missing number; plain rows where there is none.

    fill (D,): what kernels find in its place, None for the first number of its column
    """
    observed = ~np.isnan(array)
    if observed.all():
        return Dense(array)
    if fill is None:
        fill = np.where(observed.any(axis=0), array[observed.argmax(axis=0), np.arange(array.shape[1])], 0)
    return Masked(np.where(observed, array, fill).astype(array.dtype, copy=False), observed)


class Masked(Dense):
    """Rows of an array of which some numbers are missing.

    array (n, D): has others in their places, by which centers are found and cells looked up    observed (n, D) bool

    Among Gaussians, verbs go by what is observed; `own_distances` too.
    """

    observed: Mask

    def __init__(self, array: Floats, observed: Mask):
        super().__init__(array)
        self.observed = observed

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.observed.nbytes

    def __getitem__(self, rows: slice | NDArray, /) -> Self:
        if isinstance(rows, slice):
            return type(self)(self.array[rows], self.observed[rows])
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        return type(self)(gather(self, rows), self.observed[rows])

    def _with(self, array: Floats) -> Self:
        more = array.shape[1] - self.shape[1]
        return type(self)(array, np.pad(self.observed, ((0, 0), (0, more)), constant_values=True))

    def nearest(
        self, components: Measure, n_kept: int = 1, *, hint: Ids | None = None, n_threads: int | None = None
    ) -> tuple[Ids, Floats]:
        if not isinstance(components, Gaussians):
            return nearest(self, components, n_kept, hint=hint, n_threads=n_threads)
        with limited(n_threads):
            return self._marginals(components).best(self, n_kept)

    def keep(
        self, components: Measure, lists: Ids, previous: Ids, n_kept: int, *, n_threads: int | None = None
    ) -> tuple[Ids, Floats]:
        if not isinstance(components, Gaussians):
            return keep(self, components, lists, previous, n_kept, n_threads=n_threads)
        with limited(n_threads):
            return self._marginals(components).keep(self, lists, previous, n_kept)

    def among(
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
    ) -> Found:
        more: Any = {"evidence": evidence, "sample_weight": sample_weight}
        if not isinstance(components, Gaussians):
            return among(self, components, lists, previous, n_kept, extra, n_threads=n_threads, **more)
        with limited(n_threads):
            costs = self._marginals(components).costs
            return among_offered(costs, self, lists, previous, n_kept, extra, **more)

    def own_distances(self, centers: Floats, labels: Ids, *, n_threads: int | None = None) -> Floats:
        """Over what is observed."""
        at = np.where(self.observed, self.array, check.centers(centers, self)[labels])
        return Dense(at).own_distances(centers, labels, n_threads=n_threads)

    def distances(
        self,
        candidates: Floats,
        current: Floats | None = None,
        *,
        out: Floats | None = None,
        n_threads: int | None = None,
    ) -> Floats:
        """Over what is observed."""
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
        """Of rows whose gaps have their conditional means and covariances; among centers, these and none."""
        q = np.ones(kept.shape) if responsibilities is None else responsibilities
        q = q if sample_weight is None else q * sample_weight[:, np.newaxis]
        with limited(n_threads):
            if isinstance(components, Gaussians):
                return self._marginals(components).moments(self.array, self.observed, kept, q)
            return _about_centers(self, check.centers(components, self), kept, q, full)

    def _marginals(self, components: Gaussians) -> Marginals | DiagonalMarginals:
        given = check.gaussians(components, self)
        return (DiagonalMarginals if given.factors.ndim == 2 else Marginals)(given)

    def imputed(self, components: Gaussians, ids: Ids, q: Doubles, normal: Doubles | None = None) -> Doubles:
        """As `Marginals.imputed`: (n, D)."""
        return self._marginals(components).imputed(self.array, self.observed, ids, q, normal)

    def respond(
        self,
        components: Gaussians,
        sample_weight: Floats | None = None,
        *,
        moments: bool = True,
        n_threads: int | None = None,
    ) -> Responses:
        weight = check.weights(sample_weight, len(self))
        with limited(n_threads):
            labels, log_sum, mean, sums = self._marginals(components).respond(self, weight, None, moments)
        return Responses(labels, log_sum, mean, *sums)

    def responsibilities(self, components: Gaussians, *, n_threads: int | None = None) -> Doubles:
        out = np.empty((len(self), len(components.means)))
        with limited(n_threads):
            self._marginals(components).respond(self, None, out, moments=False)
        return out


def _about_centers(X: Masked, centers: Floats, kept: Ids, q: Doubles, full: bool) -> Sums:
    """Moments where no extent is known: what is missing of a row is where its center is."""
    sums = no_moments(centers, full)

    def add(given: Givers) -> None:
        c, rows, share = given
        r = np.subtract(X.array[rows], centers[c], dtype=np.float64) * X.observed[rows]
        sums[0][c], sums[1][c] = share.sum(), share @ r
        sums[2][c] = (share[:, np.newaxis] * r).T @ r if full else share @ np.square(r)

    by_pieces(add, givers(kept, q, len(centers)))
    return sums
