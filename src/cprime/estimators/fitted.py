"""Functions that read the model, centers and feature names of a fitted estimator, and open data for it."""

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cprime.execution import Data
from cprime.model import Model


def centers_of(estimator: Any) -> NDArray[np.float64]:
    """Return the centers or means (C, D) of any fitted estimator; raise TypeError if it has neither."""
    for name in ("cluster_centers_", "means_"):
        if getattr(estimator, name, None) is not None:
            return np.asarray(getattr(estimator, name), dtype=np.float64)
    check_is_fitted(estimator)
    raise TypeError(f"estimator must have cluster_centers_ or means_, got {estimator!r}.")


def model_of(estimator: Any) -> Model:
    """Return the fitted parameters of an estimator of this library as a model, which can evaluate rows."""
    model: Model = estimator._parameters()
    return model


def data_for(estimator: Any, X: Any, sample_weight: Any = None) -> Data:
    """Return X as `Data` in the dtype of a fitted estimator, after the checks of its `predict`."""
    data: Data = estimator._opened(X, sample_weight)
    return data


def feature_names(estimator: Any) -> list[str]:
    """Return the names of the training columns, or "feature 0", "feature 1", … if the estimator has none."""
    if hasattr(estimator, "feature_names_in_"):
        return [str(name) for name in estimator.feature_names_in_]
    return [f"feature {d}" for d in range(centers_of(estimator).shape[1])]


def without_names(estimator: Any) -> Any:
    """Return a copy of a fitted estimator that accepts arrays without a warning that column names are missing."""
    view = copy.copy(estimator)
    view.__dict__.pop("feature_names_in_", None)
    return view
