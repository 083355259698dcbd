"""Mixture of von Mises–Fisher distributions, the soft form of cosine k-means."""

from collections.abc import Mapping
from typing import Any, ClassVar

from numpy.typing import NDArray

from cprime._utils.values import replace
from cprime.estimators.memory_limit import Memory
from cprime.estimators.mixture import Mixture
from cprime.execution import Data
from cprime.model import VON_MISES_FISHER
from cprime.model.unit import unit_rows
from cprime.persistence import model_files
from cprime.search.base import BaseSearch


@model_files.register
class VonMisesFisherMixture(Mixture):
    """Mixture of distributions of directions: p(x) = Σ_c π_c C_D(κ_c) exp(κ_c μ_c·x) for rows x scaled to length 1.

    This is the soft form of `KMeans(metric="cosine")`, which is the limit of a large common concentration κ: for
    documents and embeddings, of which only the directions matter. Rows may be sparse (CSR). Rows of zeros are an error.

    Parameters
    ----------
    n_components : int, default=1
    concentration : float, "estimate" or "shared", default="estimate"
        κ > 0, at most 1e8. "estimate" estimates κ of each component, "shared" one for all.
    weights : {"free", "equal"}, default="free"
    n_active : int, "auto" or None, default="auto"
    assignment : str, default="soft"
    search : str or object of cprime.search, default="auto"
    init_params : str, array-like, fitted estimator or callable, default="auto"
        Initialization of the mean directions, or labels or responsibilities, as in `GaussianMixture`.
    n_init : int, default=1
    max_iter : int, default=100
    tol : float, default=1e-3
    learning_decay : float, default=1.0
    warm_start : bool, default=False
    random_state : int, RandomState, Generator or None, default=None
    weights_init, means_init : array-like, default=None
        Starting weights, and starting directions, which are scaled to length 1; of the shapes of `weights_`, `means_`.
    n_threads : int or None, default=None
    checkpoint : path or None, default=None
    max_memory : Memory or None, default=None
        `Memory(spill=folder)` stores active sets in files of a folder; it must have no limit.
    callbacks : callback or sequence of them, default=None
    verbose : int, default=0

    Attributes
    ----------
    means_ : ndarray of shape (n_components, n_features)
        Mean directions μ, of length 1.
    concentrations_ : ndarray of shape (n_components,)
        Concentrations κ.
    weights_ : ndarray of shape (n_components,)
    labels_ : ndarray of shape (n_samples,), int32
    lower_bound_, lower_bounds_, history_, n_iter_, converged_, counts_, n_active_, neighbors_, certificate_
        As in `GaussianMixture`; densities are those on the sphere, and quantization_error of the history is NaN.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    KMeans : Hard clusters of directions with metric="cosine", which is much faster.

    References
    ----------
    Banerjee, Dhillon, Ghosh & Sra (2005), *Clustering on the unit hypersphere using von Mises-Fisher distributions*.
    Wood (1994), *Simulation of the von Mises Fisher distribution*.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import VonMisesFisherMixture
    >>> X = np.random.default_rng(0).normal(np.repeat([[9.0, 0.0], [0.0, 9.0]], 500, axis=0))
    >>> vm = VonMisesFisherMixture(2, random_state=0).fit(X)
    >>> np.abs(np.sort(vm.means_[:, 0])).round(1)
    array([0., 1.])
    """

    _families: ClassVar[Mapping[str, Any]] = VON_MISES_FISHER
    concentrations_: NDArray
    covariance_type = "von_mises_fisher"
    precisions_init = None
    reg_covar = 0.0
    momentum = False
    _has_plan = False

    def __init__(
        self,
        n_components: int = 1,
        *,
        concentration: float | str = "estimate",
        weights: str = "free",
        n_active: int | str | None = "auto",
        assignment: str = "soft",
        search: str | BaseSearch = "auto",
        init_params: Any = "auto",
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-3,
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
        self.concentration = concentration
        self.weights = weights
        self.n_active = n_active
        self.assignment = assignment
        self.search = search
        self.init_params = init_params
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _opened(self, X: Any, sample_weight: Any = None, reset: bool = False) -> Data:
        return super()._opened(X, sample_weight, reset).prepared(unit_rows)

    def _parameters(self, reg_covar: float = 0.0) -> Any:
        model: Any = super()._parameters(reg_covar)
        estimated = isinstance(self.concentration, str)
        return replace(model, estimated=estimated, shared=self.concentration == "shared")

    def _options_of_fit(self) -> dict[str, Any]:
        if isinstance(self.concentration, str):
            return {}
        first = float(self.concentrations_[0])
        if (self.concentrations_ != first).any():
            return {"concentration": "estimate"}
        given = self.concentrations_.dtype.type(self.concentration)
        return {"concentration": self.concentration if first == given else first}
