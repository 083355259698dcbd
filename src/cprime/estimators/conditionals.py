"""Methods of fitted mixtures: marginal and conditional mixtures of some columns, and regression."""

from collections.abc import Mapping
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from cprime._utils.arguments import naming
from cprime.estimators.columns import Columns, resolve_columns, some_columns
from cprime.estimators.conditional_mixtures import ConditionalMixtures, regressed
from cprime.estimators.covariances import covariances_of
from cprime.estimators.fitted import data_for, general_params, model_of
from cprime.estimators.opening import names_of, preparation_of
from cprime.estimators.quality import say_truncated
from cprime.estimators.solutions import adopt, mixture_solution
from cprime.estimators.validation import check_flag
from cprime.execution import Data
from cprime.kernels import Dense, computing
from cprime.model import Model
from cprime.model.conditional import Conditional, others
from cprime.sources import is_source_like


def marginal(self: Any, columns: Any) -> Any:
    """Return the marginal mixture of some columns: their joint density without the other columns.

    Parameters
    ----------
    columns : int, str, sequence of these, or mask
        Column numbers (negative ones count from the end), names if the data of the fit had names, or a mask.

    Returns
    -------
    mixture : GaussianMixture or StudentTMixture
        Mixture of the same class, of these columns in this order, with the same number of components. It predicts,
        scores and samples, and can be saved. It lacks the attributes that describe a fit, such as `labels_` and
        `history_`.

    Raises
    ------
    ValueError
        If columns are unknown, repeated, or none are given.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import GaussianMixture
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) + [1, 5, 10]
    >>> gm = GaussianMixture(1).fit(X)
    >>> gm.marginal([2, 0]).means_.round().tolist()
    [[10.0, 1.0]]
    """
    check_is_fitted(self)
    with computing(self.n_threads):
        model = self._parameters()
        chosen = resolve_columns(columns, model.n_features, names_of(self))
        return _mixture(self, model.marginal(chosen), chosen)


def condition(self: Any, columns: Any, values: Any = None) -> Any:
    """Return the conditional mixture of the other columns, given values of some columns.

    Let o be the given columns and m the others. The conditional mixture has the weights π_c N(x_o; μ_o, Σ_oo),
    divided by their sum, the means μ_m + Σ_mo Σ_oo⁻¹ (x_o − μ_o), and the covariances Σ_mm − Σ_mo Σ_oo⁻¹ Σ_om.
    Conditional distributions of factor analyzers are factor analyzers, so no D × D matrix is computed for them.

    Parameters
    ----------
    columns : int, str, sequence of these, mask, or dict
        Column numbers (negative ones count from the end), names if the data of the fit had names, or a mask. A dict
        contains the value of each column: ``condition({"width": 3.5, "height": 2.0})``.
    values : array-like of shape (k,), or data of shape (n, k), default=None
        One row of the given columns, or many. Many rows may be data of any kind that `predict` accepts, and may
        have all features of the fit; the other columns are then ignored. Leave it out if `columns` is a dict.

    Returns
    -------
    mixture : GaussianMixture or ConditionalMixtures
        For one row, a fitted mixture of all components, with free weights and without the attributes that describe
        a fit. For many rows, an object that computes the mean, covariance, samples and quantiles of each row from
        the row's `n_active_` best components.

    Raises
    ------
    ValueError
        If columns are unknown, repeated, none or all, or if there are too few or too many values, or missing ones.
        If different columns are known in different rows, use `GaussianMixture.impute`.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import GaussianMixture
    >>> gm = GaussianMixture(2)
    >>> gm.weights_, gm.means_ = np.array([0.5, 0.5]), np.array([[0.0, 1.0], [2.0, -1.0]])
    >>> gm.covariances_ = np.array([[[0.5, -1.0], [-1.0, 5.0]], [[5.0, 1.0], [1.0, 0.5]]])
    >>> given = gm.condition([1], [1.0])
    >>> given.means_.round(3).tolist(), given.covariances_.round(3).tolist()
    ([[0.0], [6.0]], [[[0.3]], [[3.0]]])
    >>> gm.condition([1], [[1.0], [-1.0]]).mean().shape
    (2, 1)
    """
    if isinstance(columns, Mapping):
        if values is not None:
            raise ValueError("values must be left out if columns is a dict, which has the values.")
        columns, values = list(columns), list(columns.values())
    elif values is None:
        raise ValueError("values must be given, unless columns is a dict of columns and their values.")
    known, conditional = _conditional(self, columns)
    with naming("values"):
        single = not is_source_like(values) and np.ndim(values) < 2
    if single and np.size(values) != len(known):
        raise ValueError(
            f"values must be {len(known)}, one for each of the columns, or rows of them, got {np.size(values)}."
        )
    if single:
        values = check_array(np.reshape(values, (1, -1)), dtype="numeric", input_name="values")
    given, rest = conditional.given, others(known, np.shape(self.means_)[1])
    with naming("values"), computing(self.n_threads):
        data = _given_columns(self, values, given, known, "values")
        X = Dense(np.asarray(data.map(methodcaller("dense"), len(known), given.centers.dtype)))
        if not single:
            say_truncated(self, "condition")
            preparation = preparation_of(self).select(rest)
            return ConditionalMixtures(conditional, self.n_active_, X, preparation, self.n_threads, self.random_state)
        model = conditional.condition(X.dense()[0], given.responsibilities(X)[0])
        return _mixture(self, model, rest)


