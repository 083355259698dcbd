"""Small charts: axes with a few round numbers, lines, bars, and a number with its interval."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from cprime.report.drawing.svg import drawing, element, joined, text, titled

WIDTH, HEIGHT = 360, 214
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 12, 10, 38
_SIDE = 14  # space on both sides of an axis without labels beside it


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Return approximately `about` round numbers between low and high, for the ticks of an axis."""
    if not high > low:
        return [low]
    step = (high - low) / about
    power = 10.0 ** np.floor(np.log10(step))
    step = power * next(m for m in (1, 2, 2.5, 5, 10) if m * power >= step * 0.999)
    first = np.ceil(low / step - 1e-9)
    return [float(k * step) for k in np.arange(first, np.floor(high / step + 1e-9) + 1)]


def written(value: float) -> str:
    """Return a number as a text that is easy to read, such as 1,234, 0.0012 or 1.2M."""
    size = abs(value)
    if size == 0:
        return "0"
    if value < 0:
        return f"−{written(size)}"
    for bound, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if 9.9995 * bound / 10 <= size < 1e15:
            return f"{value / bound:.3g}{unit}"
    if size >= 1e15 or size < 1e-3:
        return f"{value:.2e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{value:,.0f}" if size >= 1000 else f"{value:.4g}"


def labelled(values: Sequence[float]) -> list[str]:
    """Return short texts of increasing axis values.

    If two texts would be equal, all but the first are differences from the first value.
    """
    names = [written(value) for value in values]
    if len(set(names)) == len(names):
        return names
    return [names[0], *(f"+{float(f'{value - values[0]:.3g}'):g}" for value in values[1:])]


