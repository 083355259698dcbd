"""Pictures of `cprime demo`: J over seconds, the gap L − F over iterations, a codebook, and photographs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from cprime._utils.files import replacing
from cprime._utils.style import BLACK, BLUE, GREY, VERMILION, frame, name_curve
from cprime.estimators.fitted import centers_of
from cprime.plots.codebook import CodebookDisplay
from cprime.plots.style import bare

_DPI = 150
_TEXT = 10  # font size in points
_BESIDE: dict[str, Any] = {"xytext": (7, 0), "fontsize": _TEXT}
# A label is right of the first point of its curve if J there exceeds the lowest J of all curves by more than this [%],
# otherwise above the point.
_HIGH = 2.0
_COLUMNS = 1.6  # Number of columns of the codebook's picture divided by its number of rows.


@dataclass(frozen=True)
class Descent:
    """Squared error J [data unit²] of a fit over seconds: after every iteration, or after the last one only."""

    name: str
    seconds: np.ndarray
    error: np.ndarray


@dataclass(frozen=True)
class GapCurve:
    """Gap between log-likelihood and free energy, L − F [nats per point], after each iteration of a fit."""

    name: str
    iterations: Sequence[int]
    gap: Sequence[float]


def draw_curves(path: Path, descents: Sequence[Descent], gaps: Sequence[GapCurve], titles: tuple[str, str]) -> None:
    """Draw two panels to a PNG file: J over seconds for each fit, and the gaps L − F over iterations."""
    figure = Figure(figsize=(10, 4), dpi=_DPI, layout="constrained")
    left, right = figure.subplots(1, 2)
    best = min(float(descent.error.min()) for descent in descents)
    for descent, color in zip(descents, (BLACK, BLUE, VERMILION), strict=True):
        excess = 100 * (descent.error / best - 1)
        left.plot(descent.seconds, excess, color=color, linewidth=1.8, marker="o", markersize=4)
        alone = len(excess) == 1
        # Labels are at the first points of the curves, because the last points of several curves may coincide.
        above = {"xytext": (0, 8), "va": "bottom", "ha": "center" if alone else "left"}
        beside = _BESIDE if excess[0] > _HIGH else _BESIDE | above
        name_curve(left, descent.name, (descent.seconds[0], excess[0]), color, **beside)
    left.set_xscale("log")
    left.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    left.xaxis.set_minor_formatter(NullFormatter())
    _label(left, titles[0], "seconds", "J above the lowest, %")
    for gap, color in zip(gaps, (BLUE, VERMILION), strict=True):
        right.plot(gap.iterations, gap.gap, color=color, linewidth=1.8, marker="o", markersize=4)
        name_curve(right, gap.name, (gap.iterations[-1], gap.gap[-1]), color, **_BESIDE)
    right.set_yscale("log")
    right.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    _label(right, titles[1], "iterations", "L − F, nats a point")
    _write(figure, path)


def _label(axes: Axes, title: str, x: str, y: str) -> None:
    frame(axes)
    axes.set_title(title, fontsize=_TEXT + 1, loc="left")
    axes.set_xlabel(x, fontsize=_TEXT)
    axes.set_ylabel(y, fontsize=_TEXT)
    axes.tick_params(which="both", labelsize=_TEXT - 1)


def draw_codebook(path: Path, estimator: Any, title: str) -> None:
    """Draw the centers of clusters of square gray patches as small images to a file, the largest clusters first."""
    columns = round((_COLUMNS * len(centers_of(estimator))) ** 0.5)
    figure = Figure(figsize=(9, 9 / _COLUMNS + 0.4), dpi=_DPI, layout="constrained")
    CodebookDisplay.from_estimator(estimator, limits=(0, 255), ax=figure.add_subplot(), columns=columns)
    figure.suptitle(title, fontsize=_TEXT + 1)
    _write(figure, path)


def draw_photographs(path: Path, images: Sequence[np.ndarray], titles: Sequence[str]) -> None:
    """Draw four gray photographs (height, width), levels 0 … 255, in two rows to a file, each below its title."""
    height, width = images[0].shape
    panel = 5.2
    figure = Figure(figsize=(2 * panel, 2 * (panel * height / width + 0.3)), dpi=_DPI, layout="constrained")
    for axes, image, title in zip(figure.subplots(2, 2).ravel(), images, titles, strict=True):
        axes.imshow(image, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        bare(axes)
        axes.spines[:].set_color(GREY)
        axes.set_title(title, fontsize=_TEXT + 1, loc="left")
    _write(figure, path)


def _write(figure: Figure, path: Path) -> None:
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png")
