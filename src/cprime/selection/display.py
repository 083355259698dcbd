"""Figure of a sweep: each criterion over the number of components C, with the best C marked."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.messages import require
from cprime._utils.style import BLUE, GREEN, ORANGE, PURPLE, VERMILION, frame, name_curves, name_line
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


class SelectionDisplay:
    """Criteria of a `Sweep` over the number of components.

    All criteria are drawn per point, in nats, so that they can be compared: BIC/2W, ICL/2W, AIC/2W, and minus the
    held-out mean log-likelihood. A marker shows the least value of each. A dotted line shows the elbow of J, the sum of
    squared distances, if the curve of J has one. Create a display with `from_sweep` or `from_estimator`.

    Parameters
    ----------
    sweep : Sweep

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict of str to matplotlib Line2D
        The curve of each criterion that the sweep has.

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
        figure = ax.get_figure(root=True)
        assert figure is not None
        self.ax_, self.figure_ = ax, figure
        return self

    def _per_point(self, name: str) -> NDArray[np.float64]:
        values = getattr(self.sweep, name)
        return values / (2 * self.sweep.weight) if LOWER_IS_BETTER[name] else -values
