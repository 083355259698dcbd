"""How good a partial search was: a random sample of the points, searched exactly."""

from typing import Any

import numpy as np

from cprime.block import Kept
from cprime.components import Components
from cprime.kernels import Rows, posterior

_Z = 1.959963984540054  # of a 95 % interval


def certify(points: Rows, kept: Kept, components: Components, scale: float | None) -> dict[str, Any]:
    """Compares what was found for a sample of the points with the truth.

    points (m, D), and what each keeps    scale: what makes a cost a log-probability, None for k-means

    Returns a dictionary: n_points; agreement, the share of points whose winner is the best of all C, with its
    Wilson interval; and for k-means relative_excess, by how much J is above that of exact winners as a
    share of it, for mixtures shortfall, by how much F falls short of that of the exact K(n) [nats a point], each with
    an interval. All intervals are at 95 %, over the sampling of points.
    """
    assert kept.costs is not None
    m, seen = len(points), kept.costs.astype(np.float64)
    nearest, truth = components.best(points, kept.ids.shape[1])
    # As good as the nearest counts: equal distances, or the same component where rounding differs.
    agrees = (kept.winners == nearest[:, 0]) | (kept.costs[:, 0] <= truth[:, 0])
    p = float(agrees.mean())
    middle, width = p + _Z**2 / (2 * m), _Z * np.sqrt(p * (1 - p) / m + (_Z / (2 * m)) ** 2)
    result: dict[str, Any] = {
        "n_points": m,
        "agreement": p,
        "agreement_interval": [float(np.clip((middle + side * width) / (1 + _Z**2 / m), 0, 1)) for side in (-1, 1)],
    }
    if scale is None:
        best, excess = truth[:, 0].astype(np.float64), np.maximum(seen[:, 0] - truth[:, 0], 0)
        ratio = float(excess.sum() / best.sum()) if best.sum() > 0 else 0.0
        spread = np.std(excess - ratio * best) / (best.mean() * np.sqrt(m)) if best.sum() > 0 else 0.0
        name, value = "relative_excess", ratio
    else:
        exact = posterior(truth, scale).log_sum
        partial = posterior(seen, scale).log_sum
        short = np.maximum(exact - partial, 0)
        most = float(short.max()) or 1.0  # in whose units squares are numbers
        name, value, spread = "shortfall", float(short.mean()), most * np.std(short / most) / np.sqrt(m)
    result[name] = value
    result[f"{name}_interval"] = [max(value - _Z * float(spread), 0.0), value + _Z * float(spread)]
    return result
