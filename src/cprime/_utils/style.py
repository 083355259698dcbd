"""Style of all plots: colors that color-blind readers can distinguish, and names written beside the curves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Affine2D

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
_LINE = 9.6  # Least distance of the middles of two names of curves, in points.
LEADER: dict[str, Any] = {"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0}  # from a text to its place
GREY = "#808080"
COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)


def frame(axes: "Axes", title: str = "", x: str = "", y: str = "") -> None:
    """Set a panel's title and axis labels, remove its upper and right edge, and draw a faint grid."""
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.yaxis.get_offset_text().set_fontsize(8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.2, linewidth=0.6)


def name_curve(axes: "Axes", text: str, at: tuple[float, float], color: str, **options: Any) -> None:
    """Write the name `text` of a curve in its color beside the point `at`; options are those of `Axes.annotate`."""
    axes.annotate(text, at, color=color, **(_BESIDE | {"annotation_clip": False} | options))


def name_curves(axes: "Axes", curves: Sequence[tuple[str, float, str]], x: float | None = None) -> None:
    """Write the names of curves right of a panel; lines connect several names with the ends of their curves.

    curves: (name, y coordinate of the curve's end in data units, color) for each curve
    x: x coordinate at which the curves end, in data units; None is the right edge of the panel

    The names are placed whenever the figure is drawn, so they follow later changes of limits and sizes. They do not
    overlap. The line of a curve that ends above or below the panel ends at the panel's corner.
    """

    def ends() -> NDArray:
        """Return the ends of the curves, moved into the panel: (n, 2) [pixels]."""
        right = axes.get_xlim()[1] if x is None else x
        bottom, top = sorted(axes.get_ylim())
        return axes.transData.transform([(right, min(max(y, bottom), top)) for _, y, _ in curves])

    def heights() -> NDArray:
        """Return the heights (n,) of the names [pixels]: those of the ends, changed as little as possible."""
        from sklearn.isotonic import isotonic_regression

        wanted, line = ends()[:, 1], points_to_pixels(axes, _LINE)
        order = np.argsort(wanted, kind="stable")
        steps = line * np.arange(len(order))
        box = axes.bbox
        highest = max(box.y0, box.y1 - line / 4 - steps[-1])  # below a title of the panel
        fitted = np.clip(isotonic_regression(wanted[order] - steps), box.y0, highest) + steps
        return fitted[np.argsort(order, kind="stable")]

    several = len(curves) > 1
    beside = _FAR if several else _NEAR
    for i, (name, _, color) in enumerate(curves):
        axes.annotate(
            name,
            (0, 0),
            xycoords=lambda _, i=i: shift(*ends()[i]),
            xytext=(0, 0),
            textcoords=lambda _, i=i: shift(axes.bbox.x1 + points_to_pixels(axes, beside), heights()[i]),
            va="center",
            fontsize=8,
            color=color,
            arrowprops={**LEADER, "relpos": (0, 0.5), "color": color} if several else None,
        )


def name_line(axes: "Axes", x: float, name: str, color: str = GREY) -> None:
    """Draw a dotted vertical line at x, and write its name beside its upper end, on the side that has more space."""
    axes.axvline(x, color=color, linewidth=0.8, linestyle=":")
    low, high = axes.get_xlim()
    middle = axes.transData.inverted().transform(axes.transAxes.transform((0.5, 0.5)))[0]
    is_right = (x > middle) == (high > low)
    axes.annotate(
        name,
        (x, 1),
        xycoords=axes.get_xaxis_transform(),
        xytext=(-4 if is_right else 4, -1),
        textcoords="offset points",
        ha="right" if is_right else "left",
        va="top",
        fontsize=8,
        color=color,
    )


def points_to_pixels(axes: "Axes", points: float) -> float:
    """Return a length given in points (1/72 inch) in pixels of the figure of `axes`."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return points / 72 * figure.dpi


def shift(x: Any, y: Any) -> "Affine2D":
    """Return the transform that adds (x, y): as the coordinates of an annotation, a place in pixels."""
    from matplotlib.transforms import Affine2D

    return Affine2D().translate(x, y)
