"""Figure B.2 of Forster & Lücke: distances between clusters, estimated from distances that E-steps compute anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.distance import cdist

from cprime._utils.style import BLACK, BLUE, GREEN, GREY, VERMILION, frame
from reproduction import sublinear_illustrated as illustrated
from reproduction.base import Context, Entry, Result, Row
from reproduction.sublinear_runs import SOURCE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS = 100  # of a cluster
_CENTER = 24  # c, in the middle of the grid
_DIAGONAL, _BESIDE = _CENTER - illustrated.SIDE - 1, _CENTER + 1  # c̃, at the lower left of c; c′, at its right
_ACCURATE, _REASONABLE = 0.03, 0.1


def compute(context: Context) -> Result:
    """Draw points of all clusters; estimate by (8) the distance from the middle one to two others."""
    centers = illustrated.grid()
    lists = illustrated.exact_lists(centers)
    rng = np.random.default_rng(context.random_state)
    X = np.repeat(centers, _POINTS, axis=0) + rng.standard_normal((_POINTS * len(centers), 2))
    distances = cdist(X, centers)
    kept = np.argsort(distances, axis=1)[:, : illustrated.N_ACTIVE]
    is_nearest = kept[:, 0] == _CENTER
    members = X[is_nearest]
    spaces = [np.union1d(row, lists[row]) for row in kept[is_nearest]]
    found = {
        name: _estimate(distances[is_nearest, other], np.array([other in space for space in spaces]))
        for name, other in (("diagonal", _DIAGONAL), ("beside", _BESIDE))
    }
    truth = {name: float(cdist(centers[[_CENTER]], centers[[c]])[0, 0]) for name, c in _NAMES.items()}
    errors = {name: found[name]["estimate"] / truth[name] - 1 for name in found}
    without = members[~np.array(found["diagonal"]["has_candidate"])]
    right = int((without > centers[_CENTER]).all(axis=1).sum())
    shares = {name: float(np.mean(found[name]["has_candidate"])) for name in found}
    rows = [
        Row(
            "c̃: share of the points of c that have it as a candidate",
            "most",
            shares["diagonal"],
            None,
            0.5 < shares["diagonal"] < 1,
        ),
        Row(
            "c̃: points without it that lie at the upper right of c",
            "all",
            f"{right} of {len(without)}",
            None,
            right == len(without),
            "the source says of its upper-right points that they have no such candidate",
        ),
        Row(
            "c̃: estimate (8) less the true distance, % of it",
            "reasonable",
            100 * errors["diagonal"],
            None,
            abs(errors["diagonal"]) < _REASONABLE,
            f"agrees within {_REASONABLE:.0%}",
            generous=True,
        ),
        Row(
            "c′: share of the points of c that have it as a candidate",
            "all",
            shares["beside"],
            None,
            shares["beside"] == 1,
        ),
        Row(
            "c′: estimate (8) less the true distance, % of it",
            "very accurate",
            100 * errors["beside"],
            None,
            abs(errors["beside"]) < _ACCURATE,
            f"agrees within {_ACCURATE:.0%}; points of unit variance are farther from a center than their mean is",
            generous=True,
        ),
    ]
    content = {"centers": centers.tolist(), "points": members.tolist(), "truth": truth, **found}
    return ENTRY.result(1, rows, content)


_NAMES = {"diagonal": _DIAGONAL, "beside": _BESIDE}


def _estimate(distances: np.ndarray, has_candidate: np.ndarray) -> dict[str, Any]:
    """Return estimate (8), the mean distance of the points that have the cluster as a candidate, and which do."""
    return {"estimate": float(distances[has_candidate].mean()), "has_candidate": has_candidate.tolist()}


def draw(result: Result, figure: Figure) -> None:
    """Draw, for both clusters, the distances that the estimate averages."""
    figure.set_size_inches(8, 4)
    data = result.data
    centers, points = np.array(data["centers"]), np.array(data["points"])
    titles = {"diagonal": "c̃ at the lower left", "beside": "c′ beside c"}
    for ax, (name, other) in zip(figure.subplots(1, 2), _NAMES.items(), strict=True):
        has = np.array(data[name]["has_candidate"])
        for point in points[has]:
            ax.plot(*np.stack([point, centers[other]]).T, color=VERMILION, linewidth=0.5, alpha=0.4, zorder=1)
        ax.plot(*centers[[_CENTER, other]].T, color=BLACK, linewidth=1.4, linestyle="--", zorder=3)
        ax.plot(*points[has].T, "o", color=BLUE, markersize=2.5, zorder=2)
        ax.plot(*points[~has].T, "o", color=GREY, markersize=2.5, zorder=2)
        ax.plot(*centers.T, "o", color=GREEN, markersize=6, zorder=2)
        text = f"{titles[name]}: estimate {data[name]['estimate']:.2f}, true {data['truth'][name]:.2f}"
        frame(ax, text)
        middle, reach = centers[_CENTER], 1.75 * illustrated.SPACING
        ax.set_xlim(middle[0] - reach, middle[0] + reach)
        ax.set_ylim(middle[1] - reach, middle[1] + reach)
        ax.set_aspect("equal")
    figure.suptitle(
        "red: distances that are averaged; blue: points of c that have the other cluster as a candidate, grey: others",
        fontsize=9,
    )


ENTRY = Entry(
    "sublinear-figure-b2",
    "Distances between clusters, estimated from the distances of points",
    f"{SOURCE}, figure B.2",
    1,
    compute,
    draw,
)
