"""Animated GIFs of matplotlib figures: one palette for all frames, and of each frame what is not as before."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from cprime import KMeans

GREY, INK = "#9a9a9a", "#222222"  # of points and axes, of text
_GAMMA = 2.2
_SAMPLED = 12  # frames that the palette is chosen from


class Frame(NamedTuple):
    """A picture (height, width, 3) uint8, and how long it is shown in milliseconds."""

    pixels: np.ndarray
    duration: int


def canvas(width: int, height: int) -> Figure:
    """An empty white figure of so many pixels; fonts are in points of 1/72 of 100 pixels."""
    figure = Figure(figsize=(width / 100, height / 100), dpi=100)
    FigureCanvasAgg(figure)
    return figure


def snapshot(figure: Figure, duration: int) -> Frame:
    """The figure as it is drawn now."""
    figure.canvas.draw()
    return Frame(np.asarray(figure.canvas.buffer_rgba())[..., :3].copy(), duration)


def mixed(shares: np.ndarray, colors: np.ndarray) -> np.ndarray:
    """Colours (C, 3) in shares (n, C), added as light is: (n, 3)."""
    return np.clip(shares @ colors**_GAMMA, 0, 1) ** (1 / _GAMMA)


def save(path: Path, frames: Sequence[Frame], colors: int = 128) -> None:
    """Write a film that begins again at its end, in at most so many colours."""
    palette = Image.new("P", (1, 1))
    palette.putpalette(_palette(frames, colors).ravel().tolist())
    images = [Image.fromarray(f.pixels).quantize(palette=palette, dither=Image.Dither.NONE) for f in frames]
    durations = [f.duration for f in frames]
    path.parent.mkdir(parents=True, exist_ok=True)
    images[0].save(path, save_all=True, append_images=images[1:], duration=durations, loop=0, optimize=True)


def _palette(frames: Sequence[Frame], colors: int) -> np.ndarray:
    """The centers (colors, 3) uint8 of a k-means of the colours, whose frequencies count by their roots; with white."""
    chosen = np.unique(np.linspace(0, len(frames) - 1, _SAMPLED).astype(int))
    found, counts = np.unique(
        np.concatenate([frames[i].pixels.reshape(-1, 3) for i in chosen]), axis=0, return_counts=True
    )
    km = KMeans(colors, random_state=0).fit(found.astype(np.float64), sample_weight=np.sqrt(counts))
    palette = km.cluster_centers_.round().astype(np.uint8)
    palette[km.predict([[255.0, 255.0, 255.0]])] = 255
    return palette
