"""One case of the Python interface: a result with the required properties, or an error that names an argument."""

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import cprime
from cprime import Factors
from cprime.search import Graph, Papers
from reliability import data, laws, oracles
from reliability.derived import Derived
from reliability.expected import refusals, working_type
from reliability.properties import Fitted, Wrong, check_fit, same_bits
from reliability.space import OPENS_SOURCES, Case

NAMED = (ValueError, TypeError)  # types of errors that count as refusals


def run(case: Case, folder: Path) -> str:
    """Run a case; return "fitted" or "refused". Raise Wrong or any other error if the case fails.

    folder: for files, whose content is replaced
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)  # arrays after tables
        return _Trial(case, folder).run()


class _Trial(Derived):
    def __init__(self, case: Case, folder: Path):
        self.case, self.folder = case, folder
        self.X = data.values(case.points)
        layout = case.points.layout
        self.layout = "C" if layout in ("source", "path", "chunks") and case.estimator not in OPENS_SOURCES else layout
        self.w = data.weights(case.weights, len(self.X), case.points.seed)
        self.log: list[str] = []
        self.allowed = refusals(case, self.X, self.w, self.layout)

    def run(self) -> str:
        try:
            given = data.laid_out(self.X, self.layout, self.folder)
        except NAMED as error:  # sources check types when opened
            return self._judged(error)
        before = _copied(given), deepcopy(self.w)
        try:
            if self.case.estimator == "lightweight":
                self._coreset(given)
            else:
                with _listening(self.log):
                    estimator = self._estimator().fit(given, sample_weight=self.w)
        except NAMED as error:
            return self._judged(error)
        finally:
            if not (_same_input(before[0], given) and _same_input(before[1], self.w)):
                raise Wrong("an input array was changed")
        missed = [refusal.pattern for refusal in self.allowed if refusal.must]
        if missed:
            raise Wrong(f"accepted, where an error was expected that says {missed}")
        if self.case.estimator != "lightweight":
            self._examine(estimator, given)
        return "fitted"

    def _judged(self, error: Exception) -> str:
        """Return "refused" if the error is allowed; raise it otherwise."""
        message = str(error)
        if not any(re.search(refusal.pattern, message) for refusal in self.allowed):
            raise error
        return "refused"

    def _estimator(self, unit: float = 1.0, **changes: Any) -> Any:
        """Return the estimator of the case; unit: factor of the data and of arguments in data units."""
        params = dict(self.case.params) | changes
        for argument, value in params.items():
            if isinstance(value, dict):
                ((name, options),) = value.items()
                params[argument] = {"Graph": Graph, "Papers": Papers, "Factors": Factors}[name](**options)
        C = params.get("n_clusters", params.get("n_components", 1))
        for name in ("init", "init_params", "means_init"):
            if name in params:
                params[name] = data.start(params[name], self.X, C, self.case.points.seed)
                if unit != 1 and isinstance(params[name], np.ndarray):
                    params[name] = params[name] * params[name].dtype.type(unit)
        if unit != 1 and "reg_covar" in params:
            params["reg_covar"] *= unit**2
        if unit != 1 and isinstance(params.get("stiffness"), float):
            params["stiffness"] /= unit**2
        return getattr(cprime, self.case.estimator)(**params)

    def _coreset(self, given: Any) -> None:
        params = self.case.params
        found = cprime.coresets.lightweight(given, sample_weight=self.w, **params)
        if not (found.indices >= 0).all() or not (found.indices < len(self.X)).all():
            raise Wrong("an index of the coreset is out of range")
        if len(found.indices) != params["m"] or not (np.isfinite(found.weights) & (found.weights > 0)).all():
            raise Wrong(f"weights of the coreset are {found.weights}")
        if self.w is not None and not np.asarray(self.w)[found.indices].all():
            raise Wrong("a point without weight was drawn")
        if not np.array_equal(found.points, self.X[found.indices].astype(found.points.dtype)):
            raise Wrong("points of the coreset are not rows of X")

    def _examine(self, estimator: Any, given: Any) -> None:
        dtype = working_type(self.X, self.layout)
        with np.errstate(over="ignore"):
            X = self.X.astype(dtype)
        w = None if self.w is None else np.asarray(self.w, dtype=np.float64)
        fitted = Fitted(self.case, estimator, X, w, any("repaired" in message for message in self.log))
        check_fit(fitted)
        for act in self.case.acts:
            getattr(self, f"_act_{act.replace(' ', '_')}")(estimator, given, X)

    def _act_threads(self, estimator: Any, given: Any, X: NDArray) -> None:
        for n_threads in (1, 3, 8):
            other = self._estimator(n_threads=n_threads).fit(given, sample_weight=self.w)
            same_bits(estimator, other, f"with n_threads={n_threads}")

    def _act_repeat(self, estimator: Any, given: Any, X: NDArray) -> None:
        other = self._estimator()
        for _ in range(2):
            same_bits(estimator, other.fit(given, sample_weight=self.w), "of another fit")

    def _act_predict(self, estimator: Any, given: Any, X: NDArray) -> None:
        """Check that predictions of single rows and of all rows, in the layout of the fit, are equal."""
        labels = estimator.predict(given)
        if labels.dtype != np.int32 or labels.shape != (len(X),):
            raise Wrong(f"predict gives {labels.dtype} of shape {labels.shape}")
        some = np.unique([0, len(X) // 2, len(X) - 1])
        alone = estimator.predict(X[some])
        if not np.array_equal(alone, labels[some]) and not self._tied(estimator, X[some], alone, labels[some]):
            raise Wrong("predict of some rows differs from that of all")
        score = estimator.score(given, sample_weight=self.w)
        if not np.isfinite(score):
            raise Wrong(f"score is {score}")
        if hasattr(estimator, "transform"):
            distances = estimator.transform(given)
            if distances.shape != (len(X), len(estimator.cluster_centers_)) or distances.dtype != X.dtype:
                raise Wrong(f"transform gives {distances.dtype} of shape {distances.shape}")
            if not (np.isfinite(distances) & (distances >= 0)).all():
                raise Wrong("transform gives distances that are not finite, or negative")
        if self.case.estimator == "KMeans":
            near = estimator.predict(given, approximate=True)
            if near.dtype != np.int32 or near.min() < 0 or near.max() >= estimator.n_clusters:
                raise Wrong("approximate labels are out of range")

    def _tied(self, estimator: Any, rows: NDArray, one: NDArray, other: NDArray) -> bool:
        """Return whether labels differ by rounding only.

        This can happen if other rows have missing values: then each component uses a copy of the shared covariance.
        """
        if self.case.params.get("missing") != "marginal" or "tied" not in estimator.covariance_type_:
            return False
        logs, errors = oracles.log_densities(estimator, rows.astype(np.float64), rows.dtype)
        i = np.arange(len(rows))
        return bool((np.abs(logs[i, one] - logs[i, other]) <= errors[i, one] + errors[i, other]).all())

    def _act_odd_predict(self, estimator: Any, given: Any, X: NDArray) -> None:
        """Check that values that are not finite and rows of another width are refused with a clear error."""
        bad = X.copy()
        bad[-1, -1] = np.inf if "missing" in self.case.params else np.nan
        for rows, pattern in (
            (bad, "NaN|finite|infinity"),
            (np.hstack([X, X]), "features"),
            (X[0], "1D|2D|two"),
            (X[:0], "0 sample"),
        ):
            try:
                estimator.predict(rows)
            except NAMED as error:
                if not re.search(pattern, str(error)):
                    raise
            else:
                raise Wrong(f"predict accepts rows of shape {rows.shape}, where an error was expected: {pattern}")

    def _act_save(self, estimator: Any, given: Any, X: NDArray) -> None:
        if "@function" in self.case.params.values():
            return
        path = self.folder / "model.safetensors"
        estimator.save(path)
        loaded = cprime.load(path)
        same_bits(estimator, loaded, "after save and load")
        if not np.array_equal(loaded.predict(X), estimator.predict(X)):
            raise Wrong("a loaded model predicts otherwise")

    def _act_copy(self, estimator: Any, given: Any, X: NDArray) -> None:
        same_bits(estimator, deepcopy(estimator), "of a copy")
        same_bits(estimator, clone(estimator).fit(given, sample_weight=self.w), "of a clone's fit")

    def _act_widened(self, estimator: Any, given: Any, X: NDArray) -> None:
        """Check that rows of a narrow type have the fit of their copy in the type of computation."""
        other = self._laid_out(self.X.astype(X.dtype), self.layout)
        same_bits(estimator, self._estimator().fit(other, sample_weight=self.w), f"of rows as {X.dtype}")

    def _act_bounds(self, estimator: Any, given: Any, X: NDArray) -> None:
        if not hasattr(estimator, "bounds"):
            return
        found = estimator.bounds(given, sample_weight=self.w)
        if not np.isfinite(found).all():
            raise Wrong(f"bounds are {found}")
        slack = self._slack(estimator, X) * (X.shape[1] + abs(found.free_energy) + abs(found.log_likelihood))
        if found.kl_gap < -slack or found.entropy < -slack:
            raise Wrong(f"bounds are {found}, slack {slack}")

    def _slack(self, estimator: Any, X: NDArray) -> float:
        """Return the share of bounds that rounding may change.

        It grows with distances between rows or components, in units of the least standard deviation in any direction.
        """
        info, rows = np.finfo(X.dtype), X.astype(np.float64)
        places = np.vstack([rows, estimator.means_]) if hasattr(estimator, "means_") else rows
        with np.errstate(all="ignore"):
            if hasattr(estimator, "variance_"):
                sigma = float(np.sqrt(np.min(estimator.variance_)))
            else:
                sigma = 1 / float(np.linalg.norm(oracles.factors(estimator), 2, axis=(1, 2)).max())
            far = float((np.nanmax(places, axis=0) - np.nanmin(places, axis=0)).max() / sigma)
        return 64 * float(info.eps) * (1 + (far if np.isfinite(far) else np.inf)) * X.shape[1]

    def _act_batches(self, estimator: Any, given: Any, X: NDArray) -> None:
        """Check partial_fit with all rows and then with each third of them."""
        if not hasattr(estimator, "partial_fit") or self.layout in ("source", "path", "chunks"):
            return
        online = self._estimator()
        online.partial_fit(given, sample_weight=self.w)
        w = None if self.w is None else np.asarray(self.w, dtype=np.float64)
        for rows in np.array_split(np.arange(len(X)), 3):
            if len(rows) and (w is None or w[rows].any()):
                online.partial_fit(X[rows], sample_weight=None if w is None else w[rows])
        values = online.cluster_centers_ if hasattr(online, "cluster_centers_") else online.means_
        if not np.isfinite(values).all() or not np.isfinite(online.lower_bound_):
            raise Wrong("partial_fit ends in what is not finite")

    def _act_weights_as_repeats(self, estimator: Any, given: Any, X: NDArray) -> None:
        """Check that a score with weights 2 equals that of every row twice."""
        once = estimator.score(X, sample_weight=np.full(len(X), 2.0))
        twice = estimator.score(np.repeat(X, 2, axis=0))
        if not np.isclose(once, twice, rtol=1e-4, atol=1e-30):
            raise Wrong(f"score is {once} with weights 2 and {twice} of rows twice")

    def _act_weight_zero(self, estimator: Any, given: Any, X: NDArray) -> None:
        """Check the law of weight zero, unless fewer rows than components have positive weight."""
        C = self.case.params.get("n_clusters", self.case.params.get("n_components", 1))
        if self.w is not None and np.count_nonzero(self.w) < C:
            return
        seed = self.case.points.seed
        where, more = laws.PLACES[seed % len(laws.PLACES)], (1, len(X) // 3 + 1, len(X), 3 * len(X))[seed // 3 % 4]
        w = np.ones(len(X)) if self.w is None else self.w
        rows = None
        if self.layout in ("chunks", "source"):
            cut = data.chunk_rows(len(X))
            both, weights, at = laws.with_others_in_chunks(self.X, cut, where, w, more, seed)
            rows = cut + more
        else:
            both, weights, at = laws.with_others(self.X, where, w, more, seed)
        alone = estimator if self.w is not None else self._estimator().fit(given, sample_weight=w)
        among = self._estimator().fit(self._laid_out(both, self.layout, rows), sample_weight=weights)
        laws.check_weight_zero(alone, among, at)

    def _act_units(self, estimator: Any, given: Any, X: NDArray) -> None:
        """Check the law of units with a power of two, unless all rows are zero."""
        if not np.nan_to_num(self.X).any():
            return
        unit = 2.0 ** (-35, -20, -7, -1, 1, 7, 20, 35)[self.case.points.seed % 8]
        rows = self._laid_out(self.X * self.X.dtype.type(unit), self.layout)
        laws.check_units(estimator, self._estimator(unit).fit(rows, sample_weight=self.w), unit)

    def _act_chunks(self, estimator: Any, given: Any, X: NDArray) -> None:
        """Check that the same chunks from a file instead of an array, or the reverse, give the same fit."""
        there = {"C": "path", "path": "C", "chunks": "source", "source": "chunks"}[self.layout]
        other = self._laid_out(self.X, there)
        same_bits(estimator, self._estimator().fit(other, sample_weight=self.w), f"of the same chunks, {there}")
        if not np.array_equal(estimator.predict(other), estimator.predict(given)):
            raise Wrong(f"labels of the same chunks differ, {there}")

    def _act_rows_alone(self, estimator: Any, given: Any, X: NDArray) -> None:
        """Check that predictions of few or many rows alone equal those within all rows."""
        rng = np.random.default_rng(self.case.points.seed)
        for size in {1, 2, 7, len(X) // 3, len(X) - 1}:
            if 0 < size <= len(X):
                laws.check_rows(estimator, X, rng.permutation(len(X))[:size])

    def _laid_out(self, X: NDArray, layout: str, rows: int | None = None) -> Any:
        """Return other data in the given layout, in a folder apart from the case's own data."""
        folder = self.folder / "other"
        folder.mkdir(exist_ok=True)
        return data.laid_out(X, layout, folder, rows)


@contextmanager
def _listening(messages: list[str]) -> Iterator[None]:
    """Append the library's log messages to a list during the context."""
    logger, handler = logging.getLogger("cprime"), logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


def _copied(given: Any) -> Any:
    if isinstance(given, np.ndarray):
        return np.array(given)
    return deepcopy(given) if isinstance(given, list) or hasattr(given, "iloc") else None


def _same_input(before: Any, now: Any) -> bool:
    if before is None:
        return True
    a, b = np.asarray(before), np.asarray(now)
    if a.dtype == object:  # NaN is identical to itself, but not equal
        return b.dtype == object and all(x is y or x == y for x, y in zip(a.flat, b.flat, strict=True))
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()
