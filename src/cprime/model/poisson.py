"""Components of independent Poisson counts with rates λ: log p(x given c) = Σ_d (x_d log λ_cd − λ_cd − log x_d!)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from scipy.special import gammaln, ndtr
from scipy.stats import poisson

from cprime._utils.declared import Array
from cprime._utils.storable import storable
from cprime._utils.values import replace
from cprime.execution.block import Block
from cprime.kernels import Dense, ExposedRows, Floats, Rows, SparseRows
from cprime.model.base import means_of, new_weights
from cprime.model.covariance import scaled_along
from cprime.model.interface import Responsibilities, Weights
from cprime.model.linear import Linear, LinearMoments

_TABULATED = 2.0**16  # counts below this are small enough for a table of log x!
_LEAST_RATE = 1e-12  # least rate in densities, so that a count in a column of rate 0 has a finite log-density


@storable("model.Poisson")
@dataclass(frozen=True)
class Poisson(Linear):
    """Mixture of Poisson counts; centers (C, D): rates λ. A row is transformed to (x, Σ_d log x_d!).

    has_missing: whether values may be missing, which leave the sum over columns. Then rows are transformed to
    (x, o e, Σ_d (log x_d! − x_d log e)), with the mask o of observed values, and zeros for missing ones. Counts of rows
    with an exposure e (`ExposedRows`) have the rates e λ; other rows have e = 1.
    exposure: mean exposure of the rows by which `pseudo_moments` represents the model
    """

    has_missing: bool = False
    exposure: float = 1.0

    covariance_type: ClassVar[str] = "poisson"
    attribute_names: ClassVar[tuple[str, ...]] = ("rates_",)
    declared: ClassVar[Mapping[str, Any]] = {"rates_": Array("C D", least=0)}
    accelerates: ClassVar[bool] = True
    is_flat: ClassVar[bool] = True

    @property
    def natural(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rates = np.maximum(self.centers.astype(np.float64), _LEAST_RATE)
        last = np.full(len(rates), -1.0)
        if self.has_missing:
            return np.column_stack([np.log(rates), -rates, last]), np.zeros(len(rates))
        return np.column_stack([np.log(rates), last]), rates.sum(axis=1)

    def embed(self, X: Rows, before: Rows | None = None) -> Rows:
        if isinstance(X, SparseRows):
            counts = X.as_type(np.float64).given()
            logs = np.bincount(X.owners, gammaln(X.entries[0].astype(np.float64) + 1), len(X))
            return SparseRows.from_scipy(csr_array(hstack([counts, logs[:, np.newaxis]], format="csr")))
        counts = np.asarray((self.without_missing(X) if self.has_missing else X).dense(), dtype=np.float64)
        given = counts[:, : self.n_features]
        logs = _log_factorials(given).sum(axis=1)
        if isinstance(X, ExposedRows):
            logs -= given.sum(axis=1) * np.log(X.exposure)
        return Dense(np.column_stack([counts, logs]))

    def without_missing(self, X: Rows) -> Rows:
        """Return the rows (x, o e): zeros for missing values, and the mask o of observed values times the exposure."""
        observed = np.ones(X.shape, dtype=bool) if X.observed is None else X.observed
        exposures = observed * X.exposure[:, np.newaxis] if isinstance(X, ExposedRows) else observed
        return Dense(np.column_stack([np.where(observed, X.dense(), 0.0), exposures]))

    def summarise(self, block: Block, shares: Responsibilities) -> LinearMoments:
        if not self.has_missing:
            return super().summarise(block, shares)
        return super().summarise(Block(self.without_missing(block.X), block.sample_weight), shares)

    def maximise(self, moments: LinearMoments, prior: None = None) -> Self:
        if not self.has_missing:
            return super().maximise(moments)
        sums, observed = np.split(moments.sums, 2, axis=1)
        centers = means_of(observed, sums, self.centers).astype(self.centers.dtype)
        return replace(self, centers=centers, weights=new_weights(self.weights, moments.counts))

    def moments_of_sums(self, counts: NDArray[np.float64], sums: NDArray[np.float64]) -> LinearMoments:
        observed = [np.broadcast_to(counts[:, np.newaxis], sums.shape)] if self.has_missing else []
        return LinearMoments(counts, np.concatenate([sums, *observed], axis=1))

    def pseudo_moments(self, shares: NDArray[np.float64]) -> tuple[LinearMoments, None]:
        moments = self.moments_of_sums(shares, shares[:, np.newaxis] * self.centers)
        return replace(moments, sums=self.exposure * moments.sums), None

    def with_missing(self) -> Self:
        return replace(self, has_missing=True)

    def complete(self) -> Self:
        return replace(self, has_missing=False)

    def drawn(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = poisson.ppf(ndtr(normal), self.centers.astype(np.float64)[labels])
        return np.maximum(found, 0)  # SciPy's quantile can be −1 if the rate is 0

    @property
    def variances(self) -> NDArray[np.float64]:
        return self.centers.astype(np.float64)

    def extrapolated(self, before: Self, share: float) -> Self:
        centers = scaled_along(self.variances, before.variances, share).astype(self.centers.dtype)
        if self.weights is None or before.weights is None:
            return replace(self, centers=centers)
        weights = scaled_along(self.weights, before.weights, share)
        return replace(self, centers=centers, weights=weights / weights.sum())

    def attributes(self) -> dict[str, Any]:
        return {"rates_": self.centers}

    @classmethod
    def from_attributes(
        cls, attributes: Mapping[str, Any], centers: Floats, weights: Weights, reg_covar: float = 0.0
    ) -> Self:
        return cls(np.asarray(attributes["rates_"]), weights)

    def marginal(self, columns: NDArray[np.intp]) -> Self:
        return replace(self, centers=np.ascontiguousarray(self.centers[:, columns]))


def _log_factorials(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log x! of counts x; those of small counts are read from a table, which is faster."""
    most = counts.max(initial=0.0)
    if not most < min(_TABULATED, counts.size):
        return np.asarray(gammaln(counts + 1))
    table: NDArray[np.float64] = gammaln(np.arange(most + 1) + 1)
    return table[counts.astype(np.intp)]


POISSON = {"poisson": Poisson}
