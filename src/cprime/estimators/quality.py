"""Remarks on a fitted estimator as text: quality of its search, size of active sets, and advice.

The remarks depend on fitted attributes only, not on data.
"""

import logging
import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from cprime._utils.messages import warn
from cprime._utils.values import fitted_centers

# A partial search is poor, and a warning is issued, if its quality is beyond one of the three limits that follow.
LEAST_AGREEMENT = 0.9  # A search is poor if it finds the best component of less than this share of points.
MOST_EXCESS = 0.02  # A search is poor if J exceeds J of the exact nearest centers by more than this share.
MOST_SHORTFALL = 0.1  # A search is poor if it lowers the free energy F by more than this [nats per point].

_log = logging.getLogger("cprime")


class Bounds(NamedTuple):
    """Free energy, log-likelihood and their difference, per point (or unit of weight), in nats.

    Attributes
    ----------
    free_energy : float
        F(K, Θ), eq. (7) of Lücke & Forster.
    log_likelihood : float
        L(Θ), eq. (3) of Lücke & Forster; never below F, except for rounding errors.
    kl_gap : float
        L − F, the Kullback-Leibler divergence of the truncated posteriors from the exact ones; eq. (16) for k-means.
    entropy : float
        Mean entropy of the truncated posteriors; 0 for k-means.

    Examples
    --------
    >>> from cprime import KMeans
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> b = KMeans(2, random_state=0).fit(X).bounds(X)
    >>> bool(b.free_energy <= b.log_likelihood), b.entropy
    (True, 0.0)
    """

    free_energy: float
    log_likelihood: float
    kl_gap: float
    entropy: float


class SearchQualityWarning(ConvergenceWarning):
    """Warning that a partial search was poor: the best component was missed for more than 10 % of the points, or J is
    more than 2 % above J of the exact nearest centers, or F is more than 0.1 nats per point below F of an exact search.

    It is issued only if the whole 95 % interval of the value in `certificate_` is beyond the limit. The message says
    which argument to change.

    Examples
    --------
    End a program instead of continuing with a poor fit:

    >>> import warnings
    >>> import cprime
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", cprime.SearchQualityWarning)
    ...     km = cprime.KMeans(4, random_state=0).fit(cprime.datasets.birch(2, random_state=0).data)
    """


def certificate_text(found: dict[str, Any] | None) -> str | None:
    """Return the certificate `found` as text, or None if it is empty.

    A certificate is the measured quality of a partial search, the attribute `certificate_`. The text states the share
    of points whose best component was found, and the loss of J or F, each with its 95 % interval.
    """
    if not found:
        return None
    share = f"{100 * found['agreement']:.3g} % {_limits(found['agreement_interval'], 3, 100)}"
    if "relative_excess" in found:
        excess = f"{100 * found['relative_excess']:.2g} % {_limits(found['relative_excess_interval'], 2, 100)}"
        return f"nearest center found for {share}, J {excess} above exact"
    lost = f"{found['shortfall']:.2g} {_limits(found['shortfall_interval'], 2)}"
    return f"best component found for {share}, F {lost} nats below exact"


def _limits(interval: Sequence[float], digits: int, factor: float = 1) -> str:
    """Return an interval as text in brackets; only one number if both limits are equal."""
    low, high = (f"{factor * end:.{digits}g}" for end in interval)
    return f"[{low}]" if low == high else f"[{low} to {high}]"


def objective_bound_text(estimator: Any) -> str | None:
    """Return the lower bound of J* (least J of all clusterings) as text; None if `theory.lower_bound` was not called.

    The text contains the J that was compared with the bound, and the share by which another clustering may be better.
    """
    found = getattr(estimator, "objective_bound_", None)
    if not found:
        return None
    percent, J = math.ceil(1e4 * found["gap"]) / 100, found["inertia"]
    text = f"J* >= {found['value']:.6g}: no other clustering has a J more than {percent:.2f} % lower than {J:.6g}"
    if math.isclose(J, getattr(estimator, "inertia_", math.nan), rel_tol=1e-4):
        return text
    return f"{text}, the J of the nearest centers for the rows and weights of the bound"


