"""Mixture of categorical distributions (latent class analysis), for integer-coded columns."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime.estimators.discrete import CheckCounts, DiscreteMixture
from cprime.estimators.opening import names_of
from cprime.estimators.validation import check_integer
from cprime.execution import Data
from cprime.model import CATEGORICAL
from cprime.model.categorical import OneHot
from cprime.persistence import model_files
from cprime.search import Search
from cprime.sources import array_of


@model_files.register
class CategoricalMixture(DiscreteMixture):
    """Mixture of independent categorical columns: p(x) = Σ_c π_c Π_d p_cd(x_d); latent class analysis.

    Column d has integer codes 0 … K_d − 1; binary columns have K_d = 2. Each pass converts the rows that it reads to
    zeros and ones, one column for each category, and takes memory for these Σ_d K_d columns.

    Parameters
    ----------
    n_components : int, default=1
        Number of components C (latent classes), at most the number of points.
    n_categories : "auto", int or array-like of shape (n_features,), default="auto"
        K_d, the number of categories of every column or of each; "auto" is the largest code in the training data + 1.
    weights : {"free", "equal"}, default="free"
        Whether the mixing weights π_c are estimated, or 1/C each.
    n_active : int, "auto" or None, default="auto"
        C′, the number of active components of a point; None is all, that is, exact EM. "auto" is all for up to 16
        components, 5 for more, and 1 with assignment="hard".
    search : str or object of cprime.search, default="auto"
        Candidate components of a point, as in `GaussianMixture`.
    n_neighbors : int or "auto", default="auto"
        G, the length of a component's neighbor list, from which a partial search takes candidates, as in
        `GaussianMixture`.
    assignment : str, default="soft"
        Responsibilities of the active components of a point, as in `GaussianMixture`. "hard" with equal weights is a
        likelihood form of k-modes.
    init_params : str, array-like, fitted estimator or callable, default="auto"
        Initialization of the components, as in `GaussianMixture`, for the rows of zeros and ones.
    n_init : int, default=1
        Number of starts; the result of greatest F is returned.
    max_iter : int, default=100
        Maximum number of iterations of one start.
    tol : float, default=1e-3
        A start has converged if F changes by less than this, in nats per point.
    weights_init : array-like of shape (n_components,) or None, default=None
        Starting weights.
    probabilities_init : list of array-like of shape (n_components, K_d) or None, default=None
        Starting probabilities of each column.
    learning_decay : float, default=1.0
        κ of `partial_fit`, as in `GaussianMixture`.
    warm_start : bool, default=False
        Whether `fit` starts from the parameters of the previous fit.
    certificate, final_assignment, checkpoint, spill, callbacks, n_threads, random_state, verbose
        As in `GaussianMixture`.

    Attributes
    ----------
    probabilities_ : list of ndarray of shape (n_components, K_d)
        Probabilities of the categories of each column.
    n_categories_ : ndarray of shape (n_features,), int64
        Number of categories K_d of each column.
    weights_ : ndarray of shape (n_components,)
        Mixing weights.
    means_ : ndarray
        The arrays of `probabilities_` side by side, (C, Σ K_d).
    labels_ : ndarray of shape (n_samples,), int32
        The most probable component of each training point.
    lower_bound_, lower_bounds_, history_, n_iter_, converged_, counts_, n_active_, neighbors_, certificate_
        As in `GaussianMixture`; F includes all constants of the densities, so with C′ = C it is the log-likelihood.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Present if the columns of the data have names.

    References
    ----------
    Goodman (1974), *Exploratory latent structure analysis using both identifiable and unidentifiable models*.
    Huang (1998), *Extensions to the k-means algorithm for clustering large data sets with categorical values*: k-modes.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import CategoricalMixture
    >>> rng = np.random.default_rng(0)
    >>> X = (rng.random((1000, 4)) < np.repeat([[0.1] * 4, [0.8] * 4], 500, axis=0)).astype(int)
    >>> cm = CategoricalMixture(2, random_state=0).fit(X)
    >>> np.sort(cm.probabilities_[0][:, 1]).round(1)
    array([0.1, 0.8])
    """

    _families: ClassVar[Mapping[str, Any]] = CATEGORICAL
    covariance_type = "categorical"

    def __init__(
        self,
        n_components: int = 1,
        *,
        n_categories: Any = "auto",
        weights: str = "free",
        n_active: int | str | None = "auto",
        search: str | Search = "auto",
        n_neighbors: int | str = "auto",
        assignment: str = "soft",
        init_params: Any = "auto",
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-3,
        weights_init: Any = None,
        probabilities_init: Any = None,
        learning_decay: float = 1.0,
        warm_start: bool = False,
        certificate: int = 1000,
        final_assignment: str = "auto",
        checkpoint: Any = None,
        spill: Any = None,
        callbacks: Any = None,
        n_threads: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_categories = n_categories
        self.weights = weights
        self.n_active = n_active
        self.search = search
        self.n_neighbors = n_neighbors
        self.assignment = assignment
        self.init_params = init_params
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.weights_init = weights_init
        self.probabilities_init = probabilities_init
        self.learning_decay = learning_decay
        self.warm_start = warm_start
        self.certificate = certificate
        self.final_assignment = final_assignment
        self.checkpoint = checkpoint
        self.spill = spill
        self.callbacks = callbacks
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags

    @property
    def means_init(self) -> Any:
        given = self.probabilities_init
        if given is None:
            return None
        parts = [array_of(part, "probabilities_init", np.float64) for part in given]
        sizes = [(self.n_components, int(k)) for k in self.n_categories_]
        if [part.shape for part in parts] != sizes:
            raise ValueError(
                f"probabilities_init must have arrays of the shapes {sizes}, got {[part.shape for part in parts]}."
            )
        if not all((part >= 0).all() and np.allclose(part.sum(axis=1), 1) for part in parts):
            raise ValueError("probabilities_init must have rows of numbers that are not negative and sum to 1.")
        return np.concatenate(parts, axis=1)

    def _opened(self, X: Any, sample_weight: Any = None, reset: bool = False) -> Data:
        data, names = super()._opened(X, sample_weight, reset), names_of(self)
        if reset:
            largest = data.each(CheckCounts(names)).largest
            self.n_categories_ = self._sizes(largest, data.n_features)
        sizes = tuple(int(k) for k in self.n_categories_)
        return data.read_by(OneHot(sizes, names if names is None else tuple(names)), False, sum(sizes))

    def _sizes(self, largest: NDArray[np.float64], n_features: int) -> NDArray[np.int64]:
        """Return the number of categories of each column: (D,).

        largest (D,): largest code of each column in the training data
        Raises ValueError if the argument `n_categories` is not valid, or does not allow one of these codes.
        """
        if isinstance(self.n_categories, str):
            if self.n_categories != "auto":
                raise ValueError(f'n_categories must be "auto", an integer or an array, got {self.n_categories!r}.')
            return largest.astype(np.int64) + 1
        given = array_of(self.n_categories, "n_categories")
        if given.ndim == 0:
            given = np.full(n_features, check_integer(self.n_categories, "n_categories", 1))
        if given.shape != (n_features,) or given.dtype.kind not in "iu" or (given < 1).any():
            raise ValueError(f"n_categories must have {n_features} positive integers, got {self.n_categories!r}.")
        if (largest >= given).any():
            j = int(np.argmax(largest >= given))
            raise ValueError(f"n_categories[{j}] is {given[j]}, but X has the code {int(largest[j])} in column {j}.")
        return given.astype(np.int64)
