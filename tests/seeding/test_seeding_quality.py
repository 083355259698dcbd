"""Quality of the initial centers: J after seeding, compared with scikit-learn and among the methods."""

import numpy as np
import pytest
import sklearn.cluster
from seeding_data import clustered, error

from cprime.seeding import afk_mc2, kmeans_plusplus, random_rows

N_SEEDS = 8


def mean_error(X, n_clusters, method, **options):
    return np.mean([error(X, method(X, n_clusters, random_state=s, **options)[0]) for s in range(N_SEEDS)])


@pytest.fixture(scope="module")
def X():
    return clustered(6000, 8, np.float32)


@pytest.mark.parametrize("n_local_trials", [pytest.param(None, marks=pytest.mark.long), 1])
def test_kmeans_plusplus_is_as_good_as_scikit_learn(X, n_local_trials):
    ours = mean_error(X, 150, kmeans_plusplus, n_local_trials=n_local_trials)
    theirs = mean_error(X, 150, sklearn.cluster.kmeans_plusplus, n_local_trials=n_local_trials)
    assert ours == pytest.approx(theirs, rel=0.03)


@pytest.mark.long
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_afk_mc2_is_within_a_tenth_of_plain_kmeans_plusplus(X, dtype):
    X = X.astype(dtype)
    plain = mean_error(X, 150, kmeans_plusplus, n_local_trials=1)
    assert mean_error(X, 150, afk_mc2) <= 1.1 * plain


def test_greedy_seeding_beats_plain_and_plain_beats_random(X):
    greedy = mean_error(X, 60, kmeans_plusplus)
    plain = mean_error(X, 60, kmeans_plusplus, n_local_trials=1)
    chains = mean_error(X, 60, afk_mc2)
    chance = mean_error(X, 60, random_rows)
    assert greedy < 0.8 * plain
    assert plain < 0.7 * chance
    assert chains < 0.7 * chance


def test_weights_move_the_centers():
    """If two equal groups have weights of ratio 1000, the heavy one gets nearly all centers."""
    group = clustered(500, 2, n_clusters=1)
    X = np.vstack([group, group + 3])
    w = np.repeat([1000.0, 1.0], 500)
    for method in (random_rows, kmeans_plusplus, afk_mc2):
        _, indices = method(X, 40, sample_weight=w, random_state=0)
        assert (indices < 500).mean() > 0.8


def test_chains_seed_a_million_songs_as_well_as_plain_kmeans_plusplus(data_folder):
    with np.load(data_folder / "msd_sample.npz") as file:
        X = file["X"][:20_000]
    plain = np.mean([error(X, kmeans_plusplus(X, 200, random_state=s, n_local_trials=1)[0]) for s in range(3)])
    chains = np.mean([error(X, afk_mc2(X, 200, random_state=s)[0]) for s in range(3)])
    chance = np.mean([error(X, random_rows(X, 200, random_state=s)[0]) for s in range(3)])
    assert chains <= 1.1 * plain
    assert chains < chance