def regress(self: Any, X: Any, columns: Any, return_std: bool = False) -> Any:
    """Return the conditional mean of the other columns for each row, given the values of some columns.

    This is the least-squares regression of the mixture, E[x_m | x_o] = Σ_c q_c (μ_m + Σ_mo Σ_oo⁻¹ (x_o − μ_o)),
    with the given columns o and the others m. q_c is the posterior probability of component c given x_o, over the
    `n_active_` best components of a row.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features) or (n_samples, k), or a source
        Rows with all features, whose other columns are ignored, or with the k given columns alone. Columns are
        found by name if both X and the data of the fit have names.
    columns : int, str, sequence of these, or mask
        Column numbers (negative ones count from the end), names if the data of the fit had names, or a mask.
    return_std : bool, default=False
        Whether to return standard deviations as well.

    Returns
    -------
    means : ndarray of shape (n_samples, M)
        Means of the M other columns in their order, in the dtype of `means_` and the units of X.
    deviations : ndarray of shape (n_samples, M)
        Standard deviations of x_m given x_o, returned if return_std is True.

    Raises
    ------
    ValueError
        If columns are unknown, repeated, none or all, or if X has neither k columns nor all features, or has
        missing values in the given columns. If different columns are known in different rows, use
        `GaussianMixture.impute`.

    References
    ----------
    Ghahramani & Jordan, *Supervised learning from incomplete data via an EM approach*.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import GaussianMixture
    >>> x = np.linspace(-1, 1, 200)
    >>> gm = GaussianMixture(8, random_state=0).fit(np.column_stack([x, x**2]))
    >>> bool(abs(gm.regress([[0.5]], columns=[0])[0, 0] - 0.25) < 0.02)
    True
    """
    return_std = check_flag(return_std, "return_std")
    known, conditional = _conditional(self, columns)
    data, M = _given_columns(self, X, conditional.given, known, "X"), conditional.left.n_features
    say_truncated(self, "regress")
    preparation = preparation_of(self).select(others(known, np.shape(self.means_)[1]))
    job = partial(regressed, conditional, self.n_active_, preparation, return_std)
    with computing(self.n_threads):
        found = data.map(job, 2 * M if return_std else M, conditional.left.centers.dtype)
    return (found[:, :M], found[:, M:]) if return_std else found


def _conditional(mixture: Any, columns: Any) -> tuple[Columns, Conditional]:
    """Return the indices (k,) of the given columns, and the conditional model of the other columns given these."""
    check_is_fitted(mixture)
    with computing(mixture.n_threads):
        model = model_of(mixture)
        known = resolve_columns(columns, model.n_features, names_of(mixture))
        if len(known) == model.n_features:
            raise ValueError(f"columns must leave at least one of the {model.n_features} features, got all.")
        return known, model.conditional(known)


def _given_columns(mixture: Any, X: Any, given: Model, columns: Columns, name: str) -> Data:
    """Return the given columns of X as checked `Data`.

    given: marginal model of these columns    columns (k,): their indices
    name: name of the argument X in error messages
    """
    n_features = np.shape(mixture.means_)[1]
    derived = _mixture(mixture, given, columns)
    if getattr(derived, "missing", "error") != "error":
        # Missing values in given columns raise an error, because conditional covariances assume that all are known.
        derived.missing = "error"
    return data_for(derived, some_columns(X, columns, n_features, names_of(mixture), name))


def _mixture(mixture: Any, model: Model, columns: Columns) -> Any:
    """Return a fitted estimator of the class of `mixture`, with the parameters of `model`.

    columns: indices of the columns that `model` describes, among the columns of the training data of `mixture`
    """
    params = general_params(mixture)
    params |= {"n_components": model.n_components, "weights": "equal" if model.weights is None else "free"}
    params["covariance_type"] = covariances_of(model)
    derived = type(mixture)(**params)
    adopt(derived, mixture_solution(derived, model, mixture.n_active_))
    derived.n_features_in_ = len(columns)
    names = names_of(mixture)
    if names is not None:
        derived.feature_names_in_ = names[columns]
    if hasattr(mixture, "preparation_"):
        derived.preparation_ = preparation_of(mixture).select(columns).as_dict()
    return derived
