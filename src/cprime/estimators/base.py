"""What the estimators with an EM fit share: how data come in, starts, bounds."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime import em
from cprime.estimators.stored import Stored
from cprime.estimators.validation import check_weights, resolve_init, shown, validated
from cprime.execution import Chunk, InMemory
from cprime.model import Model
from cprime.search import FullSearch, Search
from cprime.search.certificate import certify
from cprime.seeding import Start, is_given, start

FirstModel = Callable[[InMemory, Start, em.Settings], Model]


class Bounds(NamedTuple):
    """Free energy and what it bounds, per point (or unit of weight), in nats.

    free_energy : F(K, Θ), eq. (7) of Lücke & Forster
    log_likelihood : L(Θ), eq. (3); but for rounding never below F
    kl_gap : L − F, the divergence KL of the truncated posteriors from the exact ones; eq. (16) for k-means
    entropy : mean entropy of the truncated posteriors; 0 for k-means
    """

    free_energy: float
    log_likelihood: float
    kl_gap: float
    entropy: float


class Clusterer(Stored):
    """Base of the estimators; a subclass says which parameters it has found and how many components a point keeps."""

    # Called while a fit runs with every row of the history, as a dictionary, and the parameters after that iteration.
    _callback: Callable[[dict[str, Any], Model], None] | None = None
    n_init: int
    n_threads: int | None
    random_state: Any
    verbose: int
    certificate_size: int
    certificate_seed: int

    def _parameters(self) -> Model:
        raise NotImplementedError

    def _n_active(self) -> int:
        raise NotImplementedError

    def _n_components(self) -> int:
        raise NotImplementedError

    def _validated(self, X: Any, reset: bool) -> NDArray:
        return validated(self, X, None if reset else lambda: self._parameters().centers.dtype)

    def _settings(self, n_active: int, search: Search, **changes: Any) -> em.Settings:
        given: dict[str, Any] = {"k_means": False, "max_iter": 0, "tol": 0.0, "n_threads": self.n_threads}
        return em.Settings(n_active, search, **(given | changes))

    def _best_run(
        self,
        X: NDArray,
        weights: NDArray | None,
        init: Any,
        first_model: FirstModel,
        settings: em.Settings,
        random_state: np.random.RandomState,
    ) -> em.Fit:
        """Runs from `n_init` starts; keeps the one of greatest F (least J), what it found, and its certificate.

        first_model: makes the starting parameters of the data, the starting centers and the labels that come with them
        """
        data = InMemory(X, weights, self.n_threads)
        best, found, labels, lists = None, None, None, None
        with shown(self.verbose):
            for _ in range(1 if is_given(init) else self.n_init):
                begin = self._centers(X, weights, resolve_init(init, settings.search), random_state)
                fit = em.run(data, first_model(data, begin, settings), settings, begin.labels)
                if best is None or fit.lower_bound > best.lower_bound:
                    best, found, labels = fit, data.found(), data.labels()
                    lists = settings.search.lists()
        assert best is not None
        self.neighbors_ = lists
        self.certificate_ = None
        components = best.model.components(self.n_threads)
        if found is None or labels is None:
            self.labels_ = components.best(best.model.embed(X, n_threads=self.n_threads), 1)[0][:, 0]
            return best
        self.labels_ = labels
        if self.certificate_size and not settings.search.exact:
            scale = None if settings.k_means else best.model.scale
            if settings.assignment == "hard":  # F has the winner alone
                assert found.kept is not None
                assert found.distances is not None
                found = replace(found, kept=found.kept[:, :1], distances=found.distances[:, :1])
            self.certificate_ = certify(found, components, scale, self.certificate_size, self.certificate_seed)
        return best

    def _centers(self, X: NDArray, weights: NDArray | None, init: Any, random_state: np.random.RandomState) -> Start:
        """Where the centers start."""
        return start(
            X,
            self._n_components(),
            init,
            sample_weight=weights,
            random_state=random_state,
            n_threads=self.n_threads,
        )

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
            Per unit of weight, in nats. Two exact passes over all components, 2·N·C evaluations.

        References
        ----------
        Lücke & Forster, *k-means as a variational EM approximation of Gaussian mixture models*, eq. (3), (7), (16).
        """
        X = self._validated(X, reset=False)
        weights = check_weights(sample_weight, X)
        model = self._parameters()
        chunk = Chunk(X, weights)
        statistics = em.expect(chunk, model, self._settings(self._n_active(), FullSearch()))
        free_energy = em.free_energy(model, statistics)
        log_likelihood = chunk.weighted_sum(model.log_likelihood(X, self.n_threads)) / chunk.weight
        gap = log_likelihood - free_energy
        entropy = statistics.entropy / statistics.weight
        return Bounds(float(free_energy), float(log_likelihood), float(gap), float(entropy))
