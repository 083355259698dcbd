"""Pictures as data URIs: sheets of tiles (small pictures of rows), and z-scores with one pixel per value."""

from base64 import b64encode
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

_MOST_BYTES = 260_000  # maximum size of a sheet of tiles in bytes, before compression
_LEAST_SIDE = 3
_LARGEST_SIDE = 64
_LIMIT = 3.0  # z-scores above this number, or below minus this number, have the color of the limit.
_STEPS = 7  # Number of colors for positive z-scores, and for negative ones.
_LIGHT = ((11, 83, 148), (246, 244, 239), (178, 74, 10))
_DARK = ((110, 186, 247), (32, 35, 39), (247, 158, 92))


@dataclass(frozen=True)
class Sheet:
    """Picture that consists of tiles (small pictures of rows of data), row by row.

    uri: the picture as a data URI    width, height: of the picture [pixels]    tile_width, tile_height: of a tile
    columns: tiles per row    reduced: whether the tiles have a lower resolution than the rows of data
    """

    uri: str
    width: int
    height: int
    tile_width: int
    tile_height: int
    columns: int
    reduced: bool


def sheet(tiles: NDArray, limits: tuple[float, float], columns: int | None = None) -> Sheet:
    """Return one picture of m tiles: gray values (m, height, width), or colors (m, height, width, 3).

    limits: values drawn as black and as white    columns: tiles per row; None makes the sheet approximately square
    """
    low, high = limits
    pixels = np.clip((tiles - low) / ((high - low) or 1.0) * 255, 0, 255).round().astype(np.uint8)
    m, tall, wide = pixels.shape[:3]
    depth = 3 if pixels.ndim == 4 else 1
    most = min((_MOST_BYTES / (m * depth * tall * wide)) ** 0.5, _LARGEST_SIDE / max(tall, wide), 1.0)
    reduced = most < 1
    if reduced:
        size = max(round(wide * most), _LEAST_SIDE), max(round(tall * most), _LEAST_SIDE)
        pixels = np.stack([np.asarray(Image.fromarray(tile).resize(size, Image.Resampling.BOX)) for tile in pixels])
        tall, wide = pixels.shape[1:3]
    columns = columns or max(1, int(np.ceil((m * tall / wide) ** 0.5)))
    rows = -(-m // columns)
    cells = np.zeros((rows * columns, *pixels.shape[1:]), dtype=np.uint8)
    cells[:m] = pixels
    laid = cells.reshape(rows, columns, *pixels.shape[1:]).swapaxes(1, 2)
    picture = laid.reshape(rows * tall, columns * wide, *pixels.shape[3:])
    return Sheet(_uri(Image.fromarray(picture)), columns * wide, rows * tall, wide, tall, columns, reduced)


def heat(z: NDArray[np.float64], dark: bool) -> str:
    """Return z-scores (m, d) as the data URI of a picture with one pixel per value: blue below 0, orange above."""
    step = np.clip(np.rint(z / _LIMIT * _STEPS), -_STEPS, _STEPS).astype(np.int64) + _STEPS
    picture = Image.frombytes("P", z.shape[::-1], step.astype(np.uint8).tobytes())
    picture.putpalette(palette(dark).astype(np.uint8).tobytes())
    return _uri(picture)


def palette(dark: bool) -> NDArray[np.int64]:
    """Return the colors (red, green, blue) of 15 z-scores from −3 to 3: (15, 3), values 0 … 255."""
    low, middle, high = (np.array(color) for color in (_DARK if dark else _LIGHT))
    share = np.linspace(0, 1, _STEPS + 1)[:, np.newaxis] ** 0.85
    below = middle + (low - middle) * share
    above = middle + (high - middle) * share
    return np.rint(np.vstack([below[:0:-1], above])).astype(np.int64)


def _uri(picture: Image.Image) -> str:
    out = BytesIO()
    picture.save(out, "PNG", optimize=True)
    return "data:image/png;base64," + b64encode(out.getvalue()).decode()
