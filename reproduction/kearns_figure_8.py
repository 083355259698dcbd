"""Figure 8 of Kearns, Mansour & Ng: range in which a point repels the component that explains it badly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cprime._utils.style import BLACK, BLUE, VERMILION, frame, name_curve
from cprime.theory import posterior_loss, repulsion, repulsion_zero
from reproduction.base import Context, Entry, Result, Row, compare
from reproduction.kearns import ROUNDED, SOURCE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RATIOS = np.linspace(0.005, 1, 400)
_STEP = 1e-6


def compute(context: Context) -> Result:
    """Compute the curve, its zero, and the curve from differences of the posterior loss."""
    curve = repulsion(_RATIOS)
    difference = float(np.abs(_by_differences(_RATIOS) - curve).max())
    zero = repulsion_zero()
    rows = [
        compare("zero of (52)", 0.218, [zero], 1, ROUNDED, "agrees if it rounds to the printed digits"),
        Row(
            "(52) against differences of the loss (50): largest difference (bits)",
            None,
            difference,
            None,
            None,
            "a check of the derivation, which is the source's",
        ),
    ]
    return ENTRY.result(1, rows, {"ratios": _RATIOS.tolist(), "force": curve.tolist(), "zero": zero})


def _by_differences(ratios: np.ndarray) -> np.ndarray:
    """Return (P_0 + P_1) ∂L_post/∂P_0 in bits by finite differences, for P_0 + P_1 = 1."""

    def loss(shift: float) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return posterior_loss(np.log(np.column_stack([ratios + shift, 1 - ratios])))[0]

    return (loss(_STEP) - loss(-_STEP)) / (2 * _STEP)


def draw(result: Result, figure: Figure) -> None:
    """Draw the curve with the line y = 0."""
    figure.set_size_inches(5, 3.5)
    ax = figure.subplots()
    ax.axhline(0, color=BLACK, linewidth=0.8)
    ax.plot(result.data["ratios"], result.data["force"], color=BLUE, linewidth=1.8)
    zero = result.data["zero"]
    ax.plot(zero, 0, "o", color=VERMILION, markersize=5)
    name_curve(ax, f"R₀ = {zero:.4f}", (zero + 0.01, 0.35), VERMILION)
    name_curve(ax, "the point repels P₀", (0.08, 3.0), BLUE)
    name_curve(ax, "the point attracts P₀", (0.45, -0.55), BLUE)
    ax.set_xlim(0, 1)
    frame(ax, "Figure 8: the derivative of the posterior loss, (52)", "R₀ = P₀/(P₀ + P₁)", "bits")


ENTRY = Entry(
    "kearns-figure-8",
    "A point repels the component that it belongs to with a probability below 0.218",
    f"{SOURCE}, figure 8",
    1,
    compute,
    draw,
)
