"""Figure 9.2 of Bishop: J of k-means on Old Faithful after each E-step and each M-step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cprime._utils.style import BLUE, VERMILION, frame, name_curve
from reproduction.base import Context, Entry, Result, Row
from reproduction.bishop import PUBLISHED_STEPS, START, half_steps, record, standardised

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def compute(context: Context) -> Result:
    """Compute J by half-step for the run of figure 9.1."""
    X = standardised()
    run = half_steps(X, START, context)
    errors = run.errors.ravel()
    rise = float(np.diff(errors).max())
    last = float(np.ptp(errors[2 * PUBLISHED_STEPS - 1 :]))
    rows = [
        Row("largest rise of J in a half-step", "none: each reduces J", max(rise, 0.0), None, rise <= 0.0),
        Row(
            f"change of J after M-step {PUBLISHED_STEPS}", 0, last, None, last == 0.0, "from our start, see figure 9.1"
        ),
        Row("J at the end", None, float(errors[-1]), None, None, "the book gives no number"),
    ]
    return ENTRY.result(1, rows, record(X, run))


def draw(result: Result, figure: Figure) -> None:
    """Draw J after E-steps in blue and after M-steps in red, joined by a line."""
    figure.set_size_inches(5, 3.8)
    errors = np.array(result.data["errors"])
    places = np.arange(1, len(errors) + 1)[:, np.newaxis] + np.array([-0.5, 0.0])
    axes = figure.subplots()
    axes.plot(places.ravel(), errors.ravel(), color="black", linewidth=1)
    for column, (color, text) in enumerate(((BLUE, "after E-steps"), (VERMILION, "after M-steps"))):
        axes.plot(places[:, column], errors[:, column], "o", color=color, markersize=7)
        name_curve(axes, text, (places[0, column], errors[0, column]), color, xytext=(9, 0), fontsize=10)
    frame(axes, "", "cycle", "J")
    axes.set_xticks(places[:, 1])
    axes.set_ylim(bottom=0)


ENTRY = Entry(
    "bishop-figure-9-2",
    "J of k-means on Old Faithful after each half-step",
    "Bishop 2006, figure 9.2",
    1,
    compute,
    draw,
)
