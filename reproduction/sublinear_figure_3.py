"""Figure 3 of Forster & Lücke: iterations until the S algorithms are better than converged k-means, by number of
clusters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cprime._utils.style import BLACK, BLUE, VERMILION, frame, name_curves
from reproduction.base import Context, Entry, Result, Row
from reproduction.sublinear_curves import reached
from reproduction.sublinear_runs import ASKED, RUNS, SOURCE, Run, fitted, k_means, large, n_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (25, 100, 400, 1024, 2025, 4096)
_SMALL, _MOST = 400, 50  # up to this size the errors of five runs vary too much, and this many runs are made
_STYLES = {"var-k-means-S": VERMILION, "var-GMM-S": BLUE}
_LINES = {"2+1": "--", "5+1": "-"}


def compute(context: Context) -> Result:
    """Compute the mean error by iteration relative to that of converged k-means (the paper: five runs).

    With few clusters, single runs differ by more than the algorithms do, so more runs are made.
    """
    curves: dict[str, list[dict[str, Any]]] = {}
    for C in SIZES:
        for soft in (False, True):
            for G in (2, 5):
                setting = large("BIRCH", C, soft, G, ("error",))
                runs = n_runs(setting, context.runs, _MOST if C <= _SMALL else RUNS)
                made = [fitted(setting, r, context) for r in range(runs)]
                lloyd = [fitted(k_means(setting), r, context) for r in range(runs)]
                bar = float(np.mean([run.error for run in lloyd]))
                curves.setdefault(f"{setting.algorithm}, {setting.neighbors}", []).append(
                    {
                        "C": C,
                        "runs": runs,
                        "n_warmup": setting.n_warmup,
                        "iterations": passing(made, bar),
                        "k_means_iterations": float(np.mean([run.n_iter for run in lloyd])),
                        "final_error_percent": 100 * (float(np.mean([run.error for run in made])) / bar - 1),
                    }
                )
    return ENTRY.result(max(point["runs"] for curve in curves.values() for point in curve), rows(curves), curves)


def passing(runs: list[Run], bar: float) -> float | None:
    """Return the iterations, including initial E-steps, until the runs' mean error is below `bar`; None if it never is.

    The error is interpolated linearly between two checkpoints.
    """
    grid = sorted({iteration for run in runs for iteration in run.checkpoints})
    mean = np.mean([np.interp(grid, run.checkpoints, run.errors) for run in runs], axis=0)
    return reached(grid, mean, bar)


def slope(curve: list[dict[str, Any]]) -> float | None:
    """Return the exponent of C in the number of iterations, by a line through logarithms; None below two points."""
    points = [(point["C"], point["iterations"]) for point in curve if point["iterations"]]
    if len(points) < 2:
        return None
    sizes, iterations = np.log(np.array(points, dtype=float)).T
    return float(np.polyfit(sizes, iterations, 1)[0])


def rows(curves: dict[str, list[dict[str, Any]]]) -> list[Row]:
    """Return the rows for the paper's statements about the figure."""
    note = "initial E-steps and iterations, from the mean error of the runs"
    statements = []
    for name, curve in curves.items():
        exponent = slope(curve)
        ours = "not passed at two sizes" if exponent is None else exponent
        met = exponent is not None and exponent < 1
        statements.append(Row(f"{name}: iterations grow with C to the power", "below 1", ours, None, met, note))
    points = [point for curve in curves.values() for point in curve]
    fewer = [point["iterations"] is not None and point["iterations"] < point["k_means_iterations"] for point in points]
    above = [
        f"{name}, C = {point['C']} (by {point['final_error_percent']:.1f} %, {point['runs']} runs)"
        for name, curve in curves.items()
        for point in curve
        if point["final_error_percent"] >= 0
    ]
    return [
        *statements,
        Row(
            "settings that pass k-means in fewer iterations than it takes to converge",
            "most",
            f"{sum(fewer)} of {len(fewer)}",
            None,
            2 * sum(fewer) > len(fewer),
            "the source's initial E-steps were chosen for each setting by the training error; ours are √C, √C/4, √C/2 "
            "and √C/4 for the four algorithms, and count",
        ),
        Row(
            "settings whose error ends below that of k-means",
            "all",
            f"{len(points) - len(above)} of {len(points)}",
            None,
            not above,
            f"means of at most five runs, up to C = {_SMALL} of at most {_MOST}",
            "above it ends " + "; ".join(above) if above else "",
        ),
    ]


def draw(result: Result, figure: Figure) -> None:
    """Draw iterations against C on logarithmic axes, with lines of slope 1 behind, and k-means dashed in black."""
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    figure.set_size_inches(6.4, 4.4)
    axes = figure.subplots()
    frame(axes, "Iterations until the error passes that of converged k-means", "clusters C", "iterations")
    axes.set_xscale("log")
    axes.set_yscale("log")
    ends = []
    for name, curve in result.data.items():
        algorithm, neighbors = name.split(", ")
        points = [(point["C"], point["iterations"]) for point in curve if point["iterations"]]
        if not points:
            continue
        axes.plot(*zip(*points, strict=True), _LINES[neighbors], marker="o", markersize=4, color=_STYLES[algorithm])
        ends.append((f"{algorithm}, {neighbors}", points[-1][1], _STYLES[algorithm]))
    lloyd = [(point["C"], point["k_means_iterations"]) for point in next(iter(result.data.values()))]
    axes.plot(*zip(*lloyd, strict=True), ":", marker="s", markersize=3, color=BLACK)
    ends.append(("k-means, converged", lloyd[-1][1], BLACK))
    bottom, top = axes.get_ylim()
    for offset in np.logspace(-4, 2, 13):
        axes.plot(SIZES, offset * np.array(SIZES), color="0.9", linewidth=0.8, zorder=0)
    axes.set_ylim(0.8 * bottom, 1.2 * top)
    axes.annotate("grey: slope 1", (0.02, 0.02), xycoords="axes fraction", fontsize=8, color="0.5")
    for axis, ticks in ((axes.xaxis, SIZES), (axes.yaxis, (5, 10, 20, 50, 100, 200))):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xlim(0.9 * SIZES[0], 1.1 * SIZES[-1])
    name_curves(axes, ends)


ENTRY = Entry(
    "sublinear-figure-3",
    "Iterations until var-k-means-S and var-GMM-S pass converged k-means, from 25 to 4096 clusters",
    f"{SOURCE}, figure 3",
    ASKED,
    compute,
    draw,
)
