"""What the estimators with an EM fit share: how data come in, starts, the best of several runs, bounds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cprime import em
from cprime._random import Key, Purpose
from cprime._threads import limited
from cprime.block import Block, Kept
from cprime.em.expectation import Visit
from cprime.estimators.stored import Stored
from cprime.estimators.validation import opened, resolve_init, shown
from cprime.execution import Local
from cprime.model import Model
from cprime.search import Full, Search
from cprime.search.certificate import certify
from cprime.seeding import is_given, place

FirstModel = Callable[[Local, NDArray, bool], Model]  # of data, starting centers, and whether the search is exact
_ANY = Key(0)  # where nothing is drawn


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


@dataclass(frozen=True)
class LogLikelihood:
    """Σ w_n log p(x_n) over all components, and Σ w_n: a pass over the data."""

    model: Model

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: Kept | None) -> tuple[None, NDArray[np.float64]]:
        total = block.weighted_sum(self.model.log_likelihood(block.X))
        return None, np.array([total, block.weight])


class Clusterer(Stored):
    """Base of the estimators; a subclass says which parameters it has found and how many components a point keeps."""

    # Called while a fit runs with every row of the history, as a dictionary, and the parameters after that iteration.
    _callback: Callable[[dict[str, Any], Model], None] | None = None
    n_init: int
    search: str | Search
    n_threads: int | None
    random_state: Any
    verbose: int
    certificate: int

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, `search__…` those of the search, which is replaced: others may hold it too."""
        nested = {name.removeprefix("search__"): params.pop(name) for name in list(params) if "search__" in name}
        super().set_params(**params)
        if nested:
            if isinstance(self.search, str):
                raise ValueError(f"search={self.search!r} has no parameters {list(nested)}: give an object first.")
            self.search = self.search.with_params(**nested)
        return self

    def _parameters(self) -> Model:
        raise NotImplementedError

    def _n_active(self) -> int:
        raise NotImplementedError

    def _n_components(self) -> int:
        raise NotImplementedError

    def _opened(self, X: Any, sample_weight: Any = None, reset: bool = False) -> Local:
        """Data of any kind; reset: whether they are to be fitted, of at least one point for every component."""
        data = opened(self, X, sample_weight, None if reset else lambda: self._parameters().centers.dtype)
        if reset and data.n_points < self._n_components():
            name = "n_clusters" if hasattr(self, "n_clusters") else "n_components"
            raise ValueError(f"n_samples={data.n_points} should be >= {name}={self._n_components()}.")
        return data

    def _best_run(self, data: Local, init: Any, first_model: FirstModel, plan: em.Plan, key: Key) -> em.Fit:
        """Runs from `n_init` starts; keeps the one of greatest F (least J), what it found, and its certificate.

        first_model: makes the starting parameters of the data and the starting centers
        """
        C, best = self._n_components(), None
        init = resolve_init(init, C, data.n_points, data.whole() is not None)
        with shown(self.verbose):
            for run in range(1 if is_given(init) else self.n_init):
                key = key._replace(run=run)
                centers = self._centers(data, init, key)
                fit = em.run(data, first_model(data, centers, plan.search.exact), plan, key)
                if best is None or fit.lower_bound > best.lower_bound:
                    best = fit
                    self._set_found(data, fit, plan)
        assert best is not None
        return best

    def _centers(self, data: Local, init: Any, key: Key) -> NDArray:
        """Where the centers start; points may then keep a near one."""
        return place(data, self._n_components(), init, key.random_state(Purpose.START))

    def _set_found(self, data: Local, fit: em.Fit, plan: em.Plan) -> None:
        """Labels, lists and certificate of a run that has ended."""
        self.certificate_ = None
        if not data.placed:
            data.each(Visit(fit.model, Full().look(None, fit.model.components(), None, fit.key), 1))
            self.labels_ = data.labels()
            self.neighbors_ = None
            return
        self.labels_ = data.labels()
        self.neighbors_ = plan.search.neighbors(fit.search)
        if self.certificate and not plan.search.exact:
            rows = fit.key.generator(Purpose.CERTIFICATE).choice(
                data.n_points, min(self.certificate, data.n_points), replace=False
            )
            points, kept = em.sampler(data, fit.model)(np.sort(rows))
            self.certificate_ = certify(
                points, plan.rule.judged(kept), fit.model.components(), plan.rule.scale(fit.model)
            )

    def bounds(self, X: Any, sample_weight: Any = None) -> Bounds:
        """Free energy, log-likelihood, their gap and the entropy of the posteriors, for the fitted parameters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a source
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
        data = self._opened(X, sample_weight)
        model = self._parameters()
        with limited(self.n_threads):
            rule = em.MixtureRule(1, 0.0, self._n_active())
            look = Full().look(None, model.components(), None, _ANY)
            statistics = data.each(rule.propose(model, None, look, _ANY, True)).statistics
            total, weight = data.each(LogLikelihood(model))
        free_energy, log_likelihood = em.free_energy(model, statistics), total / weight
        entropy = statistics.entropy / statistics.weight
        return Bounds(float(free_energy), float(log_likelihood), float(log_likelihood - free_energy), float(entropy))
