"""What the displays share in looks: the width of a column, where panels come from, colours that differ where they meet.

Colours and the frames of panels are `cprime._style`, which the figures of `reproduction/` use too.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from cprime._style import COLORS

COLUMN = 89 / 25.4  # inches: one column of a journal
GREY = "#808080"
TEXT = 8  # points
MANY = 30  # clusters, from which on lines are thin and colours soft
_CLUSTER_COLORS = COLORS[:-1]  # black is for what is not a cluster
_SOFT_COLORS = ("#2F6690", "#81C3D7", "#3A9188", "#9D8EC7", "#C9B458")  # what many clusters take turns in


def panels(ax: Any, n_rows: int, n_columns: int, height: float, **options: Any) -> tuple[Figure, NDArray]:
    """A figure and its Axes, row by row: those given, or new ones by pyplot, one column wide and `height` inches high.

    ax: None, one Axes where one is wanted, or an array-like of as many as are wanted
    """
    count = n_rows * n_columns
    if ax is None:
        from matplotlib import pyplot

        size = (COLUMN, height)
        figure, axes = pyplot.subplots(n_rows, n_columns, figsize=size, layout="constrained", squeeze=False, **options)
        return figure, axes.ravel()
    given = np.array([ax] if isinstance(ax, Axes) else list(ax), dtype=object).ravel()
    for each in given:
        if not isinstance(each, Axes):
            raise TypeError(f"ax must be Axes of matplotlib or None, got {each!r}.")
    if len(given) != count:
        raise ValueError(f"ax must have {count} Axes, one for each panel, got {len(given)}.")
    return given[0].figure, given


def cluster_colors(centers: NDArray) -> NDArray[np.float64]:
    """A colour for each of centers (C, D), (C, 3) red, green, blue: those of the same colour lie far apart.

    Each takes the colour whose nearest bearer so far is farthest, so that neighbors differ; up to six all do. Of more
    than 30 clusters a colour no longer tells which it is, only where one ends: these are fewer and soft.
    """
    palette = np.array([to_rgb(color) for color in (_CLUSTER_COLORS if len(centers) <= MANY else _SOFT_COLORS)])
    chosen = np.arange(len(centers)) % len(palette)
    for c in range(len(palette), len(centers)):
        distances = cdist(centers[c : c + 1], centers[:c], "sqeuclidean")[0]
        nearest = np.full(len(palette), np.inf)
        np.minimum.at(nearest, chosen[:c], distances)
        chosen[c] = nearest.argmax()
    return palette[chosen]


def bare(axes: Axes) -> None:
    """No ticks: where positions are of interest, not coordinates."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
