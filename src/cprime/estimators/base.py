"""Base class of estimators with an EM fit: it opens data, fits from several starts, and computes likelihood bounds."""

import logging
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from cprime import em
from cprime._utils.declared import Array, Columns, Count, Number, Presence
from cprime._utils.random import Key, seed_of
from cprime._utils.values import replace
from cprime.estimators.covariances import as_covariances
from cprime.estimators.folders import opened_checkpoint, spilling
from cprime.estimators.memory_limit import as_memory
from cprime.estimators.missing import filled_by_means
from cprime.estimators.opening import names_of, opened
from cprime.estimators.problems import Labels
from cprime.estimators.quality import Bounds, certificate_text, remarks, warn_if_poor
from cprime.estimators.savable import SavableEstimator
from cprime.estimators.solutions import FitRecord, Solution, adopt
from cprime.estimators.validation import as_search, unused_arguments
from cprime.estimators.watching import CallbackSupportMixin, Watch, unfitted_copy
from cprime.execution import Data
from cprime.kernels import ReadMissing, computing
from cprime.model import Model
from cprime.search import Full
from cprime.search.base import BaseSearch

logger = logging.getLogger("cprime")

# Functions that return the object that a short form of an argument means, such as a name.
_OBJECT_OF = {"search": as_search, "covariance_type": as_covariances, "max_memory": as_memory}
_ANY = Key(0)  # random key for calls that need one as an argument, but draw no random numbers here


