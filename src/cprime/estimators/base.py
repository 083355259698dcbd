"""Base class of estimators with an EM fit: it opens data, fits from several starts, and computes likelihood bounds."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime import __version__, em
from cprime._utils.random import Key, Purpose, seed_of
from cprime._utils.values import replace
from cprime.estimators.copied_callbacks import CopiedCallbacks
from cprime.estimators.gaps import filled_by_means
from cprime.estimators.opening import opened
from cprime.estimators.quality import Bounds, certificate_text, remarks, warn_if_poor
from cprime.estimators.stored import SavableEstimator
from cprime.estimators.validation import check_spill, resolve_init, unused_arguments
from cprime.estimators.watching import Watch, unfitted_copy
from cprime.execution import Data
from cprime.kernels import ReadGaps, computing, instruction_set
from cprime.model import Model
from cprime.persistence import checkpoint_files, checkpoints
from cprime.persistence.checkpoints import Checkpoint, Runs
from cprime.search import Full, Search
from cprime.search.certificate import certify
from cprime.seeding import is_given, place
from cprime.seeding.jumps import improved_by_jumps
from cprime.seeding.methods import name_of

logger = logging.getLogger("cprime")

Labels = NDArray[np.int32] | None  # known components of the points (N,), −1 if unknown
# Function that returns the starting parameters. Arguments: data, starting centers (C, D), whether the search is exact.
FirstModel = Callable[[Data, NDArray, bool], Model]
SPILLED = 2**30  # active sets and costs of at least so many bytes are stored in the checkpoint's folder
_ANY = Key(0)  # random key, for calls that need one as an argument but draw no random numbers


@dataclass(frozen=True)
class Saver:
    """Callback of the EM loop that saves the state of the fit to a checkpoint after each pass over the data."""

    checkpoint: Checkpoint
    run: int
    runs: Runs

    def __call__(self, run: em.Run) -> None:
        self.checkpoint.save(replace(self.runs, run=self.run, fit=run))


def _is_better(fit: em.Run, best: em.Run | None) -> bool:
    """Return whether a run is better than the best one so far.

    A run in which components have collapsed onto a few points is never better than one without such components, because
    its likelihood grows without bound.
    """
    n_collapsed = fit.model.n_collapsed
    if n_collapsed:
        logger.info("start %d: %d component(s) collapsed onto a few points", fit.key.run + 1, n_collapsed)
    if best is None:
        return True
    if bool(n_collapsed) != bool(best.model.n_collapsed):
        return not n_collapsed
    return bool(fit.bound > best.bound)


@contextmanager
def _flush_on_error(checkpoint: Checkpoint | None) -> Iterator[None]:
    """Wait, if the fit fails inside this context, until its data are completely written to the checkpoint's folder."""
    try:
        yield
    except BaseException:
        if checkpoint is not None:
            checkpoint.wait()
        raise


