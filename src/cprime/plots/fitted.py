"""Access of the displays to estimators: checks of arguments, and the parameters at each iteration of a fit."""

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from cprime.estimators import BayesianGaussianMixture, GaussianMixture, KMeans, SoftKMeans, StudentTMixture
from cprime.estimators.fitted import centers_of, data_for, model_of, without_names, without_preparation
from cprime.estimators.opening import preparation_of
from cprime.estimators.validation import as_search
from cprime.model import Model
from cprime.search import Auto, Full
from cprime.sources.checked import checked
from cprime.sources.foreign import plain


@dataclass(frozen=True)
class FromStart(Full):
    """Full search with an E-step before the first M-step, so that the fit's history has the initial parameters."""

    warmup: ClassVar[int] = 1


def check_fitted(estimator: Any) -> None:
    """Raise an error unless `estimator` is a fitted estimator of one of these classes."""
    if not isinstance(estimator, KMeans | GaussianMixture | BayesianGaussianMixture | StudentTMixture | SoftKMeans):
        raise TypeError(
            "estimator must be a KMeans, GaussianMixture, BayesianGaussianMixture, StudentTMixture or SoftKMeans, got "
            f"{estimator!r}."
        )
    check_is_fitted(estimator)


def prepared(estimator: Any, X: Any, name: str = "X") -> tuple[Any, NDArray]:
    """Return an estimator and rows in the same units, those of the estimator's fitted parameters.

    The first item is a copy of the fitted estimator that takes arrays of filled and scaled rows, without column names.
    The second item is X, of any in-memory type that estimators accept, as a dense array (n, D) of such rows, where D is
    the estimator's number of features. NaN remains if the estimator treats it as missing (`missing="marginal"`). Rows
    of categories become zeros and ones, one for each category.

    Raise an error for other data. name: name of X in error messages
    """
    if hasattr(estimator, "categories_"):
        rows = data_for(estimator, X).map(lambda rows: rows.dense(), centers_of(estimator).shape[1], np.float64)
        return estimator, rows
    preparation = preparation_of(estimator)
    X = plain(X, name)
    if hasattr(X, "columns"):
        _check_feature_names(estimator, X, reset=False)
    if issparse(X):
        raise TypeError(f"{name} must be dense to be drawn, got a sparse array; use {name}.toarray().")
    missing = getattr(estimator, "missing", "error") == "marginal" or preparation.fill is not None
    X = checked(X, name, allow_missing=missing, dtype=[np.float64, np.float32])
    D = centers_of(estimator).shape[1]
    if X.shape[1] != D:
        raise ValueError(f"{name} has {X.shape[1]} features, but {type(estimator).__name__} is expecting {D} features.")
    return without_preparation(estimator), preparation.applied(X)


def accepting(estimator: Any, X: Any) -> Any:
    """Return an estimator that accepts X without a warning about missing column names.

    If X is an array or a list, it is a copy of the estimator without the column names of the training data.
    """
    return without_names(estimator) if isinstance(X, np.ndarray | list) else estimator


def impute_missing(X: NDArray, estimator: Any) -> NDArray:
    """Return X with missing values (NaN) replaced by their conditional means under the model, for drawing."""
    return estimator.impute(X) if np.isnan(X).any() else X


def prepared_point(estimator: Any, x: Any) -> tuple[Any, NDArray]:
    """Return an estimator and one point x, of shape (D,) or (1, D), as `prepared` does; the point is (1, D)."""
    x = plain(x, "x")
    shape = np.shape(x)
    if len(shape) != 1 and not (len(shape) == 2 and shape[0] == 1):
        raise ValueError(f"x must be one point of shape (n_features,), got an array of shape {shape}.")
    return prepared(estimator, np.reshape(x, (1, -1)), "x")


def standing(estimator: Any, model: Model, X: NDArray, sample_weight: Any = None) -> Any:
    """Return a copy of a fitted estimator that predicts with the parameters of `model`, those of an iteration.

    The estimator and X are those that `prepared` returns.

    The variance of `SoftKMeans` is fixed. For k-means, σ² = J/(DN) is computed from J, the sum of squared distances of
    the rows X to the nearest centers: eq. (14) of Lücke & Forster. X and sample_weight are used only for this. Other
    attributes, such as `history_`, are those of the estimator.
    """
    view = copy.copy(estimator)
    if isinstance(estimator, SoftKMeans):
        view.cluster_centers_ = model.centers
        return view
    if not hasattr(estimator, "predict_proba"):
        view.cluster_centers_ = model.centers
        weight = len(X) if sample_weight is None else np.sum(sample_weight)
        least = np.finfo(np.float64).tiny
        view.variance_ = max(-view.score(X, sample_weight=sample_weight) / (weight * X.shape[1]), least)
        return view
    view.means_ = model.centers
    vars(view).update(model.attributes())
    view.weights_ = np.full(len(model.centers), 1 / len(model.centers)) if model.weights is None else model.weights
    return view


def with_full_search(estimator: Any, search: Full) -> Any:
    """Return an unfitted copy of the estimator with a full search, whose other choices are those of the estimator.

    `jumps` and `init` of `KMeans`, if "auto", depend on the argument `search`.
    """
    copy = clone(estimator).set_params(search=search)
    params = estimator.get_params(deep=False)
    values = [params.get(name) for name in ("jumps", "init")]
    automatic = all(isinstance(value, str) and value == "auto" for value in values)
    automatic &= isinstance(as_search(estimator.search), Auto)
    if automatic and params["missing"] == "error" and not params["epsilon"] and params["fixed"] is None:
        copy.set_params(jumps=True)
    return copy


def path(estimator: Any, X: Any, sample_weight: Any = None) -> tuple[Any, list[Model], bool]:
    """Fit a clone of the estimator again, to record its parameters after each iteration.

    Returns the fitted clone, a list of models, and whether the first model has the initial parameters. If there are
    several initializations, the models are those of the selected one.
    """
    has_lists = getattr(estimator, "neighbors_", None) is not None
    refit = clone(estimator) if has_lists else with_full_search(estimator, FromStart())
    runs: list[list[tuple[dict[str, Any], Model]]] = []

    def watch(row: dict[str, Any], standing: Any) -> None:
        if row["iteration"] == 1:
            runs.append([])
        runs[-1].append((row, model_of(standing)))

    refit.set_params(callbacks=watch).fit(X, sample_weight=sample_weight)
    refit.set_params(callbacks=None)
    bounds = list(refit.lower_bounds_)
    kept = next(run for run in runs if [row["lower_bound"] for row, _ in run] == bounds)
    n_warmup = sum(row["phase"] == "warmup" for row, _ in kept)
    return refit, [model for _, model in kept[max(n_warmup - 1, 0) :]], n_warmup > 0
