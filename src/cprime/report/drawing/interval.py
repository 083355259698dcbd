"""Drawings of a number with its interval on an axis, and of labeled horizontal bars."""

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from cprime.report.drawing.chart import WIDTH, ticks, written
from cprime.report.drawing.svg import drawing, element, text, titled

_LEFT, _RIGHT = 14, 14


def interval(label: str, value: float, low: float, high: float, span: tuple[float, float], unit: str) -> Markup:
    """Return an SVG drawing of a point at `value` with its interval from `low` to `high`, on an axis over `span`."""
    scale = (WIDTH - _LEFT - _RIGHT) / ((span[1] - span[0]) or 1.0)

    def at(x: float) -> float:
        return _LEFT + (min(max(x, span[0]), span[1]) - span[0]) * scale

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
        element("path", d=f"M{_LEFT} 24H{WIDTH - _RIGHT}", class_="axis-line"),
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
