"""Initializations: objects that choose starting centers, and starting centers from the caller.

Objects have their options as attributes. A name such as ``init="k-means++"`` stands for the object with default
options, here `KMeansPlusPlus()`. The function `place`, which estimators call, accepts every form of the argument
`init`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _is_arraylike_not_scalar, check_array

from cprime._utils.arguments import check_flag, check_integer, check_positive, naming
from cprime._utils.number_types import check_largest
from cprime._utils.storable import storable
from cprime._utils.values import Options, fitted_centers
from cprime.execution import Data
from cprime.kernels import Dense, Rows
from cprime.seeding.afk_mc2 import choose_by_afk_mc2
from cprime.seeding.jumps import start_by_jumps
from cprime.seeding.kmeans_plusplus import choose_by_kmeans_plusplus
from cprime.seeding.parallel import choose_in_parallel
from cprime.seeding.random_rows import draw_rows
from cprime.seeding.two_level import choose_by_two_levels
from cprime.seeding.validation import MOST_DRAWS
from cprime.sources.foreign import plain, unmasked
from cprime.sources.prepared import Preparation

ACCEPTED = (
    "'k-means++', 'k-means||', 'random', 'afk-mc2', 'two-level', 'jumps', a value of cprime.seeding, an array of shape "
    "(n_clusters, n_features), a fitted estimator with cluster_centers_ or means_, or a callable"
)


@runtime_checkable
class Method(Protocol):
    """Initialization that chooses starting centers from the data."""

    name: ClassVar[str]  # if `init` is this name, this method with default options is used

    def centers(self, data: Data, n_clusters: int, rng: np.random.RandomState) -> NDArray:
        """Return starting centers (C, D); some methods also set the active set of each point in `data`."""
        ...


def _in_memory(data: Data, what: str) -> tuple[Rows, NDArray[np.float64] | None]:
    """Return the rows X and their weights if all rows are one chunk in memory; raise ValueError otherwise.

    what: name, in the error message, of the initialization that needs the data in memory
    """
    whole = data.whole()
    if whole is None:
        raise ValueError(
            f"{what} needs the data as one chunk in memory, got {data.n_points} rows in {len(data.sizes)} chunk(s) "
            "that are read: use 'two-level', 'k-means||' or 'random', or give the centers."
        )
    return whole


def _chosen(data: Data, name: str, choose: Callable[[Rows, NDArray | None], NDArray]) -> NDArray:
    """Return starting centers (C, D): the rows of data in memory that a function chooses.

    choose: function of the rows and their weights that returns the indices (C,) of the chosen rows
    name: name of the initialization, for the error message if the data are not in memory
    """
    X, weights = _in_memory(data, f"init={name!r}")
    return X[choose(X, weights)].dense()


@storable("seeding.KMeansPlusPlus")
@dataclass(frozen=True)
class KMeansPlusPlus(Options):
    """Initialization by k-means++: each center is a row drawn with probability ∝ weight times squared distance.

    The distance is that to the nearest center chosen so far. The greedy form is a choice of this library, as of
    scikit-learn: of several rows drawn for each center it takes the one that decreases the error J most. It gives
    better starting centers than the published algorithm, which is ``KMeansPlusPlus(greedy=False)``.

    Parameters
    ----------
    greedy : bool, default=True
        Whether several rows are tried for each center.
    n_local_trials : int or None, default=None
        Number of rows tried for each center of the greedy form, at most 65,536; None is 2 + ⌊ln C⌋.

    References
    ----------
    Arthur & Vassilvitskii, *k-means++: the advantages of careful seeding* (2007), section 2.2; section 7 names the
    greedy form.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.seeding import KMeansPlusPlus
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> KMeans(2, init=KMeansPlusPlus(greedy=False), random_state=0).fit(X).inertia_
    1.0
    """

    greedy: bool = True
    n_local_trials: int | None = None

    name: ClassVar[str] = "k-means++"

    def __post_init__(self) -> None:
        check_flag(self.greedy, "greedy")
        if self.n_local_trials is not None:
            check_integer(self.n_local_trials, "n_local_trials", 1, MOST_DRAWS)
            if not self.greedy and self.n_local_trials != 1:
                raise ValueError(f"n_local_trials must be 1 or None where greedy=False, got {self.n_local_trials}.")

    def centers(self, data: Data, n_clusters: int, rng: np.random.RandomState) -> NDArray:
        trials = self.n_local_trials if self.greedy else 1
        return _chosen(data, self.name, lambda X, w: choose_by_kmeans_plusplus(X, n_clusters, w, rng, trials))


@storable("seeding.AFKMC2")
@dataclass(frozen=True)
class AFKMC2(Options):
    """Initialization by AFK-MC²: k-means++ with Metropolis chains in place of exact draws, in two passes over the data.

    Parameters
    ----------
    chain_length : int, default=20
        Number of proposals m in the chain of each center, at most 65,536. Longer chains approximate k-means++ better;
        the authors use up to 200.

    References
    ----------
    Bachem, Lucic, Hassani & Krause, *Fast and provably good seedings for k-means* (2016), algorithm 1.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.seeding import AFKMC2
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> KMeans(2, init=AFKMC2(chain_length=200), random_state=0).fit(X).inertia_
    1.0
    """

    chain_length: int = 20

    name: ClassVar[str] = "afk-mc2"

    def __post_init__(self) -> None:
        check_integer(self.chain_length, "chain_length", 1, MOST_DRAWS)

    def centers(self, data: Data, n_clusters: int, rng: np.random.RandomState) -> NDArray:
        return _chosen(data, self.name, lambda X, w: choose_by_afk_mc2(X, n_clusters, w, rng, self.chain_length))


@storable("seeding.Random")
@dataclass(frozen=True)
class Random(Options):
    """Initialization by distinct random rows, drawn with probability proportional to weight (Forgy 1965).

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.seeding import Random
    >>> KMeans(2, init=Random(), random_state=0).fit([[0.0], [1.0], [9.0], [10.0]]).inertia_
    1.0
    """

    name: ClassVar[str] = "random"

    def centers(self, data: Data, n_clusters: int, rng: np.random.RandomState) -> NDArray:
        return data.take(draw_rows(data, n_clusters, rng)).X.dense()


@storable("seeding.TwoLevel")
@dataclass(frozen=True)
class TwoLevel(Options):
    """Initialization in two levels: coarse cells (groups of rows), and in each cell a share of the centers.

    Cells with a larger sum of squared distances get more centers.

    Parameters
    ----------
    n_cells : int or None, default=None
        Number of cells; None is ⌈√C⌉.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.seeding import TwoLevel
    >>> KMeans(2, init=TwoLevel(), random_state=0).fit([[0.0], [1.0], [9.0], [10.0]]).inertia_
    1.0
    """

    n_cells: int | None = None

    name: ClassVar[str] = "two-level"

    def __post_init__(self) -> None:
        if self.n_cells is not None:
            check_integer(self.n_cells, "n_cells", 1)

    def centers(self, data: Data, n_clusters: int, rng: np.random.RandomState) -> NDArray:
        return choose_by_two_levels(data, n_clusters, rng, self.n_cells)[1]


@storable("seeding.KMeansParallel")
@dataclass(frozen=True)
class KMeansParallel(Options):
    """Initialization by k-means||: rounds of independent draws of rows, for data in memory, in files or on a cluster.

    Parameters
    ----------
    n_rounds : int, default=5
        Number of rounds r.
    oversampling : float, default=2.0
        Expected number ℓ of candidates drawn in a round, divided by C.

    References
    ----------
    Bahmani, Moseley, Vattani, Kumar & Vassilvitskii, *Scalable k-means++* (2012), algorithm 2.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.seeding import KMeansParallel
    >>> KMeans(2, init=KMeansParallel(n_rounds=3), random_state=0).fit([[0.0], [1.0], [9.0], [10.0]]).inertia_
    1.0
    """

    n_rounds: int = 5
    oversampling: float = 2.0

    name: ClassVar[str] = "k-means||"

    def __post_init__(self) -> None:
        check_integer(self.n_rounds, "n_rounds", 1)
        check_positive(self.oversampling, "oversampling")

    def centers(self, data: Data, n_clusters: int, rng: np.random.RandomState) -> NDArray:
        found = choose_in_parallel(data, n_clusters, rng, self.n_rounds, self.oversampling)
        centers = data.take(found).X.dense()
        data.begin(keep=False)
        return centers


@storable("seeding.Jumps")
@dataclass(frozen=True)
class Jumps(Options):
    """Initialization by k-means++ on a sample, improved by jumps of centers on the sample and then on all rows.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.seeding import Jumps
    >>> KMeans(2, init=Jumps(), random_state=0).fit([[0.0], [1.0], [9.0], [10.0]]).inertia_
    1.0
    """

    name: ClassVar[str] = "jumps"

    def centers(self, data: Data, n_clusters: int, rng: np.random.RandomState) -> NDArray:
        if data.n_weighted < n_clusters:
            return TwoLevel().centers(data, n_clusters, rng)
        return start_by_jumps(data, n_clusters, rng)


METHODS: dict[str, Method] = {
    method.name: method for method in (KMeansPlusPlus(), KMeansParallel(), Random(), AFKMC2(), TwoLevel(), Jumps())
}


def name_of(init: object) -> str | None:
    """Return the name of an initialization given by name or as a `Method`; None for given centers or a function."""
    return init if isinstance(init, str) else init.name if isinstance(init, Method) else None


def place(
    data: Data,
    n_clusters: int,
    init: str | Method | ArrayLike | BaseEstimator | Callable[..., ArrayLike],
    make_rng: Callable[[], np.random.RandomState],
    argument: str = "init",
) -> NDArray:
    """Return starting centers (C, D) for a `Data` object, whose rows may be in memory, in files or on a cluster.

    If the initialization computes a center near each point, this center becomes the point's active set in `data`.
    Centers that `init` contains or returns are copied, and weights have no effect on them. Raises ValueError for a
    wrong shape or values that are not finite, NotFittedError for an estimator without centers, and TypeError for any
    other `init`.
    make_rng: function that returns a random number generator    argument: name of the argument `init` in errors
    """
    data.begin(keep=False)
    if isinstance(init, str):
        name = "k-means++" if init == "auto" else init
        if name not in METHODS:
            raise ValueError(f"{argument} should be {ACCEPTED}, got {init!r} instead.")
        init = METHODS[name]
    if isinstance(init, Method):
        return init.centers(data, n_clusters, make_rng())
    if isinstance(init, OwnStart):
        return init()
    centers: Any
    if is_estimator(init):
        centers = _centers_of(init)
    elif _is_arraylike_not_scalar(init):
        centers = init
    elif callable(init):
        centers = init(_in_memory(data, f"{argument} as a callable")[0].given(), n_clusters, random_state=make_rng())
    else:
        raise TypeError(f"{argument} should be {ACCEPTED}, got {init!r} of type {type(init).__name__} instead.")
    centers = copied(centers, data, argument)
    if centers.shape[0] != n_clusters:
        raise ValueError(
            f"{argument}: The shape of the initial centers {centers.shape} does not match the number of clusters "
            f"{n_clusters}."
        )
    if centers.shape[1] != data.n_features:
        raise ValueError(
            f"{argument}: The shape of the initial centers {centers.shape} does not match the number of features of "
            f"the data {data.n_features}."
        )
    check_largest(Dense(centers).extent()[0], data.dtype, data.n_features, argument)
    return centers


@dataclass(frozen=True)
class OwnStart:
    """Initialization by an internal function that is not random and returns centers (C, D) in the data's dtype."""

    centers: Callable[[], NDArray]

    def __call__(self, *_: Any, **__: Any) -> NDArray:
        return self.centers()


