"""Figure 1 of Forster & Lücke: exact and truncated responsibilities of a point, and the search space of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.distance import cdist

from reproduction import sublinear_illustrated as illustrated
from reproduction.base import Context, Entry, Result, Row
from reproduction.sublinear_runs import SOURCE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The point of the responsibilities lies between clusters, so that more than one of them is greater than zero.
_BETWEEN = np.array([2.52, 2.45]) * illustrated.SPACING
_ROUNDING = 1e-12


def compute(context: Context) -> Result:
    """Compute responsibilities for variance 1 and equal weights, and the search space of the first partial E-step."""
    from cprime.plots import ResponsibilitiesDisplay

    centers = illustrated.grid()
    scores = np.exp(-(cdist(_BETWEEN[np.newaxis], centers)[0] ** 2) / 2)
    exact = scores / scores.sum()
    display = ResponsibilitiesDisplay(exact, illustrated.N_ACTIVE)
    nearest = np.argsort(-scores, kind="stable")[: illustrated.N_ACTIVE]
    expected = np.where(np.isin(np.arange(len(centers)), nearest), scores, 0) / scores[nearest].sum()
    difference = float(np.abs(display.truncated - expected).max())
    lists = illustrated.exact_lists(centers)
    kept = np.array(illustrated.START)
    space = np.union1d(kept, lists[kept])
    most = illustrated.N_ACTIVE * illustrated.N_NEIGHBORS
    rows = [
        Row(
            "clusters with q > 0, largest difference of q from (5)",
            "the closest 3, equal",
            f"{np.count_nonzero(display.truncated)}, {difference:.0e}",
            None,
            difference < _ROUNDING,
            f"agrees up to {_ROUNDING:g}, which is left to rounding",
        ),
        Row("sum of the exact responsibilities in K", None, float(exact[nearest].sum()), None, None),
        Row(
            f"clusters in the search space, C′ = {illustrated.N_ACTIVE}, G = {illustrated.N_NEIGHBORS}",
            f"at most C′G = {most}",
            len(space),
            None,
            len(space) <= most,
            generous=True,
        ),
    ]
    content = {
        "exact": exact.tolist(),
        "point": illustrated.POINT.tolist(),
        "kept": kept.tolist(),
        "space": space.tolist(),
        "lists": lists.tolist(),
        "centers": centers.tolist(),
    }
    return ENTRY.result(1, rows, content)


def draw(result: Result, figure: Figure) -> None:
    """Draw the responsibilities at the left, and the search space at the right."""
    from cprime.plots import ResponsibilitiesDisplay, SearchSpaceDisplay
    from cprime.plots.search_space import SearchStep

    figure.set_size_inches(8, 4)
    data = result.data
    parts: Any = figure.subfigures(1, 2, width_ratios=(0.9, 1))
    left, right = parts
    bars = left.subplots(2, 1, sharex=True, sharey=True)
    ResponsibilitiesDisplay(data["exact"], illustrated.N_ACTIVE).plot(list(bars))
    step = SearchStep(np.array(data["kept"]), np.array(data["space"]))
    SearchSpaceDisplay(data["point"], data["centers"], np.array(data["lists"]), [step]).plot(right.subplots())


ENTRY = Entry(
    "sublinear-figure-1",
    "Truncated responsibilities of a point, and the search space of another",
    f"{SOURCE}, figure 1",
    1,
    compute,
    draw,
)
