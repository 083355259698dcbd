"""Soft k-means: the isotropic mixture with a variance that is given and stays (MacKay)."""

from typing import Any, Self

from numpy.typing import NDArray

from cprime import em, fuzzy, storage
from cprime.estimators.base import Clusterer, FirstModel
from cprime.estimators.prototypes import Graded
from cprime.estimators.validation import (
    check_auto_or_positive,
    check_common,
    check_integer,
    check_n_active,
    resolve_regroup,
    resolve_search,
)
from cprime.estimators.watching import with_callbacks
from cprime.estimators.whole import whole
from cprime.execution import Data
from cprime.model.stiff import Stiff
from cprime.model.tied_spherical import variance_floor
from cprime.search import Search


@storage.register
class SoftKMeans(Graded, Clusterer):
    """Soft k-means: responsibilities r_nc ∝ exp(−β ‖x_n − μ_c‖²) of a fixed stiffness β, centers their means.

    The same EM as `GaussianMixture` with one variance for all, but σ² = 1/2β stays. Raises the free energy
    F = 1/W Σ_n w_n log Σ_{c∈K(n)} (1/C) N(x_n; μ_c, σ²I). The stiffer, the harder: β → ∞ is k-means. All centers at the
    mean are a stable solution until β exceeds 1/2λ, λ being the largest variance of the data along any direction.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters C, at most the number of points.
    stiffness : float or "auto", default="auto"
        β = 1/2σ² in 1/data unit². "auto" takes σ² = J/(DN), eq. (14), of the starting centers. MacKay measures
        distance as ½‖x − μ‖²; his β is twice this one.
    n_active : int or None, default=None
        C′, the clusters that a point belongs to, the nearest ones; all other responsibilities are exactly 0. None is
        all: MacKay's algorithm. 1 is k-means, whatever the stiffness.
    search : str or object of cprime.search, default="auto"
        Which centers a point looks at before it keeps n_active of them, as in `GaussianMixture`.
    n_neighbors : int or "auto", default="auto"
        G, the length of a center's neighbor list in a partial search, itself among them.
    init : str, array-like, fitted estimator or callable, default="auto"
        Where to start, as in `KMeans`; default "auto".
    n_init : int, default=1
        Number of starts; the one of greatest F is kept. From given centers there is one.
    max_iter : int, default=300
        Most iterations of one start.
    tol : float, default=1e-4
        A start has converged once F changes by less than this, in nats a point.
    certificate : int, default=1000
        Points searched exactly after a partial search, for `certificate_`; 0 is none.
    final_assignment : {"auto", "exact", "found"}, default="auto"
        What `labels_` and `lower_bound_` are of after a partial search: "exact" is the nearest center of all,
        searched for every point once more, as by `predict`; "found" is the one that the search has found. "auto" is
        exact where that takes no longer than the fit itself: N·C is at most four times the evaluations of the fit.
    checkpoint : path or None, default=None
        A folder, new or empty, that `fit` keeps its state in: a fit that has died is gone on with by `cprime.resume`,
        or by the same call of `fit`, and ends in the same bits. It holds the model at the end.
    spill : path or None, default=None
        A folder that `fit` has what points keep in from one iteration to the next, in place of memory: in files without
        names, which go with the fit. Results are the same bits. None is memory; with a checkpoint, of data in several
        chunks, it is that folder from 1 GiB of kept sets on.
    callbacks : callback or sequence of them, default=None
        What is told of every iteration and may end the fit: functions of a row of `history_`, as a dictionary, and of
        the estimator as it is then, or objects with such a method `on_iteration`; see `cprime.callbacks.Callback`.
        True ends the fit. A model file does not hold them.
    n_threads : int or None, default=None
        Threads to use; None is every processor that the process may use. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers of the start.
    verbose : int, default=0
        1 shows a progress bar: J, how many points' centers the search finds by its last audit, and about how long it
        will take still; where no bar can be drawn, in a file say, the library's log, a line an iteration.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        In the dtype of the data.
    labels_ : ndarray of shape (n_samples,), int32
        The nearest center of each training point.
    stiffness_, variance_ : float
        β as used, in 1/data unit², and σ² = 1/2β, in data unit².
    inertia_ : float
        J, the weighted sum of squared distances to the nearest center, in data unit².
    n_active_ : int
        C′ as used.
    neighbors_ : ndarray of shape (n_clusters, G), int32, or None
        The neighbor lists of a partial search, the center itself first; None after a full one.
    certificate_ : dict or None
        How good the partial search was, as in `GaussianMixture`; None after a full one.
    final_assignment_ : str
        What `labels_` are: "exact", or "found" by a partial search.
    n_iter_ : int
        Iterations of the start that was kept.
    converged_ : bool
        Whether it converged within max_iter.
    lower_bound_ : float
        F of the returned parameters per point, in nats.
    lower_bounds_ : list of float
        F as seen by the E-step of each iteration; it never falls.
    history_ : structured ndarray of shape (`n_iter_`,)
        One row an iteration: phase, lower_bound, quantization_error (J), n_distances, n_moved, seconds.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the data have names of columns.

    See Also
    --------
    GaussianMixture : The same with a variance that is found, which guards against a stiffness that does not fit.

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

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        stiffness: float | str = "auto",
        n_active: int | None = None,
        search: str | Search = "auto",
        n_neighbors: int | str = "auto",
        init: Any = "auto",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        certificate: int = 1000,
        final_assignment: str = "auto",
        checkpoint: Any = None,
        spill: Any = None,
        callbacks: Any = None,
        n_threads: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.stiffness = stiffness
        self.n_active = n_active
        self.search = search
        self.n_neighbors = n_neighbors
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.certificate = certificate
        self.final_assignment = final_assignment
        self.checkpoint = checkpoint
        self.spill = spill
        self.callbacks = callbacks
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    @whole
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers. Types of up to 16 bits and float32 become float32, wider ones float64; a C-contiguous array
            is not copied, a memory map is read in chunks of 128 MiB.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 is the point twice; None is 1 for each.

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
        check_auto_or_positive(self.stiffness, "stiffness")
        return self._fit_to(self._opened(X, sample_weight, reset=True), (X, y, sample_weight))

    def _plan(self, data: Data) -> em.Plan:
        n_active = check_n_active(self.n_active, self.n_clusters)
        search = resolve_search(self, self.n_clusters, n_active, data.n_weighted)
        return em.Plan(
            n_active,
            search,
            em.EM(em.MixtureSettings(self.max_iter, self.tol, n_active)).begun,
            resolve_regroup(search, data),
            finds_variance=self.stiffness == "auto",
            final=self.final_assignment,
        )

    def _first(self, data: Data) -> tuple[Any, FirstModel]:
        stiffness = check_auto_or_positive(self.stiffness, "stiffness")

        def first_model(data: Data, centers: NDArray, exact: bool) -> Stiff:
            return Stiff(centers, 1.0 if stiffness is None else 0.5 / stiffness, variance_floor(centers))

        return self.init, first_model

    def _set_run(self, fit: em.Run, n_kept: int) -> None:
        self.lower_bound_ = fit.bound
        self.variance_ = fit.model.variance
        self.stiffness_ = 0.5 / self.variance_
        self.cluster_centers_ = fit.model.centers
        self.inertia_ = fit.error
        self.n_active_ = n_kept
        self.history_ = fit.history
        self.lower_bounds_ = self.history_["lower_bound"].tolist()
        self.converged_ = fit.end == em.End.CONVERGED
        self.n_iter_ = len(fit.rows)

    def _parameters(self) -> Stiff:
        return Stiff(self.cluster_centers_, self.variance_, 0.0)

    def _n_active(self) -> int:
        return self.n_active_

    def _n_components(self) -> int:
        return self.n_clusters

    def _rule(self) -> fuzzy.Rule:
        return fuzzy.Entropy(2 * self.variance_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """F per point (or unit of weight), in nats, with the `n_active_` nearest clusters kept.

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
