"""Checks of a fitted model, each with a finding and, if there is a problem, the argument to change."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime.estimators.quality import advice, certificate_text, objective_bound_text
from cprime.neighbors import exact_lists
from cprime.report.evidence import ReportData

_TINY = 1 / 20  # A cluster is tiny if its size is below this fraction of the mean size.
_SAME = 1e-3  # Two centers coincide if their distance is at most twice this fraction of the mean spread of clusters.
# Least fractions of the total variance in one column for which the result of a check is "poor" (_ALL), "look" (_MOST).
_ALL = 0.99
_MOST = 0.9
_ROWS = 5  # A component has enough rows if it has at least this number for each of its parameters.
_MANY = 0.1  # It is poor if at least this share of the components have fewer rows than parameters.
_NEAR = 10  # A component is narrow if a variance, given the other columns, is at most this multiple of reg_covar.
# If the variance of a column is at most _SMALL times reg_covar, that is too large. The largest value that is advised is
# _RELATIVE times the smallest variance of a column, the smallest one _LEAST times this variance.
_SMALL, _RELATIVE, _LEAST = 10, 0.01, 1e-6
_NEAR_OPTIMUM = 0.03  # The error J counts as near its least value if the relative gap to a lower bound is at most this.
_AS_FITTED = 0.1  # J per row counts as equal to that of the fit if the relative difference is at most this.


class State(StrEnum):
    """State of a check of a model: good, worth a look, or poor."""

    GOOD = "good"
    LOOK = "look"
    POOR = "poor"


@dataclass(frozen=True)
class Light:
    """Result of one check of a fitted model.

    name: what was checked    state: good, look or poor    finding: a sentence on the result
    remedy: the argument to change, "" if there is no problem
    """

    name: str
    state: State
    finding: str
    remedy: str = ""


def lights(evidence: ReportData) -> list[Light]:
    """Return the results of all checks of a fitted model that apply to the estimator and to the examined rows."""
    found = (
        _converged(evidence.estimator),
        _search(evidence.estimator),
        _empty(evidence),
        _tiny(evidence),
        _duplicates(evidence),
        _columns(evidence),
        _rows_per_component(evidence),
        _collapsed(evidence),
        _as_fitted(evidence),
        _optimum(evidence.estimator),
    )
    return [light for light in found if light is not None]


def count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _converged(estimator: Any) -> Light | None:
    if not hasattr(estimator, "converged_"):
        return None
    n_iter, name = getattr(estimator, "n_iter_", 0), "Convergence"
    if estimator.converged_:
        return Light(name, State.GOOD, f"Converged after {count(n_iter, 'iteration')}.")
    history = getattr(estimator, "history_", None)
    if history is not None and "phase" in (history.dtype.names or ()) and (history["phase"] == "online").any():
        return Light(name, State.GOOD, "Fitted batch by batch, which does not wait for convergence.")
    if getattr(estimator, "assignment", "") == "sampled":
        return Light(name, State.GOOD, f"Stochastic EM ran its {count(n_iter, 'iteration')}; it does not converge.")
    most = estimator.get_params(deep=False).get("max_iter")
    return Light(
        name,
        State.POOR,
        f"Stopped after {count(n_iter, 'iteration')} before it had converged.",
        f"max_iter={2 * most} (it was {most})" if most else "more iterations",
    )


def _search(estimator: Any) -> Light | None:
    if not hasattr(estimator, "certificate_"):
        return None
    found, name = estimator.certificate_, "Search"
    if found is None:
        if getattr(estimator, "neighbors_", None) is not None:
            return Light(
                name, State.LOOK, "The search was partial, and its quality was not measured.", "Graph(certificate=1000)"
            )
        return Light(name, State.GOOD, "Exact: each row was compared with all clusters that can be its best one.")
    said = certificate_text(getattr(estimator, "certificate_", None))
    if advice(estimator) is None:
        return Light(name, State.GOOD, f"Partial and good: {said}.")
    lists = getattr(estimator, "neighbors_", None)
    longer = "" if lists is None else f"Graph(n_neighbors={2 * lists.shape[1]}), or "
    return Light(name, State.POOR, f"Partial and poor: {said}.", f"{longer}search='full'")


def _argument(estimator: Any) -> str:
    return "n_components" if hasattr(estimator, "n_components") else "n_clusters"


def _empty(evidence: ReportData) -> Light | None:
    sizes = evidence.fit_sizes
    if sizes is None:
        return None
    n = int(np.count_nonzero(np.asarray(sizes) <= 0))
    if n == 0:
        return Light("Empty clusters", State.GOOD, f"None: each of {evidence.n_clusters:,} has points.")
    used = evidence.n_clusters - n
    return Light(
        "Empty clusters",
        State.POOR,
        f"{count(n, 'cluster')} of {evidence.n_clusters:,} without points in the fit.",
        f"{_argument(evidence.estimator)}={used}",
    )


def _tiny(evidence: ReportData) -> Light:
    sizes = evidence.sizes
    filled = sizes[sizes > 0]
    bound = _TINY * sizes.sum() / evidence.n_clusters
    n = int(np.count_nonzero(filled < bound))
    if n == 0:
        return Light("Tiny clusters", State.GOOD, "None is smaller than a twentieth of the mean size.")
    share = filled[filled < bound].sum() / sizes.sum()
    return Light(
        "Tiny clusters",
        State.LOOK,
        f"{count(n, 'cluster')} below a twentieth of the mean size, {share:.2%} of the weight: often outliers.",
        f"{_argument(evidence.estimator)}={max(evidence.n_clusters - n, 1)}, or leave the outliers out",
    )


def nearest_pairs(evidence: ReportData) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the index of the nearest other center for each center, and the distance to it: (C,) each.

    Both are empty if there is only one center. Features are divided by `evidence.unit` before distances are computed.
    """
    centers = np.ascontiguousarray(evidence.centers / evidence.unit)
    nearest = exact_lists(centers, 2)
    if nearest.shape[1] == 0:
        return np.empty(0, dtype=np.int32), np.empty(0)
    other = nearest[:, 0]
    return other, np.linalg.norm(centers - centers[other], axis=1)


