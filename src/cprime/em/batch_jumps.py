"""Jumps of centers between batches of online k-means, whose earlier points are known only by counts and means.

A jump merges two clusters and splits a third. The merge raises J, the sum of squared distances, by an amount that
follows from weights and means (Ward 1963). By how much the split lowers J is estimated from the most recent points, by
cross-validation.
"""

import logging
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key, Purpose
from cprime._utils.values import replace
from cprime.em.hard import SetLabels
from cprime.em.jumps import N_NEAREST, best_jumps, cheapest_unions, unit_directions
from cprime.execution import Data, local
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Dense, Floats, Rows
from cprime.model import TiedSpherical

logger = logging.getLogger("cprime")

# This number of standard errors is subtracted from the estimated decrease of J by a jump, so that few points, such as
# outliers, move no center.
_DOUBT = 2.0
# For the costs of merges, weights of clusters below this share of the greatest weight are raised to this share, because
# means need a weight > 0.
_LIGHT = 1e-9
# Numbers of passes that find a direction of high variance in each cluster, and then the halves of clusters by 2-means.
_POWER_ITERATIONS, _SPLIT_ITERATIONS = 2, 3
# Clusters are cut in halves in groups of at most this many coordinates of centers, which limits memory.
_VALUES = 2**18


@dataclass(frozen=True)
class HalfSums:
    """Pass that sums w and w x over the points x of weight w in each half of each of m clusters: (2, m, 1 + D).

    halves (2, m, D): centers of the two halves; a point belongs to the nearer one, and in a tie to the first
    folds: None, or the key of random numbers that divide the points into two folds. Then there are m/2 clusters; c and
    m/2 + c in the arrays are the points of cluster c in the first and in the second fold.
    directions (m, D): None, or directions p. Then the result (1, m, 1 + D) has the sums of w q and w q x over the
    points of each cluster, where q = p·(x − halves[0]). By these sums a power iteration finds a better direction.
    """

    halves: Floats
    folds: Key | None = None
    directions: Floats | None = None

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, NDArray[np.float64]]:
        assert kept is not None
        X, w, (first, second) = block.X, block.sample_weight, self.halves
        ids = _folded(block, kept, self.folds, len(first) // 2)
        if self.directions is not None:
            q = X.along(first, self.directions, ids)
            shares = [q]
        else:
            q = (X.own_distances(second, ids) < X.own_distances(first, ids)).astype(np.float64)
            shares = [1 - q, q]
        places = ids[:, np.newaxis]
        return None, np.stack(
            [np.column_stack(X.accumulate(places, q[:, np.newaxis], w, n_components=len(first))) for q in shares]
        )


@dataclass(frozen=True)
class HeldOutGains:
    """Pass that estimates, for each of C clusters, the decrease of J if its center is replaced by those of two halves.

    Each point x of a cluster with center μ has a gain w (‖x − μ‖² − min ‖x − h‖²), over the two halves' centers h.
    Points are divided at random into two folds. The halves were computed from one fold and are tried on the other, so
    the gains are not too great by chance. The result (3, C) has, for each cluster, the sums over its points of the
    gains, of their squares, and of the errors w ‖x − μ‖².

    centers (C, D)    folds: key of the random numbers that divide the points into two folds
    halves (2, 2C, D): centers of the first and of the second half of each cluster; columns c and C + c of the array
    belong to cluster c in the first and in the second fold
    """

    centers: Floats
    halves: Floats
    folds: Key

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, NDArray[np.float64]]:
        assert kept is not None
        X, C, winners = block.X, len(self.centers), np.ascontiguousarray(kept.winners)
        ids = _folded(block, kept, self.folds, C)
        others = np.where(ids < C, ids + np.int32(C), ids - np.int32(C))
        nearer = np.minimum(*(X.own_distances(half, others) for half in self.halves))
        errors = X.own_distances(self.centers, winners).astype(np.float64)
        gains = errors - nearer
        if block.sample_weight is not None:
            gains, errors = gains * block.sample_weight, errors * block.sample_weight
        return None, np.stack([np.bincount(winners, terms, C) for terms in (gains, np.square(gains), errors)])


