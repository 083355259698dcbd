"""Soft k-means (MacKay): the isotropic Gaussian mixture with equal weights and a fixed variance."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from numpy.typing import NDArray

from cprime import em
from cprime._utils.declared import Positive
from cprime.em import fuzzy
from cprime.estimators.base import Clusterer
from cprime.estimators.memory_limit import Memory
from cprime.estimators.problems import Labels, Options, problem_of, starting_centers
from cprime.estimators.prototypes import FuzzyBase
from cprime.estimators.solutions import FitRecord, SoftKMeansSolution
from cprime.estimators.validation import (
    check_common,
    check_enough,
    check_integer,
    check_n_active,
    check_word_or_positive,
    resolve_search,
)
from cprime.estimators.watching import restore_on_error, with_callbacks
from cprime.execution import Data
from cprime.model.tied_spherical import FixedVariance, variance_floor
from cprime.persistence import model_files
from cprime.search.base import BaseSearch


@dataclass(frozen=True)
class SoftKMeansOptions(Options):
    """Options of the fit of a soft k-means: the arguments of `SoftKMeans` of these names, with its defaults."""

    n_clusters: int
    stiffness: float | str = "auto"
    n_active: int | None = None
    search: str | BaseSearch = "auto"
    init: Any = "auto"
    n_init: int = 1
    max_iter: int = 300
    tol: float = 1e-4

    @property
    def n_components(self) -> int:
        return self.n_clusters

    def problem(self, data: Data, labels: Labels = None) -> em.Problem:
        """Return the problem of a fit.    labels: None, because clusters of points cannot be given"""
        n_active = check_n_active(self.n_active, self.n_clusters)
        search = resolve_search(self, self.n_clusters, n_active, data.n_weighted)
        stiffness = check_word_or_positive(self.stiffness, "stiffness", "auto")
        plan = em.FitPlan(
            n_active,
            search,
            em.EM(em.MixtureSettings(self.max_iter, self.tol, n_active)),
            search.regroups(data),
            finds_variance=stiffness is None,
        )

        def first_model(data: Data, centers: NDArray, exact: bool) -> FixedVariance:
            return FixedVariance(centers, 1.0 if stiffness is None else 0.5 / stiffness, variance_floor(centers))

        centers = partial(starting_centers, self.n_clusters, "init")
        return problem_of(self, plan, data, self.init, centers, first_model)


@model_files.register
class SoftKMeans(Clusterer, FuzzyBase):
    """Soft k-means: responsibilities r_nc ∝ exp(−β ‖x_n − μ_c‖²) with fixed stiffness β; centers are weighted means.

    This is the EM of `GaussianMixture` with one variance for all components, but σ² = 1/2β is fixed. It increases the
    free energy F = 1/W Σ_n w_n log Σ_{c∈K(n)} (1/C) N(x_n; μ_c, σ²I), where K(n) is the active set of point n, w_n its
    weight, and W the total weight. The limit β → ∞ is k-means. If β ≤ 1/2λ, where λ is the largest variance of the data
    along any direction, there is a stable solution in which all centers are at the mean.

    Parameters
    ----------
    n_clusters : int, default=8
    stiffness : float or "auto", default="auto"
        β = 1/2σ² in 1/data unit². "auto" uses σ² = J/(DN) of the starting centers, eq. (14) of Lücke & Forster. MacKay
        measures distance as ½‖x − μ‖², so his β is twice this one.
    n_active : int or None, default=None
        C′, the number of clusters that a point belongs to. These are the nearest ones; all other responsibilities are
        exactly 0. None is C: MacKay's algorithm. 1 is k-means, for any stiffness.
    search : str or object of cprime.search, default="auto"
        Candidate centers of a point, from which the nearest C′ are selected, as in `GaussianMixture`.
    init : str, array-like, fitted estimator or callable, default="auto"
        Initialization, as in `KMeans`; default "auto".
    n_init : int, default=1
        Number of starts; the result of greatest F is returned. Given centers are used for one start only.
    max_iter : int, default=300
    tol : float, default=1e-4
        A start has converged if F changes by less than this, in nats per point.
    random_state : int, RandomState, Generator or None, default=None
    n_threads : int or None, default=None
    checkpoint : path or None, default=None
    max_memory : Memory or None, default=None
        `Memory(spill=folder)` stores active sets in files of a folder; it must have no limit.
    callbacks : callback or sequence of them, default=None
    verbose : int, default=0

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,), int32
    stiffness_, variance_ : float
        β as used, in 1/data unit², and σ² = 1/2β, in data unit².
    inertia_ : float
    n_active_ : int
        C′ as used.
    neighbors_ : ndarray of shape (n_clusters, G), int32, or None
        The neighbor lists of a partial search, each beginning with the center itself; None after a full search.
    certificate_ : dict or None
        Quality of a partial search, as in `GaussianMixture`; None after a full search.
    final_assignment_ : str
        How `labels_` were computed: "exact", or "found" by a partial search.
    n_iter_ : int
    converged_ : bool
    lower_bound_ : float
        F of the returned parameters per point, in nats.
    lower_bounds_ : list of float
        F at the E-step of each iteration; it never falls.
    history_ : structured ndarray of shape (`n_iter_`,)
        One row per iteration: phase, lower_bound, quantization_error (J), n_distances, n_between (0), n_moved, seconds.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    GaussianMixture : The same with an estimated variance, which avoids a stiffness that does not suit the data.
    theory.soft_kmeans_path : Fits at increasing stiffness (deterministic annealing), for lectures.

    References
    ----------
    MacKay, *Information Theory, Inference, and Learning Algorithms*, 2003, chapter 20.
    Lücke & Forster, *k-means as a variational EM approximation of Gaussian mixture models*: relation to soft k-means.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import SoftKMeans
    >>> X = np.array([[0.0], [2.0], [9.0], [11.0]])
    >>> soft = SoftKMeans(2, stiffness=0.1, init=[[0.0], [10.0]]).fit(X)
    >>> soft.predict_proba([[5.5], [1.0]]).round(3).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """

    variance_: Positive
    stiffness_: Positive

    _has_plan = False

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        stiffness: float | str = "auto",
        n_active: int | None = None,
        search: str | BaseSearch = "auto",
        init: Any = "auto",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
        n_threads: int | None = None,
        checkpoint: Any = None,
        max_memory: Memory | None = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.stiffness = stiffness
        self.n_active = n_active
        self.search = search
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_threads = n_threads
        self.checkpoint = checkpoint
        self.max_memory = max_memory
        self.callbacks = callbacks
        self.verbose = verbose

    @restore_on_error
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Compute the centers by EM with a fixed variance.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers. Types of up to 16 bits and float32 become float32, wider ones float64. A C-contiguous array
            is not copied; a memory map of more than 512 MiB is read in chunks.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 counts the point twice; None is 1 for each.

        Returns
        -------
        self : SoftKMeans

        Raises
        ------
        ValueError
            If an argument is out of its range, or there are fewer points than clusters.
        """
        check_common(self)
        check_n_active(self.n_active, check_integer(self.n_clusters, "n_clusters", 1))
        check_word_or_positive(self.stiffness, "stiffness", "auto")
        data = self._opened(X, sample_weight, reset=True)
        check_enough(self, data.n_points)
        return self._fit_to(data, (X, y, sample_weight))

    def _options(self) -> SoftKMeansOptions:
        return SoftKMeansOptions.of(self)

    def _solution(self, run: em.Run, n_active: int, record: FitRecord) -> SoftKMeansSolution:
        return SoftKMeansSolution(run.model.centers, run.model.variance, n_active, run.error, run.bound, record)

    def _parameters(self) -> FixedVariance:
        return FixedVariance(self.cluster_centers_, self.variance_, 0.0)

    def _rule(self) -> fuzzy.Rule:
        return fuzzy.Entropy(2 * self.variance_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the free energy F per point (or unit of weight), in nats.

        The active set of a row contains its `n_active_` nearest clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
        """
        return self.bounds(X, sample_weight).free_energy
