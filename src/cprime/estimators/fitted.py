"""Functions that read fitted estimators or derive others from them, the same for k-means and mixtures.

They hide that attributes have different names, such as `cluster_centers_` and `means_`.
"""

import copy
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from cprime import em
from cprime._utils.values import fitted_centers
from cprime.estimators.opening import preparation_of
from cprime.estimators.problems import kmeans_model
from cprime.estimators.solutions import KMeansSolution, adopt, mixture_solution
from cprime.estimators.validation import resolve_n_active
from cprime.execution import Data
from cprime.kernels import computing
from cprime.model import Model
from cprime.seeding.methods import name_of

# Arguments that are useful for one fit only. Estimators derived from the fitted one get None for these.
_OF_ONE_FIT = (
    *("weights_init", "means_init", "precisions_init", "fixed"),
    *("checkpoint", "max_memory", "callbacks"),
)


def centers_of(estimator: Any, dtype: DTypeLike | None = np.float64) -> NDArray:
    """Return the centers or means (C, D) of any fitted estimator; raise TypeError if it has neither.

    dtype: type of the result; None is the type of the estimator's array
    """
    centers = fitted_centers(estimator)
    if centers is not None:
        return np.asarray(centers, dtype=dtype)
    check_is_fitted(estimator)
    raise TypeError(f"estimator must have cluster_centers_ or means_, got {estimator!r}.")


def model_of(estimator: Any, data: Data | None = None) -> Model:
    """Return the fitted parameters of an estimator of this library as a model, whose methods compute costs of rows.

    data: rows whose costs are computed, which may have missing values; None is complete rows
    """
    model: Model = estimator._parameters() if data is None else estimator._model_of(data)
    return model


def data_for(estimator: Any, X: Any, sample_weight: Any = None) -> Data:
    """Return X as `Data` in the dtype of a fitted estimator, after the same checks as in its `predict`."""
    with computing(estimator.n_threads):
        data: Data = estimator._opened(X, sample_weight)
    return data


def with_all_categories(estimator: Any, X: Any) -> Any:
    """Return an unfitted estimator for fits to parts of X, which may lack some of the categories in X.

    A mixture with categories="auto" gets those of X, and the families of its columns if there are several kinds; other
    estimators are returned unchanged.
    """
    if not isinstance(getattr(estimator, "categories", None), str):
        return estimator
    starts = {"probabilities_init", "means_init", "weights_init"} & estimator.get_params().keys()
    one = clone(estimator).set_params(n_components=1, n_active=None, n_init=1, **dict.fromkeys(starts)).fit(X)
    families = {"columns": one.families_.tolist()} if hasattr(one, "families_") else {}
    return clone(estimator).set_params(categories=one.categories_, **families)


def start_from(estimator: Any, centers: NDArray) -> dict[str, Any]:
    """Return a dict with the constructor argument (`init` or `means_init`) that sets starting centers (C, D)."""
    return {"init" if hasattr(estimator, "init") else "means_init": centers}


def size_of(estimator: Any, n_components: int) -> dict[str, Any]:
    """Return a dict of the constructor arguments that change the number of components to `n_components`.

    If `n_active` of a mixture is an integer of at least `n_components`, the dict also sets `n_active` to
    `n_components` and `search` to "auto".
    """
    if hasattr(estimator, "n_clusters"):
        return {"n_clusters": n_components}
    n_active = estimator.n_active
    fewer = isinstance(n_active, int) and n_active >= n_components
    return {"n_components": n_components} | ({"n_active": n_components, "search": "auto"} if fewer else {})


def feature_names(estimator: Any) -> list[str]:
    """Return the names of the D features, which are those of the training columns, or "feature 0", … without names.

    A column of categories has a feature for each category: its name is "column = category".
    """
    if hasattr(estimator, "categories_"):
        names = getattr(estimator, "feature_names_in_", [f"feature {d}" for d in range(estimator.n_features_in_)])
        features = [
            [f"{name} = {value}" for value in [*values, *["other"] * (int(size) - len(values))]] or [str(name)]
            for name, values, size in zip(names, estimator.categories_, estimator.n_categories_, strict=True)
        ]
        return [feature for j in estimator._column_order() for feature in features[j]]
    if hasattr(estimator, "feature_names_in_"):
        return [str(name) for name in estimator.feature_names_in_]
    return [f"feature {d}" for d in range(centers_of(estimator).shape[1])]


