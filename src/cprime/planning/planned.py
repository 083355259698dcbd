"""`plan`: the bytes, passes and seconds of a fit, and what would take less."""

import sys
from dataclasses import asdict, dataclass, field
from typing import Any

from cprime._bytes import shown_bytes
from cprime._range import MOST_COLUMNS
from cprime.estimators.budget import changed, lying_within, remedies, total
from cprime.estimators.memory import Rows, needed
from cprime.estimators.validation import check_common, check_integer, check_mixture
from cprime.planning.probe import Course, foreseen

_PARTS = {
    "rows": "rows: chunks that are read, copies",
    "kept": "what points keep",
    "parameters": "parameters of the components",
    "sums": "sums over the points",
    "lists": "lists of neighbors",
    "labels": "labels",
    "temporary": "temporary, in a pass or at the start",
}
_FEW_ITERATIONS = 10
_MANY_COMPONENTS = 128  # from which on lists of neighbors pay


@dataclass(frozen=True)
class Plan:
    """What a fit will take: the result of `plan`.

    Attributes
    ----------
    n_samples, n_features, n_components : int
    dtype : str
        The type that is computed in.
    chunk_rows : int
        Rows that are computed at a time.
    bytes : dict
        Bytes by part, at the peak: "rows" (chunks that are read and copies; not what is in a file or held already),
        "kept" by the points from one pass to the next, "parameters", "sums", "lists" of neighbors, "labels",
        "temporary".
    passes : int
        Full looks at X, of all starts.
    iterations : int
        Of one start.
    seconds : float
        Of all starts, on this machine as busy as it is now.
    suggestions : tuple of str
        What takes less memory or time, the cheapest first.

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
        """Anonymous memory beyond what the process holds already: the sum of `bytes`."""
        return sum(self.bytes.values())

    def as_dict(self) -> dict[str, Any]:
        """All of it by name, of strings and numbers."""
        return {**asdict(self), "peak_bytes": self.peak_bytes, "suggestions": list(self.suggestions)}

    def __repr__(self) -> str:
        lines = [
            f"{self.n_samples:,} rows of {self.n_features:,} features, {self.dtype}; {self.n_components:,} components",
            *_table([(_PARTS[name], shown_bytes(n)) for name, n in self.bytes.items() if n]),
            *_table(
                [
                    ("peak, beyond what the process holds", shown_bytes(self.peak_bytes)),
                    ("looks at all rows", f"{self.passes:,}"),
                    ("about", _shown_seconds(self.seconds)),
                ]
            ),
            *(f"for less: {text}" for text in self.suggestions),
        ]
        return "\n".join(lines)


def plan(estimator: Any, X: Any, *, dtype: str = "float32") -> Plan:
    """Say what a fit will take of memory and time, without fitting.

    Bytes follow from formulas and read nothing. Seconds follow from small fits of the same estimator to some of the
    rows, or to invented ones where there are none, for two seconds at most. Expect bytes within a factor of 1.5 and
    seconds within a factor of 2 for a machine that is as busy then; how many iterations a fit takes is up to the data,
    and a file that does not fit into the system's memory takes what its disk takes.

    Parameters
    ----------
    estimator : KMeans, GaussianMixture or StudentTMixture
        Nothing about it changes. With `max_memory` the plan is that of the chunks which this leads to, or of the
        smallest ones where nothing suffices.
    X : array-like, sparse array, source, path, Dask collection or tuple (n_samples, n_features)
        The data, or their shape: that of an array which is still to come into memory and counts therefore.
    dtype : {"float32", "float64"}, default="float32"
        The type of a shape; data have their own.

    Returns
    -------
    plan : Plan
        Its repr is a table.

    Raises
    ------
    ValueError
        If an argument of the estimator is out of its range, or there are fewer rows than components.
    TypeError
        If the estimator is another one.

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
    if isinstance(estimator, KMeans):
        check_common(estimator)
        check_integer(estimator.n_clusters, "n_clusters", 1)
    else:
        check_mixture(estimator)
    rows = _rows(X, dtype)
    N, C = rows.data.n_points, estimator._n_components()
    if C > N:
        raise ValueError(f"n_samples={N} should be >= the {C} components of the estimator.")
    if estimator.max_memory is not None:
        rows = lying_within(estimator, rows)
    course = foreseen(estimator, rows)
    parts = needed(estimator, rows)
    texts = [text for text, _ in remedies(estimator, rows)] if total(parts) >= 2**26 else []
    return Plan(
        N,
        rows.data.n_features,
        C,
        rows.data.dtype.name,
        max(rows.data.sizes),
        parts,
        course.passes * estimator.n_init,
        course.iterations,
        course.seconds,
        (*texts, *_faster(estimator, rows, course)),
    )


def _rows(X: Any, dtype: str) -> Rows:
    """Of data, or of a shape."""
    if not (isinstance(X, tuple) and all(isinstance(n, int) and not isinstance(n, bool) for n in X)):
        return Rows.of(X)
    if len(X) != 2 or min(X) < 1:
        raise ValueError(f"X must be data or a shape (n_samples, n_features) of numbers from 1 on, got {X!r}.")
    if X[1] > MOST_COLUMNS:
        raise ValueError(f"X must have at most {MOST_COLUMNS} columns, got the shape {X!r}.")
    if X[0] * X[1] > sys.maxsize // 8:  # the largest array of float64
        raise ValueError(f"X must be the shape of an array that can exist, got {X!r}.")
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be one of ['float32', 'float64'], got {dtype!r}.")
    return Rows.of_shape((X[0], X[1]), dtype)


def _faster(estimator: Any, rows: Rows, course: Course) -> list[str]:
    """What takes less time, where it takes any to speak of."""
    plan, C = estimator._plan(rows.data), estimator._n_components()
    found: list[str] = []
    if course.seconds < 1:
        return found
    if plan.n_kept == C > _MANY_COMPONENTS:
        found.append('n_active=5 with search="graph": a point looks at lists of neighbors, not at all components')
    elif plan.search.exact and C >= _MANY_COMPONENTS:
        found.append('search="graph": a point looks at a list of neighbors, not at all components')
    if estimator.n_init > 1:
        found.append(f"n_init=1 (then {_shown_seconds(course.seconds / estimator.n_init)})")
    if course.iterations > 2 * _FEW_ITERATIONS:
        share = _FEW_ITERATIONS / course.iterations
        found.append(f"max_iter={_FEW_ITERATIONS} (then {_shown_seconds(course.seconds * share)})")
    if course.final > 0.2 * course.seconds:
        found.append(f'final_assignment="found" (then {_shown_seconds(course.seconds - course.final)})')
    if getattr(estimator, "covariance_type", "diag") == "full" and rows.data.n_features > 8:
        found.append('covariance_type="diag": D products a cost, not D²')
    return found


def _table(rows: list[tuple[str, str]]) -> list[str]:
    """Lines of labels and values, these to the right."""
    return [f"  {label:<38}{value:>12}" for label, value in rows]


def _shown_seconds(seconds: float) -> str:
    """In the largest unit of which there are two."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s"
