"""Mixtures of multivariate t distributions, which are robust against outliers."""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, NoReturn

from numpy.typing import NDArray

from cprime._utils.values import replace
from cprime.estimators.conditionals import condition, marginal, regress
from cprime.estimators.memory_limit import Memory
from cprime.estimators.missing import impute
from cprime.estimators.mixture import Mixture
from cprime.kernels import computing
from cprime.model import STUDENT_T
from cprime.persistence import model_files
from cprime.search.base import BaseSearch


@model_files.register
class StudentTMixture(Mixture):
    """Mixture of multivariate t distributions, fitted by truncated variational EM: for data with outliers.

    The fit increases the free energy F(K, Θ) = 1/W Σ_n w_n log Σ_{c∈K(n)} π_c t(x_n; μ_c, Σ_c, ν_c), for points x_n of
    weight w_n and total weight W. The active set K(n) of point n contains only its C′ best components, so F is a lower
    bound of the log-likelihood. In the M-step of component c, a point has the weight q_nc u_nc, where q_nc is its
    responsibility. The factor u_nc = (ν_c + D)/(ν_c + (x_n − μ_c)ᵀ Σ_c⁻¹ (x_n − μ_c)) falls with the distance. The
    class is used like `GaussianMixture`, which is the limit of large ν.

    Parameters
    ----------
    n_components : int, default=1
    covariance_type : {"full", "tied", "diag", "spherical", "tied_spherical"}, default="full"
        The form of Σ: a matrix for each component ("full"), one matrix for all ("tied"), variances by feature ("diag"),
        one variance for each component ("spherical"), or one variance for all ("tied_spherical"); or mclust's names of
        these.
    dof : float, "estimate" or "shared", default="estimate"
        ν, the degrees of freedom, above 0. Tails are heavier for smaller ν: 1 is a Cauchy distribution, and from about
        100 on the distribution is nearly Gaussian. "estimate" estimates ν of each component between 0.1 and 10⁹. At the
        lower limit a component covers points at all scales, at the upper limit it is a Gaussian; F is flat near both,
        so that values of ν close to them are not informative. "shared" estimates one ν for all components; this needs
        fewer parameters, and searches are as fast as those of Gaussians.
    weights : {"free", "equal"}, default="free"
    n_active : int, "auto" or None, default="auto"
    assignment : str, default="soft"
    missing : {"error", "marginal"}, default="error"
        How NaN and nulls are treated, as in `GaussianMixture`. See `impute`.
    search : str or object of cprime.search, default="auto"
    init_params : str, array-like, fitted estimator or callable, default="auto"
        Initialization of the means, or labels or responsibilities, as in `GaussianMixture`. Weights and Σ are
        initialized from the hard assignment of the points to these means, and estimated ν start at 4.
    n_init : int, default=1
    max_iter : int, default=100
    tol : float, default=1e-3
    momentum : "auto" or bool, default="auto"
        "auto" is True also for few components if ν is estimated and assignment is soft, because F is flat along ν, so
        that plain steps are short.
    reg_covar : float, default=1e-6
        Added to the variances of Σ by every M-step, in data unit².
    learning_decay : float, default=1.0
    warm_start : bool, default=False
    random_state : int, RandomState, Generator or None, default=None
    weights_init, means_init, precisions_init : array-like, default=None
        Starting parameters, of the shapes of `weights_`, `means_` and `precisions_`.
    n_threads : int or None, default=None
    checkpoint : path or None, default=None
    max_memory : int, str, Memory or None, default=None
    callbacks : callback or sequence of them, default=None
    verbose : int, default=0

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
    means_ : ndarray of shape (n_components, n_features)
        Centers of symmetry of the components; these are means if ν > 1.
    covariances_, precisions_, precisions_cholesky_ : ndarray, or float for "tied_spherical"
        Σ in data unit², its inverse, and the Cholesky factor of the inverse, of the same shapes as in
        `GaussianMixture`. The covariance of a component is ν/(ν − 2) Σ if ν > 2, otherwise it is infinite.
    dof_ : ndarray of shape (n_components,)
        The degrees of freedom ν of each component.
    labels_ : ndarray of shape (n_samples,), int32
    neighbors_, certificate_, n_active_, counts_, converged_, final_assignment_, n_iter_, lower_bound_, lower_bounds_, \
n_features_in_, feature_names_in_
        As in `GaussianMixture`.
    history_ : structured ndarray of shape (`n_iter_`,)
        As in `GaussianMixture`; quantization_error is NaN.

    See Also
    --------
    GaussianMixture : For data without outliers; its estimates are then as precise with fewer points.

    Notes
    -----
    One iteration is one E-step and one M-step of PX-EM. The E-step computes q_nc and u_nc for all components from the
    parameters of the iteration before, μ, Σ, π and ν. All new parameters follow from these q and u. N_c is Σ_n q_nc,
    sums over n include the sample weights, and ψ is the digamma function:

    1. ν_c solves log(ν/2) − ψ(ν/2) = log m − ψ(m) + Σ q (u − 1 − log u) / N_c with m = (ν_c,old + D)/2. This is one
       M-step of EM (Peel & McLachlan), not ECM or ECME: u and q are not computed again after μ and Σ. A shared ν solves
       it with the mean of the right side, weighted by N_c.
    2. μ_c = Σ q u x / Σ q u.
    3. Σ_c = Σ q u (x − μ_c,new)(x − μ_c,new)ᵀ / Σ q u (Kent, Tyler & Vardi), where EM divides by N_c; then `reg_covar`.
       "tied" and "tied_spherical" divide the sum over c by Σ_c N_c · Σ_c ν_c Σ q u / Σ_c ν_c N_c, with the new ν.
    4. π_c = N_c / Σ_c N_c.

    Both forms of step 3 have the same fixed points. With ``momentum``, which "auto" turns on if ν is estimated,
    parameters are extrapolated between iterations, so only ``momentum=False`` gives this sequence of parameters.

    References
    ----------
    Peel & McLachlan (2000), *Robust mixture modelling using the t distribution*. Kent, Tyler & Vardi (1994), *A curious
    likelihood identity for the multivariate t-distribution*. Lücke & Forster, *k-means as a variational EM
    approximation of Gaussian mixture models*, eq. (7).

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import StudentTMixture
    >>> X = np.array([[0.0], [1.0], [2.0], [50.0], [51.0], [52.0], [1e4]])
    >>> tm = StudentTMixture(2, dof=2.0, init_params=[[1.0], [51.0]]).fit(X)
    >>> tm.means_[:, 0].round(1).tolist()
    [1.0, 51.0]
    >>> int(tm.score_outliers(X).argmin())
    6
    """

    _families: ClassVar[Mapping[str, Any]] = STUDENT_T
    dof_: NDArray

    impute = impute
    marginal = marginal
    condition = condition
    regress = regress

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        dof: float | str = "estimate",
        weights: str = "free",
        n_active: int | str | None = "auto",
        assignment: str = "soft",
        missing: str = "error",
        search: str | BaseSearch = "auto",
        init_params: Any = "auto",
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-3,
        momentum: bool | str = "auto",
        reg_covar: float = 1e-6,
        learning_decay: float = 1.0,
        warm_start: bool = False,
        random_state: Any = None,
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        n_threads: int | None = None,
        checkpoint: Any = None,
        max_memory: int | float | str | Memory | None = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.dof = dof
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
        self.learning_decay = learning_decay
        self.warm_start = warm_start
        self.random_state = random_state
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.n_threads = n_threads
        self.checkpoint = checkpoint
        self.max_memory = max_memory
        self.callbacks = callbacks
        self.verbose = verbose

    def _parameters(self, reg_covar: float = 0.0) -> Any:
        if "dof_" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'dof_'")
        model = super()._parameters(reg_covar)
        return replace(model, estimated=isinstance(self.dof, str), shared=self.dof == "shared")

    def _options_of_fit(self) -> dict[str, Any]:
        if isinstance(self.dof, str):
            return {}
        first = self.dof_[0]
        if (self.dof_ != first).any():
            return {"dof": "estimate"}
        return {"dof": self.dof if first == first.dtype.type(self.dof) else float(first)}

    @property
    def to_sklearn(self) -> NoReturn:
        """Raise AttributeError, because scikit-learn has no mixture of t distributions."""
        raise AttributeError(
            "to_sklearn needs Gaussian components, because scikit-learn has no mixture of t distributions. This "
            "estimator can be used in its pipelines and searches itself; for other tools, fit a GaussianMixture, and "
            "call its to_sklearn."
        )

    def score_outliers(self, X: Any) -> NDArray:
        """Return a score of each row that is low for outliers: Σ_c q_nc u_nc, its total weight in M-steps.

        q_nc is the posterior over the `n_active_` best components c of row n, as in `predict_proba`, so outliers
        between components are detected too. u_nc = (ν + D)/(ν + d²_nc) falls with the Mahalanobis distance d_nc. The
        average score of the training data is about 1. The score of a row at the center of a component is at most
        1 + D/ν, and it falls toward 0 with the squared distance from all components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            In the dtype of the means; above 0.

        Examples
        --------
        >>> import numpy as np
        >>> from cprime import StudentTMixture
        >>> X = np.append(np.random.default_rng(0).standard_normal(99), 8.0)[:, np.newaxis]
        >>> scores = StudentTMixture(random_state=0).fit(X).score_outliers(X)
        >>> int(scores.argmin()), bool(scores[-1] < 0.2)
        (99, True)
        """
        with computing(self.n_threads):
            data = self._opened(X)
            model: Any = self._model_of(data)
            return data.map(partial(model.outlier_weights, n_kept=self.n_active_), None, model.centers.dtype)
