"""Exact search, and an estimate of the quality of a partial search from an exact search of some points.

All C components are candidates of each point, so the active set K(n) holds the C′ best. This is Corollary 1 of Lücke &
Forster, *k-means as a variational EM approximation of Gaussian mixture models*.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cprime._utils.random import Key
from cprime._utils.storable import storable
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Rows, posterior
from cprime.neighbors.components import Components
from cprime.search.base import BaseSearch, Look, Lookup, Sample, SearchStats

_Z = 1.959963984540054  # the 97.5 % quantile of the standard normal distribution, for 95 % intervals


@dataclass(frozen=True)
class FullLookup:
    """Exact search of a block of n points among all C components. It evaluates n·C distances.

    Previous active sets affect only the time.
    """

    def __call__(
        self, block: Block, points: Rows, kept: ActiveSet | None, components: Components, n_kept: int
    ) -> Lookup:
        hint = None if kept is None or kept.ids.shape[1] != n_kept else kept.ids
        found = components.best(points, n_kept, hint=hint)
        return Lookup(ActiveSet(*found), len(points) * len(components.centers), SearchStats(block.n_weighted))


@storable("search.Full")
@dataclass(frozen=True)
class Full(BaseSearch):
    """Exact search over all components. With one component per point (C′ = 1), k-means is Lloyd's algorithm.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.search import Full
    >>> KMeans(2, search=Full(), random_state=0).fit([[0.0], [1.0], [9.0], [10.0]]).certificate_ is None
    True
    """

    exact: ClassVar[bool] = True
    keeps_winners: ClassVar[bool] = False
    warmup: ClassVar[int] = 0
    incremental: ClassVar[bool] = False

    def begin(self, components: Components, n_kept: int, placed: bool, key: Key) -> tuple[None, Look | None]:
        return None, None

    def refresh(self, state: None, components: Components) -> None:
        return None

    def look(self, state: None, components: Components, key: Key) -> Look:
        return FullLookup()

    def learn(
        self, state: None, look: Look, components: Components, stats: SearchStats, sample: Sample, key: Key
    ) -> tuple[None, int]:
        return None, 0


def certify(points: Rows, kept: ActiveSet, components: Components, scale: float | None) -> dict[str, Any]:
    """Return measures of quality of the active sets of sampled points, by comparison with an exact search.

    points (m, D): sampled points    kept: their active sets K(n), and the costs of these
    scale: negative factor by which costs are multiplied to get log-probabilities; None for k-means

    Returns a dictionary with `n_points` and these values, each with a 95 % interval for the error by sampling points:
    agreement: share of points whose first component in K(n) is the best of all C; its interval is Wilson's
    relative_excess (k-means): (J − J of exact assignments) / J of exact assignments, for squared error J
    shortfall (mixtures): free energy F with exact active sets minus F with the given ones [nats per point]
    """
    assert kept.costs is not None
    m, seen = len(points), kept.costs.astype(np.float64)
    nearest, truth = components.best(points, kept.ids.shape[1])
    # The search agrees if it found the best component, or another component of equal or lower cost.
    # Costs of the same component can be rounded differently, so ids are compared, too.
    agrees = (kept.winners == nearest[:, 0]) | (kept.costs[:, 0] <= truth[:, 0])
    p = float(agrees.mean())
    middle, width = p + _Z**2 / (2 * m), _Z * np.sqrt(p * (1 - p) / m + (_Z / (2 * m)) ** 2)
    result: dict[str, Any] = {
        "n_points": m,
        "agreement": p,
        "agreement_interval": np.clip(np.array([middle - width, middle + width]) / (1 + _Z**2 / m), 0, 1).tolist(),
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
        # Differences of log-probabilities are divided by the greatest one, so that their squares do not overflow.
        largest = float(short.max()) or 1.0
        name, value, spread = "shortfall", float(short.mean()), largest * np.std(short / largest) / np.sqrt(m)
    result[name] = value
    result[f"{name}_interval"] = [max(value - _Z * float(spread), 0.0), value + _Z * float(spread)]
    return result
