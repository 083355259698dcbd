"""`plan` and its result `Plan`: the predicted bytes, passes and seconds of a fit, and suggestions that reduce them."""

import sys
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from cprime._utils.messages import shown_bytes
from cprime._utils.number_types import MOST_COLUMNS
from cprime._utils.random import Key, check_random_state
from cprime.em import Problem
from cprime.estimators.budget import changed, lying_within, remedies
from cprime.estimators.memory import PlannedRows, needed
from cprime.estimators.memory_limit import as_memory
from cprime.estimators.planning.probe import CostEstimate, foreseen
from cprime.estimators.problems import options_of
from cprime.estimators.validation import check_choice, check_enough
from cprime.execution import Data
from cprime.seeding.methods import name_of

_PARTS = {
    "rows": "rows: chunks that are read, copies",
    "kept": "active sets of the points",
    "parameters": "parameters of the components",
    "sums": "sums over the points",
    "lists": "lists of neighbors",
    "labels": "labels",
    "temporary": "temporary, in a pass or at the start",
}
_DTYPES = ("float32", "float64", "float16", "uint8", "int8")
_FEW_ITERATIONS = 10
_MANY_COMPONENTS = 128  # Least number of components for which a search by neighbor lists is suggested to save time.


@dataclass(frozen=True)
class Plan:
    """Predicted memory and time of a fit: the result of `plan`.

    Attributes
    ----------
    n_samples, n_features, n_components : int
    dtype : str
        The data type of the computation.
    chunk_rows : int
        Number of rows in the largest chunk; chunks are processed one at a time.
    bytes : dict
        Peak number of bytes by use: "rows" (chunks read from files, and copies of rows; neither the files nor existing
        arrays count), "kept" (active sets of the points, stored from one pass to the next), "parameters" of the
        components, "sums" (sufficient statistics), "lists" (neighbor lists of the components), "labels", and
        "temporary" (arrays that exist during a pass or the initialization only).
    passes : int
        Number of passes over all of X, for all starts together.
    iterations : int
        Number of iterations of one start.
    seconds : float
        Duration of the whole fit with all its starts (initializations), on this machine under its present load.
    suggestions : tuple of str
        Changes of arguments that reduce the memory of the fit, those with the least drawback first, followed by changes
        that reduce its time.

    Examples
    --------
    >>> import cprime
    >>> from cprime import KMeans
    >>> plan = cprime.plan(KMeans(10), (1000, 2))
    >>> plan.peak_bytes == sum(plan.bytes.values())
    True
    """

    n_samples: int
    n_features: int
    n_components: int
    dtype: str
    chunk_rows: int
    bytes: dict[str, int] = field(hash=False)
    passes: int
    iterations: int
    seconds: float
    suggestions: tuple[str, ...]

    @property
    def peak_bytes(self) -> int:
        """Return the sum of `bytes`: the peak memory that the fit adds to the process, without memory-mapped files."""
        return sum(self.bytes.values())

    def as_dict(self) -> dict[str, Any]:
        """Return a dictionary of all attributes, including `peak_bytes`, with values that JSON can represent."""
        return {**asdict(self), "peak_bytes": self.peak_bytes, "suggestions": list(self.suggestions)}

    def __repr__(self) -> str:
        table = [
            *((_PARTS[name], shown_bytes(n)) for name, n in self.bytes.items() if n),
            ("peak, beyond what the process holds", shown_bytes(self.peak_bytes)),
            ("passes over the data", f"{self.passes:,}"),
            ("about", _shown_seconds(self.seconds)),
        ]
        lines = [
            f"{self.n_samples:,} rows of {self.n_features:,} features, {self.dtype}; {self.n_components:,} components",
            *(f"  {label:<38}{value:>12}" for label, value in table),
            *(f"for less: {text}" for text in self.suggestions),
        ]
        return "\n".join(lines)


