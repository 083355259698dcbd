"""Mixture of products of families over columns of several kinds: latent class and latent profile analysis."""

import logging
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._utils.declared import Array, Presence, Size, Texts
from cprime._utils.messages import require
from cprime._utils.values import replace
from cprime.estimators.categories import OWN, UNKNOWN, FindValues, check_categories, has_categories
from cprime.estimators.discrete import DiscreteMixture
from cprime.estimators.memory_limit import Memory
from cprime.estimators.missing import SumColumns
from cprime.estimators.mixed_columns import (
    BERNOULLI,
    CATEGORICAL,
    POISSON,
    MeasureColumns,
    ReadMixed,
    given_families,
    integers_of,
    shown_columns,
    with_positions,
)
from cprime.estimators.mixture import Mixture
from cprime.estimators.opening import names_of
from cprime.estimators.validation import check_choice
from cprime.execution import Data
from cprime.model.own_covariance import OwnCovariance
from cprime.model.product import PRODUCT
from cprime.persistence import model_files
from cprime.search.base import BaseSearch

logger = logging.getLogger("cprime")


@model_files.register
class MixedMixture(DiscreteMixture):
    """Mixture for tables with numbers, counts and categories: p(x) = Σ_c π_c Π_b p_b(x_b given c).

    Each component is a product of families over blocks of columns; within a component the blocks are independent.
    With categorical columns alone this is latent class analysis, with Gaussian columns alone latent profile analysis;
    together they are mixed-mode latent class analysis. Missing values leave the product (`missing="marginal"`). With
    assignment="hard" and weights="equal" it is k-prototypes in the form of a likelihood, in which the data weight the
    columns. Tables of pandas, polars and pyarrow may have columns of text and categories.

    Parameters
    ----------
    n_components : int, default=1
        Number of components C, at most the number of points.
    columns : "auto", dict or list, default="auto"
        Families of the columns. A dict has a list of columns (names or positions) for each family; a list has the
        family of each column. Families are "gaussian" or "diag" (independent columns), "full" (correlated columns),
        every other family of `GaussianMixture` with a covariance for each component, "poisson" (counts), "categorical",
        and "bernoulli" (categorical with two values). Columns of the same family form one block.

        The family of columns that are not named, and of all with "auto", is found by this rule. Text, categories and
        booleans are "categorical". Integers from 0 on are "categorical" if they have at most 10 distinct values;
        "poisson" if their least value is 0 and their variance at most 10 times their mean. All other numbers are
        "diag". Numbers of any type are integers here if all of them are, because tables store integers with missing
        values as floats. The property `columns_` has the result.
    categories : "auto" or list of array-like, default="auto"
        Categories of each column, an empty list for columns without categories. "auto" takes those of the training
        data.
    handle_unknown : {"error", "ignore", "own_category"}, default="error"
        How values are treated that are none of the categories, as in `CategoricalMixture`.
    weights : {"free", "equal"}, default="free"
    n_active : int, "auto" or None, default="auto"
    assignment : str, default="soft"
        Responsibilities of the active components of a point, as in `GaussianMixture`.
    missing : {"error", "marginal"}, default="error"
        How NaN and nulls are treated: as an error, or as missing values, which leave the product over columns.
    search : str or object of cprime.search, default="auto"
    init_params : str, array-like, fitted estimator or callable, default="auto"
        Initialization of the components, as in `GaussianMixture`, for rows of numbers, with zeros and ones for
        categories. "auto" alternates distant rows (k-means++ if possible), random rows and k-means.
    n_init : int, default=10
        Number of starts; the result of greatest F is returned. The likelihood has many local optima, so one start is
        seldom enough; take fewer for thousands of components.
    max_iter : int, default=300
    tol : float, default=1e-5
    reg_covar : float, default=1e-6
        Number that is added to the variances of Gaussian columns [data unit²].
    learning_decay : float, default=1.0
    warm_start : bool, default=False
    random_state : int, RandomState, Generator or None, default=None
    weights_init : array-like of shape (n_components,) or None, default=None
    means_init : array-like or None, default=None
        Starting values in the form of `means_`: means, rates and probabilities. Covariances are estimated about them.
    n_threads : int or None, default=None
    checkpoint : path or None, default=None
    max_memory : Memory or None, default=None
    callbacks : callback or sequence of them, default=None
    verbose : int, default=0

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
    means_ : ndarray
        Means, rates and probabilities side by side, block by block: (C, W). A column of categories has as many numbers
        as it has categories.
    families_ : ndarray of str
        Family of each column. The properties `columns_` and `blocks_` are dictionaries of the families of the columns,
        and of the parameters of each block.
    categories_ : list of ndarray
        Categories of each column, integers or text; empty for other columns.
    n_categories_ : ndarray of shape (n_features,), int64
        Number of categories of each column, 0 for other columns.
    block_covariances_ : list of ndarray
        Covariances of each Gaussian block, in scikit-learn's shapes.
    labels_ : ndarray of shape (n_samples,), int32
    lower_bound_, lower_bounds_, history_, n_iter_, converged_, counts_, n_active_, neighbors_, certificate_
        As in `GaussianMixture`; F includes all constants of the densities, so with C′ = C it is the log-likelihood.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    References
    ----------
    Hunt & Jorgensen (2003), *Mixture model clustering for mixed data with missing information*.
    Huang (1998), *Extensions to the k-means algorithm for clustering large data sets with categorical values*:
    k-prototypes.

    Examples
    --------
    >>> import pandas as pd
    >>> from cprime import MixedMixture
    >>> people = pd.DataFrame({
    ...     "income": [21.5, 20.1, 19.7, 22.4, 58.2, 61.9, 60.3, 59.5],
    ...     "visits": [0, 11, 2, 13, 31, 27, 34, 29],
    ...     "owner": ["no", "no", "yes", "no", "yes", "yes", "yes", "yes"],
    ... })
    >>> mm = MixedMixture(2, columns={"poisson": ["visits"]}, random_state=0).fit(people)
    >>> mm.columns_
    {'income': 'diag', 'visits': 'poisson', 'owner': 'categorical'}
    >>> sorted(mm.counts_.round().tolist())
    [4.0, 4.0]
    """

    _families: ClassVar[Mapping[str, Any]] = PRODUCT
    families_: Annotated[NDArray, Texts("K")]
    n_categories_: NDArray[np.integer]
    n_features_in_: Annotated[int, Size("K")]
    feature_names_in_: Annotated[NDArray, Texts("K"), Presence.OPTIONAL]
    block_covariances_: list[NDArray]
    categories_: Annotated[
        list[Annotated[NDArray, Array("?", "i")] | Annotated[NDArray, Texts("?")]],
        lambda value, sizes: len(value) == sizes["K"],
        lambda value, sizes: all(len(set(each.tolist())) == len(each) for each in value),
    ]
    covariance_type = "product"

    def __init__(
        self,
        n_components: int = 1,
        *,
        columns: Any = "auto",
        categories: Any = "auto",
        handle_unknown: str = "error",
        weights: str = "free",
        n_active: int | str | None = "auto",
        assignment: str = "soft",
        missing: str = "error",
        search: str | BaseSearch = "auto",
        init_params: Any = "auto",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-5,
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
        self.columns = columns
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = False
        tags.input_tags.categorical = True
        return tags

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = super().__repr__(N_CHAR_MAX)
        return f"{text}\n# {self._shown()}" if hasattr(self, "families_") else text

    @property
    def columns_(self) -> dict[Any, str]:
        """Family of each column by its name, or by its position if columns have no names."""
        names = names_of(self)
        keys = range(self.n_features_in_) if names is None else names.tolist()
        return dict(zip(keys, self.families_.tolist(), strict=True))

    @property
    def blocks_(self) -> list[dict[str, Any]]:
        """Parameters of each block in data units, with its "family" and "columns".

        Gaussian blocks have "means" and "covariances", counts "rates"; categories have "categories" and
        "probabilities", lists of arrays with one for each column. `parameters_frame` is a table of the same values.
        """
        names, found = list(self.columns_), []
        model: Any = self._parameters()
        for block, place in zip(model.blocks, model.places, strict=True):
            one: dict[str, Any] = {"family": place.family, "columns": [names[j] for j in place.columns]}
            if isinstance(block, OwnCovariance):
                one |= {"means": block.centers, "covariances": block.covariances}
            elif place.family == POISSON:
                one |= {"rates": block.centers}
            else:
                categories = [self.categories_[j] for j in place.columns]
                one |= {"categories": categories, "probabilities": block.by_column()}
            found.append(one)
        return found

    def parameters_frame(self) -> Any:
        """Return the parameters as a table of pandas: a row for each column and quantity, a column for each component.

        Returns
        -------
        frame : pandas.DataFrame
            The rows have an index of two levels: the name of a column of the data, and "mean" and "standard deviation"
            (Gaussian columns), "rate" (counts), or a category, whose row has its probabilities. Columns of the data are
            in their order. The first row has the weights of the components.
        """
        pd, model = require("pandas", "a table of parameters"), self._parameters()
        owners, names = self._reader().owners, list(self.columns_)
        deviations = np.sqrt(np.maximum(model.variances, 0))
        rows: dict[tuple[Any, Any], NDArray] = {("weight", ""): self.weights_}
        for j, family in enumerate(self.families_):
            mine = [w for w, owner in enumerate(owners) if owner == j]
            if family == CATEGORICAL:
                values = self.categories_[j].tolist() + ["other"] * (len(mine) - len(self.categories_[j]))
                rows |= {(names[j], value): self.means_[:, w] for value, w in zip(values, mine, strict=True)}
                continue
            rows[names[j], "rate" if family == POISSON else "mean"] = self.means_[:, mine[0]]
            if family != POISSON:
                rows[names[j], "standard deviation"] = deviations[:, mine[0]]
        index = pd.MultiIndex.from_tuples(rows, names=["column", "quantity"])
        return pd.DataFrame(np.array(list(rows.values())), index=index)

    def sample(self, n_samples: int = 1, *, random_state: Any = None) -> tuple[Any, NDArray[np.int32]]:
        """Draw points from the fitted mixture.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=None
            As in `GaussianMixture.sample`.

        Returns
        -------
        X : pandas.DataFrame, or ndarray of shape (n_samples, n_features)
            A table if the columns of the training data had names. Categories are those of `categories_`; None is the
            category of unknown values. An array has the type object if there are categories of text.
        components : ndarray of shape (n_samples,), int32
            The component that each point was drawn from, in ascending order.
        """
        drawn, components = Mixture.sample(self, n_samples, random_state=random_state)
        columns = []
        for j, family in enumerate(self.families_):
            values = drawn[:, j]
            if family == CATEGORICAL:
                table = self.categories_[j]
                if len(table) < self.n_categories_[j]:
                    table = np.array([*table.tolist(), None], dtype=object)
                values = table[values.astype(np.intp)]
            columns.append(values.astype(np.int64) if family == POISSON else values)
        names = names_of(self)
        if names is not None:
            pd = require("pandas", "a table of drawn points")
            return pd.DataFrame(dict(zip(names, columns, strict=True))), components
        dtype = object if any(values.dtype == object for values in columns) else np.float64
        return np.column_stack([values.astype(dtype) for values in columns]), components

    def _column_order(self) -> list[int]:
        """Return the indices of the columns of the data in the order in which `means_` has their numbers."""
        return list(dict.fromkeys(self._reader().owners))

    def _shown(self) -> str:
        return shown_columns(names_of(self), self.families_, self.n_categories_)

    def _reader(self) -> ReadMixed:
        """Return the function that converts rows by the fitted families and categories."""
        tables = tuple(integers_of(table) for table in self.categories_)
        families = tuple(self.families_.tolist())
        return ReadMixed(families, tables, self.handle_unknown, self.missing == "marginal", names_of(self))

    def _opened(self, X: Any, sample_weight: Any = None, reset: bool = False) -> Data:
        check_choice(self.handle_unknown, "handle_unknown", UNKNOWN)
        is_known = not reset or (self.warm_start and hasattr(self, "means_"))
        given = None if isinstance(self.categories, str) and self.categories == "auto" else self.categories
        tables = self.categories_ if is_known else None
        if tables is None and given is not None:
            tables = check_categories(given, may_be_empty=True)
        texts: list[NDArray | None] | None = None
        if has_categories(X) or (tables is not None and any(table.dtype == object for table in tables)):
            X, texts = with_positions(X, tables, self.handle_unknown, None if reset else names_of(self))
        data = super()._opened(X, sample_weight, reset)
        if not is_known:
            self._learn_columns(data, tables, texts)
        elif reset and len(self.families_) != data.n_features:
            raise ValueError(f"warm_start needs the {len(self.families_)} columns of the fit, got {data.n_features}.")
        reader = self._reader()
        has_missing = reader.missing or self.handle_unknown == "ignore"
        width = len(reader.owners)
        if not has_missing:
            return data.read_by(reader, False, width, dtype=np.float64)
        if not reset:
            fill = np.average(self.means_, axis=0, weights=self.weights_)
            return data.read_by(replace(reader, fill=fill), True, width, dtype=np.float64)
        found = data.read_by(reader, True, width, dtype=np.float64).each(SumColumns())
        if not (found.weights > 0).all():
            j, names = reader.owners[int((~(found.weights > 0)).argmax())], names_of(self)
            raise ValueError(
                f"X must have a value in every column, got none in column {j if names is None else names[j]!r}."
            )
        fill = found.sums / found.weights
        return data.read_by(replace(reader, fill=fill), found.n_missing > 0, width, dtype=np.float64)

    def _learn_columns(self, data: Data, tables: list[NDArray] | None, texts: list[NDArray | None] | None) -> None:
        """Set the families and categories of the columns of the training data.

        tables: categories that the user gives, or None    texts: texts for which the data have positions, or None
        """
        K, names = data.n_features, names_of(self)
        if tables is not None and len(tables) != K:
            raise ValueError(f"categories must have a list for each of {K} columns, got {len(tables)}.")
        texts = [None] * K if texts is None else texts
        chosen, binary = given_families(self.columns, names, K)
        for j, (text, family) in enumerate(zip(texts, chosen, strict=True)):
            if text is not None and family not in (None, CATEGORICAL):
                name = j if names is None else str(names[j])
                raise ValueError(f"X must have numbers in column {name!r}, whose family is {family!r}, got text.")
            if text is not None or (tables is not None and len(tables[j])):
                chosen[j] = CATEGORICAL
        if None in chosen:
            figures = data.each(MeasureColumns())
            chosen = [figures.family(j) if family is None else family for j, family in enumerate(chosen)]
        made = [np.empty(0, dtype=np.int64) if text is None else text for text in texts]
        if tables is not None:
            made = [mine if len(mine) else text for mine, text in zip(tables, made, strict=True)]
        wanted = tuple(j for j in range(K) if chosen[j] == CATEGORICAL and not len(made[j]))
        if wanted:
            values = data.each(FindValues(names, wanted)).values
            made = [values[j] if j in wanted else table for j, table in enumerate(made)]
        own = int(self.handle_unknown == OWN)
        for j in range(K):
            if binary[j] and len(made[j]) > 2:
                name = j if names is None else str(names[j])
                raise ValueError(f"columns[{BERNOULLI!r}] must have two values, got {len(made[j])} in column {name!r}.")
        self.families_, self.categories_ = np.array(chosen, dtype=object), made
        sizes = [len(table) + own if family == CATEGORICAL else 0 for table, family in zip(made, chosen, strict=True)]
        self.n_categories_ = np.array(sizes, dtype=np.int64)
        logger.info("columns: %s", self._shown())

    def _converted(self, data: Data, reset: bool) -> Data:
        return data

    def _dtype(self) -> np.dtype:
        return np.dtype(np.float64)
