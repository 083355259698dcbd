"""k-means||: independent of chunks, as good as k-means++, and weights count as repetitions."""

import numpy as np
import pytest
from seeding_data import clustered, error

from cprime import KMeans, open_data
from cprime.seeding import random_rows, seed


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_do_not_depend_on_chunks(weighted):
    X = clustered(4000, 5)
    w = np.random.default_rng(1).exponential(size=4000) if weighted else None
    starts = []
    for chunk_rows in (4000, 1000, 337):
        source = open_data(X, chunk_rows=chunk_rows).with_weights(w)
        starts.append(KMeans(40, init="k-means||", max_iter=1, search="full", random_state=3).fit(source).counts_)
    assert np.allclose(starts[0], starts[1])
    assert np.allclose(starts[0], starts[2])


@pytest.mark.parametrize("n_clusters", [20, 100])
def test_centers_are_nearly_as_good_as_those_of_k_means_plus_plus(n_clusters):
    X = clustered(5000, 6)
    ours, exact, chance = (
        np.mean([error(X, start(s)) for s in range(6)])
        for start in (
            lambda s: seed(X, n_clusters, "k-means||", random_state=s),
            lambda s: seed(X, n_clusters, "k-means++", random_state=s),
            lambda s: random_rows(X, n_clusters, random_state=s)[0],
        )
    )
    assert ours < 1.15 * exact
    assert ours < 0.9 * chance


def test_rows_without_weight_are_not_chosen_while_there_are_others():
    X = np.vstack([clustered(300, 2), 1e3 + clustered(600, 2)])
    w = np.repeat([1.0, 0.0], [300, 600])
    for n_clusters in (2, 60):
        assert seed(X, n_clusters, "k-means||", sample_weight=w, random_state=0).max() < 500


def test_data_in_chunks_refuse_starts_that_need_them_whole():
    source = open_data(clustered(300, 3), chunk_rows=100)
    for init in ("k-means++", "afk-mc2", lambda X, n, random_state: X[:n]):
        with pytest.raises(ValueError, match=r"needs the data as one chunk in memory, got 300 rows in 3 chunk"):
            KMeans(5, init=init).fit(source)
