"""Display of the exact and the truncated responsibilities of a point."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cprime._utils.style import BLUE, GREY, VERMILION, frame
from cprime.estimators.fitted import model_of
from cprime.estimators.validation import check_integer
from cprime.kernels import as_rows
from cprime.plots.fitted import check_fitted, prepared_point
from cprime.plots.style import COLUMN, TEXT, panels

_SHOWN = 20
_CROWDED = 40  # the labels below the bars are rotated if they have more than this number of characters in total


class ResponsibilitiesDisplay:
    """Responsibilities r_c = p(c | x) of a point as bars, and below them the truncated responsibilities q_c.

    Both are probabilities of the components: from 0 to 1, with sum 1. In the upper panel, bars of K are red and others
    gray. K is the active set, the C′ components with the greatest r. q_c = r_c / Σ_{c'∈K} r_c' for components in K, and
    exactly 0 for all others. The title shows the sum of r in K and, in nats, the gap between log p(x) and the point's
    term of the free energy: −log Σ_{c∈K} r_c.

    Parameters
    ----------
    exact : array-like of shape (n_components,)
        r_c, with sum 1.
    n_active : int
        C′, the size of the active set K.

    Attributes
    ----------
    truncated : ndarray of shape (n_components,)
        q_c.
    kept : ndarray of shape (n_active,)
        K, in decreasing order of r; of equal ones, the lower index first.
    shown : ndarray of int
        Components that are drawn: all if there are at most 20, else the 20 of greatest r, in decreasing order.
    axes_ : ndarray of matplotlib Axes
        Axes of the exact and of the truncated responsibilities.
    figure_ : matplotlib Figure

    References
    ----------
    Lücke & Forster, *k-means as a variational EM approximation of Gaussian mixture models*, eq. (4), (5), figure S1.

    Examples
    --------
    >>> from cprime.plots import ResponsibilitiesDisplay
    >>> ResponsibilitiesDisplay([0.5, 0.1, 0.3, 0.1], 2).plot().truncated
    array([0.625, 0.   , 0.375, 0.   ])
    """

    def __init__(self, exact: ArrayLike, n_active: int) -> None:
        self.exact: NDArray[np.float64] = np.asarray(exact, dtype=np.float64)
        C = len(self.exact)
        self.n_active = check_integer(n_active, "n_active", 1)
        if self.n_active > C:
            raise ValueError(f"n_active must be at most the {C} components, got {n_active}.")
        order = np.argsort(-self.exact, kind="stable")
        self.kept = order[: self.n_active]
        self.truncated = np.zeros(C)
        self.truncated[self.kept] = self.exact[self.kept] / self.exact[self.kept].sum()
        self.shown = np.arange(C) if C <= _SHOWN else order[:_SHOWN]

    @classmethod
    def from_estimator(
        cls, estimator: Any, x: ArrayLike, *, n_active: int | None = None, ax: Any = None, **kw: Any
    ) -> Self:
        """Show the responsibilities of a point.

        Parameters
        ----------
        estimator : KMeans, GaussianMixture, StudentTMixture or SoftKMeans
            A fitted estimator. k-means uses its mixture with equal weights and one variance σ² = J/(DN).
        x : array-like of shape (n_features,)
            The point.
        n_active : int or None, default=None
            C′; None is the value of the estimator.
        ax : array-like of two matplotlib Axes or None, default=None
        **kw : dict
            Arguments of `plot`.

        Returns
        -------
        display : ResponsibilitiesDisplay
        """
        check_fitted(estimator)
        model = model_of(estimator)
        row = np.ascontiguousarray(prepared_point(estimator, x)[1], dtype=model.centers.dtype)
        exact = model.responsibilities(as_rows(row))[0]
        return cls(exact, estimator.n_active_ if n_active is None else n_active).plot(ax, **kw)

    def plot(self, ax: Any = None) -> Self:
        """Draw the exact and the truncated responsibilities.

        Parameters
        ----------
        ax : array-like of two matplotlib Axes or None, default=None

        Returns
        -------
        display : ResponsibilitiesDisplay
        """
        self.figure_, self.axes_ = panels(ax, 2, 1, COLUMN * 0.95, sharex=True, sharey=True)
        is_kept = np.isin(self.shown, self.kept)
        places = np.arange(len(self.shown))
        crowded = sum(len(str(c)) + 1 for c in self.shown) > _CROWDED
        mass = float(self.exact[self.kept].sum())
        gap = f"\n{mass:.3g} of the sum in K, gap {0.0 - np.log(mass):.2g} nats"
        named = (
            (self.exact, [VERMILION if kept else GREY for kept in is_kept], "exact: $r_c = p(c\\,|\\,x)$" + gap),
            (self.truncated, BLUE, f"truncated: $q_c$, C′ = {self.n_active}"),
        )
        for axes, (values, colors, title) in zip(self.axes_, named, strict=True):
            axes.bar(places, values[self.shown], color=colors, width=0.8)
            frame(axes, title)
            axes.grid(False)
            axes.set_ylim(0, 1.05 * self.truncated.max())
            axes.set_xticks(places, [str(c) for c in self.shown])
            axes.tick_params(axis="x", length=0, labelsize=TEXT, labelrotation=90 if crowded else 0)
        self.axes_[1].set_xlabel("component", fontsize=9)
        return self
