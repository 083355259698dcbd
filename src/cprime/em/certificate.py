"""Certificates: estimates of what a partial search loses against an exact one, with confidence limits that hold.

Misses are rare and differ in cost, so a uniform sample says little about their sum. Points are drawn instead with
probability proportional to the greatest loss that they can have: for k-means the weighted cost of the found center, for
mixtures the weighted difference between an upper bound of the log-density and the truncated log-density. The loss of a
drawn point, divided by its greatest loss, is a number from 0 to 1. The mean of such numbers has limits that hold for
any distribution (`mean_limits`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key, Purpose
from cprime._utils.values import replace
from cprime.execution import Data, rows_of
from cprime.execution.base import RowSample
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Rows, posterior
from cprime.model import Model

_CONFIDENCE = 0.95  # probability with which both limits of an interval hold
_Z = 1.959963984540054  # the 97.5 % quantile of the standard normal distribution, for Wilson's interval
_MOST = 0.9  # greatest share of the wealth that one bet may lose
_VARIANCE = 0.05  # variance that the first bet assumes; it affects the width of the interval only
_HALVINGS = 50  # steps of the bisection for a limit

Doubles = NDArray[np.float64]


def mean_limits(values: Doubles) -> tuple[float, float]:
    """Return the lower and the upper 95 % confidence limit of the mean of independent random numbers in [0, 1].

    A gambler bets on every number x_i that the mean is below m, with a stake λ_i chosen from the numbers before. If the
    mean is m, the wealth Π_i (1 + λ_i (m − x_i)) exceeds 1/α with a probability of at most α, so a value m for which it
    does is excluded. Bets that the mean is above m give the other limit; α is 2.5 % for each. The wealth is monotone in
    m, because a stake depends on m only by its limit, so bisection finds the limits.

    values (n,): the numbers x_i, in the order in which they were drawn

    References
    ----------
    Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86 (2024).
    """
    n, needed = len(values), math.log(2 / (1 - _CONFIDENCE))
    before = np.arange(n)
    sums, squares = (np.cumsum(x) - x for x in (values, values**2))
    scatter = np.maximum(squares - sums**2 / np.maximum(before, 1), 0)
    stakes = np.sqrt(2 * needed * (before + 1) / (n * (_VARIANCE + scatter)))

    def greatest_excluded(x: Doubles) -> float:
        """Return the greatest m for which bets that the mean of x is above m become rich; 0 if there is none."""
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            m = (low + high) / 2
            is_rich = np.log1p(np.minimum(stakes, _MOST / m) * (x - m)).sum() >= needed
            low, high = (m, high) if is_rich else (low, m)
        return low

    return greatest_excluded(values), 1 - greatest_excluded(1 - values)


class Comparison(NamedTuple):
    """Comparison of n points with an exact search.

    agrees (n,): whether the search found the best component, or one that is as good
    losses (n,): loss of each point, see `Loss`    greatest (n,): the greatest loss that it can have
    weights (n,): weight of each point
    """

    agrees: NDArray[np.bool_]
    losses: Doubles
    greatest: Doubles
    weights: Doubles


@dataclass(frozen=True)
class Loss:
    """Loss of a point whose active set does not contain the best components.

    For k-means it is the decrease of the squared distance by an exact search [data unit²], for a mixture the increase
    of the point's term log Σ_{c∈K(n)} p(c, x_n) of the free energy [nats].

    scale: factor from costs to log-probabilities of a mixture; None for k-means
    only_best: whether the term of F contains only the best component of the active set
    """

    model: Model
    scale: float | None = None
    only_best: bool = False

    def objective(self, kept: ActiveSet) -> Doubles:
        """Return the objective (n,) of points with active sets: the least cost, or for mixtures −log Σ_c p(c, x)."""
        assert kept.costs is not None
        costs = kept.costs.astype(np.float64)
        if self.scale is None:
            return costs[:, 0]
        costs = costs[:, :1] if self.only_best else costs
        return -self.model.log_scale - posterior(costs, self.scale).log_sum

    def greatest(self, X: Rows, kept: ActiveSet) -> Doubles:
        """Return the greatest possible loss (n,) of rows X with active sets `kept`; inf if the family has no bound."""
        found = self.objective(kept)
        return found if self.scale is None else np.maximum(found + self.model.density_limit(X), 0)

    def compare(self, sample: RowSample) -> Comparison:
        """Compare the active sets of a few rows with those of an exact search."""
        kept = sample.kept
        assert kept is not None
        assert kept.costs is not None
        n_kept = 1 if self.only_best else kept.ids.shape[1]
        best = ActiveSet(*self.model.components().best(self.model.embed(sample.X), n_kept))
        assert best.costs is not None
        # Costs of the same component can be rounded differently, so ids are compared, too.
        agrees = (kept.winners == best.winners) | (kept.costs[:, 0] <= best.costs[:, 0])
        losses = np.maximum(self.objective(kept) - self.objective(best), 0)
        weights = np.ones(len(losses)) if sample.sample_weight is None else sample.sample_weight
        return Comparison(agrees, losses, self.greatest(sample.X, kept), weights)


class BlockSums(NamedTuple):
    """Results of blocks: index of the first row, sum over its points, and their weight; added by concatenation."""

    firsts: NDArray[np.int64]
    sums: Doubles
    weights: Doubles

    def __add__(self, other: "BlockSums") -> "BlockSums":  # type: ignore[override]
        return BlockSums._make(np.concatenate(pair) for pair in zip(self, other, strict=True))


class Draws(NamedTuple):
    """Drawn points: positions in the order of the draws, and indices of their rows; added by concatenation."""

    positions: NDArray[np.intp]
    rows: NDArray[np.int64]

    def __add__(self, other: "Draws") -> "Draws":  # type: ignore[override]
        return Draws._make(np.concatenate(pair) for pair in zip(self, other, strict=True))


@dataclass(frozen=True)
class SumLosses:
    """Job that returns the weighted sum of each block's greatest losses.

    reads: whether the rows are needed, because the greatest loss depends on which values are missing
    """

    loss: Loss
    reads: bool = False

    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, BlockSums]:
        return None, BlockSums(np.array([block.first]), self.cumulated(block, kept)[-1:], np.array([block.weight]))

    def cumulated(self, block: Block, kept: ActiveSet | None) -> Doubles:
        """Return the running sum (n,) of the weighted greatest losses, in the original order of the rows."""
        assert kept is not None
        values = _finite(self.loss.greatest(block.X, kept))
        values = values if block.sample_weight is None else values * block.sample_weight
        if block.order is not None:
            values[block.order] = values.copy()
        return np.cumsum(values)


@dataclass(frozen=True)
class SumObjectives:
    """Job that returns the weighted sum of each block's objectives, see `Loss.objective`."""

    loss: Loss

    reads: ClassVar[bool] = False
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, BlockSums]:
        assert kept is not None
        total = block.weighted_sum(self.loss.objective(kept))
        return None, BlockSums(np.array([block.first]), np.array([total]), np.array([block.weight]))


