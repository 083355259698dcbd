"""Seeding in two levels: the number of centers per cell, the labels that it returns, and the quality of centers."""

import warnings

import numpy as np
import pytest
from seeding_data import DTYPES, clustered, error

from cprime.kernels import Dense, as_rows
from cprime.seeding import kmeans_plusplus, random_rows, start, two_level
from cprime.seeding.two_level import NearestInCell, _shares, _spread


@pytest.mark.parametrize("n_clusters", [1, 7, 50, 99, 100])
def test_shares_sum_to_c_and_leave_no_cell_overdrawn(n_clusters):
    rng = np.random.default_rng(0)
    for _ in range(50):
        available = rng.integers(0, 30, size=12)
        available[0] += max(0, n_clusters - available.sum())
        distortion = rng.exponential(size=12) ** 6 * (available > 0)
        share = _shares(distortion, 3 * distortion.sum(), available, n_clusters)
        assert share.dtype == np.int64
        assert share.sum() == n_clusters
        assert (share >= 0).all()
        assert (share <= available).all()


def test_shares_follow_the_distortion_by_zadors_power():
    """Cells get numbers of centers in proportion to the power 4/6 of their J, by Zador's law.

    J falls with the number k of cells as k^(−2/4), because k = 100 cells lower J from 100 to 10. If J of a cell falls
    as k^(−a) with its number k of centers, the best power is 1/(1 + a), here 4/6.
    """
    distortion = np.full(100, 0.05)
    distortion[:50] = 0.15
    share = _shares(distortion, 100.0, np.full(100, 10**6), 10**5)
    assert share[:50].mean() / share[50:].mean() == pytest.approx(3 ** (4 / 6), rel=1e-2)
    assert np.ptp(share[:50]) <= 1
    assert np.ptp(share[50:]) <= 1


def test_shares_without_any_distortion():
    share = _shares(np.zeros(4), 0.0, np.array([5, 0, 3, 2]), 9)
    assert share.sum() == 9
    assert (share <= [5, 0, 3, 2]).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_spread_is_that_of_the_points(dtype):
    for X, tolerance in ((clustered(500, 3, dtype), 1e-5), (clustered(60_000, 2, dtype), 0.1)):
        assert _spread(as_rows(X)) == pytest.approx(np.square(X - X.mean(axis=0)).sum(), rel=tolerance)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_clusters", [1, 2, 60, 400])
def test_labels_are_near_centers(n_clusters, dtype, weighted):
    X = clustered(3000, 4, dtype)
    w = np.random.default_rng(0).exponential(size=3000) * (np.arange(3000) % 5 > 0) if weighted else None
    excess, nearest_found = [], []
    for seed in range(10):
        centers, labels = start(X, n_clusters, "two-level", sample_weight=w, random_state=seed, n_threads=1)
        assert labels.dtype == np.int32
        assert labels.shape == (3000,)
        assert labels.min() >= 0
        assert labels.max() < n_clusters
        there = np.square(X.astype(float) - centers[labels].astype(float)).sum(axis=1)
        truth = Dense(X).nearest(centers)[1][:, 0].astype(float)
        excess.append(there.sum() / truth.sum())
        nearest_found.append(np.mean(there <= truth * (1 + 1e-4)))
    # These are medians over ten starts; for a dozen other data sets they reach 1.38, 1.27 and 1.08.
    # Few cells offer few candidates, so now and then all points of a far cluster get the second nearest center.
    # Means would be affected: 1.5 at 60 centers.
    assert np.median(excess) <= {1: 1.0, 2: 1.4, 60: 1.3, 400: 1.1}[n_clusters]
    assert np.mean(nearest_found) > (0.6 if n_clusters == 2 else 0.9)


def test_no_row_without_weight_is_chosen_from_cells_of_such_rows_only():
    """Cells that contain only rows of weight 0 cause no division by zero, and none of their rows is chosen."""
    X = np.vstack([clustered(300, 2), 1e3 + clustered(600, 2)])
    w = np.repeat([1.0, 0.0], [300, 600])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n_clusters in (2, 20, 150, 300, 400):
            _, indices = two_level(X, n_clusters, sample_weight=w, random_state=0)
            assert len(set(indices)) == n_clusters
            assert np.count_nonzero(indices < 300) == min(n_clusters, 300)
            labels = start(X, n_clusters, "two-level", sample_weight=w, random_state=0).labels
            assert labels.max() < n_clusters


@pytest.mark.long
@pytest.mark.parametrize("dtype", DTYPES)
def test_centers_are_better_than_random_rows(dtype):
    X = clustered(6000, 8, dtype)
    for n_clusters in (30, 150, 400):
        ours = np.mean([error(X, two_level(X, n_clusters, random_state=s)[0]) for s in range(8)])
        chance = np.mean([error(X, random_rows(X, n_clusters, random_state=s)[0]) for s in range(8)])
        assert ours < 0.95 * chance


def test_every_far_group_gets_centers():
    """Every one of a hundred groups of very unequal size gets a center; random rows would miss many."""
    rng = np.random.default_rng(0)
    sizes = np.maximum(rng.dirichlet(np.full(100, 0.3)) * 5000, 3).astype(int)
    group = np.repeat(np.arange(100), sizes)
    X = (40 * rng.standard_normal((100, 3)))[group] + rng.standard_normal((len(group), 3))
    found = [len(set(group[two_level(X, 300, random_state=s)[1]])) for s in range(5)]
    by_chance = [len(set(group[random_rows(X, 300, random_state=s)[1]])) for s in range(5)]
    assert np.mean(found) > np.mean(by_chance) + 10


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_many_centers_of_duplicated_points_are_better_than_few_random_rows():
    many = np.repeat(clustered(400, 2), 5, axis=0)
    assert error(many, two_level(many, 400, random_state=0)[0]) < error(many, random_rows(many, 100, random_state=0)[0])


def test_two_level_centers_of_a_million_songs_are_good(data_folder):
    with np.load(data_folder / "msd_sample.npz") as file:
        X = file["X"][:20_000]
    ours = error(X, two_level(X, 200, random_state=0)[0])
    assert ours < error(X, random_rows(X, 200, random_state=0)[0])
    assert ours < 1.3 * error(X, kmeans_plusplus(X, 200, random_state=0, n_local_trials=1)[0])


def test_points_of_a_cell_with_most_of_the_centers_look_at_few(monkeypatch):
    """Heavy tails put many points and centers into one cell; each point is compared with only few of these centers."""
    looked_at = []
    label = NearestInCell.__call__

    def counted(self, block, kept):
        cell = kept.winners
        counts = (self.offered >= 0).sum(axis=1)[cell]
        for crowded, (_, inner) in self.crowds.items():
            rows = cell == crowded
            own = inner._cell(block.X[rows])
            counts[rows] += len(inner.coarse) + (inner.offer.offered >= 0).sum(axis=1)[own]
        after, n = label(self, block, kept)
        distances = np.square(block.X.given() - self.centers[after.winners]).sum(axis=1)
        looked_at.append((counts.mean(), distances, self.centers))
        return after, n

    monkeypatch.setattr(NearestInCell, "__call__", counted)
    X = np.random.default_rng(0).standard_cauchy((60_000, 4)) ** 3
    two_level(X, 4000, random_state=0)
    [(mean, distances, centers)] = looked_at
    assert mean < 16 * np.sqrt(4000)
    assert distances.sum() < 1.5 * Dense(X).nearest(centers)[1].sum()