def stored_param(value: Any) -> Any:
    """Return a constructor parameter in a form that a checkpoint can store.

    Initial centers become arrays, random generators become None, and functions and other objects become their names in
    angle brackets.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | bool | int | float | None) or hasattr(value, "with_params"):
        return value
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None
    if is_given(value):
        return np.asarray(getattr(value, "cluster_centers_", getattr(value, "means_", value)))
    return f"<{getattr(value, '__qualname__', type(value).__qualname__)}>"


class Clusterer(CopiedCallbacks, SavableEstimator):
    """Base of estimators with an EM fit. A subclass defines the model, the options, and C′, the size of active sets."""

    n_init: int
    max_iter: int
    search: str | Search
    n_threads: int | None
    random_state: Any
    verbose: int
    certificate: int
    final_assignment: str
    final_assignment_: str
    checkpoint: str | None
    spill: Any
    max_memory: Any
    callbacks: Any
    _copies = True  # whether `max_memory` allows copies of rows
    feature_names_in_: NDArray

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name. `search__NAME` or `init__NAME` sets an option of that object, on a copy of it."""
        nested: dict[str, dict[str, Any]] = {}
        for name in [name for name in params if "__" in name]:
            outer, _, inner = name.partition("__")
            value = params.get(outer, getattr(self, outer, None))
            if outer == "search" or hasattr(value, "with_params") or (outer[:4] == "init" and isinstance(value, str)):
                nested.setdefault(outer, {})[inner] = params.pop(name)
        super().set_params(**params)
        for outer, options in nested.items():
            value = getattr(self, outer)
            if isinstance(value, str):
                raise ValueError(f"{outer}={value!r} has no parameters {list(options)}: give an object first.")
            setattr(self, outer, value.with_params(**options))
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the constructor call; for a fitted estimator also remarks on its search, as comment lines."""
        return "\n".join([super().__repr__(N_CHAR_MAX), *(f"# {line}" for line in remarks(self))])

    def _parameters(self) -> Model:
        raise NotImplementedError

    def _model_of(self, data: Data, *more: Any) -> Model:
        """Return the fitted model; if `data` may have missing values, in a form for these. more: see `_parameters`"""
        model = self._parameters(*more)
        return model.with_gaps() if data.gaps else model

    def _mean(self) -> NDArray[np.float64]:
        """Return the mean of the fitted model, by which missing values are replaced: (D,)."""
        with computing(self.n_threads):
            model = self._parameters()
            return np.average(model.centers, axis=0, weights=model.weights)

    def _n_active(self) -> int:
        raise NotImplementedError

    def _dtype(self) -> np.dtype:
        """Return the data type of the fitted parameters."""
        return self._parameters().centers.dtype

    def _n_components(self) -> int:
        raise NotImplementedError

    def _opened(self, X: Any, sample_weight: Any = None, reset: bool = False) -> Data:
        """Return X as `Data`. reset: whether X is training data, which must have at least one point per component."""
        data = opened(self, X, sample_weight, None if reset else self._dtype)
        if data.gaps and reset:
            data = filled_by_means(data, getattr(self, "feature_names_in_", None))
        elif data.gaps:
            data = data.read_by(ReadGaps(self._mean()), gaps=True)
        if reset and data.n_points < self._n_components():
            name = "n_clusters" if hasattr(self, "n_clusters") else "n_components"
            raise ValueError(f"n_samples={data.n_points} should be >= {name}={self._n_components()}.")
        return data

    def _set_run(self, fit: em.Run, n_kept: int) -> None:
        """Set the fitted attributes from the final state of a run; n_kept: C′, the size of active sets."""
        raise NotImplementedError

    def _standing(self, fit: em.Run, plan: em.FitPlan) -> Self:
        """Return a copy of the estimator with the fitted parameters that the run `fit` would return if it ended now."""
        view = unfitted_copy(self)
        view._set_run(replace(fit, model=fit.standing), plan.n_kept)
        return view

    def _plan(self, data: Data, labels: Labels = None) -> em.FitPlan:
        """Return the options of a fit of these data: search, size C′ of active sets, tolerance and others."""
        raise NotImplementedError

    def _first(self, data: Data, labels: Labels = None) -> tuple[Any, FirstModel]:
        """Return the initialization of the centers, and the function that makes the starting parameters from them."""
        raise NotImplementedError

    def _finish(self, data: Data) -> None:
        """Change fitted attributes at the end of a fit; does nothing here, because only some subclasses need it."""

    def _say_end(self, fit: em.Run) -> None:
        """Issue warnings after the end of a fit, such as that it did not converge; a subclass defines them."""

    def _fit_to(self, data: Data, given: tuple[Any, Any, Any], labels: Labels = None) -> Self:
        """Fit the estimator to checked data. given: X, y, sample_weight of `fit`    labels: known components or None"""
        key = Key(seed_of(self.random_state))
        with computing(self.n_threads):
            plan, (init, first_model) = self._plan(data, labels), self._first(data, labels)
            for line in unused_arguments(self, plan.search, init):
                logger.info(line)
            fit = self._best_run(data, init, first_model, plan, key, given)
            self._set_run(fit, plan.n_kept)
            self.__dict__.pop("origin_", None)  # attribute of an earlier `update`
            self._finish(data)
        self._say_end(fit)
        self._end_checkpoint()
        return self

    def _best_run(
        self,
        data: Data,
        init: Any,
        first_model: FirstModel,
        plan: em.FitPlan,
        key: Key,
        given: tuple[Any, Any, Any],
    ) -> em.Run:
        """Run the fit from `n_init` starts, and return the final state of the run with the greatest F (least J).

        Sets the attributes that are computed from the data after this run, such as labels and certificate.
        init: initialization of the centers    first_model: function that returns the starting parameters
        plan: options of the fit    key: seed    given: X, y and sample_weight, for callbacks of scikit-learn
        """
        init = resolve_init(init, self._n_components(), data, plan.jumps, plan.improved)
        with self._spilling(data, plan.n_kept):
            checkpoint, runs = self._checkpoint_of(data, key)
            if checkpoint is not None:
                key = key._replace(seed=checkpoint.description["seed"])
            n_runs = 1 if is_given(init) else self.n_init
            watch = Watch(self, given, lambda fit: self._standing(fit, plan))
            if watch.listened:
                plan = replace(plan, callback=lambda row, fit: watch(row, fit, fit.end is not None))
            with watch.fit(n_runs, self.max_iter + plan.search.warmup), _flush_on_error(checkpoint):
                for run in range(runs.run, n_runs):
                    save = None if checkpoint is None else Saver(checkpoint, run, runs)
                    with watch.start(run + 1):
                        if runs.fit is not None:
                            fit = em.proceed(data, runs.fit, plan, save)
                        else:
                            key = key._replace(run=run)
                            start = partial(self._initial_model, data, init, first_model, plan, key)
                            fit = em.run(data, start, plan, key, save)
                        fit, found = self._finalize(data, fit, plan)
                    if n_runs == 1 or _is_better(fit, runs.best):
                        runs = Runs(run + 1, None, fit, found)
                    else:
                        runs = replace(runs, run=run + 1, fit=None)
                    if watch.asked or fit.end == em.End.STOPPED:
                        break
                assert runs.best is not None
                assert runs.found is not None
                for name, value in runs.found.items():
                    setattr(self, f"{name}_", value)
                self._checkpoint = checkpoint
                self._log_end(runs.best)
        warn_if_poor(self)
        return runs.best

    def _initial_model(self, data: Data, init: Any, first_model: FirstModel, plan: em.FitPlan, key: Key) -> Any:
        """Return the starting parameters of a run; if `plan` requests it, starting centers are improved by jumps."""
        centers = self._centers(data, init, key)
        if plan.improved and name_of(init) != "jumps":
            centers = improved_by_jumps(data, centers, key)
        return first_model(data, centers, plan.search.exact)

    def _log_end(self, fit: em.Run) -> None:
        """Log the last line of a fit: the reason of its end, the number of iterations, and the result."""
        ended = "ended at max_iter" if fit.end == em.End.MAX_ITER else fit.end
        text = certificate_text(self)
        logger.info(
            "%s after %d iterations: %s%s",
            ended,
            len(fit.rows),
            em.reached(fit.bound, fit.error),
            "" if text is None else f"; {text}",
        )

    def _spilling(self, data: Data, n_kept: int) -> AbstractContextManager[None]:
        """Return a context in which active sets of size n_kept are stored in files, or a context without effect.

        Active sets are stored in files if `spill` is set, or if there is a checkpoint and they are large.
        """
        folder = check_spill(self.spill)
        if folder is None and self.checkpoint is not None and data.spills and len(data.sizes) > 1:
            n_bytes = data.n_points * n_kept * (np.dtype(np.int32).itemsize + data.dtype.itemsize)
            folder = Path(self.checkpoint) if n_bytes >= SPILLED else None
        return nullcontext() if folder is None else data.spilled(folder)

    def _checkpoint_of(self, data: Data, key: Key) -> tuple[Checkpoint | None, Runs]:
        """Return the checkpoint or None, and the state of an interrupted fit in its folder (empty if there is none)."""
        if self.checkpoint is None:
            return None, Runs()
        description = {
            "seed": key.seed,
            "cprime_version": __version__,
            "instruction_set": instruction_set(),
            "estimator": type(self).__name__,
            **{
                f"parameter {name}": stored_param(value)
                for name, value in self.get_params(deep=False).items()
                if name not in ("callbacks", "checkpoint", "n_threads", "spill", "verbose")
            },
            "warm": self._goes_on_from(),
            "features": tuple(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None,
            **data.identity(),
            "chunks": tuple(data.sizes),
            "output": checkpoint_files.output_of(self.checkpoint),
        }
        checkpoint, runs = checkpoints.opened(self.checkpoint, description, data)
        if description["features"] is not None:
            self.feature_names_in_ = np.array(description["features"], dtype=object)
        if runs is None:
            checkpoint.begin(data.without_file())
        else:
            checkpoint.store(data.without_file())
        return checkpoint, runs or Runs()

    def _goes_on_from(self) -> dict[str, Any] | None:
        """Return the fitted attributes from which this fit starts if it continues an earlier one, otherwise None."""
        return None

    def _end_checkpoint(self) -> None:
        """Replace all states in the checkpoint's folder by the model, after the end of the fit."""
        checkpoint = self.__dict__.pop("_checkpoint")
        if checkpoint is not None:
            checkpoint.end(self.save)

    def _centers(self, data: Data, init: Any, key: Key) -> NDArray:
        """Return the starting centers (C, D); some initializations also store a near center of each point in `data`."""
        if name_of(init) is None:  # a function may store the random state that it receives, so it gets a new one
            return place(data, self._n_components(), init, partial(key.random_state, Purpose.START))
        with key.drawing(Purpose.START) as rng:
            return place(data, self._n_components(), init, lambda: rng)

    def _finalize(self, data: Data, fit: em.Run, plan: em.FitPlan) -> tuple[em.Run, dict[str, Any]]:
        """Assign the points for the last time; return the state of the run, and a dictionary of results.

        The dictionary has neighbors (neighbor lists), certificate, labels and final_assignment ("exact" or "found").
        """
        if not data.placed:
            data.each(em.Label(fit.model))
        found = {"neighbors": plan.search.neighbors(fit.search), "certificate": self._certified(data, fit, plan)}
        fit, exact = em.assigned(data, fit, plan)
        return fit, {**found, "labels": self._kept_labels(data), "final_assignment": "exact" if exact else "found"}

    def _certified(self, data: Data, fit: em.Run, plan: em.FitPlan) -> dict[str, Any] | None:
        """Return the certificate, the measured quality of a partial search's active sets; None if search was exact."""
        if plan.search.exact or not self.certificate:
            return None
        m = min(self.certificate, data.n_weighted)
        numbers = fit.key.generator(Purpose.CERTIFICATE).choice(data.n_weighted, m, replace=False)
        points, kept = em.sampler(data, fit.model)(np.sort(numbers))
        kept, scale = fit.stage.certified(fit.model, kept)
        return certify(points, kept, fit.model.components(), scale)

    def _kept_labels(self, data: Data) -> Any:
        """Return the labels (N,): a lazy Dask array for Dask data without a checkpoint, otherwise in memory."""
        labels = data.labels()
        return labels if self.checkpoint is None else np.asarray(labels)

    def bounds(self, X: Any, sample_weight: Any = None) -> Bounds:
        """Compute free energy F, log-likelihood L, L − F and the entropy of the posteriors for the fitted parameters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a source
            Data, in the units of the training data.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the points; None is 1 for each.

        Returns
        -------
        bounds : Bounds
            Per unit of weight, in nats. The computation takes two exact passes over all components, so 2·N·C
            evaluations.

        References
        ----------
        Lücke & Forster, *k-means as a variational EM approximation of Gaussian mixture models*, eq. (3), (7), (16).
        """
        data = self._opened(X, sample_weight)
        with computing(self.n_threads):
            model = self._model_of(data)
            stage = em.EM(em.MixtureSettings(1, 0.0, self._n_active()))
            tally = data.each(stage.propose(model, Full().look(None, model.components(), _ANY), _ANY)).tally
            total, weight = data.each(em.LogLikelihood(model))
            free_energy, log_likelihood = em.free_energy(model, tally), total / weight
            entropy = tally.entropy / tally.weight
            gap = float(log_likelihood - free_energy)
        return Bounds(float(free_energy), float(log_likelihood), gap, float(entropy))
