"""DP-means: k-means that pays a penalty for each cluster, which determines the number of clusters."""

import logging
import math
from dataclasses import dataclass
from time import perf_counter
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from cprime import em
from cprime._utils.declared import Array, Columns, NonNegative, Positive, Presence, Size
from cprime._utils.random import Key, seed_of
from cprime._utils.values import fitted_centers, replace
from cprime.estimators.base import Clusterer
from cprime.estimators.nearest_center import NearestCenter, nearest
from cprime.estimators.problems import KMeansOptions
from cprime.estimators.validation import as_search, check_integer, check_positive, check_real
from cprime.estimators.watching import Watch, restore_on_error, unfitted_copy, with_callbacks
from cprime.execution import Data
from cprime.execution.base import ConcatenatedRows
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Dense, Floats
from cprime.model import TiedSpherical
from cprime.persistence import model_files
from cprime.search.base import BaseSearch
from cprime.seeding import is_given

HISTORY = np.dtype(
    [
        ("n_clusters", np.int64),
        ("objective", np.float64),
        ("inertia", np.float64),
        ("n_opened", np.int64),
        ("n_removed", np.int64),
        ("seconds", np.float64),
    ]
)
# Most steps of k-means in a round that has changed the number of clusters, and in another round.
_FEW_STEPS, _STEPS = 10, 300
# Centers jump in a graph search unless the last round lowered the objective by at most this number · tol · objective.
_JUMP_TOL = 24
_BATCH = 4096  # number of points that are read and compared with all centers at a time
_NEIGHBORS = 8  # number of nearest clusters with which a cluster may be merged
_logger = logging.getLogger(__name__)


