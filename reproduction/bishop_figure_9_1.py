"""Figure 9.1 of Bishop: E- and M-steps of k-means on Old Faithful, from a poor start to convergence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cprime._utils.style import BLUE, GREEN, PURPLE, VERMILION, frame
from reproduction.base import Context, Entry, Result, Row
from reproduction.bishop import PUBLISHED_STEPS, START, half_steps, record, standardised, steps_by_start

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLORS = (VERMILION, BLUE)
_LIMIT = 2.5


def compute(context: Context) -> Result:
    """Compute the run of the nine panels, and the numbers of M-steps from other starts."""
    X = standardised()
    run = half_steps(X, START, context)
    counts = steps_by_start(X, context)
    others = ", ".join(steps for steps in counts if int(steps) != PUBLISHED_STEPS)
    share = counts.get(str(PUBLISHED_STEPS), 0) / sum(counts.values())
    changed = int((run.labels[-1] != run.labels[-2]).sum())
    start = " and ".join(f"({x:g}, {y:g})" for x, y in START).replace("-", "−")
    rows = [
        Row(
            "M-steps until nothing changes",
            PUBLISHED_STEPS,
            run.n_steps,
            None,
            run.n_steps == PUBLISHED_STEPS,
            f"the text gives no coordinates of its start; ours, {start}, is poor on purpose and was chosen among those "
            f"that take {PUBLISHED_STEPS}: {share:.0%} of the starts on the integer grid from −2 to 2 do, the others "
            f"take {others}",
            generous=True,
        ),
        Row("points that the last E-step moves", 0, changed, None, changed == 0),
    ]
    return ENTRY.result(1, rows, record(X, run) | {"starts_by_m_steps": counts})


def draw(result: Result, figure: Figure) -> None:
    """Draw (a) the start, then alternately E- and M-steps: (b), (c) … (h), (i)."""
    figure.set_size_inches(8, 8)
    points, centers = np.array(result.data["points"]), np.array(result.data["centers"])
    labels = np.array(result.data["labels"])
    axes = figure.subplots(3, 3, sharex=True, sharey=True)
    for panel, (ax, letter) in enumerate(zip(axes.flat, "abcdefghi", strict=True)):
        cycle, is_m_step = (panel - 1) // 2, panel > 0 and panel % 2 == 0
        if panel == 0:
            frame(ax, "(a) start")
            ax.plot(*points.T, "o", color=GREEN, markersize=2.5)
            shown = centers[0]
        else:
            frame(ax, f"({letter}) {'M' if is_m_step else 'E'}-step {cycle + 1}")
            for k, color in enumerate(_COLORS):
                ax.plot(*points[labels[cycle] == k].T, "o", color=color, markersize=2.5, alpha=0.7)
            shown = centers[cycle + is_m_step]
            if not is_m_step:
                _bisector(ax, shown)
        for place, color in zip(shown, _COLORS, strict=True):
            ax.plot(*place, "x", color="white", markersize=11, markeredgewidth=5)
            ax.plot(*place, "x", color=color, markersize=10, markeredgewidth=2.5)
        ax.set_xlim(-_LIMIT, _LIMIT)
        ax.set_ylim(-_LIMIT, _LIMIT)
        ax.set_aspect("equal")
    figure.supxlabel("duration of the eruption, standardised", fontsize=9)
    figure.supylabel("time to the next, standardised", fontsize=9)


def _bisector(axes: Axes, centers: np.ndarray) -> None:
    """Draw the line of points with equal distance to both centers."""
    middle, (x, y) = centers.mean(axis=0), centers[1] - centers[0]
    axes.axline(middle, middle + np.array([-y, x]), color=PURPLE, linewidth=1.2)


ENTRY = Entry(
    "bishop-figure-9-1",
    "k-means on Old Faithful, step by step",
    "Bishop 2006, figure 9.1",
    1,
    compute,
    draw,
)
