"""k-means: each point keeps its nearest component (C′ = 1)."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from cprime import em, kernels, storage
from cprime.estimators.base import Clusterer
from cprime.estimators.validation import (
    check_common,
    check_integer,
    check_real,
    check_weights,
    resolve_search,
    shown,
)
from cprime.execution import InMemory
from cprime.model import TiedSpherical
from cprime.model.tied_spherical import variance_floor
from cprime.seeding import is_given, seed


@storage.register
class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Clusterer):
    """k-means clustering, as the hard end of the truncated-EM family.

    Lowers J = Σ_n w_n min_c ‖x_n − μ_c‖², and with it raises the free energy F = −log C − (D/2) log(2πe J/(DN)), a
    lower bound of the log-likelihood of a Gaussian mixture.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters C, at most the number of points.
    init : {"k-means++", "random", "afk-mc2"}, array-like, fitted estimator or callable, default="k-means++"
        Where to start: greedy k-means++, distinct random rows, the AFK-MC² chain, given centers of shape
        (n_clusters, n_features), those of a fitted estimator, or a function of (X, n_clusters, random_state).
    n_init : int, default=1
        Number of starts; the one of least J is kept. From given centers there is one.
    max_iter : int, default=300
        Most iterations of one start.
    tol : float, default=1e-4
        A start has converged once J changes by no more than this share of it, or no point moves.
    search : {"auto", "full"}, default="auto"
        Which centers a point looks at: "full" is all of them.
    n_neighbors, n_explore, n_warmup
        Settings of the partial searches; "full" does not use them.
    epsilon : float, default=0.0
        Laziness of lazy-k-means: a point moves only to a center that is nearer by the factor 1 + epsilon (eq. 21).
        0 is k-means. `labels_` and `predict` always give the nearest center.
    n_threads : int or None, default=None
        Threads to use; None is every processor that the process may use. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Source of the random numbers of the start.
    verbose : int, default=0
        1 shows the library's log of every iteration on standard error.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        In the dtype of the data.
    labels_ : ndarray of shape (n_samples,), int32
        The nearest center of each training point.
    inertia_ : float
        J, the weighted sum of squared distances to the nearest center, in data unit².
    variance_ : float
        σ² = J/(DN), eq. (14), in data unit².
    n_iter_ : int
        Iterations of the start that was kept.
    converged_ : bool
        Whether it converged within max_iter.
    lower_bound_ : float
        F of the returned parameters per point, eq. (15), in nats.
    lower_bounds_ : list of float
        F as seen by the E-step of each iteration.
    history_ : structured ndarray of shape (n_iter_,)
        One row an iteration: phase, lower_bound, quantization_error (J), n_distances, n_moved, seconds.
    n_active_ : int
        C′, always 1.
    n_relocated_ : int
        Empty clusters that were given a new center, over all iterations.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the data have names of columns.

    References
    ----------
    Lücke & Forster, *k-means as a variational EM approximation of Gaussian mixture models*: Prop. 2, 3, Cor. 2.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import KMeans
    >>> X = np.array([[0.0, 0.0], [0.0, 2.0], [9.0, 9.0], [9.0, 7.0]])
    >>> km = KMeans(2, random_state=0).fit(X)
    >>> km.inertia_
    4.0
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        search: str = "auto",
        n_neighbors: int = 16,
        n_explore: int = 1,
        n_warmup: int | str = "auto",
        epsilon: float = 0.0,
        n_threads: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.search = search
        self.n_neighbors = n_neighbors
        self.n_explore = n_explore
        self.n_warmup = n_warmup
        self.epsilon = epsilon
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers. float32 and float64 stay as they are, anything else becomes float64; a C-contiguous
            array or memory map is not copied.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 is the point twice; None is 1 for each.

        Returns
        -------
        self : KMeans

        Raises
        ------
        ValueError
            If an argument is out of its range, or there are fewer points than clusters.
        """
        check_common(self)
        check_integer(self.n_clusters, "n_clusters", 1)
        settings = self._settings(
            1,
            search=resolve_search(self.search),
            hard=True,
            max_iter=self.max_iter,
            tol=self.tol,
            epsilon=check_real(self.epsilon, "epsilon", 0.0),
            callback=self._callback,
        )
        X = self._validated(X, reset=True)
        if len(X) < self.n_clusters:
            raise ValueError(f"n_samples={len(X)} should be >= n_clusters={self.n_clusters}.")
        weights = check_weights(sample_weight, X)
        random_state = check_random_state(self.random_state)
        data = InMemory(X, weights)
        floor = variance_floor(X)
        best, labels = None, None
        with shown(self.verbose):
            for _ in range(1 if is_given(self.init) else self.n_init):
                centers = seed(
                    X,
                    self.n_clusters,
                    self.init,
                    sample_weight=weights,
                    random_state=random_state,
                    n_threads=self.n_threads,
                )
                fit = em.run(data, TiedSpherical(centers, 1.0, floor), settings)
                if best is None or fit.quantization_error < best.quantization_error:
                    best, labels = fit, data.winners()
        assert best is not None
        assert labels is not None
        self._set_fitted(best, labels)
        return self

    def _set_fitted(self, fit: em.Fit, labels: NDArray[np.int32]) -> None:
        n_found = len(np.unique(labels))
        if n_found < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({n_found}) found smaller than n_clusters ({self.n_clusters}). "
                "Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.cluster_centers_ = fit.model.centers
        self.variance_ = fit.model.variance
        self.labels_ = labels
        self.inertia_ = fit.quantization_error
        self.lower_bound_ = fit.lower_bound
        self.history_ = em.history(fit.history)
        self.lower_bounds_ = self.history_["lower_bound"].tolist()
        self.converged_ = fit.converged
        self.n_iter_ = fit.n_iter
        self.n_active_ = 1
        self.n_relocated_ = fit.n_relocated

    @property
    def _n_features_out(self) -> int:
        return self.cluster_centers_.shape[0]

    def _parameters(self) -> TiedSpherical:
        return TiedSpherical(self.cluster_centers_, self.variance_, 0.0)

    def _n_active(self) -> int:
        return 1

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The nearest center of each row: an exact search; ties go to the lower index.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
        """
        X = self._validated(X, reset=False)
        return kernels.nearest(X, self.cluster_centers_, n_threads=self.n_threads)[0][:, 0]

    def transform(self, X: Any) -> NDArray:
        """The Euclidean distance of each row to each center.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            In data units and of the data's dtype. An N×C array: it is what was asked for.
        """
        X = self._validated(X, reset=False)
        squared = kernels.min_distances(X, self.cluster_centers_, n_threads=self.n_threads)
        return np.sqrt(squared, out=squared).T

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """−J: minus the weighted sum of squared distances to the nearest center, in data unit².

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
        """
        X = self._validated(X, reset=False)
        weights = check_weights(sample_weight, X)
        distances = kernels.nearest(X, self.cluster_centers_, n_threads=self.n_threads)[1][:, 0]
        return -float(distances.sum(dtype=np.float64) if weights is None else weights @ distances)
