"""What both estimators share: how data come in, bounds, and saving."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from cprime import em, kernels, storage
from cprime.estimators.validation import check_weights
from cprime.execution import Chunk
from cprime.model import TiedSpherical
from cprime.search import FullSearch


class Bounds(NamedTuple):
    """Free energy and what it bounds, per point (or unit of weight), in nats.

    free_energy : F(K, Θ), eq. (7) of Lücke & Forster
    log_likelihood : L(Θ), eq. (3); never below F
    kl_gap : L − F, the divergence KL of the truncated posteriors from the exact ones; eq. (16) for k-means
    entropy : mean entropy of the truncated posteriors; 0 for k-means
    """

    free_energy: float
    log_likelihood: float
    kl_gap: float
    entropy: float


class Clusterer(BaseEstimator):
    """Base of the estimators; a subclass says which parameters it has found and how many components a point keeps."""

    # Called while a fit runs with every row of the history, as a dictionary, and the parameters after that iteration.
    _callback: Callable[[dict[str, Any], TiedSpherical], None] | None = None
    n_threads: int | None

    def _parameters(self) -> TiedSpherical:
        raise NotImplementedError

    def _n_active(self) -> int:
        raise NotImplementedError

    def _validated(self, X: Any, reset: bool) -> NDArray:
        if not reset:
            check_is_fitted(self)
        dtype = (np.float64, np.float32) if reset else self._parameters().centers.dtype
        return validate_data(self, X, reset=reset, dtype=dtype, order="C", accept_sparse=False)

    def _settings(self, n_active: int, **changes: Any) -> em.Settings:
        given: dict[str, Any] = {
            "n_active": n_active,
            "search": FullSearch(),
            "hard": False,
            "max_iter": 0,
            "tol": 0.0,
            "n_threads": self.n_threads,
        }
        return em.Settings(**(given | changes))

    def bounds(self, X: Any, sample_weight: Any = None) -> Bounds:
        """Free energy, log-likelihood, their gap and the entropy of the posteriors, for the fitted parameters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, in the units of the training data.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the points; None is 1 for each.

        Returns
        -------
        bounds : Bounds
            Per unit of weight, in nats. One exact pass over all components: N·C evaluations.

        References
        ----------
        Lücke & Forster, *k-means as a variational EM approximation of Gaussian mixture models*, eq. (3), (7), (16).
        """
        X = self._validated(X, reset=False)
        weights = check_weights(sample_weight, X)
        model = self._parameters()
        chunk = Chunk(X, weights)
        statistics = em.expect(chunk, model, self._settings(self._n_active()))
        free_energy = em.free_energy(model, statistics)
        log_sums = kernels.log_sum_exp(X, model.centers, model.variance, n_threads=self.n_threads)
        log_likelihood = model.log_scale + chunk.weighted_sum(log_sums) / chunk.weight
        gap = log_likelihood - free_energy
        entropy = statistics.entropy / statistics.weight
        return Bounds(float(free_energy), float(log_likelihood), float(gap), float(entropy))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a safetensors file, whole or not at all; `cprime.load` brings it back.

        Parameters
        ----------
        path : path-like
            Where to write; an existing file is replaced once the new one is complete.
        """
        storage.save(self, path)