@dataclass(frozen=True)
class Frame:
    """Area of a chart, whose axes have the ranges x[0] … x[1] and y[0] … y[1].

    log_y: whether the y axis is logarithmic
    """

    x: tuple[float, float]
    y: tuple[float, float]
    log_y: bool = False

    def across(self, values: NDArray | float) -> NDArray | float:
        width = (self.x[1] - self.x[0]) or 1.0
        return _LEFT + (np.asarray(values) - self.x[0]) / width * (WIDTH - _LEFT - _RIGHT)

    def up(self, values: NDArray | float) -> NDArray | float:
        low, high, values = *self.y, np.asarray(values, dtype=float)
        if self.log_y:
            low, high, values = np.log(low), np.log(high), np.log(np.maximum(values, low))
        share = (values - low) / ((high - low) or 1.0)
        return HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM)

    def axes(self, x_label: str, x_ticks: Sequence[float] | None = None) -> Markup:
        """Return SVG of the axes: faint lines at round numbers of y, tick labels, and the name of the x axis."""
        parts = []
        heights = self._y_ticks()
        for value, name in zip(heights, labelled(heights), strict=True):
            y = float(self.up(value))
            parts.append(element("path", d=f"M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}", class_="rule"))
            parts.append(text(_LEFT - 6, y + 3.5, name, anchor="end"))
        for value in ticks(*self.x) if x_ticks is None else x_ticks:
            parts.append(text(float(self.across(value)), HEIGHT - _BOTTOM + 15, written(value), anchor="middle"))
        parts.append(text((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 5, x_label, "axis", "middle"))
        return joined(parts)

    def _y_ticks(self) -> list[float]:
        if not self.log_y:
            return ticks(*self.y)
        powers = np.arange(np.ceil(np.log10(self.y[0]) - 1e-9), np.floor(np.log10(self.y[1]) + 1e-9) + 1)
        return [float(10.0**p) for p in powers[:: max(1, len(powers) // 4)]] if len(powers) > 1 else ticks(*self.y)


def line(label: str, x: NDArray, y: NDArray, x_label: str, names: Sequence[str]) -> Markup:
    """Return an SVG drawing of a curve y over x, with points on it.

    label: description for screen readers    x, y (n,)    x_label: name of the x axis    names: tooltips of the n points
    """
    low, high = float(np.min(y)), float(np.max(y))
    margin = 0.06 * (high - low) or abs(low) * 0.01 or 1.0
    frame = Frame((0.0, float(x.max()) or 1.0), (low - margin, high + margin))
    xs, ys = np.asarray(frame.across(x)), np.asarray(frame.up(y))
    path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(xs, ys, strict=True))
    shown = np.unique(np.linspace(0, len(xs) - 1, min(len(xs), 60)).astype(int))
    points = [titled("circle", names[i], cx=float(xs[i]), cy=float(ys[i]), r=2.6, class_="point") for i in shown]
    return drawing(WIDTH, HEIGHT, label, frame.axes(x_label), element("path", d=path, class_="line"), *points)


def bars(label: str, heights: NDArray, x_label: str, names: Sequence[str], span: tuple[float, float]) -> Markup:
    """Return an SVG drawing of adjacent bars, which divide the interval `span` of the x axis into equal parts.

    label: description for screen readers    x_label: name of the x axis    names: tooltips of the bars
    """
    frame = Frame(span, (0.0, float(heights.max()) or 1.0))
    edges = np.asarray(frame.across(np.linspace(*span, len(heights) + 1)))
    floor, gap = float(frame.up(0.0)), 0.5 if len(heights) > 60 else 1.0
    parts = []
    for i, height in enumerate(heights):
        top = float(frame.up(height))
        parts.append(
            titled(
                "rect",
                names[i],
                x=float(edges[i] + gap / 2),
                y=top,
                width=float(max(edges[i + 1] - edges[i] - gap, 0.4)),
                height=max(floor - top, 0.0),
                class_="bar",
            )
        )
    return drawing(WIDTH, HEIGHT, label, frame.axes(x_label), *parts)


def ranked(label: str, values: NDArray, mean: float, x_label: str) -> Markup:
    """Return an SVG drawing of decreasing values as an area, with a dotted line at their mean.

    The y axis is logarithmic if the first value is more than 50 times the median.
    """
    n, least = len(values), float(values[values > 0].min()) if (values > 0).any() else 1.0
    log = bool(values[0] > 50 * max(float(np.median(values)), least))
    low = least * 0.8 if log else 0.0
    frame = Frame((1.0, float(max(n, 2))), (low, float(values[0]) * (1.3 if log else 1.05) or 1.0), log)
    shown = np.unique(np.geomspace(1, n, 300).astype(int) if log else np.linspace(1, n, min(n, 300)).astype(int)) - 1
    xs, ys = np.asarray(frame.across(shown + 1.0)), np.asarray(frame.up(values[shown]))
    floor = float(frame.up(max(low, 0.0)))
    top = "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(xs, ys, strict=True))
    at = float(frame.up(mean))
    return drawing(
        WIDTH,
        HEIGHT,
        label,
        frame.axes(x_label, [1, *(t for t in ticks(1, n) if 1 < t <= n)]),
        element("path", d=f"M{xs[0]:.1f} {floor:.1f}L{top}L{xs[-1]:.1f} {floor:.1f}Z", class_="area"),
        element("path", d=f"M{top}", class_="line"),
        element("path", d=f"M{_LEFT} {at:.1f}H{WIDTH - _RIGHT}", class_="mean"),
        text(WIDTH - _RIGHT, at - 4, f"mean {written(mean)}", "tick", "end"),
    )


def interval(label: str, value: float, low: float, high: float, span: tuple[float, float], unit: str) -> Markup:
    """Return an SVG drawing of a point at `value` with its interval from `low` to `high`, on an axis over `span`."""
    scale = (WIDTH - _SIDE - _SIDE) / ((span[1] - span[0]) or 1.0)

    def at(x: float) -> float:
        return _SIDE + (min(max(x, span[0]), span[1]) - span[0]) * scale

    marks = [
        part
        for tick in ticks(*span, 4)
        for part in (
            element("path", d=f"M{at(tick):.1f} 24V30", class_="axis-line"),
            text(at(tick), 44, f"{100 * tick:.4g}{unit}" if unit == "%" else written(tick), anchor="middle"),
        )
    ]
    return drawing(
        WIDTH,
        50,
        label,
        element("path", d=f"M{_SIDE} 24H{WIDTH - _SIDE}", class_="axis-line"),
        *marks,
        element("rect", x=at(low), y=12.0, width=max(at(high) - at(low), 2.0), height=8.0, rx=4, class_="interval"),
        titled("circle", label, cx=at(value), cy=16.0, r=5.5, class_="point"),
    )


def steps(label: str, parts: Sequence[tuple[str, float, str]]) -> Markup:
    """Return an SVG drawing of horizontal bars, one below the other.

    label: description for screen readers    parts: (name, length, value as text) of each bar
    """
    longest = max((length for _, length, _ in parts), default=0.0) or 1.0
    rows = []
    for i, (name, length, words) in enumerate(parts):
        y = 44.0 * i
        rows.append(text(0, y + 13, name, "name"))
        rows.append(text(WIDTH, y + 13, words, "value", "end"))
        rows.append(element("rect", x=0, y=y + 19, width=WIDTH, height=9, rx=4.5, class_="track"))
        wide = float(np.clip(length / longest, 0, 1)) * WIDTH
        rows.append(element("rect", x=0, y=y + 19, width=max(wide, 2.0), height=9, rx=4.5, class_="bar"))
    return drawing(WIDTH, 44 * len(parts) - 8, label, *rows)
