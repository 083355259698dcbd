"""Small square patches of scikit-learn's two photographs: half a million real points in every installation."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.datasets import load_sample_images
from sklearn.utils import Bunch

from cprime._utils.arguments import check_integer, naming

_LUMA = np.array([0.299, 0.587, 0.114])


def patches(image: ArrayLike | Sequence[ArrayLike] | None = None, size: int = 8) -> Bunch:
    """Return all overlapping square patches of gray photographs, one row per patch.

    Parameters
    ----------
    image : array-like, sequence of array-like, or None, default=None
        A photograph, or several: (height, width) in gray, or (height, width, 3) in red, green and blue, which are
        converted to luma by ITU-R BT.601. None is the two photographs in scikit-learn, "china" and "flower" of 427 ×
        640 pixels, which have 531,720 patches of 8 × 8.
    size : int, default=8
        Side of a patch in pixels.

    Returns
    -------
    data : Bunch
        ``data`` (n_patches, size**2) float32, in the units of the photographs (gray levels from 0 to 255 for "china"
        and "flower"). Patches are ordered by photograph, then by row from top to bottom, then from left to right. The
        pixels of a patch have the same order. ``images``: list of the (height, width) float32 gray photographs.
        ``offsets`` (n_images + 1,) int64: index of the first patch of each photograph, and the number of patches.

    Raises
    ------
    ImportError
        If `image` is None and pillow, which reads the photographs, is not installed.
    ValueError
        If a photograph has another shape, or is smaller than a patch.

    Examples
    --------
    >>> from cprime.datasets import patches
    >>> patches().data.shape
    (531720, 64)
    """
    check_integer(size, "size", 1)
    images = [_grey(photograph, size) for photograph in _photographs(image)]
    counts = [(a.shape[0] - size + 1) * (a.shape[1] - size + 1) for a in images]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    data = np.empty((offsets[-1], size * size), dtype=np.float32)
    for grey, (start, stop) in zip(images, pairwise(offsets), strict=True):
        windows = np.lib.stride_tricks.sliding_window_view(grey, (size, size))
        data[start:stop].reshape(windows.shape)[:] = windows
    return Bunch(data=data, images=images, offsets=offsets)


def assembled(patches: ArrayLike, shape: tuple[int, int]) -> np.ndarray:
    """Assemble a photograph from its overlapping patches: each pixel is the mean of its values in all patches.

    Parameters
    ----------
    patches : array-like of shape (n_patches, size**2)
        All patches of one photograph, in the order of the function `patches`.
    shape : tuple of two int
        Height and width of the photograph.

    Returns
    -------
    image : ndarray of shape (height, width), float64

    Raises
    ------
    ValueError
        If the number of patches does not match a photograph of this shape.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime.datasets import assembled, patches
    >>> image = np.arange(30.0).reshape(5, 6)
    >>> bool((assembled(patches(image, size=3).data, (5, 6)) == image).all())
    True
    """
    given = _finite(patches, "patches")
    if given.ndim != 2:
        raise ValueError(f"patches must have the shape (n_patches, size**2), got {given.shape}.")
    lengths = [check_integer(length, "shape", 1) for length in shape] if np.iterable(shape) else []
    if len(lengths) != 2:
        raise ValueError(f"shape must be the height and the width of the photograph, got {shape!r}.")
    size = round(given.shape[1] ** 0.5)
    rows, columns = (length - size + 1 for length in lengths)
    if size**2 != given.shape[1] or min(rows, columns) < 1 or len(given) != rows * columns:
        raise ValueError(
            f"patches must be all square ones of a photograph of shape {shape}, got an array of shape {given.shape}."
        )
    tiles = given.reshape(rows, columns, size, size)
    total, counts = np.zeros(lengths), np.zeros(lengths)
    for i in range(size):
        for j in range(size):
            total[i : i + rows, j : j + columns] += tiles[:, :, i, j]
            counts[i : i + rows, j : j + columns] += 1
    return total / counts


def _photographs(image: ArrayLike | Sequence[ArrayLike] | None) -> list[np.ndarray]:
    if image is None:
        try:
            return list(load_sample_images().images)
        except ImportError as error:
            raise ImportError("the photographs are read with pillow, which is missing: pip install pillow") from error
    with naming("image"):
        if isinstance(image, list | tuple) and all(np.ndim(item) >= 2 for item in image):
            return [_finite(item, "image") for item in image]
    return [_finite(image, "image")]


def _finite(values: Any, name: str) -> np.ndarray:
    """Return the value of an argument as an array of finite numbers."""
    with naming(name):
        array = np.asarray(values)
        array = array.astype(np.float64) if array.dtype.kind == "O" else array
    if array.dtype.kind not in "biuf" or not np.isfinite(array).all() or np.ma.is_masked(values):
        raise ValueError(f"{name} must hold finite numbers, got {values!r}.")
    return array


def _grey(image: np.ndarray, size: int) -> np.ndarray:
    """Return a photograph, gray or colored, as gray levels (height, width) float32; raise ValueError for other shapes.

    size: side of a patch [pixels], the least height and width
    """
    if not (image.ndim == 2 or (image.ndim == 3 and image.shape[2] == 3)):
        raise ValueError(f"image must have the shape (height, width) or (height, width, 3), got {image.shape}")
    if min(image.shape[:2]) < size:
        raise ValueError(f"image must be at least size={size} pixels high and wide, got {image.shape[:2]}")
    grey = image @ _LUMA if image.ndim == 3 else image
    return np.ascontiguousarray(grey, dtype=np.float32)
