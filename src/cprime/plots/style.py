"""Common appearance of the displays: column width, creation of panels (axes of a figure), and cluster colors.

Colors and the frames of panels are in `cprime._utils.style`, because the figures of `reproduction/` use them too.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from cprime._utils.style import COLORS

COLUMN = 89 / 25.4  # width in inches of one column of a journal
TEXT = 8  # Font size in points.
MANY = 30  # If there are more clusters than this number, lines are thin and colors soft.
_CLUSTER_COLORS = COLORS[:-1]  # Colors of clusters do not include black, because marks other than clusters are black.
# Colors for more than 30 clusters (MANY).
_SOFT_COLORS = ("#2F6690", "#81C3D7", "#3A9188", "#9D8EC7", "#C9B458")


def panels(ax: Any, n_rows: int, n_columns: int, height: float, **options: Any) -> tuple[Figure, NDArray]:
    """Return a figure and its Axes, row by row: the given Axes, or a new figure as wide as a journal column.

    ax: None, an Axes (for one panel), or an array-like with an Axes for each panel
    height: height of a new figure [inches]
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


def panel_grid(ax: Any, count: int, n_columns: int, row_height: float, margin: float) -> tuple[Figure, NDArray]:
    """Return a figure and `count` Axes with common axis limits: the given Axes, or those of a new figure.

    row_height, margin: height of each row of panels in a new figure, and height that is added for all rows [inches]
    """
    if ax is not None:
        return panels(ax, 1, count, 0)
    n_rows = -(-count // n_columns)
    figure, axes = panels(None, n_rows, n_columns, n_rows * row_height + margin, sharex=True, sharey=True)
    for spare in axes[count:]:
        spare.remove()
    for lowest in axes[max(count - n_columns, 0) : count]:  # in its column
        lowest.tick_params(labelbottom=True)
    return figure, axes[:count]


def cluster_colors(centers: NDArray) -> NDArray[np.float64]:
    """Return a color (red, green, blue) for each of the centers (C, D): (C, 3), from 0 to 1.

    Up to six clusters have different colors. Further centers are colored one after the other, each with the color whose
    nearest center so far is farthest away. So neighboring clusters differ in color. For more than 30 clusters the
    palette is smaller and softer, because colors then only separate neighboring clusters.
    """
    palette = np.array([to_rgb(color) for color in (_CLUSTER_COLORS if len(centers) <= MANY else _SOFT_COLORS)])
    chosen = np.arange(len(centers)) % len(palette)
    for c in range(len(palette), len(centers)):
        distances = cdist(centers[c : c + 1], centers[:c], "sqeuclidean")[0]
        nearest = np.full(len(palette), np.inf)
        np.minimum.at(nearest, chosen[:c], distances)
        chosen[c] = nearest.argmax()
    return palette[chosen]


def plain_counts(axis: Axis) -> None:
    """Label a logarithmic axis of counts by plain numbers: 1, 2, 5, 10, …, or 1, 10, 100, … if it is long.

    An axis that ends at 20 has the next integers.
    """
    low, high = axis.get_view_interval()
    several = LogLocator(10, (1, 2, 5) if high < 200 * max(low, 1) else (1,))
    axis.set_major_locator(MaxNLocator(5, integer=True) if high <= 20 else several)
    axis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.10g}"))
    axis.set_minor_formatter(NullFormatter())


def bare(axes: Axes) -> None:
    """Remove ticks and grid from axes whose coordinates have no meaning."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
