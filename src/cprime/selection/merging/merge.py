"""The function `merge`, which joins the components of a fit to clusters."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cprime._utils.arguments import naming
from cprime.em.joins import Joins, children_of, sums_by, ward_joins
from cprime.estimators.fitted import centers_of
from cprime.estimators.validation import check_choice, check_integer, check_weights
from cprime.selection.merging.entropy import entropy_joins
from cprime.selection.merging.shares import has_model, shares_of
from cprime.selection.merging.tree import MergeTree

LEAST_KEPT, MOST_KEPT = 5, 16  # limits of n_active="auto", the number of components of a row in the entropy


def merge(
    fitted: Any,
    X: Any = None,
    *,
    sample_weight: Any = None,
    criterion: str = "auto",
    n_active: int | str = "auto",
) -> MergeTree:
    """Join the components of a fit pair by pair, to any smaller number of clusters.

    Parameters
    ----------
    fitted : estimator
        A fitted `GaussianMixture`, `KMeans`, or any other fitted object with ``cluster_centers_`` or ``means_``, for
        example of scikit-learn.
    X : array-like of shape (n_samples, n_features), or a source, default=None
        Data of any type that the estimator accepts. Required for "entropy"; for "ward", None uses the counts of the
        fit.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows of X; None is 1 for each.
    criterion : {"auto", "entropy", "ward"}, default="auto"
        "entropy" joins the two clusters whose union lowers the entropy of the assignment −Σ_n w_n Σ_k t_nk log t_nk
        most, where t_nk is the sum of the responsibilities of the components in k. It joins overlapping clusters and
        allows any shape. "ward" joins the two clusters whose union raises the sum of squares J of the weighted centers
        least, so clusters stay round. "auto" is "entropy" for mixtures and "ward" for estimators with
        ``cluster_centers_``. For a `KMeans`, "entropy" uses ``variance_`` as σ²; for estimators that are neither
        `KMeans` nor mixtures of this package it uses ``predict_proba``.
    n_active : int or "auto", default="auto"
        C′, the number of components per row that count in the entropy: those with the largest responsibilities. "auto"
        is ``n_active_`` of the fit, but at least 5 and at most 16. So for a fit with ``n_active_=3`` it is 5, more than
        ``predict_proba`` returns; set ``n_active=3`` to use exactly those.

    Returns
    -------
    tree : MergeTree

    Raises
    ------
    ValueError
        If criterion is "entropy" and X is None or the fit has no ``predict_proba``; or if X is None and the fit has
        neither counts nor labels.
    TypeError
        If the fit has no centers.

    Notes
    -----
    The responsibilities are the truncated posterior q_nc = p(c, x_n) / Σ_{c'∈K(n)} p(c', x_n) of one E-step over all
    components, where K(n) contains the C′ components of greatest joint probability; q is 0 outside K(n), and rows sum
    to 1. K(n) is found once, for the components: a join adds entries of q, t_nk = Σ_{c∈k} q_nc, and does not truncate
    them again. For an estimator without a probability model, for example `FuzzyKMeans`, the C′ greatest entries of
    ``predict_proba`` are divided by their sum; entries that the fit has truncated stay 0.

    The decreases of entropy by joins of pairs that share points take N·C′² operations, and each join updates only those
    of overlapping clusters. Memory is of the order N·C′, for rows with more than one component. Clusters that share no
    point are joined last, by Ward's criterion of their means and weights. A component of weight 0 is joined to the
    nearest one before all other joins by Ward's criterion.

    References
    ----------
    J.-P. Baudry, A. E. Raftery, G. Celeux, K. Lo, R. Gottardo: Combining mixture components for clustering. Journal of
    Computational and Graphical Statistics 19, 2010. J. H. Ward: Hierarchical grouping to optimize an objective
    function. JASA 58, 1963.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import GaussianMixture
    >>> from cprime.selection import merge
    >>> rng = np.random.default_rng(0)
    >>> angles, radii = rng.uniform(0, 2 * np.pi, 2000), np.repeat([1.0, 3.0], 1000)
    >>> X = np.column_stack([radii * np.cos(angles), radii * np.sin(angles)]) + rng.normal(scale=0.1, size=(2000, 2))
    >>> mixture = GaussianMixture(30, random_state=0).fit(X)
    >>> labels = merge(mixture, X).labels(2)  # one ring within the other
    >>> sorted(np.bincount(labels).tolist())
    [1000, 1000]
    """
    check_choice(criterion, "criterion", ("auto", "entropy", "ward"))
    with naming("fitted"):
        check_is_fitted(fitted)
    centers = centers_of(fitted)
    if X is None and sample_weight is not None:
        raise ValueError("sample_weight is of the rows of X: give X too.")
    if resolve_criterion(criterion, fitted) == "ward":
        return _by_ward(fitted, centers, X, sample_weight)
    n_kept = _resolve_kept(n_active, fitted, len(centers))
    if not has_model(fitted) and not hasattr(fitted, "predict_proba"):
        raise ValueError(f"criterion='entropy' needs probabilities, which {type(fitted).__name__} does not say.")
    if X is None:
        raise ValueError("X must be given for criterion='entropy', got None: the entropy is of its responsibilities.")
    return _by_entropy(fitted, centers, X, sample_weight, n_kept)


def resolve_criterion(criterion: str, fitted: Any) -> str:
    """Return the criterion, "entropy" or "ward"; for "auto", the one that suits the class of the fit."""
    if criterion != "auto":
        return criterion
    return "entropy" if hasattr(fitted, "means_") else "ward"


def _resolve_kept(n_active: int | str, fitted: Any, n_components: int) -> int:
    if isinstance(n_active, str):
        check_choice(n_active, "n_active", ("auto",))
        own = getattr(fitted, "n_active_", n_components)
        return min(max(own, LEAST_KEPT), MOST_KEPT, n_components)
    if check_integer(n_active, "n_active", 1) > n_components:
        raise ValueError(f"n_active={n_active} should be <= n_components={n_components}.")
    return n_active


def _by_entropy(fitted: Any, centers: NDArray[np.float64], X: Any, sample_weight: Any, n_kept: int) -> MergeTree:
    C = len(centers)
    seen = shares_of(fitted, X, sample_weight, n_kept, C)
    joins = _completed(entropy_joins(seen.several, C), centers, seen.weights)
    return MergeTree(
        "entropy",
        children_of(joins.pairs, C),
        joins.changes,
        seen.weights,
        seen.several.entropy,
        n_kept,
        seen.components,
    )


def _completed(joins: Joins, centers: NDArray[np.float64], weights: NDArray[np.float64]) -> Joins:
    """Return the given joins, followed by joins of the remaining clusters by Ward's criterion.

    The remaining clusters share no point, so the added joins do not change the entropy.
    centers (C, D), weights (C,): centers and weights of the C components
    """
    C = len(centers)
    of = np.arange(C)
    for a, b in joins.pairs:
        of[of == b] = a
    ones, cluster = np.unique(of, return_inverse=True)
    if len(ones) == 1:
        return joins
    sums = sums_by(cluster, weights, len(ones))
    shares = np.where(sums[cluster] > 0, weights, 1.0)
    shares /= sums_by(cluster, shares, len(ones))[cluster]
    means = np.column_stack([sums_by(cluster, shares * column, len(ones)) for column in centers.T])
    pairs = ones[ward_joins(means, sums).pairs]
    return joins.then(Joins(pairs, np.zeros(len(pairs))))


def _by_ward(fitted: Any, centers: NDArray[np.float64], X: Any, sample_weight: Any) -> MergeTree:
    C = len(centers)
    components, weights = _counted(fitted, X, sample_weight, C)
    joins = ward_joins(centers, weights)
    return MergeTree("ward", children_of(joins.pairs, C), joins.changes, weights, components=components)


def _counted(fitted: Any, X: Any, sample_weight: Any, n_components: int) -> tuple[Any, NDArray[np.float64]]:
    """Return the component of each row (n,), None if unknown, and the weight of each component (C,).

    They are those of X or, if X is None, of the training data of the fit.
    """
    if X is not None:
        if has_model(fitted):
            seen = shares_of(fitted, X, sample_weight, 1, n_components)
            return seen.components, seen.weights
        found = np.asarray(fitted.predict(X))
        weights = check_weights(sample_weight, found)
        return found, sums_by(found, np.ones(len(found)) if weights is None else weights, n_components)
    labels = getattr(fitted, "labels_", None)
    if hasattr(fitted, "counts_"):
        return labels, np.asarray(fitted.counts_, dtype=np.float64)
    if labels is None:
        raise ValueError(f"{type(fitted).__name__} has neither counts_ nor labels_: give X.")
    labels = np.asarray(labels)
    return labels, sums_by(labels, np.ones(len(labels)), n_components)
