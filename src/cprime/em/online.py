"""EM and k-means on data that come in batches, with rates that fall as Robbins and Monro ask.

A batch of weight W moves what is estimated by the share η = min(1, W / n^κ), n being the weight seen so far, this batch
included, and 1/2 < κ <= 1. With κ = 1 all points count alike: running means (MacQueen 1967; Bishop eq. 9.5 for batches
of one point); with less, what was long ago is forgotten.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cprime._random import Key
from cprime.em.expectation import Totals
from cprime.em.k_means_rule import KMeansRule
from cprime.em.mixture_rule import MixtureRule
from cprime.execution import Data
from cprime.model import Model, TiedSpherical
from cprime.search import Full
from cprime.statistics import Statistics


def rate(batch: NDArray[np.float64] | float, seen: NDArray[np.float64] | float, decay: float) -> NDArray[np.float64]:
    """η of batches of some weight, after `seen` in all; 0 where there is nothing."""
    batch, seen = np.asarray(batch, dtype=np.float64), np.asarray(seen, dtype=np.float64)
    return np.minimum(1.0, batch / np.where(batch > 0, seen, 1.0) ** decay)


def k_means_step(
    model: TiedSpherical, counts: NDArray[np.float64], data: Data, decay: float, key: Key
) -> tuple[TiedSpherical, NDArray[np.float64], Totals]:
    """Each center moves towards the mean of the batch's points that it wins, by a rate of its own: (9.5).

    counts (C,): weight that each center has won before. Returns the model, the new counts, and the batch's totals.
    """
    rule = KMeansRule(1, 0.0)
    look = Full().look(None, model.components(), None, key)
    totals = data.each(rule.propose(model, rule.begin(model, data), look, key, True))
    statistics = totals.statistics
    seen = counts + statistics.counts
    eta = rate(statistics.counts, seen, decay)
    before = model.centers.astype(np.float64)
    held = np.maximum(statistics.counts, np.finfo(np.float64).tiny)[:, np.newaxis]
    means = np.where(statistics.counts[:, np.newaxis] > 0, statistics.sums / held, before)
    moved = before + eta[:, np.newaxis] * (means - before)
    # a batch of points at these places has these means, whatever the model makes of means
    centers = model.recentred(Statistics(seen, seen[:, np.newaxis] * moved, float(seen.sum()), 0.0))[0].centers
    share = float(rate(statistics.weight, seen.sum(), decay))
    mean_square = model.variance * model.n_features
    mean_square += share * (statistics.quantization_error / statistics.weight - mean_square)
    return replace(model, centers=centers).with_variance(mean_square), seen, totals


def mixture_step(
    model: Model, counts: NDArray[np.float64], data: Data, rule: MixtureRule, decay: float, key: Key
) -> tuple[Model, NDArray[np.float64], Totals]:
    """Stepwise EM (Cappé & Moulines 2009): sufficient statistics move towards those of the batch, then the M-step.

    counts (C,): weight that each component has won before. Returns the model, the new counts, and the batch's totals.
    """
    look = Full().look(None, model.components(), None, key)
    state = rule.begin(model, data)
    totals = data.each(rule.propose(model, state, look, key, False))
    statistics, scatter = totals.statistics, state.scatter
    seen = float(counts.sum())
    share = float(rate(statistics.weight, seen + statistics.weight, decay)) if seen else 1.0
    new = statistics.scaled(1 / statistics.weight)
    if scatter is not None:
        scatter = scatter.scaled(1 / statistics.weight)
    if share < 1:
        old, old_scatter = model.remembered(counts / seen)
        new = old.scaled(1 - share) + new.scaled(share)
        if scatter is not None and old_scatter is not None:
            scatter = old_scatter.scaled(1 - share) + scatter.scaled(share)
    counts = (seen + statistics.weight) * new.counts / new.counts.sum()
    return model.maximise(new, scatter), counts, totals
