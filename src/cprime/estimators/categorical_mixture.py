"""Mixture of categorical distributions (latent class analysis)."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._utils.arguments import naming
from cprime._utils.declared import Array, Presence, Size, Texts
from cprime.estimators.categories import UNKNOWN, FindValues, OneHot, check_categories, encoded, has_categories
from cprime.estimators.discrete import DiscreteMixture
from cprime.estimators.memory_limit import Memory
from cprime.estimators.opening import names_of
from cprime.estimators.solutions import implied
from cprime.estimators.validation import check_choice
from cprime.execution import Data
from cprime.model import CATEGORICAL
from cprime.persistence import model_files
from cprime.search.base import BaseSearch
from cprime.sources import array_of


@model_files.register
class CategoricalMixture(DiscreteMixture):
    """Mixture of independent categorical columns: p(x) = Σ_c π_c Π_d p_cd(x_d); latent class analysis.

    Column d has K_d categories, which are integers from 0 on or text. Tables of pandas, polars and pyarrow may have
    columns of text and categories, which need not be encoded; categories of other types (intervals, for example) are
    converted to text. Rows are stored as positions of their categories, so the
    memory of N rows does not depend on the numbers of categories. Sparse rows (CSR) may be given; their zeros are a
    category, too.

    Parameters
    ----------
    n_components : int, default=1
        Number of components C (latent classes), at most the number of points.
    categories : "auto" or list of array-like, default="auto"
        Categories of each column. "auto" takes those of the training data. Categories that do not occur in the training
        data have probability 0 in all components and do not count as parameters in `bic` and `aic`.
    handle_unknown : {"error", "ignore", "own_category"}, default="error"
        How values are treated that are none of the categories. "ignore" treats them as missing: the factor of
        this column is left out of p(x). "own_category" gives each column one more category for all such values, which
        is the last one in `probabilities_`.
    weights : {"free", "equal"}, default="free"
    n_active : int, "auto" or None, default="auto"
    assignment : str, default="soft"
        Responsibilities of the active components of a point, as in `GaussianMixture`. "hard" with weights="equal" is
        k-modes in the form of a likelihood.
    missing : {"error", "marginal"}, default="error"
        How NaN and nulls are treated: as an error, or as missing values, whose columns leave the sum over columns.
    search : str or object of cprime.search, default="auto"
    init_params : str, array-like, fitted estimator or callable, default="auto"
        Initialization of the components, as in `GaussianMixture`, for rows of zeros and ones, one for each category.
        "auto" chooses rows by k-means++ in each start.
    n_init : int, default=10
        Number of starts; the result of greatest F is returned. The likelihood has many local optima, so one start is
        seldom enough.
    max_iter : int, default=1000
    tol : float, default=1e-5
    learning_decay : float, default=1.0
    warm_start : bool, default=False
    random_state : int, RandomState, Generator or None, default=None
    weights_init : array-like of shape (n_components,) or None, default=None
    probabilities_init : list of array-like of shape (n_components, K_d) or None, default=None
        Starting probabilities of each column.
    n_threads : int or None, default=None
    checkpoint : path or None, default=None
    max_memory : Memory or None, default=None
    callbacks : callback or sequence of them, default=None
    verbose : int, default=0

    Attributes
    ----------
    probabilities_ : list of ndarray of shape (n_components, K_d)
        Probabilities of the categories of each column.
    categories_ : list of ndarray
        Categories of each column: sorted integers, or text (sorted, or in the order of a categorical column of pandas).
    n_categories_ : ndarray of shape (n_features,), int64
        Number of categories K_d of each column, with the one of handle_unknown="own_category".
    weights_ : ndarray of shape (n_components,)
    means_ : ndarray
        The arrays of `probabilities_` side by side, (C, Σ K_d).
    labels_ : ndarray of shape (n_samples,), int32
    lower_bound_, lower_bounds_, history_, n_iter_, converged_, counts_, n_active_, neighbors_, certificate_
        As in `GaussianMixture`; F includes all constants of the densities, so with C′ = C it is the log-likelihood.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

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
    probabilities_: list[NDArray]
    n_categories_: NDArray[np.integer]
    n_features_in_: Annotated[int, Size("K")]
    feature_names_in_: Annotated[NDArray, Texts("K"), Presence.OPTIONAL]
    categories_: Annotated[
        list[Annotated[NDArray, Array("?", "i")] | Annotated[NDArray, Texts("?")]],
        lambda value, sizes: len(value) == sizes["K"],
        lambda value, sizes: all(len(set(each.tolist())) == len(each) for each in value),
        Presence.OPTIONAL,
    ] = implied(lambda m: [np.arange(k) for k in m.n_categories_], "n_categories_")
    covariance_type = "categorical"

    def __init__(
        self,
        n_components: int = 1,
        *,
        categories: Any = "auto",
        handle_unknown: str = "error",
        weights: str = "free",
        n_active: int | str | None = "auto",
        assignment: str = "soft",
        missing: str = "error",
        search: str | BaseSearch = "auto",
        init_params: Any = "auto",
        n_init: int = 10,
        max_iter: int = 1000,
        tol: float = 1e-5,
        learning_decay: float = 1.0,
        warm_start: bool = False,
        random_state: Any = None,
        weights_init: Any = None,
        probabilities_init: Any = None,
        n_threads: int | None = None,
        checkpoint: Any = None,
        max_memory: Memory | None = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.categories = categories
        self.handle_unknown = handle_unknown
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
        self.probabilities_init = probabilities_init
        self.n_threads = n_threads
        self.checkpoint = checkpoint
        self.max_memory = max_memory
        self.callbacks = callbacks
        self.verbose = verbose

    _means_argument = "probabilities_init"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.sparse = True
        return tags

    @property
    def means_init(self) -> Any:
        given = self.probabilities_init
        if given is None:
            return None
        with naming("probabilities_init"):
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
        check_choice(self.handle_unknown, "handle_unknown", UNKNOWN)
        tables = self._given_tables() if reset else self.categories_
        has_text = tables is not None and any(table.dtype == object for table in tables)
        is_encoded = has_categories(X) or has_text
        if is_encoded:
            X, tables = encoded(X, tables, self.handle_unknown, None if reset else names_of(self))
        data, names = super()._opened(X, sample_weight, reset), names_of(self)
        if tables is None:
            tables = data.each(FindValues(names)).values
        elif len(tables) != data.n_features:
            raise ValueError(f"categories must have a list for each of {data.n_features} columns, got {len(tables)}.")
        positions = [np.arange(len(table)) for table in tables] if is_encoded else tables
        rows = OneHot(tuple(positions), self.handle_unknown, self.missing == "marginal", names)
        if reset:
            self.categories_, self.n_categories_ = tables, rows.sizes
        return data.read_by(rows, False, int(rows.sizes.sum()), sparse=True)

    def _converted(self, data: Data, reset: bool) -> Data:
        return data

    @staticmethod
    def _upgraded(params: dict[str, Any], fitted: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters in a model file with `categories` in place of the former n_categories."""
        if "n_categories" not in params:
            return params
        params = {name: value for name, value in params.items() if name != "n_categories"}
        return params | {"categories": [np.arange(k) for k in fitted["n_categories_"]]}

    def _column_order(self) -> range:
        """Return the indices of the columns of the data in the order in which `means_` has their categories."""
        return range(self.n_features_in_)

    def _given_tables(self) -> list[NDArray] | None:
        """Return the tables of categories that the user or an earlier fit gives; None if the data define them."""
        if self.warm_start and hasattr(self, "means_"):
            return self.categories_
        if isinstance(self.categories, str) and self.categories == "auto":
            return None
        return check_categories(self.categories)
