"""Mixture of Poisson distributions, for count data, and `Exposed`, rows of counts with exposures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._utils.values import replace
from cprime.estimators.discrete import CheckCounts, DiscreteMixture
from cprime.estimators.memory_limit import Memory
from cprime.estimators.opening import names_of, validated
from cprime.estimators.validation import check_weights
from cprime.execution import Data, local
from cprime.kernels import ReadExposed, ReadMissing, SparseRows, as_rows, with_nan
from cprime.model import POISSON
from cprime.persistence import model_files
from cprime.search.base import BaseSearch
from cprime.sources import array_of


@dataclass(frozen=True, eq=False)
class Exposed:
    """Rows of counts that were observed for different times, areas or numbers: an argument X of a `PoissonMixture`.

    The counts of row n have the rates e_n λ, so λ are rates per unit of exposure. Methods of the fitted mixture take
    plain rows, whose exposure is 1, or other `Exposed` rows. Rows are in memory and dense.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Counts.
    exposure : array-like of shape (n_samples,)
        Exposures e_n, above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import Exposed, PoissonMixture
    >>> rng = np.random.default_rng(0)
    >>> hours = rng.uniform(1, 50, size=2000)
    >>> counts = rng.poisson(hours[:, np.newaxis] * np.repeat([[1.0, 5.0], [4.0, 2.0]], 1000, axis=0))
    >>> pm = PoissonMixture(2, random_state=0).fit(Exposed(counts, hours))
    >>> pm.rates_[pm.rates_[:, 0].argsort()].round()
    array([[1., 5.],
           [4., 2.]])
    """

    X: Any
    exposure: Any

    def __len__(self) -> int:
        return len(self.exposure)


def _checked_exposure(exposed: Exposed, n: int) -> NDArray[np.float64]:
    """Return the exposures (n,); raise ValueError unless there are n numbers above 0."""
    given = array_of(exposed.exposure, "exposure", np.float64)
    if given.shape != (n,):
        raise ValueError(f"exposure must have shape {(n,)}, one number for each row, got {given.shape}.")
    wrong = ~((given > 0) & np.isfinite(given))
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(f"exposure must have finite numbers above 0, got {given[i]} in row {i}.")
    return given


@model_files.register
class PoissonMixture(DiscreteMixture):
    """Mixture of independent Poisson distributions of D counts: p(x) = Σ_c π_c Π_d λ_cd^x_d exp(−λ_cd) / x_d!.

    Rows may be sparse (CSR), for example counts of words. Rows with exposures are given as `Exposed(X, exposure)`.

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
        Rates λ, the mean count of each column, per unit of exposure.
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
    _exposure = 1.0  # mean exposure of the last rows that were given
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
        if isinstance(X, Exposed):
            data = self._exposed(X, sample_weight, reset)
        else:
            data, self._exposure = super()._opened(X, sample_weight, reset), 1.0
        data.each(CheckCounts(names_of(self)))
        return data

    def _parameters(self, reg_covar: float = 0.0) -> Any:
        model: Any = super()._parameters(reg_covar)
        return replace(model, exposure=self._exposure)

    def _exposed(self, given: Exposed, sample_weight: Any, reset: bool) -> Data:
        """Convert rows with exposures to `Data`, whose arrays have the exposures in the last column."""
        if self.checkpoint is not None:
            raise ValueError(f"checkpoint must be None if X is Exposed, got {self.checkpoint!r}.")
        rows = validated(self, given.X, reset, ReadMissing() if self.missing == "marginal" else as_rows)
        if isinstance(rows, SparseRows):
            raise TypeError("X must be dense to have an exposure, got sparse rows.")
        values = with_nan(rows)
        there = ~np.isnan(values)
        if reset and not there.any(axis=0).all():
            raise ValueError(f"X must have a value in every column, got none in column {there.any(axis=0).argmin()}.")
        means = np.where(there, values, 0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
        exposure = _checked_exposure(given, len(rows)).astype(values.dtype)
        self._exposure = float(exposure.mean())
        data = local(np.column_stack([values, exposure]), check_weights(sample_weight, rows.given()))
        return data.read_by(ReadExposed(means), True, values.shape[1])
