"""Style of all plots: colors that color-blind readers can distinguish, and names written beside the curves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Palette of Okabe & Ito, whose colors are distinct for all kinds of color vision.
BLACK, BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, YELLOW = (
    "#000000",
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#F0E442",
)
_BESIDE: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "fontsize": 8}
# Distance of a curve's name from the panel's edge in points, without and with a line that connects it to the curve.
_NEAR, _FAR = 4, 12
COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)


def frame(axes: "Axes", title: str = "", x: str = "", y: str = "") -> None:
    """Set a panel's title and axis labels, remove its upper and right edge, and draw a faint grid."""
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.2, linewidth=0.6)


def name_curve(axes: "Axes", text: str, at: tuple[float, float], color: str, **options: Any) -> None:
    """Write the name `text` of a curve in its color beside the point `at`; options are those of `Axes.annotate`."""
    axes.annotate(text, at, color=color, **(_BESIDE | {"annotation_clip": False} | options))


def name_curves(axes: "Axes", curves: Sequence[tuple[str, float, str]], gap: float = 0.075) -> None:
    """Write the names of curves at the right edge of a panel.

    curves: (name, y coordinate of the curve's end in data units, color) for each curve
    gap: least distance of two names, as a share of the panel's height

    Names that are too close are moved apart and connected to their curves by lines. The name of a curve that
    ends above or below the panel is written at the panel's corner.
    """
    from matplotlib.transforms import offset_copy

    bottom, top = axes.transData.inverted().transform(axes.transAxes.transform([(0, 0), (0, 1)]))[:, 1]
    heights = [
        axes.transAxes.inverted().transform(axes.transData.transform((1, min(max(value, bottom), top))))[1]
        for _, value, _ in curves
    ]
    order = sorted(range(len(curves)), key=lambda i: heights[i])
    places: dict[int, float] = {}
    lowest = 0.0
    for left, i in enumerate(order):
        highest = 1 - gap * (len(order) - 1 - left)
        places[i] = min(max(heights[i], lowest), highest)
        lowest = places[i] + gap
    moved = {i for i in places if abs(places[i] - heights[i]) > gap / 2}
    beside = offset_copy(axes.transAxes, axes.get_figure(root=True), x=_FAR if moved else _NEAR, units="points")
    line = {"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)}
    for i, (name, _, color) in enumerate(curves):
        at: dict[str, Any] = {"xy": (1, heights[i]), "xycoords": "axes fraction", "xytext": (1, places[i])}
        arrow = line | {"color": color} if i in moved else None
        axes.annotate(name, **at, textcoords=beside, va="center", fontsize=8, color=color, arrowprops=arrow)
