"""EM and k-means on batches of data, with learning rates that fall as Robbins and Monro require.

A batch of weight W moves the present estimates towards those of the batch, by the share η = min(1, W / n^κ) of the
difference (the learning rate). Here n is the total weight of the batches so far, this one included, and 1/2 < κ <= 1.
With κ = 1 all points count equally, so estimates are running means (MacQueen 1967; Bishop eq. 9.5 for batches of one
point). With κ < 1 the influence of early batches gradually vanishes.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key
from cprime._utils.threads import union_of_ids
from cprime._utils.values import replace
from cprime.em.expectation import Totals
from cprime.em.mixture import EM
from cprime.execution import Data
from cprime.execution.block import ActiveSet, Block
from cprime.model import Model, TiedSpherical
from cprime.search import Full, Look
from cprime.search.full import FullLookup

ALL = FullLookup()


def rate(batch: NDArray[np.float64] | float, seen: NDArray[np.float64] | float, decay: float) -> NDArray[np.float64]:
    """Return learning rates η = min(1, batch / seen^decay); 0 for batches without weight.

    batch: weight of the batch    seen: total weight of all batches so far, this one included    decay: κ in (1/2, 1]
    """
    batch, seen = np.asarray(batch, dtype=np.float64), np.asarray(seen, dtype=np.float64)
    return np.minimum(1.0, batch / np.where(batch > 0, seen, 1.0) ** decay)


@dataclass(frozen=True)
class Batch:
    """E-step of k-means on a batch: a search assigns each point to its nearest center; the result is `BatchSums`."""

    model: TiedSpherical
    look: Look

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    def __call__(self, block: Block, before: ActiveSet | None) -> tuple[ActiveSet, "BatchSums"]:
        model = self.model
        kept, n_distances, _ = self.look(block, block.embedded(model.embed), before, model.components(), 1)
        C = len(model.centers)
        ids = np.flatnonzero(np.bincount(kept.winners, minlength=C)).astype(np.int32)
        place = np.empty(C, dtype=np.int32)
        place[ids] = np.arange(len(ids), dtype=np.int32)
        weight, places = block.sample_weight, place[kept.ids[:, :1]]
        counts, sums = block.X.accumulate(places, None, weight, n_components=len(ids))
        J = model.error_of(block, kept)
        return kept, BatchSums(ids, counts, sums, block.weight, J, n_distances, block.n_weighted)


@dataclass(frozen=True)
class BatchSums:
    """Sums over the points of each center in a batch, for the m centers that have points in it.

    ids (m,) int32: indices of these centers, ascending    counts (m,): Σ w_n    sums (m, D): Σ w_n x_n [data units]
    Totals over all points of the batch: weight: Σ w_n    error: J    n_distances: number of evaluated distances
    n_weighted: number of points of positive weight    The sums of two parts of a batch are added by `+`.
    """

    ids: NDArray[np.int32]
    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    weight: float
    error: float
    n_distances: int
    n_weighted: int

    def __add__(self, other: "BatchSums") -> "BatchSums":
        ids = union_of_ids(self.ids, other.ids)
        counts, sums = np.zeros(len(ids)), np.zeros((len(ids), self.sums.shape[1]))
        for part in (self, other):
            places = np.searchsorted(ids, part.ids)
            counts[places] += part.counts
            sums[places] += part.sums
        J = self.error + other.error
        n_distances, n_weighted = self.n_distances + other.n_distances, self.n_weighted + other.n_weighted
        return BatchSums(ids, counts, sums, self.weight + other.weight, J, n_distances, n_weighted)


def toward_means(
    before: NDArray[np.float64], sums: NDArray[np.float64], counts: NDArray[np.float64], rates: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Move centers toward the means of their points in a batch (Bishop eq. 9.5); the result is written to `sums`.

    before (m, D): the centers    sums (m, D), counts (m,): Σ w_n x_n and Σ w_n > 0 over the points of each center
    rates (m,): share of the difference by which each center moves    Returns the new centers (m, D).
    """
    sums /= counts[:, np.newaxis]
    sums -= before
    sums *= rates[:, np.newaxis]
    sums += before
    return sums


def k_means_step(
    model: TiedSpherical, counts: NDArray[np.float64], data: Data, decay: float, look: Look = ALL
) -> tuple[TiedSpherical, NDArray[np.float64], BatchSums]:
    """Move each center towards the mean of its points in the batch, with a learning rate per center (Bishop eq. 9.5).

    counts (C,): total weight of the earlier points of each center    data: the batch    look: search of nearest centers
    decay: κ of the learning rate min(1, W/n^κ) of a center, where W is the weight of its points in this batch, and n
    that in all batches so far
    Returns the model, the new counts, and the sums of the batch. Centers without points in the batch are unchanged.
    """
    won = data.each(Batch(model, look))
    heavy, seen = won.counts > 0, counts.copy()
    ids, n, sums = won.ids[heavy], won.counts[heavy], won.sums if heavy.all() else won.sums[heavy]
    won = replace(won, sums=sums[:0])  # the returned sums are empty, because their memory is reused for new centers
    seen[ids] += n
    few = replace(model, centers=model.centers[ids])
    places = toward_means(few.centers.astype(np.float64), sums, n, rate(n, seen[ids], decay))
    # Replace the new means by sums of points with these means, because `recentred` computes centers from sums. (For
    # cosine distance, it also scales the centers to length 1.)
    places *= seen[ids][:, np.newaxis]
    there = few.recentred(seen[ids], places, 0.0)[0].centers
    centers = model.centers.copy()
    centers[ids] = there
    share = float(rate(won.weight, seen.sum(), decay))
    mean_square = model.variance * model.n_features
    mean_square += share * (won.error / won.weight - mean_square)
    return replace(model, centers=centers).with_variance(mean_square), seen, won


def mixture_step(
    model: Model, counts: NDArray[np.float64], data: Data, stage: EM, decay: float, key: Key
) -> tuple[Model, NDArray[np.float64], Totals]:
    """Do a step of stepwise EM (Cappé & Moulines 2009): move moments towards those of the batch, then do the M-step.

    counts (C,): total weight of each component's earlier points    data: the batch
    stage: `EM` stage, whose options define the E-step    key: counter-based random key of the draws
    decay: κ of the learning rate min(1, W/n^κ), with weight W of the batch and n of all batches so far
    Returns the model, the new counts, and the sums of the E-step over the batch (tally, moments, search statistics).
    """
    components = model.components()
    look = Full().look(None, components, key)
    prior = stage.with_prior(model, data).prior
    totals = data.each(stage.propose(model, components, look, key))
    weight, seen = totals.tally.weight, float(counts.sum())
    share = float(rate(weight, seen + weight, decay)) if seen else 1.0
    new = totals.moments.scaled(1 / weight)
    if prior is not None:
        prior = prior.scaled(1 / weight)
    if share < 1:
        old, old_prior = model.pseudo_moments(counts / seen)
        new = old.scaled(1 - share) + new.scaled(share)
        if prior is not None and old_prior is not None:
            prior = old_prior.scaled(1 - share) + prior.scaled(share)
    counts = (seen + weight) * new.counts / new.counts.sum()
    return model.maximise(new, prior), counts, totals
