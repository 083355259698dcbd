"""Figure S1 of Lücke & Forster: exact and truncated posterior of a point, with 3 of 8 clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.distance import cdist

from cprime._utils.style import BLACK, GREEN, GREY, VERMILION, frame
from reproduction.base import Context, Entry, Result, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The source gives no coordinates; ours are eight clusters of variance 1 whose neighbors overlap a little.
CENTERS = np.array([[0, 0], [3.6, 0.6], [1.4, 3.4], [6.8, 3.2], [5.2, 6.2], [-2.6, 3.0], [-0.6, 6.8], [9.4, 0.2]])
POINT = np.array([1.9, 1.4])
N_ACTIVE = 3
_POINTS = 100  # of a cluster
_MASS = 0.95  # of the posterior: a truncated one that holds at least this much is close
_ALL, _MOST = 0.99, 0.5
_STATEMENTS = {3: ("basically all", _ALL), 2: ("most", _MOST), 1: ("most", _MOST)}


def compute(context: Context) -> Result:
    """Compute the posterior of a point between clusters, and the mass of the nearest C′ for points of all clusters."""
    rng = np.random.default_rng(context.random_state)
    X = np.repeat(CENTERS, _POINTS, axis=0) + rng.standard_normal((_POINTS * len(CENTERS), 2))
    mass = np.cumsum(-np.sort(-_posterior(X), axis=1), axis=1)
    rows = []
    for n_active, (published, least) in _STATEMENTS.items():
        share = float(np.mean(mass[:, n_active - 1] >= _MASS))
        rows.append(
            Row(
                f"share of points whose {n_active} closest cluster(s) hold {_MASS:.0%} of the posterior",
                published,
                share,
                None,
                share >= least,
                f"at least {least:.0%}; the source names no limits and no coordinates",
                generous=True,
            )
        )
    exact = _posterior(POINT[np.newaxis])[0]
    kept = np.argsort(-exact)[:N_ACTIVE]
    nearest = np.argsort(cdist(POINT[np.newaxis], CENTERS)[0])[:N_ACTIVE]
    is_same = set(kept) == set(nearest)
    rows.append(
        Row(
            "clusters of the 3 highest posterior values",
            "the closest 3",
            "the closest 3" if is_same else "others",
            None,
            is_same,
            generous=True,
        )
    )
    content = {"exact": exact.tolist(), "points": X.round(3).tolist(), "kept": kept.tolist()}
    return ENTRY.result(1, rows, content)


def _posterior(X: np.ndarray) -> np.ndarray:
    """Return the responsibilities (n, 8) of points (n, 2) for equal weights and variance 1."""
    scores = np.exp(-(cdist(X, CENTERS) ** 2) / 2)
    return scores / scores.sum(axis=1, keepdims=True)


def draw(result: Result, figure: Figure) -> None:
    """Draw both posteriors at the left, and at the right the point, joined with the clusters that are kept."""
    from cprime.plots import ResponsibilitiesDisplay

    figure.set_size_inches(8, 4)
    data = result.data
    parts: Any = figure.subfigures(1, 2, width_ratios=(0.8, 1))
    left, right = parts
    ResponsibilitiesDisplay(data["exact"], N_ACTIVE).plot(list(left.subplots(2, 1, sharex=True, sharey=True)))
    ax = right.subplots()
    ax.plot(*np.array(data["points"]).T, "o", color=GREY, markersize=1.5, zorder=1)
    for c in data["kept"]:
        ax.plot(*np.stack([POINT, CENTERS[c]]).T, color=BLACK, linewidth=1.2, zorder=2)
    ax.plot(*CENTERS.T, "o", color=GREEN, markersize=7, zorder=3)
    ax.plot(*POINT, "x", color=VERMILION, markersize=9, markeredgewidth=2.5, zorder=4)
    for c, center in enumerate(CENTERS):
        ax.annotate(str(c), center, xytext=(6, 4), textcoords="offset points", fontsize=9)
    frame(ax, "a point between clusters, and its closest three")
    ax.set_aspect("equal")


ENTRY = Entry(
    "truncated-figure-s1",
    "Exact and truncated posterior of a point, C′ = 3 of 8 clusters",
    "Lücke & Forster 2019, figure S1",
    1,
    compute,
    draw,
)
