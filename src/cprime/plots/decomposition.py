"""Display of the partition loss, the expected −log density of a hard assignment, as the sum of its terms."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from cprime._utils.random import check_random_state
from cprime._utils.style import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILION, frame
from cprime.estimators.validation import check_integer
from cprime.plots.style import TEXT, panels
from cprime.theory import partition_loss
from cprime.theory.mixtures import MixtureDensity, as_rows_of

# For each attribute of a `PartitionLoss` that is a term of the sum: the label of its bar, and the sign of the term.
_PARTS = {
    "modeling": ("Σ w KL(Q‖P)", 1),
    "entropy": ("H(Q)", 1),
    "partition_entropy": ("−H(w)", -1),
    "assignment_entropy": ("H(F|x)", 1),
}
_COLORS = (VERMILION, BLUE, GREEN, ORANGE)


class DecompositionDisplay:
    """The partition loss as a waterfall chart: each bar begins where the previous one ended.

        E[−log P_F(x)(x)] = Σ_b w_b KL(Q_b‖P_b) + H(Q) − (H(w) − H(F(x)|x))

    Component b has the density P_b and the share w_b of the points. Q is the density of the data, Q_b the density of
    the points that are assigned to b, F(x) the component to which x is assigned, and H an entropy.

    Parameters
    ----------
    parts : mapping of str to float
        Name and signed value of each term; their sum is the last bar.
    unit : str, default="bits"
    intervals : mapping of str to (float, float) or None, default=None
        A 95 % interval of some terms, by name, with the sign of the term; "loss" is the interval of the sum.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    References
    ----------
    Kearns, Mansour & Ng, *An information-theoretic analysis of hard and soft assignment methods for clustering*,
    eq. (8), (12), (13).

    Examples
    --------
    >>> from cprime.plots import DecompositionDisplay
    >>> loss = {"modeling": 0.155, "entropy": 3.314, "partition_entropy": 1.0, "assignment_entropy": 0.0}
    >>> round(DecompositionDisplay.from_loss(loss).total, 3)
    2.469
    """

    def __init__(
        self,
        parts: Mapping[str, float],
        unit: str = "bits",
        intervals: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        if not parts:
            raise ValueError("parts must have at least one part, got none.")
        self.parts = {name: float(value) for name, value in parts.items()}
        self.unit = unit
        self.intervals = dict(intervals or {})

    @property
    def total(self) -> float:
        """Return the sum of all terms, which is the loss."""
        return sum(self.parts.values())

    @classmethod
    def from_estimator(
        cls, estimator: Any, Q: Any, *, max_rows: int | None = 10_000, ax: Any = None, **options: Any
    ) -> Self:
        """Compute and show the decomposition of a fitted model's loss.

        Parameters
        ----------
        estimator : KMeans, GaussianMixture or StudentTMixture
            A fitted estimator.
        Q : array-like of shape (n_samples, n_features), Gaussians or Univariate
            Data, or the density that they come from.
        max_rows : int or None, default=10_000
            Maximum number of rows used; from larger data a random sample is drawn. The intervals include the sampling
            error, but not the bias of an entropy estimate from few points. None uses all rows.
        ax : matplotlib Axes or None, default=None
        **options : dict
            Arguments of `cprime.theory.partition_loss`; random_state, 0 if not given, also selects the rows.

        Returns
        -------
        display : DecompositionDisplay
        """
        if max_rows is not None and not isinstance(Q, MixtureDensity) and not hasattr(Q, "fit"):
            Q = as_rows_of(estimator, Q, "Q", dtype=[np.float64, np.float32])
            if len(Q) > check_integer(max_rows, "max_rows", 2):
                Q = Q[check_random_state(options.get("random_state", 0)).choice(len(Q), max_rows, replace=False)]
        return cls.from_loss(partition_loss(estimator, Q, **options), ax=ax)

    @classmethod
    def from_loss(cls, loss: Any, *, ax: Any = None) -> Self:
        """Show the decomposition of a loss that has been computed.

        Parameters
        ----------
        loss : PartitionLoss, or mapping
            It must have modeling, entropy, partition_entropy and assignment_entropy; unit and intervals are optional.
        ax : matplotlib Axes or None, default=None

        Returns
        -------
        display : DecompositionDisplay

        Raises
        ------
        ValueError
            If a term is missing.
        """
        names = (*_PARTS, "unit", "intervals")
        lookup = loss.get if isinstance(loss, Mapping) else lambda name: getattr(loss, name, None)
        given: dict[str, Any] = {name: lookup(name) for name in names}
        missing = [name for name in _PARTS if given[name] is None]
        if missing:
            raise ValueError(f"loss must have {', '.join(_PARTS)}; it has no {', '.join(missing)}.")
        found = given["intervals"] or {}
        intervals = {"loss": tuple(found["loss"])} if "loss" in found else {}
        for name, (title, sign) in _PARTS.items():
            if name in found:
                low, high = sorted(sign * end for end in found[name])
                intervals[title] = (low, high)
        parts = {title: sign * given[name] for name, (title, sign) in _PARTS.items()}
        return cls(parts, given["unit"] or "bits", intervals).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the waterfall chart of the terms.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None

        Returns
        -------
        display : DecompositionDisplay
        """
        self.figure_, (self.ax_,) = panels(ax, 1, 1, 0.7 + 0.25 * (len(self.parts) + 1))
        bars = [*self.parts.items(), ("loss", self.total)]
        left = 0.0
        for place, (name, value) in enumerate(bars):
            color = _COLORS[place % len(_COLORS)]
            if place == len(self.parts):
                left, color = 0.0, BLACK
            self.ax_.barh(place, value, left=left, color=color, height=0.7)
            end = left + value
            right = max(left, end)
            if name in self.intervals:
                low, high = (limit - value for limit in self.intervals[name])
                self.ax_.errorbar(end, place, xerr=[[-low], [high]], color=GREY, capsize=2, linewidth=1)
                right = max(right, end + high)
            text = f"{value:.3f}".replace("-", "−")
            beside = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "fontsize": TEXT}
            self.ax_.annotate(text, (right, place), **beside)
            left += value
            if place < len(self.parts):
                self.ax_.plot([left, left], [place + 0.35, place + 0.65], color=GREY, linewidth=0.7)
        frame(self.ax_, "", self.unit)
        self.ax_.grid(False)
        self.ax_.axvline(0, color=BLACK, linewidth=0.7)
        self.ax_.set_yticks(range(len(bars)), [name for name, _ in bars])
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.set_ylim(len(bars) - 0.5, -0.5)
        self.ax_.use_sticky_edges = False
        self.ax_.margins(x=0.1)
        self.ax_.spines["left"].set_visible(False)
        return self