def _duplicates(evidence: ReportData) -> Light | None:
    other, distances = nearest_pairs(evidence)
    if not len(other):
        return None
    scale = float(np.sqrt(np.average(evidence.squared_distances, weights=evidence.weight)))
    floor = scale if scale > 0 else float(np.sqrt((evidence.variances / evidence.unit**2).sum()))
    same = np.flatnonzero(distances <= 2 * _SAME * floor)
    if not len(same):
        return Light("Duplicate clusters", State.GOOD, "None: no two centers coincide.")
    first = int(same[0])
    return Light(
        "Duplicate clusters",
        State.LOOK,
        f"{count(len(same), 'center')} coincide with another, as {first} and {int(other[first])} do.",
        f"{_argument(evidence.estimator)}={max(evidence.n_clusters - len(same) // 2, 1)}",
    )


def _columns(evidence: ReportData) -> Light | None:
    """Return the result of a check of the columns: poor, or worth a look, if one column has most of the variance.

    This is a problem if columns have different units. A mixture whose components have variances of their own is
    affected only by its initialization, which is k-means. Return None if there is only one column, or no variance.
    """
    total = evidence.variances.sum()
    if len(evidence.names) == 1 or total <= 0:
        return None
    shares = evidence.variances / total
    j, name = int(shares.argmax()), "Columns"
    constant = int(np.count_nonzero(evidence.variances == 0))
    also = f" {count(constant, 'column')} never changes." if constant == 1 else f" {constant:,} columns never change."
    also = also if constant else ""
    finding = f"“{evidence.names[j]}” has {shares[j]:.1%} of the variance"
    scaled = "make_pipeline(StandardScaler(), …), or cprime fit --scale"
    if shares[j] < _MOST:
        return Light(name, State.GOOD, f"{finding}, the largest share of a column.{also}")
    if evidence.scale_free:
        text = (
            "Components adapt to units, but the initial centers come from distances, in which the others hardly count"
        )
        return Light(name, State.LOOK, f"{finding}. {text}.{also}", scaled)
    state = State.POOR if shares[j] >= _ALL else State.LOOK
    return Light(name, state, f"{finding}, so the others hardly count.{also}", scaled)


def _rows_per_component(evidence: ReportData) -> Light | None:
    """Return the result of a check of the numbers of rows: poor if many components have fewer rows than parameters.

    It is worth a look if a component has less than `_ROWS` rows for each parameter. The parameters are those of one
    column if a component has no covariances of columns, because then each column is estimated alone. Return None for
    estimators other than mixtures.
    """
    estimator, model = evidence.estimator, evidence.model
    if model is None or not hasattr(estimator, "n_components"):
        return None
    C, name = evidence.n_clusters, "Rows per component"
    n = len(estimator.labels_) if hasattr(estimator, "labels_") else evidence.n_points
    rows = evidence.sizes[evidence.sizes > 0] * (n / evidence.sizes.sum())
    each = model.n_parameters / C / (1 if model.full else model.n_features)
    parameters = f"{count(round(each), 'parameter')}{'' if model.full else ' of a column'}"
    text = f"The smallest component has {count(round(rows.min()), 'row')} for its {parameters}"
    few, some = (int(np.count_nonzero(rows < least)) for least in (each, _ROWS * each))
    if not some:
        return Light(name, State.GOOD, f"{text}.")
    enough = int(n / (_ROWS * each))
    advice = f"n_components={max(enough if enough < C else C - some, 1)}"
    if model.covariance_type == "full":
        advice = f'covariance_type="diag" ({2 * model.n_features} parameters a component), or {advice}'
    if few:
        state = State.POOR if few >= _MANY * C else State.LOOK
        return Light(name, state, f"{text}; {few:,} of {C:,} have fewer rows than parameters.", advice)
    return Light(name, State.LOOK, f"{text}; {some:,} of {C:,} have less than {_ROWS} rows for each parameter.", advice)