@dataclass(frozen=True)
class DrawPoints:
    """Job that returns the points at given places of the running sum of a block's greatest losses.

    of: job with the running sum    firsts (n,): first row of the block of each draw    places (n,): place in its sum
    """

    of: SumLosses
    firsts: NDArray[np.int64]
    places: Doubles

    keeps: ClassVar[bool] = False

    @property
    def reads(self) -> bool:
        return self.of.reads

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, Draws]:
        mine = np.flatnonzero(self.firsts == block.first)
        return None, Draws(mine, block.first + _located(self.of.cumulated(block, kept), self.places[mine]))


def sum_objectives(data: Data, loss: Loss) -> tuple[float, float]:
    """Return the sum of the objectives of all points for their present active sets, and the weight of the points."""
    found = data.each(SumObjectives(loss))
    return float(found.sums.sum()), float(found.weights.sum())


def certify(
    data: Data,
    loss: Loss,
    key: Key,
    n_points: int,
    find: Callable[[Rows], ActiveSet] | None = None,
    sampled: bool = True,
) -> dict[str, Any]:
    """Return measures of quality of a partial search, from an exact search of some points.

    n_points: number of points that are searched exactly for each measure; all points if there are no more
    find: function that searches rows; None: the active sets in `data` are the result of the search
    sampled: whether the loss is estimated; if not, the caller adds it by `known_loss`

    Returns a dictionary with `n_points` and these values, each with a 95 % interval:
    agreement: share of the points of a uniform sample for which the first component in K(n) is the best of all C; its
    interval is Wilson's
    relative_excess (k-means): (J − J of exact assignments) / J of exact assignments, for squared error J
    shortfall (mixtures): free energy F with exact active sets minus F with the given ones [nats per unit of weight]
    Both are estimated from points drawn with probability proportional to their greatest losses, with `mean_limits`. If
    all points are compared, the limits are equal to the value.
    """
    m, draws = min(n_points, data.n_weighted), key.generator(Purpose.CERTIFICATE)

    def compare(rows: NDArray[np.int64]) -> Comparison:
        sample = data.take(rows)
        return loss.compare(sample if find is None else replace(sample, kept=find(sample.X)))

    found = compare(rows_of(data, np.sort(draws.choice(data.n_weighted, m, replace=False))))
    result: dict[str, Any] = {"n_points": m, **_agreement(found.agrees, is_sample=m < data.n_weighted)}
    if m == data.n_weighted:
        lost, total = (float(found.weights @ values) for values in (found.losses, _finite(found.greatest)))
        share = lost / total if total > 0 else 0.0
        return result | _entries(loss, share, (share, share), total / found.weights.sum())
    if not sampled:
        return result
    rows, mean = _drawn(data, loss, draws.random(m), find)
    order = np.sort(rows)
    distinct = order[np.append(True, order[1:] != order[:-1])]
    found = compare(distinct)
    greatest = _finite(found.greatest)
    shares = np.divide(found.losses, greatest, out=np.zeros(len(greatest)), where=greatest > 0)
    shares = shares[np.searchsorted(distinct, rows)]
    if np.isinf(found.greatest).any():
        return result | _entries(loss, float(shares.mean()), (0.0, math.inf), mean)
    shares = np.minimum(shares, 1)
    return result | _entries(loss, float(shares.mean()), mean_limits(shares), mean)


