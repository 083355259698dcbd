"""Panels of Lücke & Forster's figures: curves by iteration, and centers in the plane."""

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from cprime._utils.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, frame, name_curves
from cprime.plots.style import bare

ACTIVE_COLORS = {"1": VERMILION, "2": BLUE, "3": GREEN, "5": ORANGE, "10": PURPLE, "25": BLACK}
_SAME = 0.02
_FIRST_SHOWN = 5
_LEAST_SPAN = 0.02
_LARGE = 6  # values from 10 to this power on have the power in the name of the axis
_LABELS = {
    "log_likelihood": "nats a point",
    "free_energy": "nats a point",
    "quantization_error": "error φ",
    "purity": "purity",
    "nmi": "NMI",
}


def titled(title: str, letter: str = "") -> str:
    """Return a panel's title with its letter in front, if it has one."""
    return f"$\\bf{{{letter}}}$  {title}" if letter else title


def _active_labels(axes: Axes, values: dict[str, float]) -> list[tuple[str, float, str]]:
    """Return one label per C′, or one for several whose curves end at the same place."""
    low, high = axes.get_ylim()
    groups: list[list[str]] = []
    for name in sorted(values, key=lambda name: values[name]):
        near = groups and values[name] - values[groups[-1][-1]] < _SAME * (high - low)
        groups[-1].append(name) if near else groups.append([name])
    names = sorted(values, key=int)
    labels = []
    for group in groups:
        group.sort(key=int)
        rest = names[names.index(group[0]) :]
        text = f"C′ ≥ {group[0]}" if len(group) > 1 and group == rest else f"C′ = {', '.join(group)}"
        labels.append((text, values[group[-1]], ACTIVE_COLORS[group[-1]]))
    return labels


def k_means(axes: Axes, title: str, panel: dict[str, Any], until: int, gaps: bool = False) -> None:
    """Draw L (solid) and F (dashed) of single runs and the mean; with `gaps`, the final L − F as bars beside them."""
    iterations = panel["iterations"]
    lines = [(panel["mean"], GREY, f"mean of {len(panel['missed'])}")]
    for example, color in zip(panel["examples"], (VERMILION, BLUE, GREEN), strict=False):
        lines.append((example, color, f"{example['missed']} missed"))
    ends = []
    for k, (curves, color, text) in enumerate(lines):
        for measure, style, width in (("log_likelihood", "-", 1.8), ("free_energy", "--", 0.8)):
            axes.plot(iterations[: until + 1], curves[measure][: until + 1], style, color=color, linewidth=width)
        ends.append((text, _at(iterations, curves["log_likelihood"], until), color))
        if gaps:
            place = until * (1.02 + 0.02 * k)
            low, high = (_at(iterations, curves[measure], until) for measure in ("free_energy", "log_likelihood"))
            axes.plot([place, place], [low, high], color=color, linewidth=2.4, solid_capstyle="butt")
    axes.axhline(panel["truth"], color=BLACK, linewidth=0.8, linestyle=":")
    axes.set_xlim(0, until * 1.1 if gaps else until)
    starts = [curves[measure][0] for curves, _, _ in lines for measure in ("log_likelihood", "free_energy")]
    values = [v for curves, _, _ in lines for m in ("log_likelihood", "free_energy") for v in curves[m]]
    axes.set_ylim(min(starts) - 0.02 * np.ptp(values), max(*values, panel["truth"]) + 0.06 * np.ptp(values))
    ends.append(("truth", panel["truth"], BLACK))
    name_curves(axes, ends)
    _say_styles(axes)
    _by_iteration(axes, title, "nats a point")


def bounds(axes: Axes, title: str, curves: dict[str, Any], until: int) -> None:
    """Draw L and F of one run, on an axis that spans at least a fiftieth of a nat."""
    lines = (("log_likelihood", "L", BLUE), ("free_energy", "F", VERMILION))
    for (measure, _, color), style in zip(lines, ("-", "--"), strict=True):
        axes.plot(curves[measure][: until + 1], style, color=color, linewidth=1.6)
    low, high = axes.get_ylim()
    widen = max(0.0, _LEAST_SPAN - (high - low)) / 2
    axes.set_ylim(low - widen, high + widen)
    axes.set_xlim(0, until)
    name_curves(axes, [(text, curves[measure][until], color) for measure, text, color in lines])
    _by_iteration(axes, title, "nats a point")


def _at(iterations: Sequence[int], values: Sequence[float], until: int) -> float:
    return float(np.interp(until, iterations, values))