def _collapsed(evidence: ReportData) -> Light | None:
    """Return the result of a check of the variances: worth a look if one is near `reg_covar`, which is added to all.

    The advice depends on the reason: columns of small variance, columns that do not change within a component, or
    columns that determine each other there. Return None if the estimator has no `reg_covar`, or its value is 0.
    """
    added, name = getattr(evidence.estimator, "reg_covar", None) or 0.0, "Narrow components"
    if evidence.model is None or added <= 0:
        return None
    least, variances = evidence.model.least_variances, evidence.variances
    narrow = np.empty(0, dtype=np.intp) if least is None else np.flatnonzero(least <= _NEAR * added)
    varies, of_columns = variances > 0, evidence.scale_free
    small = np.flatnonzero(varies & ((variances if of_columns else variances.mean()) <= _SMALL * added))
    if len(small) and (least is None or len(narrow)):
        j, smallest = int(small[0]), float(variances[small].min() if of_columns else variances.mean())
        what = f"“{evidence.names[j]}” has a variance of" if of_columns else "columns have a mean variance of"
        finding = f"reg_covar={added:g} is added to all variances, but {what} only {variances[j]:.1g}."
        scaled = "make_pipeline(StandardScaler(), …)"
        if 2 * len(small) < np.count_nonzero(varies):
            return Light(name, State.LOOK, finding, f"{scaled}, if such columns matter")
        return Light(name, State.LOOK, finding, f"reg_covar={_LEAST * smallest:.0e}, or {scaled}")
    if least is None:
        return None
    if not len(narrow):
        return Light(name, State.GOOD, f"None: every variance is far above reg_covar={added:g}, which is added to it.")
    flat = (_variances_within(evidence, narrow) <= _NEAR * added).any(axis=0)
    text, fewer = f"{count(len(narrow), 'component')} of {evidence.n_clusters:,}", "fewer components"
    changing = np.flatnonzero(flat & varies)
    if len(changing):
        most, column = _RELATIVE * variances[varies].min(), evidence.names[int(changing[0])]
        finding = f"In {text} a column such as “{column}” never changes, so its variance is reg_covar={added:g}"
        if added >= most / 2:
            return Light(name, State.GOOD, f"{finding}, which is not much smaller than those of other columns.")
        if len(np.unique(evidence.X[:, changing[0]])) == 2:
            fewer = "CategoricalMixture for columns of categories, or KMeans"
        advice = f"reg_covar={most:.1g} (a hundredth of the smallest variance of a column), or {fewer}"
        return Light(name, State.LOOK, f"{finding}.", advice)
    if flat.any():
        columns = " and ".join(f"“{evidence.names[j]}”" for j in np.flatnonzero(flat)[:2])
        return Light(name, State.LOOK, f"{columns} never change, so their variances are reg_covar.", "leave them out")
    finding = (
        f"In {text} some columns determine others, or there are few rows, so reg_covar={added:g} decides the shape."
    )
    simpler = 'covariance_type="diag", or ' if getattr(evidence.model, "covariance_type", "") == "full" else ""
    return Light(name, State.LOOK, finding, f"{simpler}{fewer}")


def _variances_within(evidence: ReportData, components: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the variance of each column among the examined rows of each of m components: (m, D), NaN without rows."""
    order = np.argsort(evidence.labels, kind="stable")
    labels = evidence.labels[order]
    out = np.full((len(components), len(evidence.names)), np.nan)
    for k, c in enumerate(components):
        rows = order[np.searchsorted(labels, c) : np.searchsorted(labels, c, "right")]
        weight = evidence.weight[rows]
        if weight.sum() > 0:
            mean = np.average(evidence.X[rows], axis=0, weights=weight)
            out[k] = np.average(np.square(evidence.X[rows] - mean), axis=0, weights=weight)
    return out


def _as_fitted(evidence: ReportData) -> Light | None:
    """Return the result of a check of the rows: good if J per row is within 10 % of that of the fit, else "look".

    J per row is the mean squared distance to the centers. Return None if that of the fit is unknown or 0.
    """
    inertia, sizes = getattr(evidence.estimator, "inertia_", None), evidence.fit_sizes
    if inertia is None or sizes is None or not np.sum(sizes) > 0:
        return None
    then = inertia / np.sum(sizes)
    now = float(np.average(evidence.squared_distances, weights=evidence.weight))
    if then <= 0:
        return None
    change = now / then - 1
    name = "The same data?"
    if abs(change) <= _AS_FITTED:
        return Light(name, State.GOOD, f"The squared error per row is within {abs(change):.1%} of that of the fit.")
    return Light(
        name,
        State.LOOK,
        f"The squared error per row differs from that of the fit by {change:+.0%}.",
        "fit again, on data such as these",
    )


def _optimum(estimator: Any) -> Light | None:
    """Return the result of a check of the error J: good if it is at most a few percent above a lower bound of J.

    No clustering has a smaller J than the lower bound. Return None if none was computed.
    """
    text = objective_bound_text(estimator)
    if text is None:
        return None
    near = estimator.objective_bound_["gap"] <= _NEAR_OPTIMUM
    return Light(
        "Optimum",
        State.GOOD if near else State.LOOK,
        f"{text} ({estimator.objective_bound_['method']}).",
        "" if near else "n_init=10 for a better clustering, or a larger time_limit for a better bound",
    )
