"""Example (C) of Kearns, Mansour & Ng, figures 4 and 5: two minima, one more informative, one with a better model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cprime._utils.style import BLACK, BLUE, VERMILION, frame, name_curve
from cprime.theory import PartitionLoss, partition_loss
from reproduction.base import Context, Entry, Result, Row, compare
from reproduction.kearns import (
    EXAMPLES,
    ROUNDED,
    SOURCE,
    curves,
    parameter_rows,
    parameters,
    runs,
    samples,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def compute(context: Context) -> Result:
    """Run K-means from the paper's start and from the true parameters, and weighted K-means."""
    Q, start = EXAMPLES["C"]
    data = samples(Q, context)
    hard = [fit.components for fit in runs(data, start, context)]
    other = [fit.components for fit in runs(data, Q, context)]
    weighted = [fit.components for fit in runs(data, start, context, weights="free")]
    context.report("decompositions")
    begin, end, others = (
        [partition_loss(components, X) for components, X in zip(each, data, strict=True)]
        for each in ([start] * len(data), hard, other)
    )
    exact = [partition_loss(components, Q) for components in hard]
    rows = [
        *_rows("K-means, start", (0.886, 0.513, 2.601), begin, [partition_loss(start, Q)]),
        *parameter_rows("K-means", (-0.219, 0.470, 0.906, 1.979), hard),
        *_rows("K-means", (0.564, 0.988, 2.850), end, exact),
        *parameter_rows("K-means, the other minimum", (0.018, 0.997, 4.992, 0.097), other, "started from the truth"),
        compare("K-means, the other minimum: w₀", 0.949, [float(each.shares[0]) for each in others], 1, ROUNDED),
        compare("K-means, the other minimum: loss (bits)", 1.872, [each.loss for each in others], 1, ROUNDED),
        *parameter_rows(
            "weighted K-means", (0.018, 0.997, 4.992, 0.097), weighted, "published as close to the other minimum"
        ),
    ]
    content = {"Q": curves(Q, -4, 8), "found": curves(hard[0], -4, 8) | parameters(hard[0])}
    return ENTRY.result(context.runs, rows, content)


def _rows(
    name: str, published: tuple[float, float, float], found: list[PartitionLoss], exact: list[PartitionLoss]
) -> list[Row]:
    """Return rows of w_0, H(w) and Σ w KL + H(Q) on the samples, and of the KL terms over the sampling density."""
    note = (
        f"printed as Σ w KL(Q_b‖P_b), which is less by H(Q) = {exact[0].entropy:.3f} bits: see the next row, by "
        "quadrature. Σ w KL + H(Q) "
        "is the loss and H(w) together, and has the printed values"
    )
    return [
        compare(f"{name}: w₀", published[0], [float(each.shares[0]) for each in found], 1, ROUNDED),
        compare(f"{name}: H(w) (bits)", published[1], [each.partition_entropy for each in found], 1, ROUNDED),
        compare(
            f"{name}: Σ w KL + H(Q) (bits)",
            published[2],
            [each.loss + each.information_gain for each in found],
            1,
            ROUNDED,
            note,
        ),
        compare(f"{name}: Σ w KL alone (bits)", None, [each.modeling for each in exact], 1),
    ]


def draw(result: Result, figure: Figure) -> None:
    """Draw figure 4, the density, and figure 5, the two components that K-means found on one sample."""
    figure.set_size_inches(8, 3)
    left, right = figure.subplots(1, 2)
    x = result.data["Q"]["x"]
    left.plot(x, result.data["Q"]["density"], color=BLACK, linewidth=1.6)
    frame(left, "Figure 4: sampling density Q", "x", "density")
    for density, name, color in zip(result.data["found"]["components"], ("P₀", "P₁"), (BLUE, VERMILION), strict=True):
        right.plot(x, density, color=color, linewidth=1.6)
        at = (x[int(np.argmax(density))] + 0.6, max(density) * 0.95) if name == "P₀" else (3.2, 0.12)
        name_curve(right, name, at, color)
    for ax in (left, right):
        ax.set_ylim(bottom=0)
        ax.set_xlim(x[0], x[-1])
    frame(right, "Figure 5: found by K-means", "x", "density")


ENTRY = Entry(
    "kearns-example-c",
    "Example (C): K-means leaves the better model for the more informative partition",
    f"{SOURCE}, example (C), figures 4 and 5",
    20,
    compute,
    draw,
)