@model_files.register
class DPMeans(NearestCenter, Clusterer):
    """k-means that finds its number of clusters: minimize Σ_n w_n min_c ‖x_n − μ_c‖² + penalty · C.

    A fit begins with one cluster. In every round, points are treated one after the other: one that is farther than
    √penalty from all centers opens a cluster there, which later points see. Then clusters without points are removed,
    and k-means moves the centers. If no point is that far, pairs of clusters are merged whose union increases J by less
    than the penalty. The fit ends if a round changes nothing. The objective never rises. All points are compared with
    the centers in one parallel pass, and only distant ones are treated serially (Pan et al.), with the same result.

    Parameters
    ----------
    penalty : float, default=1.0
        Cost of a cluster, in data unit². A point at a greater squared distance from all centers opens a cluster.
    init : array-like of shape (m, n_features), fitted estimator or None, default=None
        Centers with which the fit begins; None is the mean of all points.
    search : str or object of cprime.search, default="auto"
        Search of the k-means steps, as in `KMeans`. Distant points are compared with all centers for every search.
    max_iter : int, default=100
        Maximum number of rounds.
    tol : float, default=1e-4
        Tolerance of the k-means steps, as in `KMeans`. With a smaller one, more rounds of a graph search have jumps.
    callbacks : callback or sequence of them, default=None
        Called after every round with a row of `history_` as a dictionary, and the estimator; see `KMeans`.
    n_threads : int or None, default=None
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers of a graph search and its jumps; with search="full" nothing is random.
    verbose : int, default=0

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (`n_clusters_`, n_features)
    n_clusters_ : int
        Number of clusters that the fit has found.
    labels_ : ndarray of shape (n_samples,), int32
    counts_ : ndarray of shape (`n_clusters_`,)
        The total weight of the points of each cluster.
    inertia_ : float
        J, the weighted sum of squared distances to the nearest center.
    objective_ : float
        J + penalty · C, in data unit².
    variance_ : float
        σ² = J/(DN), in data unit².
    lower_bound_ : float
        F of the isotropic mixture with this variance per point, in nats.
    n_active_ : int
        C′, always 1.
    n_iter_ : int
        Number of rounds.
    converged_ : bool
        Whether the fit ended by itself within `max_iter`.
    history_ : structured ndarray of shape (`n_iter_`,)
        One row per round: n_clusters, objective and inertia at its end, n_opened and n_removed (numbers of clusters; a
        merge removes one), seconds.
    neighbors_, certificate_, final_assignment_
        As in `KMeans`, of the last round.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    XMeans : The BIC in place of a penalty.
    BayesianGaussianMixture : Mixtures with a Dirichlet process, of which DP-means is the limit of small variances.

    Notes
    -----
    A point of weight 2 is equivalent to two points, each of which opens a cluster only if its own squared distance
    exceeds the penalty. A point of weight below 1 opens one if weight times squared distance does, because otherwise
    the objective would rise. The result depends on the order of the rows.

    References
    ----------
    B. Kulis, M. I. Jordan: Revisiting k-means: New algorithms via Bayesian nonparametrics. ICML 2012, algorithm 1.
    X. Pan, J. Gonzalez, S. Jegelka, T. Broderick, M. I. Jordan: Optimistic concurrency control for distributed
    unsupervised learning. NIPS 2013.

    Examples
    --------
    >>> from cprime import DPMeans
    >>> dp = DPMeans(penalty=4.0).fit([[0.0], [1.0], [9.0], [10.0]])
    >>> sorted(dp.cluster_centers_[:, 0].tolist()), dp.objective_
    ([0.5, 9.5], 9.0)
    """

    counts_: Annotated[NDArray, Array("C", least=0)]
    n_clusters_: Annotated[int, Size("C")]
    objective_: NonNegative
    variance_: Positive
    history_: Annotated[NDArray, Columns(HISTORY), Presence.RECORD]
    lower_bounds_: Annotated[Any, Presence.OPTIONAL]
    metric: ClassVar[str] = "euclidean"
    _has_plan = False
    _log = __name__

    nearest = nearest

    def __init__(
        self,
        penalty: float = 1.0,
        *,
        init: Any = None,
        search: str | BaseSearch = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        callbacks: Any = None,
        n_threads: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.penalty = penalty
        self.init = init
        self.search = search
        self.max_iter = max_iter
        self.tol = tol
        self.callbacks = callbacks
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    @restore_on_error
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the number of clusters and their centers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a source
            Finite numbers, in the types of `KMeans.fit`. Distant points of a source are read a second time.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 is equivalent to the point occurring twice; None is 1 for each.

        Returns
        -------
        self : DPMeans

        Raises
        ------
        ValueError
            If an argument is out of its range.
        """
        penalty = check_positive(self.penalty, "penalty")
        check_integer(self.max_iter, "max_iter", 1)
        check_real(self.tol, "tol", 0.0)
        as_search(self.search)
        if self.init is not None and not is_given(self.init):
            raise TypeError(f"init must be None, centers or a fitted estimator, got {self.init!r}.")
        watch = Watch(self, (X, y, sample_weight), lambda rounds: unfitted_copy(self)._set_rounds(rounds))
        data = self._opened(X, sample_weight, reset=True)
        rounds, centers = None, data.take(np.zeros(1, np.int64)).X.dense() if self.init is None else self.init
        with watch.fit(1, self.max_iter), watch.start(1) as callback:
            while True:
                found = self._round(data, centers, penalty, rounds)
                if rounds is not None and not found.objective < rounds.objective:
                    rounds = replace(rounds, converged=True)  # rounding errors, or the errors of a partial search
                    break
                rounds, centers = found, found.then
                over = rounds.converged or len(rounds.rows) == self.max_iter
                if callback(rounds.told, rounds, over) or over:
                    break
        return self._set_rounds(rounds)

    def _round(self, data: Data, centers: Any, penalty: float, before: "_Rounds | None") -> "_Rounds":
        """Make the k-means steps of a round, find the changes with which the next one begins, and return both.

        centers: centers after the changes, or the argument `init`    before: state after the previous round, or None
        """
        begin, rows = perf_counter(), () if before is None else before.rows
        n_opened, n_removed = (0, 0) if before is None else (before.n_opened, before.n_removed)
        changed = before is None or n_opened + n_removed > 0
        given = fitted_centers(centers)
        C = len(centers if given is None else given)
        steps = _FEW_STEPS if changed else _STEPS
        jumps = "auto" if before is None or before.change > _JUMP_TOL * self.tol else False
        options = KMeansOptions(C, init=centers, max_iter=steps, tol=self.tol, search=self.search, jumps=jumps)
        key = Key(seed_of(self.random_state), len(rows))
        run, measured = em.solve(data, options.problem(data), key)
        assert run.counts is not None
        then, objective = run.model.centers, run.error + penalty * C
        opened = open_clusters(data, then, penalty)
        pairs = pairs_to_merge(then, run.counts, measured["neighbors"], 0.0 if len(opened) else penalty)
        converged = run.end == em.End.CONVERGED and not len(opened) and not len(pairs)
        if len(opened):
            then = then[data.each(Remaining(then, penalty, opened)) > 0]
        then = np.concatenate([merged(then, run.counts, pairs), opened])
        row = (C, objective, run.error, n_opened, n_removed, perf_counter() - begin)
        change = math.inf if before is None else (before.objective - objective) / (objective if objective > 0 else 1.0)
        _logger.info(
            "round %d: %d clusters, objective %.6g", len(rows) + 1, C, objective, extra={"iteration": len(rows) + 1}
        )
        n_removed = C + len(opened) - len(then)
        return _Rounds(run, measured, (*rows, row), change, then, len(opened), n_removed, converged)

    def _set_rounds(self, rounds: "_Rounds") -> Self:
        """Set the fitted attributes from the state after a round, and return the estimator."""
        run = rounds.run
        self.cluster_centers_, self.variance_ = run.model.centers, run.model.variance
        assert run.counts is not None
        self.counts_, self.inertia_, self.lower_bound_ = run.counts, run.error, run.bound
        self.n_clusters_, self.n_active_, self.objective_ = len(run.model.centers), 1, rounds.objective
        self.history_, self.n_iter_ = np.array(list(rounds.rows), dtype=HISTORY), len(rounds.rows)
        self.converged_ = rounds.converged
        for name, value in rounds.measured.items():
            setattr(self, f"{name}_", value)
        return self

    def _parameters(self) -> TiedSpherical:
        return TiedSpherical(self.cluster_centers_, self.variance_, 0.0)


@dataclass(frozen=True)
class _Rounds:
    """State of a fit after a round.

    run: the k-means steps of the round    measured: labels and others, as `em.solve` returns them
    rows: the history so far    change: relative decrease of the objective
    then (m, D): centers with which the next round begins
    n_opened, n_removed: number of clusters that were opened and removed after the k-means steps, for the next round
    """

    run: em.Run
    measured: dict[str, Any]
    rows: tuple[tuple, ...]
    change: float
    then: Floats
    n_opened: int
    n_removed: int
    converged: bool

    @property
    def objective(self) -> float:
        """Return J + penalty · C after the round."""
        return float(self.rows[-1][1])

    @property
    def told(self) -> dict[str, Any]:
        """Return the values of the round that callbacks receive, by name."""
        row = dict(zip(HISTORY.names or (), self.rows[-1], strict=True))
        return row | {"iteration": len(self.rows), "change": self.change}


@dataclass(frozen=True)
class DistantRows:
    """Job that returns the indices of the points that are too far from their centers, in ascending order.

    Too far means that the squared distance times the weight, if this is below 1, exceeds the penalty.
    centers (C, D): those to which the data have assigned the points    penalty [data unit²]
    """

    centers: Floats
    penalty: float

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, ConcatenatedRows]:
        assert kept is not None
        squared = block.X.own_distances(self.centers, np.ascontiguousarray(kept.winners)).astype(np.float64)
        far = np.flatnonzero(shares_of(block.sample_weight, len(block)) * squared > self.penalty)
        return None, ConcatenatedRows(np.sort(block.rows(far)))


@dataclass(frozen=True)
class Remaining:
    """Job that returns the weight (C,) of the points of each cluster that are not nearer to a new center.

    A point that is too far from its own center is nearer to a new one, so only the others are compared with these.
    centers (C, D): those to which the data have assigned the points    penalty [data unit²]
    opened (m, D): the new centers
    """

    centers: Floats
    penalty: float
    opened: Floats

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, NDArray[np.float64]]:
        assert kept is not None
        labels, out = np.ascontiguousarray(kept.winners), np.zeros(len(self.centers))
        own = block.X.own_distances(self.centers, labels)
        near = np.flatnonzero(shares_of(block.sample_weight, len(block)) * own <= self.penalty)
        for begin in range(0, len(near), _BATCH):
            rows = near[begin : begin + _BATCH]
            rows = rows[own[rows] <= block.X[rows].nearest(self.opened)[1][:, 0]]
            weights = None if block.sample_weight is None else block.sample_weight[rows]
            out += np.bincount(labels[rows], weights, len(out))
        return None, out


def shares_of(weights: NDArray[np.float64] | None, n: int) -> NDArray[np.float64]:
    """Return the factors (n,) of squared distances in the comparison with the penalty: the weights, at most 1."""
    return np.ones(n) if weights is None else np.minimum(weights, 1.0)


def open_clusters(data: Data, centers: Floats, penalty: float) -> Floats:
    """Return the points (m, D) that open clusters if all points are treated one after the other, in their order.

    A point opens a cluster if it is too far from the centers (C, D) and from the points that opened clusters before it.
    """
    rows, found = data.each(DistantRows(centers, penalty)).rows, centers
    for begin in range(0, len(rows), _BATCH):
        taken = data.take(rows[begin : begin + _BATCH])
        shares = shares_of(taken.sample_weight, len(taken.X))
        costs = shares * taken.X.nearest(found)[1][:, 0]
        far = np.flatnonzero(costs > penalty)
        X, shares, costs, opened = taken.X[far].dense(), shares[far], costs[far], list[NDArray]()
        while (costs > penalty).any():
            one = int((costs > penalty).argmax())
            opened.append(X[one])
            costs = np.minimum(costs, shares * cdist(X[one, np.newaxis], X, "sqeuclidean")[0])
        found = np.concatenate([found, np.array(opened, found.dtype).reshape(-1, found.shape[1])])
    return found[len(centers) :]


def pairs_to_merge(centers: Floats, counts: NDArray, lists: NDArray[np.int32] | None, penalty: float) -> NDArray:
    """Return disjoint pairs (m, 2) of near clusters whose unions increase J by less than the penalty.

    The increase is N_a N_b / (N_a + N_b) ‖μ_a − μ_b‖²; pairs of least increase come first.
    centers (C, D)    counts (C,): N    lists (C, G): neighbors of each center, itself first, padded with −1; or None
    """
    C, points = len(centers), Dense(centers)
    if lists is None:
        lists = points.nearest(centers, min(C, _NEIGHBORS + 1))[0]
    found: list[tuple[float, int, int]] = []
    for others in lists.T[: _NEIGHBORS + 1]:
        own = np.where(others < 0, np.arange(C, dtype=np.int32), others)
        total = np.maximum(counts + counts[own], np.finfo(float).tiny)
        increase = counts / total * counts[own] * points.own_distances(centers, own)
        low = np.flatnonzero((increase < penalty) & (own != np.arange(C)))
        found += zip(
            increase[low].tolist(), np.minimum(low, own[low]).tolist(), np.maximum(low, own[low]).tolist(), strict=True
        )
    free, disjoint = np.ones(C, dtype=bool), []
    for _, a, b in sorted(set(found)):
        if free[a] and free[b]:
            free[[a, b]] = False
            disjoint.append((a, b))
    return np.array(disjoint, dtype=np.intp).reshape(-1, 2)


def merged(centers: Floats, counts: NDArray, pairs: NDArray) -> Floats:
    """Return the centers after the merges of pairs (m, 2): the first of a pair becomes the mean, the second is removed.

    centers (C, D)    counts (C,): weights of the clusters
    """
    out, (a, b) = centers.copy(), pairs.T
    share = counts[b] / np.maximum(counts[a] + counts[b], np.finfo(float).tiny)
    out[a] += share[:, np.newaxis] * (centers[b] - centers[a])
    return np.delete(out, b, axis=0)
