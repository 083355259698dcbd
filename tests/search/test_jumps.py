"""Jumps of centers: J falls by the predicted amount, and jumps find optima that no other step of k-means finds."""

import numpy as np
import pytest
from search_data import DTYPES, kmeans

from cprime._utils.random import Key
from cprime.em import jumps
from cprime.em.expectation import HardMoments
from cprime.execution import local
from cprime.execution.block import ActiveSet
from cprime.model import TiedSpherical
from cprime.neighbors import exact_lists, with_self
from fits import random_weights, squared_distances


def separate(C, per, D, dtype=np.float64, seed=0):
    """Return points (C per, D) of C clusters far from each other, in order."""
    rng = np.random.default_rng(seed)
    places = 12 * rng.standard_normal((C, D))
    return (np.repeat(places, per, axis=0) + 0.2 * rng.standard_normal((C * per, D))).astype(dtype)


def placed(X, labels, C, weights=None):
    """Return data assigned to these labels, their k-means model, their statistics, and J."""
    data = local(X, weights)
    data.begin(keep=False)
    data.each(SetLabels(labels))
    data.commit()
    w = np.ones(len(X)) if weights is None else weights
    counts = np.bincount(labels, w, C)
    sums = np.stack([np.bincount(labels, w * column, C) for column in X.T.astype(np.float64)], axis=1)
    means = (sums / counts[:, np.newaxis]).astype(X.dtype)
    J = float((w * np.square(X - sums[labels] / counts[labels, np.newaxis]).sum(axis=1)).sum())
    model = TiedSpherical(means, J / w.sum() / X.shape[1], 1e-30)
    return data, model, data.each(HardMoments(model)), J


class SetLabels:
    """Pass over the data that assigns the given labels."""

    reads, keeps = False, True

    def __init__(self, labels):
        self.labels = labels

    def __call__(self, block, kept):
        return ActiveSet(self.labels[:, np.newaxis]), 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_j_falls_by_what_is_said_before(dtype, weighted):
    C, X = 60, separate(60, 9, 5, dtype)
    labels = (np.arange(len(X)) // 9).astype(np.int32)
    labels[(labels >= 10) & (labels < 20)] -= 10  # ten components get two clusters each, others only half a cluster
    for c in range(20, 30):
        labels[np.flatnonzero(labels == c)[::2]] = c - 10
    weights = random_weights(len(X)) if weighted else None
    if weighted:
        weights[weights == 0] = 0.1
    data, model, statistics, before = placed(X, labels, C, weights)
    lists = with_self(exact_lists(model.centers, 9))
    jumped = jumps.jump(data, model, lists, statistics.counts, statistics.sums, Key(0))
    assert len(jumped.one) == 10
    after = data.labels()
    w = np.ones(len(X)) if weights is None else weights
    np.testing.assert_allclose(jumped.counts, np.bincount(after, w, C), rtol=1e-12)
    truth = np.arange(len(X)) // 9
    assert len(set(zip(after.tolist(), truth.tolist(), strict=True))) == C
    means = np.stack([np.bincount(after, w * column, C) for column in X.T.astype(np.float64)], axis=1)
    means /= np.bincount(after, w, C)[:, np.newaxis]
    J = float((w * np.square(X - means[after]).sum(axis=1)).sum())
    assert before - jumped.gain == pytest.approx(J, rel=1e-6)
    np.testing.assert_allclose(jumped.model.centers, means, rtol=10 * np.finfo(dtype).eps, atol=1e-5)


@pytest.mark.parametrize(("C", "found"), [(16, True), (400, False)])
def test_halves_of_a_cluster_find_each_other_where_no_list_has_them(C, found):
    """Two halves of a cluster are united although neither is in the neighbor list of the other, for few components.

    For many components, the distances of all pairs of centers are not computed, because they cost more than a pass.
    """
    X = separate(C, 10, 4)
    labels = (np.arange(len(X)) // 10).astype(np.int32)
    labels[labels == 1] = 0
    labels[np.flatnonzero(labels == 5)[::2]] = 1
    data, model, statistics, _ = placed(X, labels, C)
    far = np.stack([np.arange(C), (np.arange(C) + 8) % C], axis=1).astype(np.int32)
    jumped = jumps.jump(data, model, far, statistics.counts, statistics.sums, Key(1))
    assert ({*jumped.one, *jumped.other} == {1, 5}) == found
    assert not found or list(jumped.cut) == [0]


def test_nothing_jumps_where_every_cluster_has_its_center():
    X = separate(40, 10, 4)
    data, model, statistics, _ = placed(X, (np.arange(len(X)) // 10).astype(np.int32), 40)
    labels = data.labels()
    jumped = jumps.jump(
        data, model, with_self(exact_lists(model.centers, 9)), statistics.counts, statistics.sums, Key(1)
    )
    assert (len(jumped.one), jumped.gain) == (0, 0.0)
    assert jumped.model is model
    np.testing.assert_array_equal(data.labels(), labels)


def test_components_without_points_and_points_that_coincide_take_no_part():
    X = np.repeat(separate(6, 1, 3), 5, axis=0)
    labels = (np.arange(len(X)) // 5).astype(np.int32)
    data, model, statistics, _ = placed(X, labels, 6)
    lists = np.tile(np.arange(6, dtype=np.int32), (6, 1))
    assert jumps.jump(data, model, lists, statistics.counts, statistics.sums, Key(2)).gain == 0
    with np.errstate(invalid="ignore"):
        data, model, statistics, _ = placed(X, np.zeros(len(X), dtype=np.int32), 2)
    assert jumps.jump(data, model, lists[:2, :2], statistics.counts, statistics.sums, Key(2)).gain == 0


@pytest.mark.long
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fit_finds_all_of_many_clusters(dtype):
    X = separate(900, 10, 6, dtype)
    truth = X.reshape(900, 10, 6)
    J = np.square(truth - truth.mean(axis=1, keepdims=True)).sum()
    excess = []
    for seed in range(3):
        fit = kmeans(900, "graph", random_state=seed).fit(X)
        excess.append(fit.inertia_ / J)
        assert (np.diff(fit.history_["quantization_error"]) <= 1e-6 * fit.inertia_).all()
        squared = squared_distances(X, fit.cluster_centers_)
        assert fit.inertia_ == pytest.approx(squared[np.arange(len(X)), fit.labels_].sum(), rel=1e-4)
    assert np.median(excess) <= 1.1
