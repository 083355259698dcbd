"""Gaussian components with full covariance matrices, one for each component, eq. (28)-(31) of Lücke & Forster 2019."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.storable import storable
from cprime._utils.values import cached, replace
from cprime.kernels import Dense, Rows
from cprime.model.base import register
from cprime.model.conditional import Conditional, others
from cprime.model.covariance import (
    DataScale,
    factors_along,
    factors_of_precisions,
    given_columns,
    inverses,
    of_empty,
    repaired,
)
from cprime.model.own_covariance import OwnCovariance


@register
@storable("model.Full")
@dataclass(frozen=True)
class FullCovariance(OwnCovariance):
    """Gaussian mixture with full covariances; covariances (C, D, D) [data unit²]."""

    covariance_type: ClassVar[str] = "full"
    sklearn_type: ClassVar[str] = "full"
    axes: ClassVar[str] = "CDD"
    full: ClassVar[bool] = True
    scale_free: ClassVar[bool] = True
    has_matrices: ClassVar[bool] = True

    @cached
    def _lower(self) -> NDArray[np.float64]:
        return repaired(self.covariances)[1]

    @cached
    def factors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        factors = inverses(self._lower)
        return factors, np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)

    def _covariances_along(self, before: Self, share: float) -> NDArray[np.float64]:
        return factors_along(self._lower, before._lower, share)

    def _shaped(
        self, shares: NDArray[np.float64], second: NDArray[np.float64], scale: DataScale
    ) -> NDArray[np.float64]:
        covariances = of_empty(shares, second)
        D = self.n_features
        covariances[:, np.arange(D), np.arange(D)] += self.reg_covar
        return repaired(covariances, self.centers.dtype, scale)[0]

    def _precisions(self) -> dict[str, NDArray[np.float64]]:
        factors = factors_of_precisions(self._lower)
        return {"precisions_": factors @ factors.transpose(0, 2, 1), "precisions_cholesky_": factors}

    def noise(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.empty_like(normal)
        for c in np.unique(labels):
            out[labels == c] = normal[labels == c] @ self._lower[c].T
        return out

    def distances(self, X: Rows, labels: NDArray[np.int32]) -> NDArray[np.float64]:
        scaled = self._moved(X, labels)
        order = np.argsort(labels, kind="stable")
        bounds = np.searchsorted(labels[order], np.arange(self.n_components + 1))
        for c in np.flatnonzero(np.diff(bounds)):
            rows = order[bounds[c] : bounds[c + 1]]
            scaled[rows] = Dense(scaled[rows]).products(self.factors[0][c])
        return np.sqrt(np.einsum("nd,nd->n", scaled, scaled))

    def marginal(self, columns: NDArray[np.intp]) -> Self:
        covariances = self.covariances[..., columns[:, np.newaxis], columns]
        return replace(self, centers=self._places(columns), covariances=covariances)

    def conditional(self, columns: NDArray[np.intp]) -> Conditional:
        rest = others(columns, self.n_features)
        slopes, covariances = given_columns(self.covariances, columns, rest)
        left = replace(self, centers=self._places(rest), covariances=covariances)
        return Conditional(self.marginal(columns), left, (slopes,))
