"""What a competitor is: how it is called, on which budgets, and what it hands back."""

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
    """What every peer is given.

    X (n, D): rows as they are stored, of float32 but where types are what is compared      n_clusters: C
    start (C, D): for those that take one, of float32      seed, n_threads
    """

    X: NDArray
    n_clusters: int
    start: Floats
    seed: int
    n_threads: int

    @property
    def single(self) -> Floats:
        """X, or a copy where it is not of float32, for libraries that compute with nothing narrower."""
        return self.X.astype(np.float32, copy=False)


@dataclass(frozen=True)
class Fitted:
    """What a peer found.

    centers (C, D)      n_iter: iterations done, as the peer counts them; None where it does not say
    objective: what the peer reports, J or the mean log-likelihood, for comparison only; None where it does not say
    weights (C,), covariances (C,), (C, D) or (C, D, D): of a mixture of Gaussians, else None
    extra: more that the peer tells, to be written into the record
    """

    centers: Floats
    n_iter: int | None = None
    objective: float | None = None
    weights: Floats | None = None
    covariances: Floats | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Peer:
    """One line of the comparison.

    name: on the command line and on curves       family: peers of one colour; this library's is "cprime"
    distribution: of which the version is printed       statement: what a user imports
    fit: the call itself; everything it does is timed
    model: "k-means", "mixture" (of spherical Gaussians), "mixture-diag", "mixture-full" or "seeding"; peers of one
    model are compared by one figure
    start: where it starts from, in words       note: what a reader must know besides
    fixed: the settings that make it do n iterations, None if it cannot be told
    choices: the settings of a time-to-quality curve besides, or instead
    apart: whether its components have other parameters than those of its model's other peers: it has no curve then
    unsuitable: for (N, D, C), why there is no point in running it; None if there is
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
        """The version that is installed, None if none is."""
        if self.distribution == "cprime":
            return cprime.__version__  # of the sources that are run, installed or not
        try:
            return version(self.distribution)
        except PackageNotFoundError:
            return None

    def exactly(self, n: int) -> Settings:
        """The settings that make it do n iterations; raises ValueError if it cannot be told."""
        if self.fixed is None:
            raise ValueError(f"{self.name} cannot be told how many iterations to do")
        return self.fixed(n)

    def ladder(self, iterations: tuple[int, ...]) -> list[Settings]:
        """The budgets of a time-to-quality curve, cheapest first."""
        steps = [] if self.fixed is None else [self.fixed(n) for n in iterations]
        return [*steps, *self.choices]


def shown(settings: Settings) -> str:
    """Settings as they are printed."""
    return ", ".join(f"{name}={value}" for name, value in settings.items()) or "default"


def first_precision(task: Task) -> float:
    """1/σ² of the points about the nearest rows of the start: where mixtures begin (equation 14 of Lücke & Forster)."""
    squares = Dense(task.X).nearest(task.start, n_threads=task.n_threads)[1]
    return task.X.size / float(squares.sum(dtype=np.float64))


def precisions(task: Task, covariance_type: str) -> NDArray[np.float64]:
    """The same first precision for every component and direction, in the shape that scikit-learn asks for."""
    C, D = task.start.shape
    shaped = {"spherical": np.ones(C), "diag": np.ones((C, D)), "full": np.tile(np.eye(D), (C, 1, 1))}
    return first_precision(task) * shaped[covariance_type]


GIVEN = "the given rows"
OWN = "rows of its own choice"