class Clusterer(CallbackSupportMixin, SavableEstimator):
    """Base of estimators with an EM fit. A subclass defines the model, the options, and the size C′ of active sets."""

    n_init: int
    max_iter: int
    search: str | BaseSearch
    n_threads: int | None
    random_state: Any
    verbose: int
    checkpoint: str | None
    max_memory: Any
    _has_plan = True  # whether formulas for the memory of a fit are known, so that it may have a limit
    callbacks: Any
    n_active_: Annotated[int, Number(least=1, below="C+1")]
    n_iter_: Annotated[Count, Presence.RECORD]
    converged_: Annotated[bool, Presence.RECORD]
    lower_bound_: float
    lower_bounds_: Annotated[list[float], Presence.RECORD]
    history_: Annotated[NDArray, Columns(em.HISTORY), Presence.RECORD]
    neighbors_: Annotated[
        Annotated[NDArray[np.int32], Array("C ?", "int32", least=-1, below="C")] | None, Presence.RECORD
    ]
    certificate_: Annotated[dict[str, Any] | None, Presence.RECORD]
    final_assignment_: Annotated[Literal["exact", "found", "bounded", "labeled"], Presence.OPTIONAL]
    _size_name = "n_clusters"  # name of the argument with the number of components

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, and return the estimator.

        `search__NAME`, `init__NAME`, `covariance_type__NAME` and `max_memory__NAME` set the option NAME of a copy of
        the object. A short form, such as the name of a search, becomes an object.
        """
        nested: dict[str, dict[str, Any]] = {}
        for name in [name for name in params if "__" in name]:
            outer, _, inner = name.partition("__")
            value = params.get(outer, getattr(self, outer, None))
            if outer in _OBJECT_OF or hasattr(value, "with_params") or (outer[:4] == "init" and isinstance(value, str)):
                nested.setdefault(outer, {})[inner] = params.pop(name)
        super().set_params(**params)
        for outer, options in nested.items():
            value = getattr(self, outer)
            value = _OBJECT_OF[outer](value) if outer in _OBJECT_OF else value
            if isinstance(value, str):
                raise ValueError(f"{outer}={value!r} has no parameters {list(options)}: give an object first.")
            setattr(self, outer, value.with_params(**options))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = getattr(self, "missing", "error") == "marginal"
        return tags

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the constructor call, and for a fitted estimator remarks on the quality of the fit, as comments."""
        return "\n".join([super().__repr__(N_CHAR_MAX), *(f"# {line}" for line in remarks(self))])

    def _parameters(self) -> Model:
        """Return the fitted parameters as a model."""
        raise NotImplementedError

    def _model_of(self, data: Data, *more: Any) -> Model:
        """Return the fitted model; if `data` may have missing values, in a form that can evaluate such rows.

        more: arguments of `_parameters`, such as the reg_covar of a mixture
        """
        model = self._parameters(*more)
        return model.with_missing() if data.has_missing else model

    def _dtype(self) -> np.dtype:
        """Return the data type of the fitted parameters."""
        return self._parameters().centers.dtype

    def _opened(self, X: Any, sample_weight: Any = None, reset: bool = False) -> Data:
        """Check X and return it as `Data`: rows with their weights, which passes over the data can read.

        reset: whether X is training data
        """
        return self._converted(opened(self, X, sample_weight, reset), reset)

    def _converted(self, data: Data, reset: bool) -> Data:
        """Return the data in the form that the model reads; missing values get placeholders.

        reset: whether the rows are training data
        """
        if not data.has_missing or getattr(self, "missing", "error") != "marginal":
            return data
        if reset:
            return filled_by_means(data, names_of(self))
        model = self._parameters()
        mean: NDArray[np.float64] = np.average(model.centers, axis=0, weights=model.weights)
        return data.read_by(ReadMissing(mean), has_missing=True)

    def _check_arguments(self) -> None:
        """Raise TypeError or ValueError if an argument is invalid for any data."""
        raise NotImplementedError

    def _options(self) -> Any:
        """Return the options of a fit as a value, whose method `problem` returns what the fit of some data solves."""
        raise NotImplementedError

    def _solution(self, run: em.Run, n_active: int, record: FitRecord) -> Solution:
        """Return the parameters and other results of a fit that ends with the state `run`.

        n_active: C′, the size of active sets
        record: facts about the fit, with the values that a last pass has measured, if the fit has ended
        """
        raise NotImplementedError

    def _warn_of(self, run: em.Run) -> None:
        """Issue warnings after the end of a fit, such as that it did not converge; a subclass defines them."""

    def _continued(self) -> dict[str, Any] | None:
        """Return the fitted attributes (a dict) of an earlier fit that this one continues, or None for a new fit."""
        return None

    def _fit_to(self, data: Data, given: tuple[Any, Any, Any], labels: Labels = None) -> Self:
        """Fit the estimator to checked data, and return it. The caller sets the number of threads (`computing`).

        given: the arguments X, y and sample_weight of `fit`, which callbacks receive
        labels: known components of the points (N,), or None
        """
        key = Key(seed_of(self.random_state))
        options = self._options()
        problem = options.problem(data, labels)
        plan = problem.plan
        if logger.isEnabledFor(logging.INFO):
            for line in unused_arguments(self, options.n_components, plan.search, problem.init):
                logger.info(line)
        watch = Watch(self, given, lambda run: self._view(run, plan.n_kept))
        checkpoint, runs = None, None
        with spilling(self.max_memory, self.checkpoint, data, plan.n_kept):
            if self.checkpoint is not None:
                checkpoint, runs = opened_checkpoint(self, data, key)
                key = replace(key, seed=checkpoint.description["seed"])
                if checkpoint.description["features"] is not None:
                    self.feature_names_in_ = np.array(checkpoint.description["features"], dtype=object)
            with watch.fit(problem.n_starts, self.max_iter + plan.search.warmup):
                run, measured = em.solve(data, problem, key, watch, checkpoint, runs)
                if logger.isEnabledFor(logging.INFO):
                    logger.info(_ending(run, certificate_text(measured["certificate"])))
        if labels is not None:
            measured = {**measured, "final_assignment": "labeled"}
        record = FitRecord(run.history, run.end == em.End.CONVERGED, measured)
        adopt(self, self._solution(run, plan.n_kept, record))
        warn_if_poor(measured["certificate"], measured["neighbors"])
        self._warn_of(run)
        if checkpoint is not None:
            checkpoint.end(self.save)
        return self

    def _view(self, run: em.Run, n_active: int) -> Self:
        """Return a copy of the estimator for callbacks, fitted as if the fit had ended in its present state `run`."""
        view = unfitted_copy(self)
        record = FitRecord(run.history, run.end == em.End.CONVERGED)
        adopt(view, self._solution(replace(run, model=run.standing), n_active, record))
        return view

    def bounds(self, X: Any, sample_weight: Any = None) -> Bounds:
        """Compute free energy F, log-likelihood L, L − F and the entropy of the posteriors for the fitted parameters.

        For a Bayesian mixture F is the evidence lower bound of these data, and L is that bound for C′ = C.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a source
            Data, in the units of the training data.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the points; None is 1 for each.

        Returns
        -------
        bounds : Bounds
            The four values per unit of weight, in nats. Two passes compare all N points with all C components, so
            2·N·C densities are evaluated.

        References
        ----------
        Lücke & Forster, *k-means as a variational EM approximation of Gaussian mixture models*, eq. (3), (7), (16).
        """
        with computing(self.n_threads):
            data = self._opened(X, sample_weight)
            model = self._model_of(data)
            stage = em.EM(em.MixtureSettings(1, 0.0, self.n_active_))
            components = model.components()
            look = Full().look(None, components, _ANY)
            tally = data.each(stage.propose(model, components, look, _ANY)).tally
            total, weight = data.each(em.LogLikelihood(model))
            free_energy, log_likelihood = em.free_energy(model, tally), (total + model.log_prior) / weight
            entropy = tally.entropy / tally.weight
            gap = float(log_likelihood - free_energy)
        return Bounds(float(free_energy), float(log_likelihood), gap, float(entropy))


def _ending(run: em.Run, text: str | None) -> str:
    """Return the last line of a fit's log.    text: measured quality of the search, or None"""
    ended = "ended at max_iter" if run.end == em.End.MAX_ITER else run.end
    return f"{ended} after {len(run.rows)} iterations: {em.reached(run.bound, run.error)}{f'; {text}' if text else ''}"
