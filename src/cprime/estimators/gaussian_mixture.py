"""Gaussian mixtures: each point keeps its C′ best components, from k-means (C′ = 1) to exact EM (C′ = C)."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture as SklearnMixture
from sklearn.utils.validation import check_is_fitted

from cprime import storage
from cprime.estimators.fitted_mixture import best_of
from cprime.estimators.gaps import Imputing
from cprime.estimators.mixture import Mixture
from cprime.kernels import Rows, computing
from cprime.search import Search


def _latent(model: Any, X: Rows) -> NDArray[np.float64]:
    """The factors of each row, given its best component: (n, H)."""
    return model.latent(X, best_of(model, X))


@storage.register
class GaussianMixture(Imputing, Mixture):
    """Gaussian mixture fitted by truncated variational EM.

    Raises the free energy F(K, Θ) = 1/W Σ_n w_n log Σ_{c∈K(n)} π_c p(x_n | c, Θ), eq. (7), a lower bound of the
    log-likelihood, in which each point keeps the C′ components that are best for it.

    Parameters
    ----------
    n_components : int, default=1
        Number of components C, at most the number of points.
    covariance_type : {"full", "tied", "diag", "spherical", "tied_spherical", "factors", "ppca"}, default="full"
        As scikit-learn's: a covariance matrix for each component, one for all, variances by feature, one variance for
        each. "tied_spherical" is one variance for all components and directions, the model of the papers. "factors" are
        factor analysers, for many features: n_factors directions and noise by feature; "ppca" has one noise for all.
    n_factors : int or "auto", default="auto"
        H, the directions of a component of "factors" and "ppca", below the number of features; "auto" is 5, or one less
        than there are features.
    weights : {"free", "equal"}, default="free"
        Whether the weights π_c follow from the data, or are 1/C for every component as in the papers.
    n_active : int, "auto" or None, default="auto"
        C′, the components a point keeps, 1 … C. None is all of them: exact EM. "auto" is exact EM up to 16
        components and 5 above. With assignment="hard" what a point keeps serves the search alone; None and "auto" are
        then 1.
    search : str or object of cprime.search, default="auto"
        Which components a point looks at before it keeps C′ of them: "full" is all; "exact" and "estimated" are
        var-GMM-X and -S of Forster & Lücke, "graph" renews its lists only where points move. "auto" is "graph" from 128
        components and 2²⁰ evaluations an iteration where C′ < C, else "full". "bounded", for
        C′ = 1, finds what "full" does; of Gaussians that share one variance it skips what bounds on distances exclude.
        The objects `Full`, `Bounded`, `Graph` and `Papers` of `cprime.search` have the options of each.
    n_neighbors : int or "auto", default="auto"
        G, the length of a component's neighbor list, itself among them, of the search that a string names, if it has
        lists. "auto" is 16 for "exact" and "estimated"; "graph" begins with 65, or 33 for n_active=1, and doubles them
        while an exact search of a sample shows that they are too short.
    assignment : {"soft", "hard", "posterior"}, default="soft"
        What the kept components are given: "soft" is the truncated posterior (5); "hard" gives all to the best one,
        which is classification EM, and with weights="equal" the K-means of Kearns et al. for any densities;
        "posterior" gives all to one drawn from the posterior, which is stochastic EM: it runs for max_iter iterations,
        and its lower bound may fall.
    init_params : str, array-like, fitted estimator or callable, default="auto"
        Where the means start: "kmeans" (k-means by `KMeans`), "k-means++", "random" (or "random_from_data": random
        points), "afk-mc2", "two-level", or as `init` of `KMeans`. "auto" is "kmeans", and of several starts these,
        "k-means++" and "random" in turn, since starts of one kind mostly end alike. Weights and covariances start from
        the hard assignment of the points to these means, and so do the means of all but "tied_spherical" with equal
        weights.
    n_init : int, default=1
        Number of starts; the one of greatest lower bound is kept, but that of one that has collapsed onto a few points,
        whose likelihood has no bound, only where all have. From given means there is one.
    max_iter : int, default=100
        Most iterations of one start.
    tol : float, default=1e-3
        A start has converged once the lower bound per point changes by less than this, in nats.
    momentum : "auto" or bool, default="auto"
        Whether E-steps see parameters beyond those of the M-step (Nesterov's momentum): some half of the iterations, to
        the same kind of optimum; an iteration that would lower the bound is taken back and counts for `max_iter` only.
        "auto" is True for more than 16 components of soft assignment and C′ > 1, but with the searches of the papers.
    reg_covar : float, default=1e-6
        Added to the variances by every M-step, in data unit², as in scikit-learn: covariances stay positive definite.
        With 0 the lower bound never falls; else it may, by reg_covar/2 Σ_c π_c (tr Σ_c,old⁻¹ − tr Σ_c,new⁻¹) in an
        iteration at most. Where a covariance has become singular and is repaired, which the log says, it may fall by
        more. For "tied_spherical" reg_covar is the least variance instead, and the bound never falls.
    weights_init, means_init, precisions_init : array-like, default=None
        Parameters to start from, of the shapes of `weights_`, `means_` and `precisions_`; weights="equal" allows
        equal ones only. What is None comes from `init_params`.
    missing : {"error", "marginal"}, default="error"
        What NaN and nulls are: an error, or numbers that are not known. With "marginal" a row is compared with
        components by the density of what is observed, and M-steps take what is missing as they expect it: EM of the
        likelihood of what is observed, which is right where chance does not depend on what is missing (missing at
        random). Starts see the columns' means in its place. See `impute`.
    learning_decay : float, default=1.0
        κ of `partial_fit`, above 0.5 and at most 1: a batch of weight W counts for the share min(1, W/n^κ), n being the
        weight so far. 1 counts all points alike, less forgets what was long ago.
    warm_start : bool, default=False
        Whether `fit` starts from the parameters of the fit before, and `tol` judges its first iteration by that fit's
        last one.
    certificate : int, default=1000
        Points searched exactly after a partial search, for `certificate_`; 0 is none.
    final_assignment : {"auto", "exact", "found"}, default="auto"
        What `labels_` and `lower_bound_` are of after a partial search: "exact" is the best component of all,
        searched for every point once more, as by `predict`; "found" is the one that the search has found. "auto" is
        exact where that takes no longer than the fit itself: N·C is at most four times the evaluations of the fit.
    checkpoint : path or None, default=None
        A folder, new or empty, that `fit` keeps its state in: a fit that has died is gone on with by `cprime.resume`,
        or by the same call of `fit`, and ends in the same bits. It holds the model at the end.
    spill : path or None, default=None
        A folder that `fit` has what points keep in from one iteration to the next, in place of memory: in files without
        names, which go with the fit. Results are the same bits. None is memory; with a checkpoint, of data in several
        chunks, it is that folder from 1 GiB of kept sets on.
    max_memory : int, str or None, default=None
        Bytes, or a text as "8GB", that `fit` may take beyond what the process holds. Chunks of sources become as small
        as that asks for, which changes the last digits of results, and no copy is made that does not fit; where nothing
        helps `fit` ends with an error before it reads, which says what would. See `cprime.plan`. None is no limit.
    callbacks : callback or sequence of them, default=None
        What is told of every iteration and may end the fit: functions of a row of `history_`, as a dictionary, and of
        the estimator as it is then, or objects with such a method `on_iteration`; see `cprime.callbacks.Callback`.
        True ends the fit. A model file does not hold them.
    n_threads : int or None, default=None
        Threads to use; None is every processor that the process may use. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers of the start and of `sample`.
    verbose : int, default=0
        1 shows a progress bar: F, how many points' components the last audit has found, and about how long it will take
        still; where no bar can be drawn, the library's log, a line an iteration.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        As all arrays of parameters in the dtype of the data.
    means_ : ndarray of shape (n_components, n_features)
    covariances_, precisions_ : ndarray, or float for "tied_spherical"
        Covariances in data unit² and their inverses; of shape (C, D, D) for "full", (D, D) for "tied", (C, D) for
        "diag", (C,) for "spherical".
    precisions_cholesky_ : ndarray or float
        P upper triangular with P Pᵀ the precision; square roots of the precisions where these are numbers.
    factors_, noise_variances_ : ndarray of shape (n_components, n_features, H), (n_components, n_features)
        Λ and ψ of "factors" and "ppca", in place of covariances Λ Λᵀ + diag(ψ), in data units and data unit².
    variance_ : float
        σ² in data unit², for "tied_spherical" only.
    labels_ : ndarray of shape (n_samples,), int32
        The most probable component of each training point, or that which the search found: see final_assignment.
    neighbors_ : ndarray of shape (n_components, G), int32, or None
        The neighbor lists of a partial search, the component itself first; None after a full one.
    certificate_ : dict or None
        Of a partial search on a random sample of points searched exactly: n_points, agreement (share whose best
        component was found), shortfall (of F, nats a point), with intervals at 95 %. None after a full search.
    n_active_ : int
        C′ as used: 1 with assignment="hard".
    counts_ : ndarray of shape (n_components,)
        Σ w q by component, of the fit or of all batches of `partial_fit`; where batches are forgotten, the weight of
        them all in the shares that are remembered.
    converged_ : bool
        Whether the start that was kept converged within max_iter; False with "posterior" and after `partial_fit`.
    final_assignment_ : str
        What `labels_` are: "exact", or "found" by a partial search.
    n_iter_ : int
        Iterations of the start that was kept, E-steps before the first M-step and batches of `partial_fit` among them.
    lower_bound_ : float
        F of the returned parameters per point, in nats.
    lower_bounds_ : list of float
        F as seen by the E-step of each iteration; with reg_covar=0 it never falls in a `fit`, unless assignment is
        "posterior" or a covariance had to be repaired.
    history_ : structured ndarray of shape (`n_iter_`,)
        One row an iteration: phase ("warmup", "em" or "online"), lower_bound, quantization_error (J of the points and
        the means of their best components, of "tied_spherical"; NaN of the others, which compare points by other
        distances), n_distances, n_moved, seconds.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the data have names of columns.

    References
    ----------
    Lücke & Forster, *k-means as a variational EM approximation of Gaussian mixture models*: Alg. 2 (C′ = C), Alg. 3,
    eq. (31). Kearns, Mansour & Ng, *An information-theoretic analysis of hard and soft assignment methods for
    clustering*. Ghahramani & Hinton, *The EM algorithm for mixtures of factor analyzers*. Tipping & Bishop, *Mixtures
    of probabilistic principal component analyzers*.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import GaussianMixture
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> gm = GaussianMixture(2, random_state=0).fit(X)
    >>> sorted(gm.means_[:, 0].round(3).tolist())
    [0.5, 9.5]
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        n_factors: int | str = "auto",
        weights: str = "free",
        n_active: int | str | None = "auto",
        search: str | Search = "auto",
        n_neighbors: int | str = "auto",
        assignment: str = "soft",
        init_params: Any = "auto",
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-3,
        momentum: bool | str = "auto",
        reg_covar: float = 1e-6,
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        missing: str = "error",
        learning_decay: float = 1.0,
        warm_start: bool = False,
        certificate: int = 1000,
        final_assignment: str = "auto",
        checkpoint: Any = None,
        spill: Any = None,
        max_memory: int | float | str | None = None,
        callbacks: Any = None,
        n_threads: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.covariance_type, self.n_factors = covariance_type, n_factors
        self.weights = weights
        self.n_active = n_active
        self.search = search
        self.n_neighbors = n_neighbors
        self.assignment = assignment
        self.init_params = init_params
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.momentum = momentum
        self.reg_covar = reg_covar
        self.weights_init, self.means_init, self.precisions_init = weights_init, means_init, precisions_init
        self.missing = missing
        self.learning_decay = learning_decay
        self.warm_start = warm_start
        self.certificate = certificate
        self.final_assignment = final_assignment
        self.checkpoint, self.spill, self.max_memory = checkpoint, spill, max_memory
        self.callbacks = callbacks
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def _options_of_fit(self) -> dict[str, Any]:
        with computing(self.n_threads):
            model = self._parameters()
        return {name: getattr(model, name) for name in model.followed_options if getattr(self, name) != "auto"}

    def transform_factors(self, X: Any) -> NDArray:
        """E[z | x] of each row for its most probable component, where components are factor analysers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        factors : ndarray of shape (n_samples, H)
            In the dtype of the means; a row comes near means_[c] + factors_[c] @ factors[n], c being its component.

        Raises
        ------
        ValueError
            If covariance_type is neither "factors" nor "ppca".
        """
        check_is_fitted(self)
        if not hasattr(self._family, "latent"):
            raise ValueError(f"transform_factors needs components with factors, got {self.covariance_type_!r}.")
        data = self._opened(X)
        with computing(self.n_threads):
            model: Any = self._parameters()
            return data.map(partial(_latent, model), model.n_factors, model.centers.dtype)

    def to_sklearn(self) -> SklearnMixture:
        """A fitted scikit-learn `GaussianMixture` of the same parameters, for what takes only those (ONNX, say).

        Returns
        -------
        mixture : sklearn.mixture.GaussianMixture
            It predicts by all components, as exact EM does; "tied_spherical" becomes "spherical" with equal variances,
            "factors" and "ppca" become "full", in C·D² numbers.
        """
        check_is_fitted(self)
        family = self._family
        mixture = SklearnMixture(len(self.means_), covariance_type=family.sklearn_type, random_state=self.random_state)
        if family.sklearn_type == self.covariance_type_:
            found = {name: getattr(self, name).copy() for name in family.attribute_names}
        else:
            with computing(self.n_threads):
                found = self._parameters().as_sklearn()
        for name, value in found.items():
            setattr(mixture, name, value)
        mixture.means_, mixture.weights_ = self.means_.copy(), self.weights_.copy()
        for name in ("converged_", "n_iter_", "lower_bound_", "lower_bounds_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(mixture, name, getattr(self, name))
        return mixture
