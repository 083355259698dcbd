"""The function `combine`, which makes one fitted model of several, and the checks of its arguments."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from cprime._utils.random import seed_of
from cprime._utils.threads import plain_products
from cprime.combining.points import cluster_densities, cluster_points, descend_points, mean_points
from cprime.combining.reduction import Doubles, Ids, WeightedGaussians, reduce
from cprime.em.joins import sums_by
from cprime.estimators import GaussianMixture, KMeans
from cprime.estimators.fitted import derived_k_means, derived_mixture, model_of
from cprime.estimators.opening import preparation_of
from cprime.estimators.validation import check_integer
from cprime.kernels import computing

T = TypeVar("T", KMeans, GaussianMixture)

_TYPES = ("full", "diag", "spherical", "tied", "tied_spherical")
# Maximum number of runs of k-means of Gaussians that share a covariance, each after an update of this covariance.
_MOST_DESCENTS = 20


def combine(
    models: Iterable[T],
    n_clusters: int | None = None,
    *,
    random_state: Any = None,
    n_threads: int | None = None,
) -> T:
    """Combine models that were fitted apart, for example to the shards of a data set, to one model; no data are read.

    Parameters
    ----------
    models : iterable of fitted `KMeans`, or of fitted `GaussianMixture`
        At least one. They need the same columns, and the same metric or covariance type: full, diag, spherical, tied or
        tied_spherical. They may differ in their numbers of clusters, and are not changed.
    n_clusters : int or None, default=None
        Number of clusters (components) of the result, at most the number of different ones in all models. None is that
        of the first model.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers of k-means. Only tied covariances need it among mixtures.
    n_threads : int or None, default=None
        Threads to use; None is every processor that the process may use. Results do not depend on it.

    Returns
    -------
    model : KMeans or GaussianMixture
        Fitted, with the parameters of the first model and another number of clusters. `counts_` are sums over the
        models. Attributes that describe a fit, such as `labels_`, `history_` and `certificate_`, are absent;
        `partial_fit` adds them. Clusters have the order of their first parts in the models.

    Raises
    ------
    ValueError
        If there is no model, or models differ in class, metric, covariance type, weights (equal or free), columns or
        preparation of the data; if n_clusters is too large; if sizes of clusters are bounded, or centers or components
        are fixed, because this function cannot keep such constraints; for other covariance types; or if a mixture has
        no `counts_`, for example because its parameters were set by hand.
    NotFittedError
        If a model is not fitted.
    TypeError
        If a model is no `KMeans` and no `GaussianMixture`.

    Notes
    -----
    **k-means.** Points are drawn from the density that the models describe: a sum of Gaussians about all centers, with
    the weights `counts_` and the variance of each model. `KMeans` of these points finds the new centers and `counts_`.
    If the centers m_c of the models are the means of their N_c points, as after a fit that has converged, the sum of
    squares about new centers μ is exactly Σ_c (J_c + N_c ‖m_c − μ‖²). `inertia_` is this sum, with the μ nearest to
    m_c: J of the training data if each point is assigned to the new center nearest to its old one. J for nearest
    centers is less; ``-model.score(X)`` computes it. `variance_` and `lower_bound_` follow from `inertia_`. For models
    of `partial_fit`, J is taken from the last batch. For metric="cosine", N_c times the mean cosine of points and
    centers, 1 − J/2N of the model, replaces N_c in the second term. If there are more than 2²³ values in all centers,
    the centers themselves are the points.

    **Mixtures.** The combined density Σ_m N_m p_m(x)/Σ_m N_m, with the total weight N_m of model m, is reduced to fewer
    components. Unions keep weight, mean and covariance of their components. Near pairs are united greedily by Runnalls'
    upper bound of the divergence, then components move to the union of least divergence (Goldberger & Roweis). For tied
    covariances, the means are clustered by weighted k-means in the units of the common covariance. `lower_bound_` is
    absent. Components of models that have converged to different optima have no good unions. So fit the first shard,
    and start the other fits with its parameters (`means_init`, `weights_init`, `precisions_init`).

    References
    ----------
    A. R. Runnalls: Kullback-Leibler approach to Gaussian mixture reduction. IEEE Transactions on Aerospace and
    Electronic Systems 43, 2007. J. Goldberger, S. Roweis: Hierarchical clustering of a mixture model. NIPS 17, 2004.

    Examples
    --------
    >>> import cprime
    >>> from cprime.datasets import birch
    >>> X = birch(3, random_state=0).data  # 900 points around 9 centers
    >>> shards = [cprime.KMeans(20, random_state=0).fit(X[i::3]) for i in range(3)]
    >>> combined = cprime.combine(shards, 9, random_state=0)
    >>> combined.cluster_centers_.shape, float(combined.counts_.sum())
    ((9, 2), 900.0)
    """
    checked, kind = _checked(models)
    k = len(getattr(checked[0], kind.centers)) if n_clusters is None else check_integer(n_clusters, "n_clusters", 1)
    with computing(n_threads), plain_products():
        combined = kind.combine(checked, k, random_state, n_threads)
    for model in checked:
        if hasattr(model, "feature_names_in_"):
            combined.feature_names_in_ = model.feature_names_in_.copy()
            break
    return combined


class _Kind(NamedTuple):
    """Class of estimators that can be combined with each other, and the functions that check and combine them.

    estimator: the class    centers: name of the attribute with the centers
    alike: names of attributes that must be equal in all models
    check: function of a model and its index that raises ValueError for a model that cannot be combined
    combine: function of models, number of clusters, random_state and n_threads that returns the combined model
    """

    estimator: type
    centers: str
    alike: tuple[str, ...]
    check: Callable[[Any, int], None]
    combine: Callable[[Sequence[Any], int, Any, int | None], Any]


def _checked(models: Any) -> tuple[list[Any], _Kind]:
    """Return the models as a list, and the functions that check and combine models of their class (`_Kind`).

    Raise TypeError, NotFittedError or ValueError if they cannot be combined with each other.
    """
    if isinstance(models, BaseEstimator) or not isinstance(models, Iterable):
        raise TypeError(f"models must be a sequence of fitted estimators, got {type(models).__name__}.")
    models = list(models)
    if not models:
        raise ValueError("models must contain at least one fitted estimator, got none.")
    for i, model in enumerate(models):
        kind = next((kind for kind in _KINDS if isinstance(model, kind.estimator)), None)
        if kind is None:
            raise TypeError(f"models[{i}] must be a KMeans or a GaussianMixture, got {type(model).__name__}.")
        try:
            check_is_fitted(model, kind.centers)
        except NotFittedError:
            raise NotFittedError(f"models[{i}] must be fitted, got a {type(model).__name__} that is not.") from None
        kind.check(model, i)
        _check_alike(models[0], model, i, ("n_features_in_", *kind.alike))
    assert kind is not None
    return models, kind


def _check_alike(first: Any, model: Any, i: int, names: tuple[str, ...]) -> None:
    """Raise ValueError if models[i] differs from the first one in class, columns or the attributes `names`."""
    if type(model) is not type(first):
        raise ValueError(f"models[{i}] must be a {type(first).__name__} like models[0], got {type(model).__name__}.")
    for name in names:
        expected, found = getattr(first, name), getattr(model, name)
        if found != expected:
            raise ValueError(f"models[{i}] must have {name}={expected!r} like models[0], got {found!r}.")
    one, two = (list(getattr(each, "feature_names_in_", ())) for each in (first, model))
    if one and two and one != two:
        raise ValueError(f"models[{i}] must have feature_names_in_={one} like models[0], got {two}.")
    if not preparation_of(first).equals(preparation_of(model)):
        raise ValueError(
            f"models[{i}] must have the preparation_ of models[0] (the scaling and filling of data), got another one."
        )


def _check_unconstrained(model: Any, i: int, names: tuple[str, ...]) -> None:
    for name, unconstrained in (*((name, None) for name in names), ("semi_supervised", False)):
        if (value := getattr(model, name)) is not unconstrained:
            raise ValueError(f"models[{i}] must have {name}={unconstrained}, got {value!r}: combine cannot keep it.")


def _check_k_means(model: Any, i: int) -> None:
    _check_unconstrained(model, i, ("size_max", "size_min", "fixed"))


def _check_mixture(model: Any, i: int) -> None:
    _check_unconstrained(model, i, ("fixed",))
    if model.covariance_type_ not in _TYPES:
        raise ValueError(
            f"models[{i}] must have a covariance_type of {', '.join(_TYPES)}, got {model.covariance_type_!r}."
        )
    if not hasattr(model, "counts_"):
        raise ValueError(f"models[{i}] must have counts_, by which models are weighted: fit it to data.")


def _check_count(n_clusters: int, available: int, what: str) -> None:
    if n_clusters > available:
        raise ValueError(f"n_clusters={n_clusters} should be <= {available}, the number of {what} in models.")


def _k_means(models: Sequence[Any], k: int, random_state: Any, n_threads: int | None) -> Any:
    first, D = models[0], models[0].n_features_in_
    sizes, totals = [len(model.counts_) for model in models], [float(model.counts_.sum()) for model in models]
    points = np.concatenate([model.cluster_centers_ for model in models])
    counts = np.concatenate([model.counts_ for model in models]).astype(np.float64)
    errors = D * np.array([model.variance_ for model in models])  # mean squared distance of points to centers
    if first.metric == "cosine":
        lengths = np.clip(1 - errors / 2, 1e-3, 1.0)  # mean cosine between points and their centers
        spread, lengths = np.repeat((1 / lengths**2 - 1) / max(D - 1, 1), sizes), np.repeat(lengths, sizes)
    else:
        spread, lengths = np.repeat(errors / D, sizes), np.ones(len(points))
    kept = counts > 0
    _check_count(k, len(np.unique(points[kept], axis=0)), "different centers with a weight > 0")
    points, counts, lengths = points[kept], counts[kept], lengths[kept]
    found = cluster_densities(points, counts, spread[kept], k, first.metric, seed_of(random_state), n_threads)
    shifts = np.subtract(points, found.centers[found.nearest], dtype=np.float64)
    between = float((counts * lengths) @ np.square(shifts).sum(axis=1))
    inertia = sum(_inertia(model) for model in models) + between
    mean_square = (float(errors @ totals) + between) / sum(totals)
    return derived_k_means(first, found.centers, found.counts, inertia, mean_square)


def _inertia(model: Any) -> float:
    """Return J, the sum of squared distances of the training data to their centers.

    After `partial_fit`, J is estimated from the variance σ² in the last batch: J = σ² D N.
    """
    history = getattr(model, "history_", None)
    if history is None or history["phase"][-1] != "online":
        return float(model.inertia_)
    return float(model.variance_ * model.n_features_in_ * model.counts_.sum())


def _mixture(models: Sequence[Any], k: int, random_state: Any, n_threads: int | None) -> Any:
    first = models[0]
    parameters: list[Any] = [model_of(model) for model in models]
    dtype = np.result_type(*(model.means_ for model in models))
    totals = [float(model.counts_.sum()) for model in models]
    counts = np.concatenate([model.counts_ for model in models])
    # If mixing weights π_c are free, the components of a model with N points have the weights π_c N.
    # The weights π_c N differ from `counts_`, which are sums of responsibilities of an E-step after the last M-step.
    if not first.equal_weights_:
        counts = np.concatenate([model.weights * total for model, total in zip(parameters, totals, strict=True)])
    means = np.concatenate([model.centers for model in parameters]).astype(np.float64)
    kept = counts > 0
    _check_count(k, int(kept.sum()), "components with a weight > 0")
    if first.covariance_type_.startswith("tied"):
        within = np.average([model.covariances for model in parameters], axis=0, weights=totals)
        tied = _Tied(counts[kept], means[kept], np.asarray(within))
        found = tied.combined(k, seed_of(random_state), n_threads)
    else:
        covariances = np.concatenate([model.covariances for model in parameters])[kept]
        components = WeightedGaussians(counts[kept], means[kept], covariances)
        found = components.unite(reduce(components, k), k)
    weights = None if first.equal_weights_ else found.counts / found.counts.sum()
    given = {"covariances_": found.covariances}
    model = type(parameters[0]).from_attributes(given, found.means.astype(dtype), weights)
    return derived_mixture(first, model, found.counts)


@dataclass(frozen=True)
class _Tied:
    """Gaussian components that share one covariance: the components of all models to combine.

    counts (n,): weights    means (n, D)    within: the covariance (D, D), or one variance () for all columns
    """

    counts: Doubles
    means: Doubles
    within: Doubles

    def combined(self, k: int, seed: int, n_threads: int | None) -> WeightedGaussians:
        """Return k Gaussians that share one covariance; each is the union of some of the components.

        A union has the summed weight and the weighted mean of its components. The components are divided into unions by
        k-means of their means, whitened with the shared covariance. The shared covariance depends on the unions, so it
        is computed again, and k-means is repeated, until no component changes its union.
        """
        points = self._whitened(self.within)
        groups = cluster_points(points, self.counts, k, seed, n_threads)
        can_move = self.within.ndim > 0 and len(np.unique(points, axis=0)) > k
        for _ in range(_MOST_DESCENTS if can_move else 0):
            points = self._whitened(self._united(groups, k).covariances)
            new = descend_points(points, self.counts, groups, k, n_threads)
            if (new == groups).all() or len(np.unique(new)) < k:
                break
            groups = new
        return self._united(groups, k)

    def _whitened(self, covariance: Doubles) -> Doubles:
        return (
            WeightedGaussians(np.ones(1), self.means, covariance[np.newaxis]).whiten()
            if covariance.ndim
            else self.means
        )

    def _united(self, groups: Ids, k: int) -> WeightedGaussians:
        means = mean_points(self.means, self.counts, groups, k)
        shares, shifts = self.counts / self.counts.sum(), self.means - means[groups]
        if self.within.ndim:
            between = (shares[:, np.newaxis] * shifts).T @ shifts
        else:
            between = np.asarray(shares @ np.square(shifts).mean(axis=1))
        return WeightedGaussians(sums_by(groups, self.counts, k), means, self.within + between)


_KINDS = (
    _Kind(KMeans, "cluster_centers_", ("metric",), _check_k_means, _k_means),
    _Kind(GaussianMixture, "means_", ("covariance_type_", "equal_weights_"), _check_mixture, _mixture),
)
