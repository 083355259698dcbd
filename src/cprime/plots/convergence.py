"""Display of free energy F, log-likelihood L and sum of squared distances J by iteration."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from cprime._utils.style import BLACK, BLUE, GREY, VERMILION, frame, name_curves, name_line
from cprime.estimators import KMeans
from cprime.estimators.fitted import centers_of
from cprime.plots.fitted import accepting, check_fitted, path, prepared, standing
from cprime.plots.style import COLUMN, panels

PANELS = ("bounds", "error")


class ConvergenceDisplay:
    """Convergence curves: free energy F, log-likelihood L ≥ F with the gap L − F shaded, and J.

    The upper panel shows F, which every fit increases: greater is better. F and L have the unit nats per point. The
    lower panel shows J, the sum of squared distances of the points to their nearest centers, which k-means decreases:
    less is better. Its unit is the square of the data's unit. J of a mixture may rise while F rises, because the fit
    does not aim at J, so it is drawn only if `panels_shown` contains "error".

    A value at iteration t belongs to the parameters after t iterations and is computed in the following E-step; t = 0
    is the initialization. The values of an exchange step of k-means belong to the parameters at the end of this step.

    Parameters
    ----------
    iterations : ndarray of shape (n,)
        Number of completed iterations.
    free_energy : ndarray of shape (n,)
        F, in nats per point.
    error : ndarray of shape (n,)
        J, in the square of the data's unit; NaN if unknown.
    log_likelihood : ndarray of shape (n,) or None, default=None
        L, in nats per point; NaN if unknown.
    n_warmup : int, default=0
        Number of iterations that were only E-steps, before the first M-step.
    decreases_error : bool, default=True
        Whether the fit decreases J, as k-means does.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each panel.
    figure_ : matplotlib Figure

    References
    ----------
    Lücke & Forster, *k-means as a variational EM approximation of Gaussian mixture models*, eq. (3), (7), (15), (16),
    and figure 1.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.datasets import old_faithful
    >>> from cprime.plots import ConvergenceDisplay
    >>> X = old_faithful().data
    >>> km = KMeans(2, init="random", random_state=0).fit(X)
    >>> display = ConvergenceDisplay.from_estimator(km, X, trace=True)
    >>> bool((display.log_likelihood >= display.free_energy).all())
    True
    """

    def __init__(
        self,
        iterations: NDArray,
        free_energy: NDArray[np.float64],
        error: NDArray[np.float64],
        log_likelihood: NDArray[np.float64] | None = None,
        n_warmup: int = 0,
        decreases_error: bool = True,
    ) -> None:
        self.iterations = iterations
        self.free_energy = free_energy
        self.error = error
        self.log_likelihood = log_likelihood
        self.n_warmup = n_warmup
        self.decreases_error = decreases_error

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        sample_weight: Any = None,
        trace: bool = False,
        ax: Any = None,
        **kw: Any,
    ) -> Self:
        """Show the convergence of a fit.

        Parameters
        ----------
        estimator : KMeans, GaussianMixture, StudentTMixture or SoftKMeans
            A fitted estimator.
        X : array-like of shape (n_samples, n_features) or None, default=None
            The training data. If given, L is shown for the final parameters; if None, L is not shown.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The weights used in the fit.
        trace : bool, default=False
            Whether to show L after every iteration. For this a clone is fitted again, with the same iterations if
            random_state is an int. Then F, L and J are computed exactly for the parameters of every iteration, which
            takes 3·N·C evaluations each. F then refers to the best active sets, so after a partial search it is
            slightly above the F of the fit.
        ax : array-like of matplotlib Axes or None, default=None
            Axes to draw on, one for each panel; None makes a figure.
        **kw : dict
            Arguments of `plot`.

        Returns
        -------
        display : ConvergenceDisplay

        Raises
        ------
        ValueError
            If trace=True and X is None.
        """
        check_fitted(estimator)
        if trace and X is None:
            raise ValueError("X must be the training data where trace=True, got None.")
        found = _traced(*prepared(estimator, X), sample_weight) if trace else _recorded(estimator, X, sample_weight)
        return cls(*found, isinstance(estimator, KMeans)).plot(ax, **kw)

    def plot(self, ax: Any = None, *, panels_shown: Sequence[str] | None = None) -> Self:
        """Draw the curves of F, L and J.

        Parameters
        ----------
        ax : matplotlib Axes, array-like of them or None, default=None
        panels_shown : sequence of {"bounds", "error"} or None, default=None
            "bounds" shows F and L, "error" shows J. None is both for k-means, and "bounds" for others: fits of mixtures
            compute J only with covariance_type="tied_spherical", `trace` computes J for all.

        Returns
        -------
        display : ConvergenceDisplay

        Raises
        ------
        ValueError
            If a panel has no data to show, or its name is unknown.
        """
        draw, known = {"bounds": self._draw_bounds, "error": self._draw_error}, np.isfinite(self.error).any()
        if panels_shown is None:
            panels_shown = PANELS if known and self.decreases_error else PANELS[:1]
        for name in panels_shown:
            if name not in draw:
                raise ValueError(f"panels_shown must be among {list(PANELS)}, got {name!r}.")
            if name == "error" and not known:
                raise ValueError("panels_shown must be ['bounds'] where J is not known, as of this fit; see trace.")
        n = len(panels_shown)
        self.figure_, self.axes_ = panels(ax, n, 1, COLUMN * (0.15 + 0.5 * n), sharex=True)
        for axes, name in zip(self.axes_, panels_shown, strict=True):
            axes.set_xlim(self.iterations[0], max(self.iterations[-1], self.iterations[0] + 1))
            axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
            draw[name](axes)
            axes.ticklabel_format(axis="y", useOffset=False)
            if self.n_warmup:
                name_line(axes, self.n_warmup, "end of warm-up" if axes is self.axes_[0] else "")
        self.axes_[-1].set_xlabel("iterations", fontsize=9)
        return self

    def _draw_bounds(self, axes: Any) -> None:
        F, L = self.free_energy, self.log_likelihood
        axes.plot(self.iterations, F, color=VERMILION, linewidth=1.6)
        frame(axes, "free energy F (greater is better)", "", "nats per point")
        names = [("F", float(F[-1]), VERMILION)]
        if L is not None:
            known = np.isfinite(L)
            single = np.count_nonzero(known) == 1
            axes.plot(self.iterations, L, color=BLUE, linewidth=1.6, marker="o" if single else "", markersize=4)
            if single:
                axes.vlines(self.iterations[known], F[known], L[known], color=GREY, linewidth=5, alpha=0.35)
            else:
                axes.fill_between(self.iterations, F, L, color=GREY, alpha=0.25, linewidth=0)
            gap = max(float(L[-1] - F[-1]), 0.0)  # Rounding errors may make it negative.
            names += [(f"L − F = {gap:.2g}", float(F[-1] + gap / 2), GREY), ("L", float(L[-1]), BLUE)]
        name_curves(axes, names)

    def _draw_error(self, axes: Any) -> None:
        known = np.isfinite(self.error)
        axes.plot(self.iterations[known], self.error[known], color=BLACK, linewidth=1.6)
        frame(axes, "squared distances J (less is better)")
        name_curves(axes, [("J", float(self.error[known][-1]), BLACK)])


def _recorded(estimator: Any, X: Any, sample_weight: Any) -> tuple[Any, Any, Any, Any, int]:
    history = estimator.history_
    free_energy = np.append(history["lower_bound"], estimator.lower_bound_)
    error = np.append(history["quantization_error"], getattr(estimator, "inertia_", np.nan))
    log_likelihood = None
    if X is not None:
        log_likelihood = np.full(len(free_energy), np.nan)
        log_likelihood[-1] = accepting(estimator, X).bounds(X, sample_weight=sample_weight).log_likelihood
    n_warmup = int((history["phase"] == "warmup").sum())
    return np.arange(len(free_energy)), free_energy, error, log_likelihood, n_warmup


def _traced(estimator: Any, X: NDArray, sample_weight: Any) -> tuple[Any, Any, Any, Any, int]:
    refit, models, has_start = path(estimator, X, sample_weight)
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight)
    rows = []
    for model in models:
        view = standing(refit, model, X, sample_weight)
        bounds = view.bounds(X, sample_weight=sample_weight)
        # Missing values (NaN) add nothing to the squared distances.
        squares = np.nansum(np.square(X - centers_of(view)[view.predict(X)]), axis=1)
        rows.append((bounds.free_energy, float(weights @ squares), bounds.log_likelihood))
    free_energy, error, log_likelihood = np.array(rows).T
    return np.arange(len(rows)) + (not has_start), free_energy, error, log_likelihood, 0
