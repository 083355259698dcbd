"""Drawing of curves: one column wide, readable without color, with the name of each curve beside it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from cprime._utils.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION

# One color per library; peers of a library differ by marker and line.
COLORS = {
    "cprime": VERMILION,
    "faiss": BLUE,
    "superkmeans": GREEN,
    "scikit-learn": BLACK,
    "scikit-learn in batches": SKY,
    "scikit-learn bisecting": ORANGE,
    "scikit-learn-intelex": PURPLE,
}
_MARKERS = "osD^vPX*<>"
_LINES = ("-", "--", ":", "-.")
_SIZE = (3.5, 4.2)  # inches; one column
_TITLE = 48  # width in characters
_POINT = 4  # half the side of a point's box, in pixels at 100 dpi


@dataclass(frozen=True)
class Curve:
    """One curve of a figure: its points, their ranges of measurement, and its name.

    x, y: medians       x_range, y_range: (least, greatest) of each
    special: index of a point that is drawn as a star, such as the default settings
    path: indices of the points that a line connects; None for all points in order
    """

    label: str
    family: str
    x: list[float]
    y: list[float]
    x_range: list[tuple[float, float]] = field(default_factory=list)
    y_range: list[tuple[float, float]] = field(default_factory=list)
    special: int | None = None
    path: list[int] | None = None


def draw(
    curves: list[Curve],
    x_label: str,
    y_label: str,
    title: str,
    *,
    y_scale: str = "log",
    finish: Callable[[Axes], None] | None = None,
) -> Figure:
    """Draw curves with logarithmic x and, usually, y; `finish` may change the axes before the names are placed."""
    figure = Figure(figsize=_SIZE, dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set(xscale="log", yscale=y_scale)
    seen: dict[str, int] = {}
    for curve in curves:
        place = seen[curve.family] = seen.get(curve.family, -1) + 1
        ours = curve.family == "cprime"
        axes.errorbar(
            curve.x,
            curve.y,
            xerr=_bars(curve.x, curve.x_range),
            yerr=_bars(curve.y, curve.y_range),
            color=COLORS[curve.family],
            marker=_MARKERS[place % len(_MARKERS)],
            linestyle="none",
            elinewidth=0.6,
            markersize=3.5,
            zorder=3 if ours else 2,
        )
        path = range(len(curve.x)) if curve.path is None else curve.path
        axes.plot(
            [curve.x[index] for index in path],
            [curve.y[index] for index in path],
            color=COLORS[curve.family],
            linestyle=_LINES[place % len(_LINES)],
            linewidth=1.6 if ours else 0.8,
            zorder=3 if ours else 2,
        )
        if curve.special is not None:
            x, y = curve.x[curve.special], curve.y[curve.special]
            axes.plot(x, y, marker="*", markersize=10, color=COLORS[curve.family], markeredgecolor="white", zorder=4)
    axes.set_xlabel(x_label, fontsize=8)
    axes.set_ylabel(y_label, fontsize=8)
    whole = title.replace(" × ", "\u00a0×\u00a0").replace(" = ", "\u00a0=\u00a0")  # no line break there
    axes.set_title(fill(whole, _TITLE), fontsize=8, loc="left")
    axes.tick_params(which="both", labelsize=7)
    axes.grid(which="major", color="0.9", linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(0.12, 0.08)
    if max(max(curve.x) for curve in curves) < 50 * min(min(curve.x) for curve in curves):
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if finish is not None:
        finish(axes)
    _name(figure, axes, curves)
    return figure


def _bars(middle: list[float], ranges: list[tuple[float, float]]) -> list[list[float]] | None:
    if not ranges:
        return None
    below = [value - least for value, (least, _) in zip(middle, ranges, strict=True)]
    above = [greatest - value for value, (_, greatest) in zip(middle, ranges, strict=True)]
    return [below, above]


def _name(figure: Figure, axes: Axes, curves: list[Curve]) -> None:
    """Write each curve's name beside one of its points, where it overlaps least with points and other names."""
    figure.canvas.draw()
    figure.set_layout_engine("none")
    renderer = figure.canvas.get_renderer()
    taken = [
        Bbox.from_extents(x - _POINT, y - _POINT, x + _POINT, y + _POINT)
        for curve in curves
        for x, y in _on_screen(axes, curve)
    ]
    frame = Bbox.from_extents(axes.bbox.x0 + 2, axes.bbox.y0 + 2, figure.bbox.x1 - 2, axes.bbox.y1 + 2)
    for curve in sorted(curves, key=lambda curve: curve.family != "cprime"):
        best: tuple[float, Annotation] | None = None
        for place in [len(curve.x) - 1, 0, *range(1, len(curve.x) - 1)]:
            for dx, dy, ha, va in _OFFSETS:
                text = axes.annotate(
                    curve.label,
                    (curve.x[place], curve.y[place]),
                    (dx, dy),
                    textcoords="offset points",
                    ha=ha,
                    va=va,
                    fontsize=7,
                    color=COLORS[curve.family],
                    annotation_clip=False,
                    zorder=5,
                    path_effects=[withStroke(linewidth=2, foreground="white")],
                    arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": COLORS[curve.family], "shrinkB": 2},
                )
                box = _box(text, renderer)
                outside = box.width * box.height - _overlap(box, frame)
                cost = sum(_overlap(box, other) for other in taken) + 10 * outside
                if best is None or cost < best[0] - 1e-6:
                    if best is not None:
                        best[1].remove()
                    best = (cost, text)
                else:
                    text.remove()
        assert best is not None
        taken.append(_box(best[1], renderer))


def _box(text: Annotation, renderer: RendererBase) -> Bbox:
    """Return the box of an annotation's text in pixels, without the line to its point."""
    text.update_positions(renderer)
    return Text.get_window_extent(text, renderer)


_OFFSETS = [
    (dx, dy, ha, va)
    for reach in (5, 11, 18)
    for dx, dy, ha, va in (
        (reach, 0, "left", "center"),
        (-reach, 0, "right", "center"),
        (0, reach, "center", "bottom"),
        (0, -reach, "center", "top"),
        (reach, reach, "left", "bottom"),
        (reach, -reach, "left", "top"),
        (-reach, reach, "right", "bottom"),
        (-reach, -reach, "right", "top"),
    )
]


def _on_screen(axes: Axes, curve: Curve, parts: int = 6) -> list[NDArray]:
    """Return the points of a curve, and some between connected points, in pixels."""
    points = list(axes.transData.transform(list(zip(curve.x, curve.y, strict=True))))
    path = points if curve.path is None else [points[index] for index in curve.path]
    between = [first + (second - first) * step / parts for first, second in pairwise(path) for step in range(1, parts)]
    return [*points, *between]


def _overlap(a: Bbox, b: Bbox) -> float:
    """Return the area shared by two boxes, in pixels²."""
    width = min(a.x1, b.x1) - max(a.x0, b.x0)
    height = min(a.y1, b.y1) - max(a.y0, b.y0)
    return max(0.0, width) * max(0.0, height)
