"""Display of centers as small images."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cprime.estimators.fitted import centers_of
from cprime.estimators.opening import preparation_of
from cprime.estimators.validation import check_choice, check_integer
from cprime.plots.style import COLUMN, bare, panels

# Tiles are enlarged until their sides have at least this number of pixels, so that the space between tiles looks thin.
_LEAST_SIDE = 16
_GAP = 2


class CodebookDisplay:
    """Centers that are images, or colors of a palette, drawn as small pictures (tiles) on one sheet.

    Parameters
    ----------
    tiles : array-like of shape (n_tiles, height, width) or (n_tiles, height, width, 3)
        Gray values, or red, green and blue.
    limits : tuple of two float or None, default=None
        Values drawn as black and white. None is the range of all tiles if they are gray; for colors it is (0, 1) or (0,
        255), whichever contains all values, else their range.

    Attributes
    ----------
    image_ : ndarray of shape (height, width, 3)
        The sheet, with values from 0 to 1.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from cprime import KMeans
    >>> from cprime.plots import CodebookDisplay
    >>> km = KMeans(30, random_state=0).fit(load_digits().data)
    >>> CodebookDisplay.from_estimator(km).tiles.shape
    (30, 8, 8)
    """

    def __init__(self, tiles: ArrayLike, limits: tuple[float, float] | None = None) -> None:
        self.tiles: NDArray[np.float64] = np.asarray(tiles, dtype=np.float64)
        shape = self.tiles.shape
        if self.tiles.ndim not in (3, 4) or (self.tiles.ndim == 4 and shape[3] != 3):
            raise ValueError(
                f"tiles must be of shape (n_tiles, height, width) or (n_tiles, height, width, 3), got {shape}."
            )
        self.limits = _limits(self.tiles) if limits is None else limits

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        image_shape: Sequence[int] | None = None,
        order: str = "size",
        limits: tuple[float, float] | None = None,
        ax: Any = None,
        **kw: Any,
    ) -> Self:
        """Show the centers of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            It must have `cluster_centers_` or `means_`.
        image_shape : sequence of int or None, default=None
            (height, width), or (height, width, 3) for colors, (1, 1, 3) for a palette; None is a gray square, or a
            palette if there are three features.
        order : {"size", "index"}, default="size"
            "size": the largest clusters of the training data come first. "index": tiles are in the order of the
            centers.
        limits : tuple of two float or None, default=None
        ax : matplotlib Axes or None, default=None
        **kw : dict
            Arguments of `plot`.

        Returns
        -------
        display : CodebookDisplay

        Raises
        ------
        ValueError
            If the number of features is not the number of values in image_shape.
        """
        check_choice(order, "order", ("size", "index"))
        centers = preparation_of(estimator).restored(centers_of(estimator))
        C, D = centers.shape
        side = round(D**0.5)
        shape = tuple(image_shape) if image_shape is not None else (1, 1, 3) if D == 3 else (side, side)
        if np.prod(shape) != D:
            asked = f"image_shape={shape}" if image_shape is not None else "a square"
            raise ValueError(f"image_shape must have as many values as there are features, {D}; {asked} has not.")
        if order == "size":
            centers = centers[np.argsort(-np.bincount(estimator.labels_, minlength=C), kind="stable")]
        return cls(centers.reshape(C, *shape), limits).plot(ax, **kw)

    def plot(self, ax: Any = None, *, columns: int | None = None) -> Self:
        """Draw all tiles on one sheet.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
        columns : int or None, default=None
            Tiles per row; None makes the sheet approximately square.

        Returns
        -------
        display : CodebookDisplay
        """
        C, height, width = self.tiles.shape[:3]
        if columns is None:
            columns = _columns(C, (C * height / width) ** 0.5)
        columns = min(check_integer(columns, "columns", 1), C)
        self.image_ = self._sheet(columns)
        ratio = self.image_.shape[0] / self.image_.shape[1]
        self.figure_, (self.ax_,) = panels(ax, 1, 1, COLUMN * ratio)
        self.ax_.imshow(self.image_, interpolation="nearest")
        bare(self.ax_)
        self.ax_.spines[:].set_visible(False)
        return self

    def _sheet(self, columns: int) -> NDArray[np.float64]:
        """Return one image (height, width, 3) with values from 0 to 1: all tiles, separated by white space."""
        low, high = self.limits
        tiles = np.clip((self.tiles - low) / max(high - low, np.finfo(np.float64).tiny), 0, 1)
        if tiles.ndim == 3:
            tiles = np.repeat(tiles[..., np.newaxis], 3, axis=-1)
        times = -(-_LEAST_SIDE // min(tiles.shape[1:3]))
        tiles = tiles.repeat(times, axis=1).repeat(times, axis=2)
        C, height, width = tiles.shape[:3]
        rows = -(-C // columns)
        cells = np.ones((rows * columns, height + _GAP, width + _GAP, 3))
        cells[:C, :height, :width] = tiles
        sheet = cells.reshape(rows, columns, *cells.shape[1:]).swapaxes(1, 2)
        return sheet.reshape(rows * (height + _GAP), columns * (width + _GAP), 3)[:-_GAP, :-_GAP]


def _columns(count: int, about: float) -> int:
    """Return the number of columns of a sheet in which `count` tiles leave the fewest empty places.

    The result is between `about` and 1.5 times `about`.
    """
    choices = range(max(1, round(about)), max(1, round(1.5 * about)) + 1)
    return min(choices, key=lambda columns: (-count % columns, columns))


def _limits(tiles: NDArray[np.float64]) -> tuple[float, float]:
    low, high = float(tiles.min()), float(tiles.max())
    if tiles.ndim == 4 and low >= 0:
        for top in (1.0, 255.0):
            if high <= top:
                return 0.0, top
    return low, high
