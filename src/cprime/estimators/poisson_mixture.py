"""Mixture of Poisson distributions, for count data."""

from collections.abc import Mapping
from typing import Any, ClassVar

from numpy.typing import NDArray

from cprime.estimators.discrete import CheckCounts, DiscreteMixture
from cprime.estimators.memory_limit import Memory
from cprime.estimators.opening import names_of
from cprime.execution import Data
from cprime.model import POISSON
from cprime.persistence import model_files
from cprime.search.base import BaseSearch


@model_files.register
class PoissonMixture(DiscreteMixture):
    """Mixture of independent Poisson distributions of D counts: p(x) = Σ_c π_c Π_d λ_cd^x_d exp(−λ_cd) / x_d!.

    Rows may be sparse (CSR), for example counts of words.

    Parameters
    ----------
    n_components : int, default=1
    weights : {"free", "equal"}, default="free"
    n_active : int, "auto" or None, default="auto"
    assignment : str, default="soft"
    missing : {"error", "marginal"}, default="error"
        How NaN and nulls of dense rows are treated: as an error, or as missing values, whose columns leave the sum over
        columns.
    search : str or object of cprime.search, default="auto"
    init_params : str, array-like, fitted estimator or callable, default="auto"
        Initialization of the components from rows, rates, labels or responsibilities, as in `GaussianMixture`.
    n_init : int, default=1
    max_iter : int, default=300
    tol : float, default=1e-6
        A start has converged if F changes by less than this, in nats per point. Poisson components overlap, so steps
        of EM are short even far from the optimum; with assignment="soft" and C′ > 1 momentum makes them longer.
    learning_decay : float, default=1.0
    warm_start : bool, default=False
    random_state : int, RandomState, Generator or None, default=None
    weights_init : array-like of shape (n_components,) or None, default=None
    rates_init : array-like of shape (n_components, n_features) or None, default=None
        Starting rates.
    n_threads : int or None, default=None
    checkpoint : path or None, default=None
    max_memory : Memory or None, default=None
    callbacks : callback or sequence of them, default=None
    verbose : int, default=0

    Attributes
    ----------
    rates_ : ndarray of shape (n_components, n_features)
        Rates λ, the mean count of each column.
    weights_ : ndarray of shape (n_components,)
    means_ : ndarray
        The same as `rates_`.
    labels_ : ndarray of shape (n_samples,), int32
    lower_bound_, lower_bounds_, history_, n_iter_, converged_, counts_, n_active_, neighbors_, certificate_
        As in `GaussianMixture`; F includes all constants of the densities, so with C′ = C it is the log-likelihood.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    References
    ----------
    Lücke & Forster, *k-means as a variational EM approximation of Gaussian mixture models*: the truncation of (4) and
    (7) holds for any mixture.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import PoissonMixture
    >>> X = np.random.default_rng(0).poisson(np.repeat([[1.0, 9.0], [20.0, 2.0]], 500, axis=0))
    >>> pm = PoissonMixture(2, random_state=0).fit(X)
    >>> np.sort(pm.rates_[:, 0]).round()
    array([ 1., 20.])
    """

    _families: ClassVar[Mapping[str, Any]] = POISSON
    rates_: NDArray
    covariance_type = "poisson"
    momentum = "auto"

    def __init__(
        self,
        n_components: int = 1,
        *,
        weights: str = "free",
        n_active: int | str | None = "auto",
        assignment: str = "soft",
        missing: str = "error",
        search: str | BaseSearch = "auto",
        init_params: Any = "auto",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-6,
        learning_decay: float = 1.0,
        warm_start: bool = False,
        random_state: Any = None,
        weights_init: Any = None,
        rates_init: Any = None,
        n_threads: int | None = None,
        checkpoint: Any = None,
        max_memory: Memory | None = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.weights = weights
        self.n_active = n_active
        self.assignment = assignment
        self.missing = missing
        self.search = search
        self.init_params = init_params
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.learning_decay = learning_decay
        self.warm_start = warm_start
        self.random_state = random_state
        self.weights_init = weights_init
        self.rates_init = rates_init
        self.n_threads = n_threads
        self.checkpoint = checkpoint
        self.max_memory = max_memory
        self.callbacks = callbacks
        self.verbose = verbose

    _means_argument = "rates_init"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def means_init(self) -> Any:
        return self.rates_init

    def _opened(self, X: Any, sample_weight: Any = None, reset: bool = False) -> Data:
        data = super()._opened(X, sample_weight, reset)
        data.each(CheckCounts(names_of(self)))
        return data