def by_active(
    axes: Axes,
    title: str,
    panel: dict[str, Any],
    measure: str,
    until: int,
    best: bool = True,
    reference: tuple[str, float] | None = None,
) -> None:
    """Draw a measure for several C′: the mean (solid), the best run (dashed), and a reference level."""
    iterations = panel["iterations"]
    kinds = ("mean", "best") if best else ("mean",)
    for name, curves in panel["curves"].items():
        for kind, style, width in zip(kinds, ("-", "--"), (1.6, 1.2), strict=False):
            axes.plot(iterations, curves[kind], style, color=ACTIVE_COLORS[name], linewidth=width)
    shown = [v for curves in panel["curves"].values() for kind in kinds for v in curves[kind][1:]]
    margin = 0.05 * np.ptp(shown)
    low, high = min(shown) - margin, max(shown) + margin
    seen = reference is not None and low - 2 * margin < reference[1] < high + 2 * margin
    if reference is not None and seen:
        low, high = min(low, reference[1] - margin), max(high, reference[1] + margin)
        axes.axhline(reference[1], color=BLACK, linewidth=0.8, linestyle=":")
    axes.set_xlim(0, until)
    axes.set_ylim(low, high)
    means = {name: _at(iterations, curves["mean"], until) for name, curves in panel["curves"].items()}
    level = [(*reference, BLACK)] if reference is not None and seen else []
    name_curves(axes, _active_labels(axes, means) + level)
    _by_iteration(axes, title, _LABELS[measure])


def kdd(axes: Axes, title: str, panel: dict[str, Any], measures: Sequence[str]) -> None:
    """Draw means on KDD with bands of one standard error; the second of two measures is dashed."""
    for measure, style in zip(measures, ("-", "--"), strict=False):
        for name, curves in panel["curves"][measure].items():
            _band(axes, panel["iterations"], curves, ACTIVE_COLORS[name], style)
    # The first iterations are left out, because their values are far from the others.
    values = [v for measure in measures for c in panel["curves"][measure].values() for v in c["mean"][_FIRST_SHOWN:]]
    margin = 0.05 * np.ptp(values)
    axes.set_ylim(min(values) - margin, max(values) + margin)
    axes.set_xlim(0, panel["iterations"][-1])
    ends = {name: curves["mean"][-1] for name, curves in panel["curves"][measures[0]].items()}
    name_curves(axes, _active_labels(axes, ends))
    if len(measures) > 1:
        _say_styles(axes)
    _by_iteration(axes, title, "nats a point" if len(measures) > 1 else _LABELS[measures[0]])


def _band(axes: Axes, iterations: Sequence[int], curves: dict[str, Any], color: str, style: str) -> None:
    axes.plot(iterations, curves["mean"], style, color=color, linewidth=1.4)
    if curves["standard_error"][0] is not None:
        mean, error = np.array(curves["mean"]), np.array(curves["standard_error"])
        axes.fill_between(iterations, mean - error, mean + error, color=color, alpha=0.15, linewidth=0)


def skipped(axes: Axes, title: str, reason: str) -> None:
    """Write the reason in place of a panel that could not be computed."""
    frame(axes, title)
    axes.set_axis_off()
    text = fill(f"skipped: {reason}", 32, break_on_hyphens=False)
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=8, in_layout=False)


def centers(axes: Axes, title: str, panel: dict[str, Any], points: Sequence[Sequence[float]]) -> None:
    """Draw true centers as circles and found ones as crosses, over the points (2, n)."""
    truth, found = np.array(panel["truth"]), np.array(panel["found"])
    axes.plot(*points, ".", color=GREY, markersize=1, alpha=0.4)
    axes.plot(*truth.T, "o", color=BLUE, markersize=7, fillstyle="none", markeredgewidth=1.4)
    axes.plot(*found.T, "x", color=VERMILION, markersize=6, markeredgewidth=1.4)
    frame(axes, title)
    bare(axes)
    axes.set_aspect("equal")


def _say_styles(axes: Axes) -> None:
    axes.text(0.97, 0.04, "solid: L   dashed: F", transform=axes.transAxes, ha="right", fontsize=8)


def _by_iteration(axes: Axes, title: str, unit: str) -> None:
    frame(axes, title, "iterations", unit)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=(1, 2, 5, 10)))
    low, high = axes.get_ylim()
    power = int(np.log10(max(abs(low), abs(high))))
    if power >= _LARGE:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 10**power:.4g}"))
        axes.set_ylabel(f"{unit} / $10^{{{power}}}$", fontsize=9)
