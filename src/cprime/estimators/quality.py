"""What a fitted estimator says of itself in a few words: how good its search was, what its points keep, what to change.

Reads fitted attributes and computes nothing.
"""

import logging
from functools import cache
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from cprime._warnings import warn

LEAST_AGREEMENT = 0.9  # share of points whose best component was found
MOST_EXCESS = 0.02  # of J over that of nearest centers, as a share of it
MOST_SHORTFALL = 0.1  # of F against that of the exact K(n) [nats a point]

_log = logging.getLogger("cprime")


class SearchQualityWarning(ConvergenceWarning):
    """A partial search has missed too much: for more than one point in ten the best component was not found, or J is
    more than 2 % above that of nearest centers, or F more than 0.1 nats a point short of what it could be.

    It is raised where that is certain: where the whole 95 % interval of the figure in `certificate_` lies beyond. The
    message says which argument to change.

    Examples
    --------
    A program that should rather end than go on with a poor fit:

    >>> import warnings
    >>> import cprime
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", cprime.SearchQualityWarning)
    ...     km = cprime.KMeans(4, random_state=0).fit(cprime.datasets.birch(2, random_state=0).data)
    """


def certificate_text(estimator: Any) -> str | None:
    """The certificate in words, with the interval of the first figure in per cent; None where there is none."""
    found = getattr(estimator, "certificate_", None)
    if not found:
        return None
    low, high = (f"{100 * end:.3g}" for end in found["agreement_interval"])
    interval = low if low == high else f"{low} to {high}"
    what = "nearest center" if "relative_excess" in found else "best component"
    text = f"{what} found for {100 * found['agreement']:.3g} % [{interval}]"
    if "relative_excess" in found:
        return f"{text}, J {100 * found['relative_excess']:.2g} % above exact"
    return f"{text}, F {found['shortfall']:.2g} nats below exact"


def remarks(estimator: Any) -> list[str]:
    """What a reader of a fitted estimator should know, a line each: certificate, labels, advice, C′ where C′ < C."""
    lines = []
    text = certificate_text(estimator)
    if text is not None:
        exact = getattr(estimator, "final_assignment_", "found") == "exact"
        lines.append(f"{text}; labels_ are {'exact' if exact else 'as found, predict() is exact'}")
    poor = advice(estimator)
    if poor is not None:
        lines.append(poor)
    if hasattr(estimator, "preparation_"):
        lines.append("data are scaled or filled as those of the fit were (preparation_); centers are in these units")
    n_active, C = getattr(estimator, "n_active_", None), _n_components(estimator)
    if n_active is not None and C is not None and 1 < n_active < C:
        lines.append(
            f"a point keeps {n_active} of {C} components (n_active_={n_active}), the others have probability 0"
        )
    return lines


def advice(estimator: Any) -> str | None:
    """What to change where the certificate is certainly poor; None where it is not."""
    found = getattr(estimator, "certificate_", None)
    if not found:
        return None
    missed = found["agreement_interval"][1] < LEAST_AGREEMENT
    excess = found.get("relative_excess_interval", (0.0,))[0] > MOST_EXCESS
    short = found.get("shortfall_interval", (0.0,))[0] > MOST_SHORTFALL
    if not (missed or excess or short):
        return None
    lists = getattr(estimator, "neighbors_", None)
    G = None if lists is None else lists.shape[1]
    longer = "" if G is None else f"a larger n_neighbors (it was {G}), or "
    return f"the partial search missed much: try {longer}search='full', which looks at all components"


def warn_if_poor(estimator: Any) -> None:
    """A `SearchQualityWarning` where the search has missed too much."""
    poor = advice(estimator)
    if poor is not None:
        warn(f"{certificate_text(estimator)}: {poor}", SearchQualityWarning)


@cache
def say_truncated(method: str, n_active: int, n_components: int) -> None:
    """Once for a method: the log says that probabilities are those of few components, which nobody has asked for."""
    _log.warning(
        "%s: a row has the %d most probable of %d components, the others are exactly 0 "
        "(n_active='auto'); n_active=None keeps all",
        method,
        n_active,
        n_components,
    )


def _n_components(estimator: Any) -> int | None:
    for name in ("cluster_centers_", "means_"):
        if getattr(estimator, name, None) is not None:
            return len(getattr(estimator, name))
    return None