def is_given(init: Any) -> bool:
    """Return whether `init` is an array or an estimator with centers, so that every initialization is the same."""
    return is_estimator(init) or _is_arraylike_not_scalar(init)


def copied(numbers: Any, data: Data, name: str, **checks: Any) -> NDArray:
    """Return a C-contiguous copy of an array in the dtype of the data; raise ValueError unless values are finite.

    name: argument that errors name    checks: further arguments of scikit-learn's `check_array`
    """
    numbers = plain(unmasked(numbers, name), name)
    is_plain = type(numbers) is np.ndarray and numbers.dtype == data.dtype and numbers.ndim == 2 and not checks
    if is_plain and numbers.size and np.isfinite(Dense(numbers).extent()[0]):
        # A plain float array is copied without scikit-learn's `check_array`, which takes longer for the same result.
        return np.array(numbers, order="C")
    # NumPy's warnings of overflow are not needed: it gives infinity, for which `check_array` raises ValueError.
    with np.errstate(over="ignore", invalid="ignore"), naming(name):
        return check_array(numbers, dtype=data.dtype, order="C", copy=True, input_name=name, **checks)


def is_estimator(init: Any) -> bool:
    """Return whether `init` is an estimator instance, fitted or not."""
    return not isinstance(init, type) and (fitted_centers(init) is not None or isinstance(init, BaseEstimator))


def _centers_of(estimator: Any) -> ArrayLike:
    """Return the attribute `cluster_centers_` or `means_` of a fitted estimator, in the units of its data."""
    centers = fitted_centers(estimator)
    if centers is not None:
        return Preparation.from_dict(getattr(estimator, "preparation_", {})).restored(centers)
    raise NotFittedError(
        f"init is a {type(estimator).__name__} with neither cluster_centers_ nor means_. Call 'fit' on it "
        "first, or pass an estimator that has one of them."
    )