def size_cost_text(estimator: Any) -> str:
    """Return a text about the cost of bounds on cluster sizes, for an estimator that was fitted with them.

    It states the number of points that are not with their nearest center, and the relative excess of J.
    """
    n = estimator.n_displaced_
    points = "1 point is not with its" if n == 1 else f"{n:,} points are not with their"
    return f"{points} nearest center, J is {estimator.size_cost_:.2%} above that of the nearest centers"


def remarks(estimator: Any) -> list[str]:
    """Return remarks on a fitted estimator, one per item of the list.

    Subjects are the measured quality of its search, the exactness of its labels, advice after a poor search, the
    lower bound of J*, the cost of bounded cluster sizes, the preparation of the data, and the size C′ of
    active sets if 1 < C′ < C.
    """
    lines = []
    text = certificate_text(getattr(estimator, "certificate_", None))
    if text is not None:
        labels = {"exact": "exact", "bounded": "within the bounds of sizes, predict() is the nearest center"}
        found = labels.get(getattr(estimator, "final_assignment_", "found"), "as found, predict() is exact")
        lines.append(f"{text}; labels_ are {found}")
    poor = advice(estimator)
    if poor is not None:
        lines.append(poor)
    if hasattr(estimator, "n_displaced_"):
        lines.append(f"bounds of the sizes: {size_cost_text(estimator)}")
    bound = objective_bound_text(estimator)
    if bound is not None:
        lines.append(bound)
    if hasattr(estimator, "preparation_"):
        lines.append("data are scaled or filled as those of the fit were (preparation_); centers are in these units")
    n_active, centers = getattr(estimator, "n_active_", None), fitted_centers(estimator)
    if n_active is not None and centers is not None and 1 < n_active < len(centers):
        lines.append(
            f"a point keeps {n_active} of {len(centers)} components (n_active_={n_active}), the others have "
            "probability 0"
        )
    return lines


def advice(estimator: Any) -> str | None:
    """Return advice as text if the partial search of a fitted estimator was poor, otherwise None.

    The search was poor if, for a quality value in `certificate_`, the whole 95 % interval is beyond the limit.
    """
    return _advice(getattr(estimator, "certificate_", None), getattr(estimator, "neighbors_", None))


def warn_if_poor(certificate: dict[str, Any] | None, neighbors: NDArray | None) -> None:
    """Issue a `SearchQualityWarning` if the partial search of a fit was poor.

    certificate: its measured quality, or None    neighbors: its neighbor lists, or None
    """
    poor = _advice(certificate, neighbors)
    if poor is not None:
        warn(f"{certificate_text(certificate)}: {poor}", SearchQualityWarning)


def _advice(found: dict[str, Any] | None, lists: NDArray | None) -> str | None:
    if not found:
        return None
    missed = found["agreement_interval"][1] < LEAST_AGREEMENT
    excess = found.get("relative_excess_interval", (0.0,))[0] > MOST_EXCESS
    short = found.get("shortfall_interval", (0.0,))[0] > MOST_SHORTFALL
    if not (missed or excess or short):
        return None
    longer = "" if lists is None else f"a larger n_neighbors of the search (it was {lists.shape[1]}), or "
    return f"the partial search missed much: try {longer}search='full', which compares points with all components"


def say_truncated(mixture: Any, method: str) -> None:
    """Log a warning if n_active="auto" means that a method of a mixture uses only C′ < C components of each row.

    The same warning is logged only once.    method: name of the method, for the text
    """
    C = len(mixture.means_)
    if mixture.n_active_ < C and mixture.n_active == "auto":
        log_truncated(method, mixture.n_active_, C)


@cache
def log_truncated(method: str, n_active: int, n_components: int) -> None:
    """Log a warning that a method sets all but the n_active largest probabilities of each row to 0.

    The same arguments are logged once.
    """
    _log.warning(
        "%s: a row has the %d most probable of %d components, the others are exactly 0 "
        "(n_active='auto'); n_active=None keeps all",
        method,
        n_active,
        n_components,
    )
