"""Sankey diagram: flows between two columns of clusters."""

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from cprime.report.drawing.svg import drawing, joined, text, titled

_WIDTH, _GAP, _BAR, _MARGIN = 720, 13.0, 12.0, 92.0
_LEAST_SHARE = 1 / 2000  # fraction of the total below which a flow is not drawn


def sankey(label: str, flows: NDArray[np.float64], left: list[str], right: list[str], rest: list[bool]) -> Markup:
    """Return an SVG drawing of flows (a, b) between the clusters named `left` (a) and those named `right` (b).

    rest (a,): whether an entry of `left` stands for many clusters
    """
    height = max(240.0, 34.0 * max(len(left), len(right)))
    total = flows.sum() or 1.0
    starts, heights_left = _places(flows.sum(axis=1) / total, height)
    ends, heights_right = _places(flows.sum(axis=0) / total, height)
    out, into = starts.copy(), ends.copy()
    order_right = np.argsort(ends)
    ribbons = []
    x0, x1 = _MARGIN + _BAR, _WIDTH - _MARGIN - _BAR
    middle = (x0 + x1) / 2
    scale_left = np.divide(heights_left, flows.sum(axis=1), out=np.zeros(len(left)), where=flows.sum(axis=1) > 0)
    scale_right = np.divide(heights_right, flows.sum(axis=0), out=np.zeros(len(right)), where=flows.sum(axis=0) > 0)
    for i in range(len(left)):
        for j in order_right:
            if flows[i, j] <= 0:
                continue
            a, b = float(flows[i, j] * scale_left[i]), float(flows[i, j] * scale_right[j])
            y0, y1 = out[i], into[j]
            out[i] += a
            into[j] += b
            if flows[i, j] < _LEAST_SHARE * total:
                continue
            path = (
                f"M{x0:g} {y0:.1f}C{middle:g} {y0:.1f} {middle:g} {y1:.1f} {x1:g} {y1:.1f}V{y1 + b:.1f}"
                f"C{middle:g} {y1 + b:.1f} {middle:g} {y0 + a:.1f} {x0:g} {y0 + a:.1f}Z"
            )
            share = flows[i, j] / total
            ribbons.append(
                titled(
                    "path",
                    f"{left[i]} → {right[j]}: {share:.1%} of the rows",
                    d=path,
                    class_="flow rest" if rest[i] else f"flow flow{i % 6}",
                )
            )
    return drawing(
        _WIDTH,
        height,
        label,
        joined(ribbons),
        _column(left, starts, heights_left, _MARGIN, "end", -6.0),
        _column(right, ends, heights_right, _WIDTH - _MARGIN - _BAR, "start", _BAR + 6.0),
    )


def _places(shares: NDArray[np.float64], height: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the offset and the height of each of n bars, (n,) each, in a column of total height `height`.

    shares (n,): sizes of the bars, with sum 1
    """
    heights = shares * (height - _GAP * (len(shares) - 1))
    starts = np.concatenate([[0.0], np.cumsum(heights + _GAP)[:-1]])
    return starts, heights


def _column(names: list[str], starts: NDArray, heights: NDArray, x: float, anchor: str, beside: float) -> Markup:
    parts, free = [], -1e9
    for name, y, high in zip(names, starts, heights, strict=True):
        parts.append(titled("rect", name, x=x, y=float(y), width=_BAR, height=max(float(high), 0.8), class_="node"))
        middle = float(y + high / 2 + 4)
        if middle - free >= 12:
            parts.append(text(x + beside, middle, name, "tick", anchor))
            free = middle
    return joined(parts)