def plan(estimator: Any, X: Any, *, dtype: str = "float32") -> Plan:
    """Predict the memory and the time that a fit will take, without fitting.

    Bytes are computed from formulas, without reading data. Seconds are extrapolated from small fits of the same
    estimator, which run for two seconds at most, on some of the rows, or on random ones if only a shape is given.
    Expect bytes within a factor of 1.5, and seconds within a factor of 3 if the load of the machine stays the same.
    Larger errors are possible: the number of iterations depends on the data, and the speed of the disk limits a fit of
    a file that is larger than the system's memory.

    Parameters
    ----------
    estimator : KMeans, GaussianMixture or StudentTMixture
        Estimator of the fit; it is not changed. If its `max_memory` is set, the plan is for chunks that fit into this
        limit, or for the smallest chunks if no size does.
    X : array-like, sparse array, source, path, Dask collection or tuple (n_samples, n_features)
        The data, or their shape. A shape is that of an array not yet in memory, so its bytes are counted.
    dtype : {"float32", "float64", "float16", "uint8", "int8"}, default="float32"
        The data type if X is a shape; ignored if X is data. Narrow types are not converted as a whole.

    Returns
    -------
    plan : Plan
        Its repr is a table.

    Raises
    ------
    ValueError
        If an argument of the estimator is out of its range, or there are fewer rows than components.
    TypeError
        If the estimator is of another class.

    Examples
    --------
    >>> import cprime
    >>> from cprime import KMeans
    >>> plan = cprime.plan(KMeans(100, random_state=0), (20_000, 8))
    >>> plan.bytes["labels"]
    80000
    """
    from cprime.estimators import GaussianMixture, KMeans, StudentTMixture

    if not isinstance(estimator, KMeans | GaussianMixture | StudentTMixture):
        raise TypeError(
            f"estimator must be a KMeans, a GaussianMixture or a StudentTMixture, got {type(estimator).__name__}."
        )
    estimator = changed(estimator)
    estimator._check_arguments()
    check_random_state(estimator.random_state)
    rows = _rows(estimator, X, dtype)
    options, N = options_of(estimator), rows.data.n_points
    check_enough(estimator, N)
    _check_start(options.problem(rows.data), rows.data)
    if (limit := as_memory(estimator.max_memory).n_bytes) is not None:
        rows = lying_within(estimator, rows, limit)
    course = foreseen(estimator, rows)
    parts = needed(estimator, rows)
    texts = [text for text, _ in remedies(estimator, rows)] if sum(parts.values()) >= 2**26 else []
    return Plan(
        N,
        rows.data.n_features,
        options.n_components,
        rows.data.dtype.name,
        max(rows.data.sizes),
        parts,
        course.passes * estimator.n_init,
        course.iterations,
        course.seconds,
        (*texts, *_faster(estimator, rows, course)),
    )


def _check_start(problem: Problem, data: Data) -> None:
    """Raise the error of a fit if the initialization is invalid; labels and functions are left to the fit.

    Labels or responsibilities of the points would need a pass over the data.
    """
    init = problem.init
    if name_of(init) is None and not callable(init) and np.shape(init)[:1] != (data.n_points,):
        problem.centers(data, Key(0))


def _rows(estimator: Any, X: Any, dtype: str) -> PlannedRows:
    """Return `PlannedRows`, a description (shape, dtype, chunks) of the data X.

    If X is a shape (n_samples, n_features), the description is that of an array of this shape. Raises ValueError if the
    shape is invalid.
    """
    if not (isinstance(X, tuple) and all(isinstance(n, int) and not isinstance(n, bool) for n in X)):
        return PlannedRows.from_data(estimator, X)
    if len(X) != 2 or min(X) < 1:
        raise ValueError(f"X must be data or a shape (n_samples, n_features) of numbers from 1 on, got {X!r}.")
    if X[1] > MOST_COLUMNS:
        raise ValueError(f"X must have at most {MOST_COLUMNS} columns, got the shape {X!r}.")
    if X[0] * X[1] > sys.maxsize // 8:  # A larger array of float64 (8 bytes per number) cannot exist.
        raise ValueError(f"X must be the shape of an array that can exist, got {X!r}.")
    check_choice(dtype, "dtype", _DTYPES)
    return PlannedRows.of_shape((X[0], X[1]), dtype)


def _faster(estimator: Any, rows: PlannedRows, course: CostEstimate) -> list[str]:
    """Return suggestions, as lines of text, that make a fit faster; an empty list if the fit takes less than a second.

    rows: description of the data    course: predicted cost of the fit
    """
    options = options_of(estimator)
    plan, C = options.plan(rows.data), options.n_components
    found: list[str] = []
    if course.seconds < 1:
        return found
    if plan.n_kept == C > _MANY_COMPONENTS:
        found.append('n_active=5 with search="graph": a point is compared with lists of neighbors, not with all')
    elif plan.search.exact and C >= _MANY_COMPONENTS:
        found.append('search="graph": a point is compared with a list of neighbors, not with all')
    if estimator.n_init > 1:
        found.append(f"n_init=1 (then {_shown_seconds(course.seconds / estimator.n_init)})")
    if course.iterations > 2 * _FEW_ITERATIONS:
        share = _FEW_ITERATIONS / course.iterations
        found.append(f"max_iter={_FEW_ITERATIONS} (then {_shown_seconds(course.seconds * share)})")
    if course.final > 0.2 * course.seconds:
        found.append(
            f'the option final_assignment="found" of the search (then {_shown_seconds(course.seconds - course.final)})'
        )
    if getattr(getattr(options, "family", None), "full", False) and rows.data.n_features > 8:
        found.append('covariance_type="diag": D products a cost, not D²')
    return found


def _shown_seconds(seconds: float) -> str:
    """Return a duration as text, in hours from two hours on, in minutes from two minutes on, otherwise in seconds."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s"