def known_loss(loss: Loss, found: tuple[float, float], exact: tuple[float, float]) -> dict[str, Any]:
    """Return the entries of a certificate for a loss that is known from the objectives before and after an exact pass.

    found, exact: results of `sum_objectives`
    """
    (before, weight), (after, _) = found, exact
    lost = max(before - after, 0.0)
    if loss.scale is not None:
        return _entries(loss, lost / weight, (lost / weight, lost / weight), 1.0)
    share = lost / before if before > 0 else 0.0
    return _entries(loss, share, (share, share), 1.0)


def _entries(loss: Loss, share: float, limits: tuple[float, float], mean: float) -> dict[str, Any]:
    """Return the entries of a certificate for the loss, from its share in the sum of the greatest losses.

    limits: limits of the share    mean: mean greatest loss of a point
    """

    def lost(share: float) -> float:
        if loss.scale is not None:
            return share * mean
        return share / (1 - share) if share < 1 else math.inf

    name = "relative_excess" if loss.scale is None else "shortfall"
    return {name: lost(share), f"{name}_interval": [lost(limit) for limit in limits]}


def _agreement(agrees: NDArray[np.bool_], is_sample: bool) -> dict[str, Any]:
    """Return the entries of a certificate for the share of points that agree; Wilson's interval for a sample."""
    m, p = len(agrees), float(agrees.mean())
    if not is_sample:
        return {"agreement": p, "agreement_interval": [p, p]}
    middle, width = p + _Z**2 / (2 * m), _Z * np.sqrt(p * (1 - p) / m + (_Z / (2 * m)) ** 2)
    limits = np.clip(np.array([middle - width, middle + width]) / (1 + _Z**2 / m), 0, 1)
    return {"agreement": p, "agreement_interval": limits.tolist()}


def _drawn(
    data: Data, loss: Loss, uniform: Doubles, find: Callable[[Rows], ActiveSet] | None
) -> tuple[NDArray[np.int64], float]:
    """Draw n points with probability proportional to their weighted greatest losses, from uniform random numbers (n,).

    Returns the indices of their rows (n,), and the mean greatest loss of a point.
    find: see `certify`
    """
    if find is not None:
        greatest = data.map(partial(_greatest_of, loss, find), None, np.float64)
        cumulated = np.cumsum(np.asarray(greatest))
        return _located(cumulated, uniform * cumulated[-1]), float(cumulated[-1] / len(cumulated))
    job = SumLosses(loss, reads=data.has_missing)
    sums = data.each(job)
    ends = np.cumsum(sums.sums)
    places = uniform * ends[-1]
    blocks = _located(ends, places)
    found = data.each(DrawPoints(job, sums.firsts[blocks], places - (ends - sums.sums)[blocks]))
    rows = np.empty(len(uniform), dtype=np.int64)
    rows[found.positions] = found.rows
    return rows, float(ends[-1] / sums.weights.sum())


def _greatest_of(loss: Loss, find: Callable[[Rows], ActiveSet], X: Rows) -> Doubles:
    """Return the finite greatest losses (n,) of rows with the active sets that the function `find` returns."""
    return _finite(loss.greatest(X, find(X)))


def _located(cumulated: Doubles, places: Doubles) -> NDArray[np.int64]:
    """Return the index of the positive term of a running sum (n,) that contains each place (m,) from 0 to the sum."""
    last = np.searchsorted(cumulated, cumulated[-1])  # the last positive term
    return np.minimum(np.searchsorted(cumulated, places, side="right"), last)


def _finite(greatest: Doubles) -> Doubles:
    """Return greatest losses (n,), of which infinite ones are replaced by 1: all points are then drawn alike."""
    return np.where(np.isinf(greatest), 1.0, greatest)
