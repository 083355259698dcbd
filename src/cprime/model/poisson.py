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
from cprime.kernels import Dense, Floats, Rows, SparseRows
from cprime.model.covariance import scaled_along
from cprime.model.interface import Weights
from cprime.model.linear import Linear

_LEAST_RATE = 1e-12  # least rate in densities, so that a count in a column of rate 0 has a finite log-density


@storable("model.Poisson")
@dataclass(frozen=True)
class Poisson(Linear):
    """Mixture of Poisson counts; centers (C, D): rates λ. A row is transformed to (x, Σ_d log x_d!)."""

    covariance_type: ClassVar[str] = "poisson"
    attribute_names: ClassVar[tuple[str, ...]] = ("rates_",)
    declared: ClassVar[Mapping[str, Any]] = {"rates_": Array("C D", least=0)}
    accelerates: ClassVar[bool] = True
    is_flat: ClassVar[bool] = True

    @property
    def natural(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rates = np.maximum(self.centers.astype(np.float64), _LEAST_RATE)
        return np.column_stack([np.log(rates), np.full(len(rates), -1.0)]), rates.sum(axis=1)

    def embed(self, X: Rows, before: Rows | None = None) -> Rows:
        if isinstance(X, SparseRows):
            counts = X.as_type(np.float64).given()
            logs = np.bincount(X.owners, gammaln(X.entries[0].astype(np.float64) + 1), len(X))
            return SparseRows.from_scipy(csr_array(hstack([counts, logs[:, np.newaxis]], format="csr")))
        counts = np.asarray(X.dense(), dtype=np.float64)
        return Dense(np.column_stack([counts, gammaln(counts + 1).sum(axis=1)]))

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


POISSON = {"poisson": Poisson}
