"""Bayesian Gaussian mixtures, fitted by variational Bayes over the C′ best components of each point."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.mixture import BayesianGaussianMixture as SklearnMixture
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from cprime._utils.declared import Number, Presence
from cprime._utils.values import replace
from cprime.estimators.fitted import as_pipeline
from cprime.estimators.memory_limit import Memory
from cprime.estimators.missing import impute
from cprime.estimators.mixture import Mixture
from cprime.estimators.mixture_problems import MixtureOptions
from cprime.estimators.priors import bayesian_prior
from cprime.estimators.solutions import implied
from cprime.estimators.validation import check_choice, check_positive, check_real
from cprime.model import BAYESIAN
from cprime.persistence import model_files
from cprime.search.base import BaseSearch


@model_files.register
class BayesianGaussianMixture(Mixture):
    """Gaussian mixture with a posterior of its parameters, by truncated variational Bayes: C need not be chosen.

    The fit increases the evidence lower bound, N times F = 1/N (Σ_n w_n log Σ_{c∈K(n)} exp E[log π_c p(x_n | c)] −
    KL(q ‖ p)), for points x_n of weight w_n and total weight N. Expectations are over the posterior q of the parameters
    Θ, a product of one factor for the weights and one for each component, and p is their prior. The active set K(n) of
    point n contains only its C′ best components; F is a lower bound of log p(X) / N for every C′. Components that the
    data do not need lose their points during the fit, so their weights are near 0; `n_effective_` counts the others.

    Parameters
    ----------
    n_components : int, default=1
        Number of components C, an upper limit of the number that get points.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        The form of the covariances, as in `GaussianMixture`.
    weight_concentration_prior_type : {"dirichlet_process", "dirichlet_distribution"}, default="dirichlet_process"
        Prior of the weights. A Dirichlet process prefers large weights for the first components.
    weight_concentration_prior : float or None, default=None
        The parameter of this prior, above 0: γ of the Dirichlet distribution, or α of the process. Smaller values leave
        fewer components with points. None is 1 / n_components.
    mean_precision_prior : float or None, default=None
        κ, above 0: the number of points that `mean_prior` is worth for the mean of a component. None is 1.
    mean_prior : array-like of shape (n_features,) or None, default=None
        Mean of the prior of the means, in data units. None is the mean of the data.
    degrees_of_freedom_prior : float or None, default=None
        ν_0 of the Wishart distribution of precisions, above n_features − 1: the number of points that
        `covariance_prior` / ν_0 is worth. None is n_features.
    covariance_prior : float, array-like or None, default=None
        Inverse of the scale matrix of the Wishart distribution, in data unit²: of shape (D, D) for "full" and "tied",
        (D,) for "diag", a number for "spherical". None is the covariance of the data, their scatter divided by N.
    n_active : int, "auto" or None, default="auto"
    assignment : {"soft", "hard", "sampled"}, default="soft"
    missing : {"error", "marginal"}, default="error"
        How NaN and nulls are treated, as in `GaussianMixture`. With "marginal" they have a posterior, too. See
        `impute`.
    search : str or object of cprime.search, default="auto"
    init_params : str, array-like, fitted estimator or callable, default="auto"
        Initialization of the means, labels or responsibilities, as in `GaussianMixture`.
    n_init : int, default=1
    max_iter : int, default=100
    tol : float, default=1e-3
    momentum : "auto" or bool, default="auto"
        As in `GaussianMixture`. The bound never falls.
    reg_covar : float, default=0.0
        Added to the variance of every point by every M-step, in data unit², as in scikit-learn. With 0 the bound never
        falls; the prior keeps covariances positive definite.
    warm_start : bool, default=False
    random_state : int, RandomState, Generator or None, default=None
    means_init : array-like of shape (n_components, n_features), default=None
        Starting means. The posterior is computed from the hard assignment of the points to the nearest of them.
    n_threads : int or None, default=None
    checkpoint : path or None, default=None
    max_memory : Memory or None, default=None
        `Memory(spill=folder)` stores active sets in files of a folder; it must have no limit.
    callbacks : callback or sequence of them, default=None
    verbose : int, default=0

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Expected weights, scaled to sum to 1.
    means_ : ndarray of shape (n_components, n_features)
        Expected means.
    covariances_, precisions_, precisions_cholesky_ : ndarray
        Expected precisions, their inverses and their Cholesky factors, of the shapes in `GaussianMixture`.
    weight_concentration_ : ndarray of shape (n_components,) or (2, n_components)
        Parameters of the Dirichlet distribution of the weights, or of the beta distributions of the process.
    mean_precision_ : ndarray of shape (n_components,)
        β_c = κ + N_c, where N_c is the weight of the points of component c.
    degrees_of_freedom_ : ndarray of shape (n_components,), or float for "tied"
        ν_0 + N_c; for "tied" ν_0 + N / C, because each component has its own prior, as in scikit-learn.
    weight_concentration_prior_, mean_precision_prior_, degrees_of_freedom_prior_ : float
        Parameters of the prior that were used.
    mean_prior_ : ndarray of shape (n_features,)
        The mean of the prior that was used.
    covariance_prior_ : ndarray or float
        The covariance of the prior that was used.
    n_effective_ : int
        Number of components with points of total weight of at least one.
    labels_ : ndarray of shape (n_samples,), int32
    neighbors_, certificate_, n_active_, counts_, converged_, final_assignment_, n_iter_, lower_bound_, lower_bounds_, \
