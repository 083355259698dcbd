"""Mixture of Laplace distributions, the soft form of k-medians."""

from collections.abc import Mapping
from typing import Any, ClassVar

from cprime.estimators.memory_limit import Memory
from cprime.estimators.mixture import Mixture
from cprime.model import LAPLACE
from cprime.persistence import model_files
from cprime.search.base import BaseSearch


@model_files.register
class LaplaceMixture(Mixture):
    """Mixture of independent Laplace columns: p(x) = Σ_c π_c Π_d exp(−|x_d − μ_cd| / b_cd) / 2b_cd.

    Centers μ are weighted medians, which distant points change less than means. With assignment="hard",
    weights="equal" and covariance_type="tied_spherical", the fit is k-medians. It has every search, so that it is fast
    for thousands of clusters, takes missing values, and `partial_fit` takes data in batches.

    Parameters
    ----------
    n_components : int, default=1
    covariance_type : {"diag", "tied_diag", "spherical", "tied_spherical"}, default="diag"
        The scales b: one for each component and column, for each column, for each component, or one for all.
    weights : {"free", "equal"}, default="free"
    n_active : int, "auto" or None, default="auto"
    assignment : str, default="soft"
    missing : {"error", "marginal"}, default="error"
        How NaN and nulls are treated: as an error, or as missing values, whose columns leave the product.
    search : str or object of cprime.search, default="auto"
    init_params : str, array-like, fitted estimator or callable, default="auto"
        Initialization of the centers, or labels or responsibilities, as in `GaussianMixture`.
    n_init : int, default=1
    max_iter : int, default=100
    tol : float, default=1e-3
    reg_covar : float, default=1e-6
        Least variance 2b² of a column of a component, in data unit².
    learning_decay : float, default=1.0
        κ of `partial_fit`, in which each component is represented by quantiles, so that medians are approximate.
    warm_start : bool, default=False
    random_state : int, RandomState, Generator or None, default=None
    weights_init, means_init : array-like, default=None
        Starting weights and centers, of the shapes of `weights_` and `means_`.
    n_threads : int or None, default=None
    checkpoint : path or None, default=None
    max_memory : Memory or None, default=None
        `Memory(spill=folder)` stores active sets in files of a folder; it must have no limit.
    callbacks : callback or sequence of them, default=None
    verbose : int, default=0

    Attributes
    ----------
    means_ : ndarray of shape (n_components, n_features)
        Centers μ: weighted medians, which are also the means of the components.
    scales_ : ndarray of shape (n_components, n_features), (n_features,) or (n_components,), or float
        Scales b in data units. The variance of a column is 2b².
    weights_ : ndarray of shape (n_components,)
    labels_ : ndarray of shape (n_samples,), int32
    lower_bound_, lower_bounds_, history_, n_iter_, converged_, counts_, n_active_, neighbors_, certificate_
        As in `GaussianMixture`; quantization_error of the history is NaN.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    KMedians : Hard clusters of one scale, with the sum of distances as the objective.
    StudentTMixture : For data with outliers and correlated columns.

    Notes
    -----
    Medians are no sums over points, so the M-step needs the rows: a fit keeps all of them in memory, also those of
    files. Use `partial_fit` for larger data.

    References
    ----------
    Bradley, Mangasarian & Street (1997), *Clustering via concave minimization*. Lücke & Forster, *k-means as a
    variational EM approximation of Gaussian mixture models*: the truncation of (4) and (7) holds for any mixture.

    Examples
    --------
    >>> from cprime import LaplaceMixture
    >>> X = [[0.0], [1.0], [2.0], [50.0], [51.0], [90.0]]
    >>> lm = LaplaceMixture(2, covariance_type="tied_spherical", means_init=[[0.0], [50.0]]).fit(X)
    >>> lm.means_[:, 0].tolist(), round(lm.scales_)
    ([1.0, 51.0], 7)
    """

    _families: ClassVar[Mapping[str, Any]] = LAPLACE
    scales_: Any
    precisions_init = None
    momentum = False
    _has_plan = False

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "diag",
        weights: str = "free",
        n_active: int | str | None = "auto",
        assignment: str = "soft",
        missing: str = "error",
        search: str | BaseSearch = "auto",
        init_params: Any = "auto",
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        learning_decay: float = 1.0,
        warm_start: bool = False,
        random_state: Any = None,
        weights_init: Any = None,
        means_init: Any = None,
        n_threads: int | None = None,
        checkpoint: Any = None,
        max_memory: Memory | None = None,
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
        self.reg_covar = reg_covar
        self.learning_decay = learning_decay
        self.warm_start = warm_start
        self.random_state = random_state
        self.weights_init = weights_init
        self.means_init = means_init
        self.n_threads = n_threads
        self.checkpoint = checkpoint
        self.max_memory = max_memory
        self.callbacks = callbacks
        self.verbose = verbose