def jump_between_batches(
    data: Data, model: TiedSpherical, counts: NDArray[np.float64], weights: NDArray[np.float64], key: Key
) -> tuple[TiedSpherical, NDArray[np.float64], NDArray[np.float64]]:
    """Make jumps of the centers of online k-means that are expected to lower J of all points so far.

    A jump merges two clusters and splits a third. Only the last points are in memory.
    By Ward's formula, the weights and means of clusters give the increase of J if two of them are merged. The decrease
    if a cluster is split is estimated: the last points are divided at random into two folds, the halves of one fold are
    tried on the other, and two standard errors are subtracted, so that few points, such as outliers, move no center.
    For the earlier points of the cluster, the decrease is assumed to be in proportion to their weight, or to their
    error if this is smaller. Their error per point is assumed to be the mean of all clusters. No cluster takes part in
    two jumps.

    data: the last points, with their active sets    counts (C,): weight of all points of each cluster so far
    weights (C,): weights of the clusters by which jumps are chosen: `counts`, or less if early points count less or are
    forgotten    key: random key
    Returns the model, the new counts and the new weights; the same objects if no center has moved. The counts of a
    split cluster are divided in proportion to the halves of the last points.
    """
    C, D = model.centers.shape
    groups = np.array_split(np.arange(C), min(C, math.ceil(C * D / _VALUES)))
    labels = np.asarray(data.labels()) if len(groups) > 1 else None
    if labels is not None:  # Clusters without points are not cut.
        used = np.unique(labels)
        groups = [clusters for clusters in groups if np.isin(clusters, used).any()]
    last, gains, squares, errors = np.zeros((4, C))
    for clusters in groups:
        part, own, halves, held = _in_halves(data, model, labels, clusters, key)
        last[clusters] = held.reshape(2, 2, -1).sum(axis=0).sum(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            found = part.each(HeldOutGains(own.centers, halves, key))
        gains[clusters], squares[clusters], errors[clusters] = found
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # gains that are not finite count as 0
        earlier = np.maximum(weights - last, 0.0)
        gains -= _DOUBT * np.sqrt(squares)
        gains *= 1 + np.minimum(earlier / last, earlier * (D * model.variance) / errors)
        gains = np.where(np.isfinite(gains), gains, 0.0)
        heavy = np.maximum(weights, _LIGHT * weights.max())
        sums = heavy[:, np.newaxis] * model.centers
        near = Dense(model.centers).nearest(model.centers, min(N_NEAREST + 1, C))[0]
        partners, costs = cheapest_unions(model, heavy, sums, near)
    jumps = best_jumps(gains, partners, costs)
    one, other, cut = jumps
    if not len(one):
        return model, counts, weights
    centers, split = model.centers.copy(), np.empty(len(cut))
    centers[other] = model.centers_of(heavy[one] + heavy[other], sums[one] + sums[other], centers[other])
    for clusters in groups:
        here = np.flatnonzero((cut >= clusters[0]) & (cut <= clusters[-1]))
        if not len(here):
            continue
        if labels is not None:
            part, own, halves, _ = _in_halves(data, model, labels, clusters, key)
        halves = halves[:, : len(clusters)]
        whole = part.each(HalfSums(halves))
        places = cut[here] - clusters[0]
        centers[cut[here]], centers[one[here]] = _centers_of_halves(own, whole, halves)[:, places]
        split[here] = whole[0, places, 0] / whole[:, places, 0].sum(axis=0)
    logger.info("jumps between batches moved %d center(s)", len(one))
    counts, weights = _after_jumps(counts, jumps, split), _after_jumps(weights, jumps, split)
    return replace(model, centers=centers), counts, weights


def labelled_data(rows: Rows, weights: NDArray[np.float64] | None, labels: NDArray[np.int32]) -> Data:
    """Return rows (n, D) with weights (n,) or None as `Data`, in which the active set of each row is its label (n,)."""
    data = local(rows, weights)
    data.begin(keep=False)
    data.each(SetLabels(labels))
    data.commit()
    return data


def _in_halves(
    data: Data, model: TiedSpherical, labels: NDArray[np.int32] | None, clusters: NDArray[np.intp], key: Key
) -> tuple[Data, TiedSpherical, Floats, NDArray[np.float64]]:
    """Cut clusters in two, in each of two random folds of their points.

    labels (N,): cluster of each point; None if `clusters` are all clusters
    clusters (m,): their ids, in ascending order without gaps
    Returns the points of these clusters as `Data`, their model, the centers of the halves (2, 2m, D) as `_fold_halves`
    does, and the weights (2, 2m) of the points in the halves.
    """
    if labels is not None:
        rows = np.flatnonzero((labels >= clusters[0]) & (labels <= clusters[-1]))
        taken = data.take(rows)
        data = labelled_data(taken.X, taken.sample_weight, (labels[rows] - clusters[0]).astype(np.int32))
        model = replace(model, centers=model.centers[clusters])
    halves = _fold_halves(data, model, key)
    doubled = data.each(HalfSums(halves, key))
    return data, model, _centers_of_halves(model, doubled, halves), doubled[:, :, 0].copy()


def _after_jumps(
    weights: NDArray[np.float64], jumps: NDArray[np.intp], split: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the weights (C,) of clusters after n jumps, from `weights` (C,) before them.

    jumps (3, n): ids a, b, c of each jump: a was merged into b, then c was split into clusters with the ids c and a
    split (n,): share of the weight of c that keeps the id c
    """
    (one, other, cut), after = jumps, weights.copy()
    after[other] += weights[one]
    after[cut], after[one] = weights[cut] * split, weights[cut] * (1 - split)
    return after


def _folded(block: Block, kept: ActiveSet, folds: Key | None, C: int) -> NDArray[np.int32]:
    """Return the cluster c of each point (n,), or c + C if the point is in the second of two random folds.

    folds: key of the random numbers that divide the points into folds; None makes no folds
    """
    winners = np.ascontiguousarray(kept.winners)
    if folds is None:
        return winners
    return winners + np.int32(C) * (block.uniform(folds, Purpose.BATCHES) < 0.5)


def _centers_of_halves(model: TiedSpherical, sums: NDArray[np.float64], otherwise: Floats) -> Floats:
    """Return the centers (2, m, D) of the two halves of m clusters, from sums over their points.

    sums (2, m, 1 + D): weight, and weighted sum of points    otherwise (2, m, D): centers that empty halves get
    """
    centers = otherwise.copy()
    for half in range(2):
        held = np.flatnonzero(sums[half, :, 0] > 0)
        counts, moments = sums[half, held, 0], sums[half, held, 1:]
        centers[half, held] = model.centers_of(counts, moments, otherwise[half, held])
    return centers


def _fold_halves(data: Data, model: TiedSpherical, key: Key) -> Floats:
    """Cut each cluster in two, in each of two random folds of the points, by a plane and iterations of 2-means.

    key: random key, also of the folds
    Returns the centers of the halves (2, 2C, D); c and C + c are cluster c in the first and in the second fold.
    """
    C, D = model.centers.shape
    generator, centers = key.generator(Purpose.BATCHES), np.tile(model.centers, (2, 1))
    directions = np.tile(model.tangent(generator.standard_normal((C, D)), slice(None)), (2, 1))
    pair = np.stack([centers, centers])
    for _ in range(_POWER_ITERATIONS):
        sums = data.each(HalfSums(pair, key, unit_directions(directions).astype(centers.dtype)))[0]
        directions = sums[:, 1:] - sums[:, :1] * centers
    step = unit_directions(directions) * math.sqrt(model.variance)
    halves = np.stack([centers - step, centers + step]).astype(centers.dtype)
    for _ in range(_SPLIT_ITERATIONS):
        halves = _centers_of_halves(model, data.each(HalfSums(halves, key)), halves)
    return halves
