"""EM and k-means on data that come in batches, with rates that fall as Robbins and Monro ask.

A batch of weight W moves what is estimated by the share η = min(1, W / n^κ), n being the weight seen so far, this batch
included, and 1/2 < κ <= 1. With κ = 1 all points count alike: running means (MacQueen 1967; Bishop eq. 9.5 for batches
of one point); with less, what was long ago is forgotten.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cprime.em.expectation import expect
from cprime.em.state import Settings
from cprime.execution import InMemory
from cprime.model import Model, TiedSpherical
from cprime.search import Chunk
from cprime.statistics import Statistics


def rate(batch: NDArray[np.float64] | float, seen: NDArray[np.float64] | float, decay: float) -> NDArray[np.float64]:
    """η of batches of some weight, after `seen` in all; 0 where there is nothing."""
    batch, seen = np.asarray(batch, dtype=np.float64), np.asarray(seen, dtype=np.float64)
    return np.minimum(1.0, batch / np.where(batch > 0, seen, 1.0) ** decay)


def k_means_step(
    model: TiedSpherical, counts: NDArray[np.float64], chunk: Chunk, settings: Settings, decay: float
) -> tuple[TiedSpherical, NDArray[np.float64], Statistics]:
    """Each center moves towards the mean of the batch's points that it wins, by a rate of its own: (9.5).

    counts (C,): weight that each center has won before. Returns the model, the new counts, and the batch's statistics.
    """
    statistics = expect(chunk, model, settings)
    seen = counts + statistics.counts
    eta = rate(statistics.counts, seen, decay)
    before = model.centers.astype(np.float64)
    held = np.maximum(statistics.counts, np.finfo(np.float64).tiny)[:, np.newaxis]
    means = np.where(statistics.counts[:, np.newaxis] > 0, statistics.sums / held, before)
    moved = before + eta[:, np.newaxis] * (means - before)
    # a batch of points at these places has these means, whatever the model makes of means
    towards = Statistics(seen, seen[:, np.newaxis] * moved, float(seen.sum()), 0.0, 0.0, 0.0, 0.0, 0, 0)
    centers = model.recentred(towards)[0].centers
    share = float(rate(statistics.weight, seen.sum(), decay))
    mean_square = model.variance * model.n_features
    mean_square += share * (statistics.quantization_error / statistics.weight - mean_square)
    return replace(model, centers=centers).with_variance(mean_square), seen, statistics


def mixture_step(
    model: Model, counts: NDArray[np.float64], data: InMemory, settings: Settings, decay: float
) -> tuple[Model, NDArray[np.float64], Statistics]:
    """Stepwise EM (Cappé & Moulines 2009): sufficient statistics move towards those of the batch, then the M-step.

    counts (C,): weight that each component has won before. Returns the model, the new counts, and the batch's
    statistics.
    """
    (chunk,) = data.chunks
    statistics = expect(chunk, model, settings)
    seen = float(counts.sum())
    share = float(rate(statistics.weight, seen + statistics.weight, decay)) if seen else 1.0
    new, scatter = statistics.scaled(1 / statistics.weight), data.scatter(model.scatter_shape)
    if scatter is not None:
        scatter = scatter.scaled(1 / statistics.weight)
    if share < 1:
        old, old_scatter = model.remembered(counts / seen)
        new = old.scaled(1 - share) + new.scaled(share)
        if scatter is not None and old_scatter is not None:
            scatter = old_scatter.scaled(1 - share) + scatter.scaled(share)
    counts = (seen + statistics.weight) * new.counts / new.counts.sum()
    return model.maximise(new, scatter), counts, statistics