n_features_in_, feature_names_in_
        As in `GaussianMixture`, where `lower_bound_` is the evidence lower bound per point. scikit-learn's is not
        divided by N, and it lacks the constants −N D/2 log 2π and the logarithms of the normalizing constants of p.
    history_ : structured ndarray of shape (`n_iter_`,)
        As in `GaussianMixture`; quantization_error is NaN.

    See Also
    --------
    GaussianMixture : Maximum likelihood, or with `prior` the mode of the posterior.

    Notes
    -----
    `score_samples` is log Σ_c exp E[log π_c p(x | c)], as in scikit-learn: a lower bound of the log-density that the
    posterior predicts. For "diag" and "spherical" the priors are Wishart distributions of D × D matrices, with
    posteriors whose scale matrices have this form, as in scikit-learn. The bound increases for every type.

    References
    ----------
    Attias (2000), *A variational Bayesian framework for graphical models*. Bishop (2006), *Pattern recognition and
    machine learning*, section 10.2. Blei & Jordan (2006), *Variational inference for Dirichlet process mixtures*.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import BayesianGaussianMixture
    >>> X = np.random.default_rng(0).normal(np.repeat([[0.0], [9.0]], 200, axis=0))
    >>> bgm = BayesianGaussianMixture(8, weight_concentration_prior=0.01, max_iter=500, random_state=0).fit(X)
    >>> bgm.n_effective_
    2
    """

    _families: ClassVar[Mapping[str, Any]] = BAYESIAN
    weights = "free"
    weights_init = None
    precisions_init = None
    learning_decay = 1.0
    _has_plan = False
    weight_concentration_: NDArray
    mean_precision_: NDArray
    degrees_of_freedom_: Any
    weight_concentration_prior_: float
    mean_precision_prior_: float
    degrees_of_freedom_prior_: float
    mean_prior_: NDArray
    covariance_prior_: Any
    n_effective_: Annotated[int, Number(least=0, below="C+1"), Presence.OPTIONAL] = implied(
        lambda m: int(np.count_nonzero(m.mean_precision_ >= m.mean_precision_prior_ + 1)), "mean_precision_"
    )

    impute = impute

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        weight_concentration_prior_type: str = "dirichlet_process",
        weight_concentration_prior: float | None = None,
        mean_precision_prior: float | None = None,
        mean_prior: Any = None,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior: Any = None,
        n_active: int | str | None = "auto",
        assignment: str = "soft",
        missing: str = "error",
        search: str | BaseSearch = "auto",
        init_params: Any = "auto",
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-3,
        momentum: bool | str = "auto",
        reg_covar: float = 0.0,
        warm_start: bool = False,
        random_state: Any = None,
        means_init: Any = None,
        n_threads: int | None = None,
        checkpoint: Any = None,
        max_memory: Memory | None = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.weight_concentration_prior_type = weight_concentration_prior_type
        self.weight_concentration_prior = weight_concentration_prior
        self.mean_precision_prior = mean_precision_prior
        self.mean_prior = mean_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
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
        self.warm_start = warm_start
        self.random_state = random_state
        self.means_init = means_init
        self.n_threads = n_threads
        self.checkpoint = checkpoint
        self.max_memory = max_memory
        self.callbacks = callbacks
        self.verbose = verbose

    def _check_arguments(self) -> None:
        super()._check_arguments()
        kinds = ("dirichlet_process", "dirichlet_distribution")
        check_choice(self.weight_concentration_prior_type, "weight_concentration_prior_type", kinds)
        for name in ("weight_concentration_prior", "mean_precision_prior"):
            if getattr(self, name) is not None:
                check_positive(getattr(self, name), name)
        if self.degrees_of_freedom_prior is not None:
            check_real(self.degrees_of_freedom_prior, "degrees_of_freedom_prior", 0.0)

    def _options(self) -> MixtureOptions:
        return replace(super()._options(), prior_of=partial(bayesian_prior, self))

    @property
    def partial_fit(self) -> NoReturn:
        """Raise AttributeError, because the posterior depends on the number of all points."""
        raise AttributeError("partial_fit needs a GaussianMixture: a posterior depends on the number of all points.")

    def to_sklearn(self) -> SklearnMixture | Pipeline:
        """Return a fitted scikit-learn `BayesianGaussianMixture` with the same posterior, for tools that require one.

        Returns
        -------
        mixture : sklearn.mixture.BayesianGaussianMixture or sklearn.pipeline.Pipeline
            A pipeline if the fit filled or scaled its data, as in `GaussianMixture.to_sklearn`. Its predictions use all
            components. `lower_bound_` is that of this library.
        """
        check_is_fitted(self)
        given = {name: getattr(self, name) for name in ("weight_concentration_prior_type", "random_state")}
        mixture = SklearnMixture(n_components=len(self.means_), covariance_type=self.covariance_type_, **given)
        names = ("weights_", "means_", *self._family.attribute_names)
        for name in (*names, "converged_", "n_iter_", "lower_bound_", "lower_bounds_"):
            if hasattr(self, name):
                setattr(mixture, name, getattr(self, name))
        if self.weight_concentration_.ndim == 2:
            mixture.weight_concentration_ = tuple(self.weight_concentration_)
        return as_pipeline(self, mixture)
