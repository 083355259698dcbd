"""The four examples of Kearns, Mansour & Ng: densities, initial parameters, runs on samples of 10,000, rows."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime.theory import AssignmentFit, Gaussians, fit_assignment, partition_loss
from reproduction.base import FEWEST, Context, Row, compare, margins, standard_error

N_POINTS = 10_000
ROUNDED = 0.0005  # half a unit of the last printed digit
SOURCE = "Kearns, Mansour & Ng 1997"
_GRID = 601
_EXACT = 10**9  # a number of runs for which a mean has no error

_PARAMETERS: tuple[tuple[str, Callable[[Gaussians], float]], ...] = (
    ("μ₀", lambda g: float(g.means[0, 0])),
    ("σ₀", lambda g: float(g.standard_deviations[0])),
    ("μ₁", lambda g: float(g.means[1, 0])),
    ("σ₁", lambda g: float(g.standard_deviations[1])),
)


class Example(NamedTuple):
    """A sampling density, and the initial parameters of the algorithms."""

    Q: Gaussians
    start: Gaussians


EXAMPLES = {
    "A": Example(Gaussians.spherical([-2, 2], 1.5), Gaussians.spherical([-2, 2], 1.5)),
    "B": Example(Gaussians.spherical([0], 1.0), Gaussians.spherical([0, 100], 1.0)),
    "C": Example(Gaussians.spherical([0, 5], [1.0, 0.1], [0.95, 0.05]), Gaussians.spherical([0, 0], [1.0, 5.0])),
    "D": Example(Gaussians.spherical([-10, 0, 10], 1.0, [0.25, 0.5, 0.25]), Gaussians.spherical([-5, 5], 1.0)),
}


def samples(Q: Gaussians, context: Context) -> list[NDArray[np.float64]]:
    """Return one random sample of 10,000 points (n, 1) per run."""
    return [Q.sample(N_POINTS, context.random_state + run) for run in range(context.runs)]


def runs(
    data: Sequence[NDArray[np.float64]],
    start: Gaussians,
    context: Context,
    assignment: str = "hard",
    weights: str = "equal",
    **options: Any,
) -> list[AssignmentFit]:
    """Return the fits of one algorithm to every sample."""
    context.report(f"{assignment} assignment, weights {weights}")
    return [fit_assignment(X, start, assignment=assignment, weights=weights, **options) for X in data]


def share(fit: AssignmentFit, X: NDArray[np.float64], weights: str = "equal") -> float:
    """Return w_0 on the sample: the share of points whose best component is 0."""
    components = fit.components if weights == "free" else fit.components.with_equal_weights()
    with np.errstate(divide="ignore"):
        scores = components.log_densities(X) + np.log(components.weights)
    return float((scores.argmax(axis=1) == 0).mean())


def parameter_rows(
    name: str,
    published: Sequence[float | None],
    found: Sequence[Gaussians],
    note: str = "",
    tolerance: float = ROUNDED,
) -> list[Row]:
    """Return rows that compare μ_0, σ_0, μ_1, σ_1, in this order, with the published values."""
    return [
        compare(f"{name}: {symbol}", value, [get(g) for g in found], 1, tolerance, note)
        for (symbol, get), value in zip(_PARAMETERS, published, strict=True)
    ]


def unmoved_rows(name: str, start: Gaussians, found: Sequence[Gaussians]) -> list[Row]:
    """Return rows that compare parameters with the exact initial ones, which agree if our mean's interval has them."""
    rows = []
    for symbol, get in _PARAMETERS:
        values = [get(g) for g in found]
        ours, error = float(np.mean(values)), standard_error(values)
        within = abs(ours - get(start)) <= margins(values, _EXACT)[1]
        met = bool(within) if len(values) >= FEWEST else None
        rows.append(Row(f"{name}: {symbol}", get(start), ours, error, met, "published: it stays where it starts"))
    return rows


def n_iter_row(name: str, published: int | None, fits: Sequence[AssignmentFit]) -> Row:
    """Return the row with the number of iterations until no point is reassigned."""
    note = "the last, which moves no point, is not counted; where a source stops counting is not said"
    return compare(f"{name}: iterations", published, [fit.n_iter for fit in fits], 1, 1.0, note)


def expected_loss(fit: AssignmentFit | Gaussians, Q: Gaussians, **options: Any) -> float:
    """Return the expected loss over the sampling density, in bits."""
    return partition_loss(fit.components if isinstance(fit, AssignmentFit) else fit, Q, **options).loss


def curves(mixture: Gaussians, low: float, high: float) -> dict[str, Any]:
    """Return the density Σ_b α_b P_b, and each P_b, on a grid of the line."""
    x = np.linspace(low, high, _GRID)
    densities = np.exp(mixture.log_densities(x[:, np.newaxis]))
    mixed = densities @ mixture.weights
    return {"x": x.round(4), "density": mixed.round(7), "components": densities.T.round(7)}


def parameters(mixture: Gaussians) -> dict[str, Any]:
    """Return means, standard deviations and weights as lists."""
    return {
        "means": mixture.means[:, 0].tolist(),
        "standard_deviations": mixture.standard_deviations.tolist(),
        "weights": mixture.weights.tolist(),
    }


def mirrored(mixture: Gaussians) -> Gaussians:
    """Return the mixture mirrored at zero, with components in reversed order."""
    return Gaussians(-mixture.means[::-1], mixture.covariances[::-1], mixture.weights[::-1])
