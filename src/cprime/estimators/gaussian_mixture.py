"""Gaussian mixtures, fitted by EM over the C′ best components of each point, from C′ = 1 to exact EM (C′ = C)."""

from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture as SklearnMixture
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from cprime._utils.declared import Presence
from cprime._utils.values import replace
from cprime.estimators.conditionals import condition, marginal, regress
from cprime.estimators.covariances import Factors, covariances_of, family_of
from cprime.estimators.fitted import as_pipeline
from cprime.estimators.fitted_mixture import best_of
from cprime.estimators.memory_limit import Memory
from cprime.estimators.missing import impute
from cprime.estimators.mixture import Mixture
from cprime.estimators.mixture_problems import MixtureOptions
from cprime.estimators.priors import Prior, conjugate_prior
from cprime.kernels import Rows, computing
from cprime.model import PENALIZED
from cprime.persistence import model_files
from cprime.search.base import BaseSearch


def _latent(model: Any, X: Rows) -> NDArray[np.float64]:
    """Return the H expected factors E[z | x] of each row under its best component, a factor analyzer: (n, H)."""
    return model.latent(X, best_of(model, X))


@model_files.register
class GaussianMixture(Mixture):
    """Gaussian mixture fitted by truncated variational EM.

    The fit increases the free energy F(K, Θ) = 1/W Σ_n w_n log Σ_{c∈K(n)} π_c p(x_n | c, Θ), eq. (7) of Lücke &
    Forster, for points x_n of weight w_n and total weight W. The active set K(n) of point n contains only its C′ best
    components, so F is a lower bound of the log-likelihood.

    Parameters are in four groups: components (`n_components` to `missing`), algorithm (`search` to `random_state`),
    given parameters and constraints (`weights_init` to `semi_supervised`) and resources (`n_threads` to `verbose`).
    `docs/options.md` says more.

    Parameters
    ----------
    n_components : int, default=1
    covariance_type : str or Factors, default="full"
        One covariance matrix per component ("full"), one for all ("tied"), variances by feature ("diag"), the same for
        all components ("tied_diag"), one variance per component ("spherical") or one for all, as in Lücke & Forster
        ("tied_spherical"). `Factors(5)` are factor analyzers of 5 factors, for many features; "factors" is `Factors()`,
        "ppca" is `Factors(isotropic=True)`. mclust's fourteen names, from "EII" to "VVV", are of covariances with
        equal (E), variable (V) or identity (I) volumes, shapes and orientations.
    weights : {"free", "equal"}, default="free"
        Whether the weights π_c are estimated, or are 1/C for every component as in Lücke & Forster.
    n_active : int, "auto" or None, default="auto"
        C′, the size of active sets, 1 … C. None is C: exact EM. "auto" is C up to 16 components, and 5 above. With
        assignment="hard" a larger C′ improves the search only; None and "auto" are then 1.
    assignment : {"soft", "hard", "sampled"}, default="soft"
        Responsibilities of the active components: "soft" is the truncated posterior, eq. (5). "hard" is 1 for the best
        component (classification EM); with weights="equal" this is the K-means of Kearns et al., for any densities.
        "sampled" is 1 for a component drawn from the posterior: stochastic EM, which runs for max_iter iterations and
        whose lower bound may fall. The posterior partition of Kearns et al. is `theory.fit_assignment`.
    missing : {"error", "marginal"}, default="error"
        How NaN and nulls are treated: as an error, or as missing values. With "marginal", the fit is EM for the
        likelihood of the observed values, which is valid if values are missing at random. See `impute`.
    search : str or object of cprime.search, default="auto"
        Candidate components of a point, from which the best C′ are selected: "full" is all; "graph" uses neighbor
        lists; "exact" and "estimated" are var-GMM-X and -S of Forster & Lücke; "bounded", for C′ = 1, has the result of
        "full"; "auto" is "graph" for many components and C′ < C, otherwise "full". The classes of `cprime.search` of
        these names have options, such as the length of the lists.
    init_params : str, array-like, fitted estimator or callable, default="auto"
        Initialization of the means: "kmeans", "random" or as `init` of `KMeans`; labels (integers of shape
        (n_samples,)); responsibilities of shape (n_samples, C); or means, used as `means_init`. Other parameters are
        estimated from the hard assignment to these means. "auto" is "kmeans", and other kinds in further starts.
    n_init : int, default=1
        Number of starts; the result of greatest lower bound is returned. A result with components collapsed onto a few
        points is returned only if all starts end with such components, because its likelihood is unbounded. Given
        means, labels or responsibilities are used for one start only.
    max_iter : int, default=100
    tol : float, default=1e-3
        A start has converged if the lower bound per point changes by less than this, in nats.
    momentum : "auto" or bool, default="auto"
        Whether E-steps use parameters extrapolated beyond those of the M-step (Nesterov's momentum), which takes about
        half of the iterations. "auto" is True for more than 16 components with soft assignment and C′ > 1, except with
        the searches "exact" and "estimated". The bound never falls.
    reg_covar : float, default=1e-6
        Added to the variances by every M-step, in data unit², as in scikit-learn, so that covariances are positive
        definite; the lower bound may fall by a term of this size. With 0 it never falls. For "tied_spherical" it is the
        least variance instead, and the bound never falls.
    prior : Prior or None, default=None
        A prior of means and covariances, `Prior()` for that of mclust: F then includes the log-density of the prior, up
        to a constant and divided by N, and the fit finds a mode of the posterior. The methods, such as `score` and
        `bic`, use the likelihood alone. None is maximum likelihood.
    learning_decay : float, default=1.0
        κ of `partial_fit`, above 0.5 and at most 1: the share of a batch of weight W is min(1, W/n^κ), where n is the
        total weight so far. With 1 all points count equally; smaller values forget early points.
    warm_start : bool, default=False
        Whether `fit` starts from the parameters of the previous fit, as in scikit-learn, and not from `weights_init`,
        `means_init`, `precisions_init`. The first iteration is then compared by `tol` with the last one of that fit.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers of the start and of `sample`.
    weights_init, means_init, precisions_init : array-like, default=None
        Starting parameters, of the shapes of `weights_`, `means_` and `precisions_`; weights="equal" allows equal
        weights only. Those that are None are set by `init_params`, or from the hard assignment of the points to the
        nearest of `means_init`, with covariances about these means.
    fixed : tuple (means, covariances) or None, default=None
        Known first m components, which the fit does not change: their means (m, n_features), and their covariances in
        the shape of `covariances_`. All weights and the other components are fitted. For "full", "diag", "spherical".
    semi_supervised : bool, default=False
        Whether the argument `y` of `fit` has labels of points, integers from 0 to C − 1, and −1 for unknown. Points
        with a label belong to their component only; the search is exact. False ignores y, because a pipeline passes the
        targets of its last step to all steps.
    n_threads : int or None, default=None
    checkpoint : path or None, default=None
    max_memory : int, str, Memory or None, default=None
    callbacks : callback or sequence of them, default=None
    verbose : int, default=0

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
    means_ : ndarray of shape (n_components, n_features)
    covariances_, precisions_ : ndarray, or float for "tied_spherical"
        Covariances in data unit² and their inverses; of shape (C, D, D) for "full", (D, D) for "tied", (C, D) for
        "diag", (D,) for "tied_diag", (C,) for "spherical"; (C, D) for "VEI" and "EVI", (C, D, D) for other names.
    precisions_cholesky_ : ndarray or float
        Upper triangular P with P Pᵀ equal to the precision matrix; square roots of precisions that are numbers.
    factors_, noise_variances_ : ndarray of shape (n_components, n_features, H), (n_components, n_features)
        Λ in data units and ψ in data unit², for "factors" and "ppca", instead of covariances, which are Λ Λᵀ + diag(ψ).
    variance_ : float
        σ² in data unit², for "tied_spherical" only.
    labels_ : ndarray of shape (n_samples,), int32
    neighbors_ : ndarray of shape (n_components, G), int32, or None
        The neighbor lists of a partial search, each beginning with the component itself; None after a full search.
    certificate_ : dict or None
        Quality of a partial search, measured on random points searched exactly: n_points, agreement (share of points
        whose best component was found) and shortfall (of F, in nats per point), with 95 % intervals
        agreement_interval and shortfall_interval. An interval is one number if all points were searched. None after a
        full search.
    n_active_ : int
        C′ as used: 1 with assignment="hard".
    counts_ : ndarray of shape (n_components,)
        Σ_n w_n q_nc of each component c, with weights w and responsibilities q, over the points of the fit or all
        batches of `partial_fit`. If learning_decay < 1, it is the total weight of all batches, divided among the
        components in proportion to their decayed statistics.
    converged_ : bool
        Whether the best start converged within max_iter; False with "sampled" and after `partial_fit`.
    final_assignment_ : str
        How `labels_` were computed: "exact", or "found" by a partial search; "labeled" if points with labels keep their
        components.
    n_iter_ : int
        Number of iterations of the best start, including E-steps before the first M-step and batches of `partial_fit`.
    lower_bound_ : float
        F of the returned parameters per point, in nats.
    lower_bounds_ : list of float
        F at the E-step of each iteration. With reg_covar=0 it never falls in a `fit`, unless assignment is "sampled"
        or a covariance had to be repaired.
    history_ : structured ndarray of shape (`n_iter_`,)
        One row per iteration: phase ("warmup", "em" or "online"), lower_bound, quantization_error (for "tied_spherical"
        J of the points and the means of their best components; NaN for other covariance types, which do not use
        Euclidean distances), n_distances, n_between (as in `KMeans`), n_moved (number of reassigned points), seconds.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
    list_column_ : str
        Name of the column of lists of numbers that was fitted; present after a fit of such a column of a file.

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

    factors_: Annotated[NDArray, Presence.OPTIONAL]
    noise_variances_: Annotated[NDArray, Presence.OPTIONAL]
    variance_: Annotated[float, Presence.OPTIONAL]

    _takes_noise = True  # whether rows may be `Noisy`
    impute = impute
    marginal = marginal
    condition = condition
    regress = regress

    def __init__(
        self,
        # components
        n_components: int = 1,
        *,
        covariance_type: str | Factors = "full",
        weights: str = "free",
        n_active: int | str | None = "auto",
        assignment: str = "soft",
        missing: str = "error",
        # algorithm
        search: str | BaseSearch = "auto",
        init_params: Any = "auto",
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-3,
        momentum: bool | str = "auto",
        reg_covar: float = 1e-6,
        prior: Prior | None = None,
        learning_decay: float = 1.0,
        warm_start: bool = False,
        random_state: Any = None,
        # given parameters and constraints
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        fixed: Any = None,
        semi_supervised: bool = False,
        # resources
        n_threads: int | None = None,
        checkpoint: Any = None,
        max_memory: int | float | str | Memory | None = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.weights = weights
        self.n_active = n_active
        self.assignment = assignment
        self.missing = missing
        self.search = search
        self.init_params = init_params
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.momentum = momentum
        self.reg_covar = reg_covar
        self.prior = prior
        self.learning_decay = learning_decay
        self.warm_start = warm_start
        self.random_state = random_state
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.fixed = fixed
        self.semi_supervised = semi_supervised
        self.n_threads = n_threads
        self.checkpoint = checkpoint
        self.max_memory = max_memory
        self.callbacks = callbacks
        self.verbose = verbose

    def _check_arguments(self) -> None:
        super()._check_arguments()
        if self.prior is None:
            return
        if not isinstance(self.prior, Prior):
            raise TypeError(f"prior must be a Prior or None, got {self.prior!r}.")
        if family_of(self.covariance_type) not in PENALIZED:
            raise ValueError(f"prior needs covariance_type in {tuple(PENALIZED)}, got {self.covariance_type!r}.")

    def _options(self) -> MixtureOptions:
        options = super()._options()
        if self.prior is None:
            return options
        name = family_of(self.covariance_type)
        return replace(options, family=PENALIZED[name], prior_of=partial(conjugate_prior, self.prior, name))

    def _options_of_fit(self) -> dict[str, Any]:
        if getattr(self.covariance_type, "n_factors", "auto") == "auto":
            return {}
        with computing(self.n_threads):
            return {"covariance_type": covariances_of(self._parameters())}

    def transform_factors(self, X: Any) -> NDArray:
        """Return the expected factors E[z | x] of each row, under its most probable component, a factor analyzer.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        factors : ndarray of shape (n_samples, H)
            H is the number of factors of a component. In the dtype of the means. A row n whose most probable component
            is c is approximated by means_[c] + factors_[c] @ factors[n].

        Raises
        ------
        ValueError
            If covariance_type is neither "factors" nor "ppca".
        """
        check_is_fitted(self)
        if not hasattr(self._family, "latent"):
            raise ValueError(f"transform_factors needs components with factors, got {self.covariance_type_!r}.")
        with computing(self.n_threads):
            data = self._opened(X)
            model: Any = self._parameters()
            return data.map(partial(_latent, model), model.n_factors, model.centers.dtype)

    def to_sklearn(self) -> SklearnMixture | Pipeline:
        """Return a fitted scikit-learn `GaussianMixture` with the same parameters, for tools that require one.

        Returns
        -------
        mixture : sklearn.mixture.GaussianMixture or sklearn.pipeline.Pipeline
            A pipeline if the fit filled or scaled its data: it begins with a `SimpleImputer` or a `StandardScaler` with
            the values of the fit. Its predictions use all components, as in exact EM. "tied_spherical" becomes
            "spherical" with equal variances; "factors" and "ppca" become "full", with C·D² numbers; "tied_diag" and
            families that have only mclust's names become "diag" or "full".
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
        for name in ("converged_", "n_iter_", "lower_bound_", "lower_bounds_"):
            if hasattr(self, name):
                setattr(mixture, name, getattr(self, name))
        return as_pipeline(self, mixture)
