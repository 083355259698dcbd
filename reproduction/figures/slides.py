"""The lecture slides' figures: steps of k-means and EM, and J and the lower bound by half-step."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from cprime._utils.style import BLACK, BLUE, VERMILION, frame, name_curve
from cprime.plots.plane import draw_ellipses

Floats = NDArray[np.float64]

_COLORS = (VERMILION, BLUE)
_LIMIT = 3.2  # standard deviations
_CYCLES = 10  # cycles of EM in the panel of the bound


def draw(data: dict[str, Any], figure: Figure) -> None:
    """Draw two cycles of k-means and J by half-step; below, EM after 0, 1, 2 and 5 cycles and its lower bound."""
    figure.set_size_inches(5.4, 7.2)
    points = np.array(data["points"])
    grid = figure.subplots(4, 3)
    for ax in (*grid[0], *grid[1, :2], *grid[2], *grid[3, :2]):
        ax.set_xlim(-_LIMIT, _LIMIT)
        ax.set_ylim(-_LIMIT, _LIMIT)
        ax.set_xticks((-2, 0, 2))
        ax.set_yticks((-2, 0, 2))
        ax.set_aspect("equal")
    _draw_k_means(data, points, grid[:2].ravel())
    _draw_em(data["em"], points, grid[2:].ravel())
    figure.supxlabel("duration of the eruption, standardised", fontsize=9)
    figure.supylabel("time to the next, standardised", fontsize=9)


def _draw_k_means(data: dict[str, Any], points: Floats, panels: Any) -> None:
    centers, labels, errors = (np.array(data[name]) for name in ("centers", "labels", "errors"))
    shown = (("k-means: start", None, 0), *((f"{s}-step {t}", t, t - (s == "E")) for t in (1, 2) for s in "EM"))
    for ax, (title, cycle, t) in zip(panels, shown, strict=False):
        colors: Any = BLACK if cycle is None else [_COLORS[k] for k in labels[cycle - 1]]
        _scatter(ax, title, points, colors, centers[t])
    _draw_halves(panels[-1], "J by half-step", errors)


def _draw_em(em: dict[str, Any], points: Floats, panels: Any) -> None:
    shown = (
        ("EM: start", None, 0),
        ("E-step 1", 1, 0),
        ("M-step 1", 1, 1),
        ("two cycles", 2, 2),
        ("five cycles", 5, 5),
    )
    mix = np.array([[int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)] for color in _COLORS])
    for ax, (title, cycle, t) in zip(panels, shown, strict=False):
        colors: Any = BLACK if cycle is None else np.clip(np.array(em["responsibilities"][str(cycle)]) @ mix, 0, 1)
        library, formulas = em["library"][t], em["formulas"][t]
        _scatter(ax, title, points, colors, np.array(library["means"]))
        for found, colors, line in ((library, mix, (2.2, "-")), (formulas, np.zeros((len(mix), 3)), (0.7, "--"))):
            means, covariances = np.array(found["means"]), np.array(found["covariances"])
            draw_ellipses(ax, means, covariances, colors, (1,), linewidths=line[0], linestyles=line[1])
    name_curve(panels[2], "colour: library\ndashed: formulas", (-3.05, 2.6), BLACK, xytext=(0, 0), fontsize=7)
    bounds = np.array(em["bounds"])[:_CYCLES] / len(points)
    _draw_halves(panels[-1], "log-likelihood bound", bounds)
    places = np.arange(len(bounds)) + 0.5
    panels[-1].plot(places, em["library_bounds"][:_CYCLES], "s", color=BLACK, markersize=7, markerfacecolor="none")
    name_curve(panels[-1], "squares: library", (places[2], bounds[0].mean()), BLACK, xytext=(0, 0), fontsize=7)


def _draw_halves(ax: Axes, title: str, values: Floats) -> None:
    """Draw values after E-steps in one color and after M-steps in another, joined by a line."""
    places = np.arange(1, len(values) + 1)[:, np.newaxis] + np.array([-0.5, 0.0])
    ax.plot(places.ravel(), values.ravel(), color=BLACK, linewidth=0.8)
    for column, (color, text, beside) in enumerate(((BLUE, "E", (5, 0)), (VERMILION, "M", (5, 8)))):
        ax.plot(places[:, column], values[:, column], "o", color=color, markersize=4)
        name_curve(ax, text, (places[0, column], values[0, column]), color, xytext=beside, fontsize=8)
    frame(ax, title, "cycle")
    ax.set_xticks(range(2, len(values) + 1, 2))


def _scatter(ax: Axes, title: str, points: Floats, colors: Any, centers: Floats) -> None:
    frame(ax, title)
    ax.scatter(points[:, 0], points[:, 1], s=4, c=colors, alpha=0.7, linewidths=0)
    for place, color in zip(centers, _COLORS, strict=True):
        ax.plot(*place, "x", color="white", markersize=9, markeredgewidth=4)
        ax.plot(*place, "x", color=color, markersize=8, markeredgewidth=2)
