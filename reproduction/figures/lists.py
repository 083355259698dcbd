"""Curves by iteration of algorithms with neighbor lists of several lengths G: the error φ, L and F."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from cprime._utils.style import BLACK, BLUE, GREEN, VERMILION, frame, name_curves

_COLORS = (VERMILION, BLUE, GREEN, BLACK)
_LARGE = 1e6  # larger errors are shown with a power of ten


@dataclass(frozen=True)
class Look:
    """Number of iterations shown, and values of G in the order of their colors; the last is all components."""

    shown: int
    values: tuple[str, ...]

    def colors(self, column: dict[str, Any]) -> list[str]:
        """Return the colors of the curves of an algorithm, by G."""
        return [_COLORS[self.values.index(G)] for G in column]


def draw_errors(axes: Axes, look: Look, column: dict[str, Any], title: str, top: float) -> None:
    """Draw φ by iteration: means (solid) with standard errors (shaded), and a ring at the end of the best run."""
    power = 0 if top < _LARGE else int(np.log10(top))
    frame(axes, title, "iterations", f"error φ / $10^{{{power}}}$" if power else "error φ")
    for curve, color in zip(column.values(), look.colors(column), strict=True):
        iterations = np.array(curve["iterations"])
        shown = iterations <= look.shown
        _line(axes, iterations[shown], curve["error"], color, "-", shown)
        axes.plot(look.shown, curve["best"][-1], "o", color=color, markersize=4, fillstyle="none", clip_on=False)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 10**power:{'.4g' if power else ',.0f'}}"))
    axes.set_ylim(0.96 * min(min(curve["best"]) for curve in column.values()), top)
    _name(axes, look, column, "error")


def highest(found: dict[str, dict[str, Any]]) -> float:
    """Return the common upper end of the φ axes of all panels, above the start and the end of each curve."""
    curves = [curve["error"]["mean"] for column in found.values() for curve in column.values()]
    return 1.15 * max(max(mean[0], mean[-1]) for mean in curves)


def _name(axes: Axes, look: Look, column: dict[str, Any], quantity: str) -> None:
    """Write the names of the curves at their ends."""
    axes.set_xlim(0, look.shown)
    names = [f"all {G}" if look.values[-1] == G else f"G = {G}" for G in column]
    ends = []
    for curve in column.values():
        iterations = curve["iterations"][-len(curve[quantity]["mean"]) :]
        ends.append(float(np.interp(look.shown, iterations, curve[quantity]["mean"])))
    name_curves(axes, list(zip(names, ends, look.colors(column), strict=True)))


def likely(found: dict[str, dict[str, Any]]) -> tuple[float, float]:
    """Return the common range of the L and F axes of all panels, from slightly below the full algorithms' first F."""
    top = max(max(curve["log_likelihood"]["mean"]) for column in found.values() for curve in column.values())
    start = min(list(column.values())[-1]["free_energy"]["mean"][0] for column in found.values())
    return top - 1.25 * (top - start), top + 0.06 * (top - start)


def draw_bounds(axes: Axes, look: Look, column: dict[str, Any], title: str, heights: tuple[float, float]) -> None:
    """Draw means of L (solid) with standard errors (shaded), and means of F (thin, dashed), by iteration."""
    frame(axes, title, "", "nats a point")
    for curve, color in zip(column.values(), look.colors(column), strict=True):
        iterations = np.array(curve["iterations"])[1:]
        shown = iterations <= look.shown
        _line(axes, iterations[shown], curve["log_likelihood"], color, "-", shown)
        axes.plot(iterations[shown], np.array(curve["free_energy"]["mean"])[shown], "--", color=color, linewidth=0.7)
    axes.set_ylim(*heights)
    _name(axes, look, column, "log_likelihood")


def _line(axes: Axes, x: NDArray, curve: dict[str, Any], color: str, style: str, shown: NDArray) -> None:
    """Draw a mean curve with its band."""
    mean = np.array(curve["mean"])[shown]
    axes.plot(x, mean, style, color=color, linewidth=1.4)
    if curve["standard_error"] is not None:
        error = np.array(curve["standard_error"])[shown]
        axes.fill_between(x, mean - error, mean + error, color=color, alpha=0.2, linewidth=0)
