"""Gaussian mixtures: each point keeps its C′ best components, from k-means (C′ = 1) to exact EM (C′ = C)."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from cprime import em, kernels, storage
from cprime.estimators.base import Clusterer
from cprime.estimators.validation import (
    check_integer,
    check_mixture,
    check_weights,
    resolve_n_active,
    resolve_search,
    resolve_warmup,
)
from cprime.model import TiedSpherical


@storage.register
class GaussianMixture(DensityMixin, Clusterer):
    """Gaussian mixture fitted by truncated variational EM.

    Raises the free energy F(K, Θ) = 1/W Σ_n w_n log Σ_{c∈K(n)} π_c p(x_n | c, Θ), eq. (7), a lower bound of the
    log-likelihood, in which each point keeps the C′ components that are best for it.

    Parameters
    ----------
    n_components : int, default=1
        Number of components C, at most the number of points.
    covariance_type : {"tied_spherical"}, default="full"
        "tied_spherical" is one variance for all components and directions, the model of the papers. "spherical",
        "diag", "tied" and "full" are not supported yet and raise an error.
    weights : {"equal"}, default="free"
        "equal" is 1/C for every component. "free" is not supported yet and raises an error.
    n_active : int, "auto" or None, default="auto"
        C′, the components a point keeps, 1 … C. None is all of them: exact EM. "auto" is exact EM up to 16
        components and 5 above.
    search : {"auto", "full", "graph", "exact", "estimated"}, default="auto"
        Which components a point looks at before it keeps C′ of them: "full" is all; "exact" and "estimated" are
        var-GMM-X and -S of Forster & Lücke, "graph" renews its lists only where points move. "auto" is "graph" from 256
        components and 2²⁵ evaluations an iteration where C′ < C, else "full".
    n_neighbors : int or "auto", default="auto"
        G, the length of a component's neighbor list, itself among them. "auto" is 16 for "exact" and "estimated";
        "graph" begins with 33 and doubles them once if an exact search of a sample shows that they miss more than
        0.7 % of J.
    n_explore : int, default=1
        Random components that a point looks at besides, in "exact" and "estimated".
    n_warmup : int or "auto", default="auto"
        E-steps before the first M-step in a partial search. "auto" is 25 with init_sets="random", else 0.
    assignment : {"soft"}, default="soft"
        What the kept components are given: "soft" is the truncated posterior (5).
    init_params : {"auto", "k-means++", "random", "afk-mc2", "two-level"}, array-like, fitted estimator or callable
        Where the means start, as `init` of `KMeans`; default "auto".
    n_init : int, default=1
        Number of starts; the one of greatest lower bound is kept. From given means there is one.
    max_iter : int, default=100
        Most iterations of one start.
    tol : float, default=1e-3
        A start has converged once the lower bound per point changes by less than this, in nats.
    reg_covar : float, default=1e-6
        Least variance, in data unit²: an M-step gives no smaller one, so the likelihood stays bounded.
    weights_init, means_init, precisions_init : array-like, default=None
        Parameters to start from: weights must be equal; means of shape (n_components, n_features); for
        "tied_spherical" the precision is one number, 1/σ². None means: from `init_params`, with σ² by eq. (14).
    warm_start : bool, default=False
        Whether `fit` starts from the parameters of the fit before.
    init_sets : {"two-level", "random"}, default="two-level"
        How "exact" and "estimated" begin: from what a two-level search finds for each point, or from random sets.
    certificate_size, certificate_seed : int, default=1000 and 0
        Points searched exactly after a partial search, for `certificate_`, and the seed of their choice; 0 is none.
    n_threads : int or None, default=None
        Threads to use; None is every processor that the process may use. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Source of the random numbers of the start and of `sample`.
    verbose : int, default=0
        1 shows the library's log of every iteration on standard error.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
    means_ : ndarray of shape (n_components, n_features)
        In the dtype of the data.
    covariances_, precisions_, precisions_cholesky_ : float
        For "tied_spherical": σ² in data unit², 1/σ² and 1/σ.
    variance_ : float
        σ² in data unit².
    labels_ : ndarray of shape (n_samples,), int32
        The most probable component of each training point.
    neighbors_ : ndarray of shape (n_components, G), int32, or None
        The neighbor lists of a partial search, the component itself first; None after a full one.
    certificate_ : dict or None
        How good the partial search was on a random sample of points searched exactly: n_points, agreement (share whose
        best component was found), shortfall (of F, nats a point), with intervals at 95 %. None after a full search.
    n_active_ : int
        C′ as used.
    converged_ : bool
        Whether the start that was kept converged within max_iter.
    n_iter_ : int
    lower_bound_ : float
        F of the returned parameters per point, in nats.
    lower_bounds_ : list of float
        F as seen by the E-step of each iteration; it never falls.
    history_ : structured ndarray of shape (n_iter_,)
        One row an iteration: phase, lower_bound, quantization_error (J), n_distances, n_moved, seconds.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the data have names of columns.

    References
    ----------
    Lücke & Forster, *k-means as a variational EM approximation of Gaussian mixture models*: Alg. 2 (C′ = C), Alg. 3.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import GaussianMixture
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> gm = GaussianMixture(2, covariance_type="tied_spherical", weights="equal", random_state=0).fit(X)
    >>> sorted(gm.means_[:, 0].round(3).tolist())
    [0.5, 9.5]
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        weights: str = "free",
        n_active: int | str | None = "auto",
        search: str = "auto",
        n_neighbors: int | str = "auto",
        n_explore: int = 1,
        n_warmup: int | str = "auto",
        assignment: str = "soft",
        init_params: Any = "auto",
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        warm_start: bool = False,
        init_sets: str = "two-level",
        certificate_size: int = 1000,
        certificate_seed: int = 0,
        n_threads: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.weights = weights
        self.n_active = n_active
        self.search = search
        self.n_neighbors = n_neighbors
        self.n_explore = n_explore
        self.n_warmup = n_warmup
        self.assignment = assignment
        self.init_params = init_params
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.reg_covar = reg_covar
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.warm_start = warm_start
        self.init_sets = init_sets
        self.certificate_size = certificate_size
        self.certificate_seed = certificate_seed
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the parameters.

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
        self : GaussianMixture

        Raises
        ------
        ValueError
            If an argument is out of its range or not supported, or there are fewer points than components.
        """
        check_mixture(self)
        C = self.n_components
        n_active = resolve_n_active(self.n_active, C)
        X = self._validated(X, reset=True)
        if len(X) < C:
            raise ValueError(f"n_samples={len(X)} should be >= n_components={C}.")
        weights = check_weights(sample_weight, X)
        random_state = check_random_state(self.random_state)
        search = resolve_search(self, C, n_active, len(X), random_state)
        settings = self._settings(
            n_active,
            search,
            max_iter=self.max_iter,
            tol=self.tol,
            n_warmup=resolve_warmup(self, search),
            callback=self._callback,
        )
        init, variance = self._start(X)
        fit = self._best_run(X, weights, init, variance, self.reg_covar, settings, random_state)
        self._set_fitted(fit, settings)
        return self

    def _start(self, X: NDArray) -> tuple[Any, float]:
        """Where the means start, and the variance, not a number where it is to be found."""
        if self.warm_start and hasattr(self, "means_"):
            shape = (self.n_components, X.shape[1])
            if self.means_.shape != shape:
                raise ValueError(f"warm_start needs means_ of shape {shape}, got {self.means_.shape}.")
            return self.means_, max(self.variance_, self.reg_covar)
        variance = np.nan if self.precisions_init is None else max(1 / float(self.precisions_init), self.reg_covar)
        return (self.init_params if self.means_init is None else self.means_init), variance

    def _set_fitted(self, fit: em.Fit, settings: em.Settings) -> None:
        if not fit.converged and self.max_iter > 0:
            warnings.warn(
                f"The fit did not converge in max_iter={self.max_iter} iterations: try more of them, a larger tol, or "
                "check for degenerate data.",
                ConvergenceWarning,
                stacklevel=3,
            )
        C = self.n_components
        self.means_ = fit.model.centers
        self.variance_ = fit.model.variance
        self.weights_ = np.full(C, 1 / C)
        self.covariances_ = self.variance_
        self.precisions_ = 1 / self.variance_
        self.precisions_cholesky_ = float(np.sqrt(self.precisions_))
        self.n_active_ = settings.n_active
        self.lower_bound_ = fit.lower_bound
        self.history_ = em.history(fit.history)
        self.lower_bounds_ = self.history_["lower_bound"].tolist()
        self.converged_ = fit.converged
        self.n_iter_ = fit.n_iter

    def _parameters(self) -> TiedSpherical:
        return TiedSpherical(self.means_, self.variance_, 0.0)

    def _n_active(self) -> int:
        return self.n_active_

    def _n_components(self) -> int:
        return self.n_components

    def _nearest(self, X: NDArray) -> NDArray[np.int32]:
        return kernels.nearest(X, self.means_, n_threads=self.n_threads)[0][:, 0]

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.int32]:
        """Fit, and give the most probable component of each training point; as `fit(X).labels_`."""
        return self.fit(X, y, sample_weight).labels_

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The most probable component of each row: an exact search; ties go to the lower index.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
        """
        return self._nearest(self._validated(X, reset=False))

    def predict_proba(self, X: Any, sparse: bool = False) -> NDArray[np.float64] | csr_array:
        """The truncated posterior (5) of each row: exact EM's responsibilities where n_active_ is C.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        sparse : bool, default=False
            True gives a CSR array of the kept entries only; False an N×C array with exact zeros elsewhere.

        Returns
        -------
        probabilities : ndarray or csr_array of shape (n_samples, n_components), float64
            Rows sum to 1.
        """
        X = self._validated(X, reset=False)
        model = self._parameters()
        H, shape = self.n_active_, (len(X), model.n_components)
        if not sparse and model.n_components == H:
            squared = kernels.min_distances(X, model.centers, n_threads=self.n_threads).T
            return kernels.posterior(squared, model.scale, n_threads=self.n_threads).responsibilities
        kept, distances = kernels.nearest(X, model.centers, H, n_threads=self.n_threads)
        responsibilities = kernels.posterior(distances, model.scale, n_threads=self.n_threads).responsibilities
        if sparse:
            indptr = np.arange(0, len(X) * H + 1, H)
            result = csr_array((responsibilities.ravel(), kept.ravel(), indptr), shape=shape)
            result.sort_indices()
            return result
        dense = np.zeros(shape)
        np.put_along_axis(dense, kept.astype(np.intp), responsibilities, axis=1)
        return dense

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """The exact log-likelihood of each row, log Σ_c (1/C) N(x; μ_c, σ²I) over all components, in nats.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
        """
        X = self._validated(X, reset=False)
        model = self._parameters()
        return model.log_scale + kernels.log_sum_exp(X, model.centers, model.variance, n_threads=self.n_threads)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean exact log-likelihood per point (or unit of weight), in nats, eq. (3).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        log_likelihood : float
        """
        samples = self.score_samples(X)
        return float(np.average(samples, weights=check_weights(sample_weight, samples)))

    def bic(self, X: Any) -> float:
        """Bayesian information criterion, −2 N L + parameters · log N, with the exact L; the lower the better."""
        samples = self.score_samples(X)
        return float(-2 * samples.sum() + self._parameters().n_parameters * np.log(len(samples)))

    def aic(self, X: Any) -> float:
        """Akaike information criterion, −2 N L + 2 · parameters, with the exact L; the lower the better."""
        return float(-2 * self.score_samples(X).sum() + 2 * self._parameters().n_parameters)

    def sample(self, n_samples: int = 1) -> tuple[NDArray, NDArray[np.int32]]:
        """Draw points from the fitted mixture.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            In the dtype of the means.
        components : ndarray of shape (n_samples,), int32
            The component that each point was drawn from, in rising order.
        """
        check_is_fitted(self)
        check_integer(n_samples, "n_samples", 1)
        random_state = check_random_state(self.random_state)
        components = np.sort(random_state.randint(self.n_components, size=n_samples)).astype(np.int32)
        noise = random_state.standard_normal((n_samples, self.means_.shape[1])) * np.sqrt(self.variance_)
        return self.means_[components] + noise.astype(self.means_.dtype), components
