"""Interface of a compared library (peer): its task, its settings, and its result."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cprime
from cprime.kernels import Dense

Settings = dict[str, Any]
Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Task:
    """Task of every peer.

    X (n, D): rows in their stored type, float32 except where types are compared
    n_clusters: C      start (C, D): initial centers, float32, for peers that accept them      seed, n_threads
    """

    X: NDArray
    n_clusters: int
    start: Floats
    seed: int
    n_threads: int

    @property
    def single(self) -> Floats:
        """Return X as float32, for libraries that compute with nothing narrower; a copy only if needed."""
        return self.X.astype(np.float32, copy=False)


@dataclass(frozen=True)
class Fitted:
    """Result of a peer.

    centers (C, D)      n_iter: iterations done, as the peer counts them; None if it does not report them
    objective: J or the mean log-likelihood that the peer reports, for comparison only; None if it reports none
    weights (C,), covariances (C,), (C, D) or (C, D, D): of a mixture of Gaussians, else None
    extra: more results of the peer for the record
    """

    centers: Floats
    n_iter: int | None = None
    objective: float | None = None
    weights: Floats | None = None
    covariances: Floats | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Peer:
    """One compared implementation.

    name: on the command line and on curves       family: peers of one color; this library's is "cprime"
    distribution: package whose version is printed       statement: import statement of a user
    fit: function that is timed as a whole
    model: "k-means", "mixture" (of spherical Gaussians), "mixture-diag", "mixture-full" or "seeding"; peers of one
    model are compared in one figure
    start: its initialization, in words       note: other remarks for readers
    fixed: returns the settings for exactly n iterations; None if the peer has no such settings
    choices: settings of the time-to-quality curve in addition to those, or in place of them
    apart: whether the parameters of components differ from those of the model's other peers; if so, it has no curve
    unsuitable: returns, for (N, D, C), why running it makes no sense, or None
    """

    name: str
    family: str
    distribution: str
    statement: str
    fit: Callable[..., Fitted]
    model: str
    start: str
    note: str = ""
    fixed: Callable[[int], Settings] | None = None
    choices: tuple[Settings, ...] = ()
    apart: bool = False
    unsuitable: Callable[[int, int, int], str | None] = lambda N, D, C: None

    @property
    def version(self) -> str | None:
        """Return the installed version, None if the library is not installed."""
        if self.distribution == "cprime":
            return cprime.__version__  # version of the sources in use, installed or not
        try:
            return version(self.distribution)
        except PackageNotFoundError:
            return None

    def exactly(self, n: int) -> Settings:
        """Return the settings for exactly n iterations; raise ValueError if the peer has none."""
        if self.fixed is None:
            raise ValueError(f"{self.name} cannot be told how many iterations to do")
        return self.fixed(n)

    def ladder(self, iterations: tuple[int, ...]) -> list[Settings]:
        """Return the settings of a time-to-quality curve, cheapest first."""
        steps = [] if self.fixed is None else [self.fixed(n) for n in iterations]
        return [*steps, *self.choices]


def shown(settings: Settings) -> str:
    """Return settings as text for tables."""
    return ", ".join(f"{name}={value}" for name, value in settings.items()) or "default"


def first_precision(task: Task) -> float:
    """Return 1/σ² of the points about the nearest initial centers: the start of mixtures (Lücke & Forster, eq. 14)."""
    squares = Dense(task.X).nearest(task.start, n_threads=task.n_threads)[1]
    return task.X.size / float(squares.sum(dtype=np.float64))


def precisions(task: Task, covariance_type: str) -> NDArray[np.float64]:
    """Return the same initial precision for every component and direction, in scikit-learn's shapes."""
    C, D = task.start.shape
    shaped = {"spherical": np.ones(C), "diag": np.ones((C, D)), "full": np.tile(np.eye(D), (C, 1, 1))}
    return first_precision(task) * shaped[covariance_type]


GIVEN = "the given rows"
OWN = "rows of its own choice"
