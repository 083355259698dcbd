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
                name, State.LOOK, "The search was partial, and nothing says how good it was.", "Graph(certificate=1000)"
            )
        return Light(name, State.GOOD, "Exact: every row was compared with what could be its best cluster.")
    said = certificate_text(getattr(estimator, "certificate_", None))
    if advice(estimator) is None:
        return Light(name, State.GOOD, f"Partial and good: {said}.")
    lists = getattr(estimator, "neighbors_", None)
    longer = "" if lists is None else f"Graph(n_neighbors={2 * lists.shape[1]}), or "
    return Light(name, State.POOR, f"It missed much: {said}.", f"{longer}search='full'")


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
        f"{count(n, 'cluster')} of {evidence.n_clusters:,} won no point in the fit.",
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
        f"{count(n, 'cluster')} below a twentieth of the mean size, {share:.2%} of the weight: outliers, as a rule.",
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

    This is a problem if columns have different units. Return None if there is only one column, or no variance.
    """
    total = evidence.variances.sum()
    if len(evidence.names) == 1 or total <= 0:
        return None
    shares = evidence.variances / total
    j, name = int(shares.argmax()), "Columns"
    constant = int(np.count_nonzero(evidence.variances == 0))
    also = f" {count(constant, 'column')} never changes." if constant == 1 else f" {constant:,} columns never change."
    also = also if constant else ""
    if evidence.scale_free:
        return Light(name, State.GOOD, f"Each has variances of its own, so units make no difference.{also}")
    finding = f"“{evidence.names[j]}” has {shares[j]:.1%} of the variance{{}}.{also}"
    if shares[j] < _MOST:
        return Light(name, State.GOOD, finding.replace("{}", ", the most of any column"))
    return Light(
        name,
        State.POOR if shares[j] >= _ALL else State.LOOK,
        finding.replace("{}", ": the others hardly count"),
        "make_pipeline(StandardScaler(), …), or cprime fit --scale",
    )


def _collapsed(evidence: ReportData) -> Light | None:
    """Return the result of a check of the variances: worth a look if one is near the lower limit `reg_covar`.

    Return None if the estimator has no such limit.
    """
    floor = getattr(evidence.estimator, "reg_covar", 0.0)
    least = None if evidence.model is None else evidence.model.least_variances
    if least is None or floor <= 0:
        return None
    n = int(np.count_nonzero(least <= 2 * floor))
    if n == 0:
        return Light("Collapsed components", State.GOOD, "None: every variance is far above its floor.")
    return Light(
        "Collapsed components",
        State.LOOK,
        f"{count(n, 'component')} so narrow in some direction that reg_covar={floor:g} decides.",
        f"reg_covar={100 * floor:g}, or fewer components",
    )


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
        return Light(name, State.GOOD, f"J per row is that of the fit ({change:+.1%}).")
    return Light(
        name,
        State.LOOK,
        f"J per row differs from that of the fit by {change:+.0%}.",
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