def without_names(estimator: Any) -> Any:
    """Return a copy of a fitted estimator that accepts arrays without a warning that column names are missing."""
    view = copy.copy(estimator)
    view.__dict__.pop("feature_names_in_", None)
    return view


def without_preparation(estimator: Any) -> Any:
    """Return a copy of a fitted estimator that takes arrays of prepared rows, and returns results in their units.

    So its parameters, rows and results have the same units. It does not compare the names of columns.
    """
    view = without_names(estimator)
    view.__dict__.pop("preparation_", None)
    return view


def as_pipeline(estimator: Any, *steps: Any) -> Any:
    """Return fitted objects of scikit-learn as one that takes the rows that `estimator` takes.

    steps: objects that are applied to prepared rows, one after the other. If there are several, or the estimator fills
    or scales rows, the result is a pipeline, otherwise the single step.
    """
    preparation = preparation_of(estimator)
    first: list[Any] = []
    if preparation.fill is not None:
        first.append(SimpleImputer().fit(preparation.fill[np.newaxis]))
    if preparation.scale is not None and preparation.shift is not None:
        scaler = StandardScaler().fit(np.stack([preparation.shift - preparation.scale, preparation.shift]))
        scaler.mean_, scaler.scale_, scaler.var_ = preparation.shift, preparation.scale, np.square(preparation.scale)
        first.append(scaler)
    chain = [*first, *steps]
    for each in chain:  # Steps after the first one get arrays, which have no column names.
        vars(each).pop("feature_names_in_", None)
        each.n_features_in_ = centers_of(estimator).shape[1]
    if hasattr(estimator, "feature_names_in_"):
        chain[0].feature_names_in_ = estimator.feature_names_in_
    return chain[0] if len(chain) == 1 else make_pipeline(*chain)


def derived_k_means(
    estimator: Any, centers: NDArray, counts: NDArray[np.float64], inertia: float, mean_square: float
) -> Any:
    """Return a fitted `KMeans` with the constructor arguments of `estimator`, but with other centers and no labels.

    centers (C, D)    counts (C,): total weight of each cluster    inertia: J [data unit²]
    mean_square: mean squared distance of points to their centers [data unit²], J/N if no values are missing
    """
    derived = clone(type(estimator)(**general_params(estimator) | {"n_clusters": len(centers)}))
    model: Any = kmeans_model(derived.metric, centers, 1.0)
    bound = em.hard_free_energy(model, mean_square, 1.0)
    variance = model.with_variance(mean_square).variance
    adopt(derived, KMeansSolution(centers, variance, counts, inertia, bound, metric=derived.metric))
    return _described(derived, estimator)


def derived_mixture(estimator: Any, model: Model, counts: NDArray[np.float64]) -> Any:
    """Return a fitted mixture with the constructor arguments of `estimator`, but with the parameters of `model`.

    model: parameters of the same model family    counts (C,): total weight of the points of each component
    """
    params = general_params(estimator) | {"n_components": model.n_components}
    if isinstance(estimator.n_active, int | np.integer):
        params["n_active"] = min(int(estimator.n_active), model.n_components)
    derived = clone(type(estimator)(**params))
    n_active = resolve_n_active(derived.n_active, model.n_components, derived.assignment)
    adopt(derived, mixture_solution(derived, model, n_active, counts=counts))
    return _described(derived, estimator)


def general_params(estimator: Any) -> dict[str, Any]:
    """Return the constructor arguments of an estimator as a dict, with None for those that are useful for one fit only.

    These are starting values, known components, folders, limits of memory and callbacks. An `init` with centers becomes
    "auto".
    """
    params: dict[str, Any] = estimator.get_params(deep=False)
    params |= {name: None for name in _OF_ONE_FIT if name in params}
    for name in ("init", "init_params"):
        if name in params and name_of(params[name]) is None:
            params[name] = "auto"
    return params


def _described(derived: Any, estimator: Any) -> Any:
    """Copy attributes of `estimator` to `derived`, and return `derived`.

    The attributes describe the columns of the training data: their number, their names, and their scaling.
    """
    for name in ("n_features_in_", "feature_names_in_", "preparation_"):
        if hasattr(estimator, name):
            setattr(derived, name, copy.deepcopy(getattr(estimator, name)))
    return derived
