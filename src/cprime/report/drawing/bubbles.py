"""Map of the clusters: a circle for each cluster, or a picture of its center if rows are images."""

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from cprime.report.drawing.pictures import Sheet
from cprime.report.drawing.svg import drawing, element, joined, number, text

WIDTH, HEIGHT = 1000, 620
LEVELS = 7


def levels(values: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the color level 0 … 6 of each value (m,), −1 for NaN, and six numbers that separate the levels.

    These numbers are quantiles, so that all levels have approximately the same number of values.
    """
    known = values[np.isfinite(values)]
    if not len(known):
        return np.full(len(values), -1), np.empty(0)
    bounds = np.quantile(known, np.linspace(0, 1, LEVELS + 1)[1:-1])
    found = np.searchsorted(bounds, values, side="left")
    return np.where(np.isfinite(values), found, -1), bounds


def bubbles(
    label: str,
    places: NDArray[np.float64],
    ids: NDArray[np.intp],
    spread: NDArray[np.float64],
    sheet: Sheet | None,
) -> Markup:
    """Return the map of the clusters as SVG.

    places (m, 3): x, y, radius of each cluster, the largest first    ids (m,): cluster indices
    spread (m,): values for the colors    sheet: picture with a tile for each cluster, in the order of `places`, or None
    label: description for screen readers
    """
    of, _ = levels(spread)
    marks, names = [], []
    for i, (x, y, r) in enumerate(places):
        about = {"data_i": i, "class_": f"mark s{of[i]}" if of[i] >= 0 else "mark none"}
        if sheet is None:
            marks.append(element("circle", cx=float(x), cy=float(y), r=float(r), **about))
            if r >= 13:
                dark = " light" if of[i] >= LEVELS // 2 else ""
                size = float(min(max(11.0, 0.42 * r), 30.0))
                names.append(text(x, y + 0.35 * size, str(ids[i]), f"number{dark}", "middle", font_size=size))
        else:
            marks.append(_tile(sheet, i, float(x), float(y), 0.84 * float(r), about))
    if sheet is None:
        layers = [joined(marks), element("g", *names, class_="numbers", aria_hidden="true")]
    else:
        picture = element(
            "image", id="sheet", href=sheet.uri, width=sheet.width, height=sheet.height, preserveAspectRatio="none"
        )
        layers = [element("defs", picture), joined(marks)]
    ties = element("g", id="ties", aria_hidden="true")
    return drawing(WIDTH, HEIGHT, label, ties, *layers, id="map", tabindex="0")


def _tile(sheet: Sheet, i: int, x: float, y: float, half: float, about: dict) -> Markup:
    """Return SVG of the i-th tile (small picture) of a sheet, framed, with center (x, y).

    half: half the side of a square of the tile's area    about: attributes of the frame
    """
    left, top = i % sheet.columns * sheet.tile_width, i // sheet.columns * sheet.tile_height
    ratio = (sheet.tile_width / sheet.tile_height) ** 0.5
    wide, high = 2 * half * ratio, 2 * half / ratio
    view = f"{left} {top} {sheet.tile_width} {sheet.tile_height}"
    inner = element(
        "svg",
        element("use", href="#sheet"),
        x=x - wide / 2,
        y=y - high / 2,
        width=wide,
        height=high,
        viewBox=view,
        preserveAspectRatio="none",
    )
    frame = element("rect", x=x - wide / 2, y=y - high / 2, width=wide, height=high, **about)
    return Markup("") + inner + frame


def key(values: NDArray[np.float64]) -> list[str]:
    """Return the upper bounds of the color levels of `values` as text, for the legend of the cluster map."""
    _, bounds = levels(values)
    return [number(float(b)) if abs(b) >= 0.01 else f"{b:.2g}" for b in bounds]
