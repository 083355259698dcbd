"""Figure of a sweep: each criterion, or each covariance type, over the number of components C; the best C is marked."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.messages import require
from cprime._utils.style import BLUE, COLORS, GREEN, ORANGE, PURPLE, VERMILION, frame, name_curves, name_line
from cprime.selection.results import LOWER_IS_BETTER, Mixture, Sweep
from cprime.selection.sweep import sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# Label, color and marker with which the figure of a sweep shows each criterion.
_CURVES = {
    "bic": ("BIC", BLUE, "o"),
    "icl": ("ICL", PURPLE, "v"),
    "free_energy_bic": ("BIC of F", VERMILION, "s"),
    "aic": ("AIC", GREEN, "^"),
    "held_out": ("held out", ORANGE, "D"),
}

_MARKERS = "os^vD<>PXphH*d"  # markers of covariance types, as in mclust's plot of BIC
_DASHES = ("-", "--")  # line styles of covariance types: the second one after all colors are used once


class SelectionDisplay:
    """Criteria of a `Sweep` over the number of components.

    All criteria are drawn per point, in nats, so that they can be compared: BIC/2W, ICL/2W, AIC/2W, and minus the
    held-out mean log-likelihood. A marker shows the least value of each. A dotted line shows the elbow of J, the sum of
    squared distances, if the curve of J has one. Create a display with `from_sweep` or `from_estimator`.

    For a sweep of several covariance types, each type has a line of the main criterion, with its marker in a legend.
    A circle shows the best fit. Values have the sign of the sweep, so the best BIC is the lowest one; in the plots of
    mclust it is the highest.

    Parameters
    ----------
    sweep : Sweep

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict of str to matplotlib Line2D
        The curve of each criterion that the sweep has, or of each covariance type.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.datasets import birch
    >>> X = birch(3, random_state=0).data
    >>> display = SelectionDisplay.from_estimator(KMeans(), X, range(4, 15), random_state=0)
    >>> sorted(display.lines_)
    ['aic', 'bic', 'free_energy_bic', 'held_out', 'icl']
    """

    ax_: "Axes"
    figure_: "Figure"
    lines_: dict[str, "Line2D"]

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep

    @classmethod
    def from_sweep(cls, sweep: Sweep, *, ax: "Axes | None" = None) -> Self:
        """Draw the criteria of a sweep.

        Parameters
        ----------
        sweep : Sweep
        ax : matplotlib Axes, default=None
            Axes to draw into; None creates a new figure.

        Returns
        -------
        display : SelectionDisplay

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        if not isinstance(sweep, Sweep):
            raise TypeError(f"sweep must be a Sweep, got {sweep!r}.")
        return cls(sweep).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Mixture,
        X: Any,
        n_components_range: Iterable[int],
        *,
        ax: "Axes | None" = None,
        **options: Any,
    ) -> Self:
        """Run `sweep` with the given arguments, draw its result, and return the display.

        ax: matplotlib axes to draw into; None creates a new figure.
        """
        require("matplotlib", "SelectionDisplay")
        return cls.from_sweep(sweep(estimator, X, n_components_range, **options), ax=ax)

    def plot(self, *, ax: "Axes | None" = None) -> Self:
        """Draw the criteria of the sweep, also a second time on other axes, and return the display.

        ax: matplotlib axes to draw into; None creates a new figure.
        """
        pyplot = require("matplotlib.pyplot", "SelectionDisplay")
        from matplotlib.ticker import MaxNLocator

        if ax is None:
            ax = pyplot.subplots(figsize=(5.2, 3.4), layout="constrained")[1]
        assert ax is not None
        figure = ax.get_figure(root=True)
        assert figure is not None
        self.ax_, self.figure_ = ax, figure
        if self.sweep.families:
            self._draw_families()
            return self
        C = self.sweep.n_components
        curves = {name: self._per_point(name) for name in _CURVES}
        curves = {name: values for name, values in curves.items() if not np.isnan(values).all()}
        frame(ax, "less is better", "components C", "nats per point")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        self.lines_ = {}
        for name, values in curves.items():
            _, color, marker = _CURVES[name]
            best = int(np.argmin(values))
            (self.lines_[name],) = ax.plot(C, values, color=color, linewidth=1.3, marker=marker, markersize=2.5)
            ax.plot(C[best], values[best], color=color, marker=marker, markersize=7, markeredgecolor="white")
        found = self.sweep.elbow()
        if found is not None:
            name_line(ax, found, f"elbow of J: {found}")
        named = [
            (f"{_CURVES[name][0]}, best: {self.sweep.best_n_components(name)}", float(values[-1]), _CURVES[name][1])
            for name, values in curves.items()
        ]
        name_curves(ax, named, x=float(C[-1]))
        return self

    def _draw_families(self) -> None:
        """Draw a line for each covariance type, a legend right of the panel, and a circle around the best fit."""
        from matplotlib.ticker import MaxNLocator

        ax, found, name = self.ax_, self.sweep, self.sweep.main_criterion
        rows, best = found.matrix(name), found.best_n_components(name)
        numbers = found.n_components[: rows.shape[1]]
        sense = "lower" if LOWER_IS_BETTER[name] else "higher"
        family = found.best_covariance_type(name)
        frame(ax, f"best: {family}, {best}", "components C", f"{_CURVES[name][0]} ({sense} is better)")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        self.lines_ = {}
        for i, (each, values) in enumerate(zip(found.families, rows, strict=True)):
            style: dict[str, Any] = {
                "color": COLORS[i % len(COLORS)],
                "linestyle": _DASHES[i // len(COLORS) % len(_DASHES)],
            }
            marker = _MARKERS[i % len(_MARKERS)]
            (self.lines_[each],) = ax.plot(
                numbers, values, marker=marker, markersize=4, linewidth=1, label=each, **style
            )
        value = rows[found.families.index(family), list(numbers).index(best)]
        ax.plot(best, value, marker="o", markersize=12, color="black", fillstyle="none", linestyle="none")
        ax.legend(
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            fontsize=7,
            frameon=False,
            labelspacing=0.2,
            ncols=1 + (len(rows) > 7),
        )

    def _per_point(self, name: str) -> NDArray[np.float64]:
        values = getattr(self.sweep, name)
        return values / (2 * self.sweep.weight) if LOWER_IS_BETTER[name] else -values
