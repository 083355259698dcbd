"""The pictures of the demonstration: curves by iteration, a codebook as tiles, photographs side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cprime._files import replacing

# Okabe and Ito's blue and vermilion: told apart by all kinds of colour vision, and in grey.
COLORS = ("#0072B2", "#D55E00")
_MARKERS = ("o", "s")
_DPI = 120
_GAP = 1


@dataclass(frozen=True)
class Curve:
    """One fit: F and J of the parameters after 1, 2 … iterations, L and L − F after those in `checkpoints`."""

    name: str
    free_energy: np.ndarray
    quantization_error: np.ndarray
    checkpoints: Sequence[int]
    log_likelihood: Sequence[float]
    kl_gap: Sequence[float]


def draw_curves(path: Path, curves: Sequence[Curve], title: str) -> None:
    """J, F with L, and the gap between them, in a panel each, by iteration."""
    figure = Figure(figsize=(14, 4.4), dpi=_DPI, layout="constrained")
    errors, bounds, gaps = figure.subplots(1, 3)
    for curve, color, marker in zip(curves, COLORS, _MARKERS, strict=False):
        iterations = np.arange(1, len(curve.free_energy) + 1)
        errors.plot(iterations, curve.quantization_error, color=color, label=curve.name)
        bounds.plot(iterations, curve.free_energy, color=color, label=f"F, {curve.name}")
        bounds.plot(curve.checkpoints, curve.log_likelihood, marker, color=color, label=f"L, {curve.name}")
        gaps.plot(curve.checkpoints, curve.kl_gap, f"{marker}--", color=color, linewidth=1, label=curve.name)
    gaps.set_ylim(bottom=0)
    _label(errors, "quantisation error J", "sum of squared distances (grey levels²)")
    _label(bounds, "log-likelihood L and its bound F", "nats per point")
    _label(gaps, "gap L − F", "nats per point")
    figure.suptitle(title)
    _write(figure, path)


def _label(axes: Axes, title: str, unit: str) -> None:
    axes.set_title(title, fontsize=11)
    axes.set_xlabel("iterations")
    axes.set_ylabel(unit)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)


def draw_codebook(path: Path, centers: np.ndarray, counts: np.ndarray, title: str) -> None:
    """Every center as a square tile in grey, those of most points first, in rows from the top left."""
    size = round(centers.shape[1] ** 0.5)
    tiles = centers[np.argsort(-counts, kind="stable")].reshape(-1, size, size)
    n_columns = int(np.ceil((1.6 * len(tiles)) ** 0.5))
    n_rows = -(-len(tiles) // n_columns)
    sheet = np.full((n_rows, n_columns, size + _GAP, size + _GAP), 255.0)
    for k, tile in enumerate(tiles):
        sheet[k // n_columns, k % n_columns, :size, :size] = tile
    sheet = sheet.swapaxes(1, 2).reshape(n_rows * (size + _GAP), -1)
    _write(_panels([sheet], [title], scale=max(1, 1440 // sheet.shape[1])), path)


def draw_photographs(path: Path, images: Sequence[np.ndarray], titles: Sequence[str]) -> None:
    """Grey photographs of one size side by side, each under its title, pixel for pixel."""
    _write(_panels(images, titles, scale=max(1, 640 // images[0].shape[1])), path)


def _panels(images: Sequence[np.ndarray], titles: Sequence[str], scale: int) -> Figure:
    """Grey levels 0 … 255 side by side, every pixel `scale` pixels wide."""
    height, width = (scale * length for length in images[0].shape)
    margin, head = 12, 34
    total = (margin + len(images) * (width + margin), head + height + margin)
    figure = Figure(figsize=(total[0] / _DPI, total[1] / _DPI), dpi=_DPI)
    for k, (image, title) in enumerate(zip(images, titles, strict=True)):
        left = margin + k * (width + margin)
        axes = figure.add_axes((left / total[0], margin / total[1], width / total[0], height / total[1]))
        axes.imshow(image, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        axes.set_axis_off()
        axes.set_title(title, fontsize=11, pad=6)
    return figure


def _write(figure: Figure, path: Path) -> None:
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png")
