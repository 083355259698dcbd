"""Purity, NMI, and the search for DBSCAN's parameters."""

import numpy as np
import pytest
from reproduction.scores import agreement
from sklearn.datasets import make_blobs

from cprime.selection import purity
from reproduction import dbscan


def test_perfect_labels_score_one_whatever_their_names(rng):
    target = rng.integers(5, size=200)
    names = rng.permutation(5) + 7
    assert purity(target, names[target]) == 1.0
    assert agreement(target, names[target]).nmi == pytest.approx(1.0)


def test_purity_counts_the_commonest_class_of_each_label():
    target = np.array([0, 0, 0, 1, 1, 2, 2, 2])
    labels = np.array([5, 5, 5, 5, 9, 9, 9, 9])  # 3 of class 0, then 3 of class 2
    assert purity(target, labels) == 6 / 8
    assert purity(target, np.zeros(8, dtype=int)) == 3 / 8


def test_one_label_for_all_has_no_information():
    score = agreement(np.repeat([0, 1], 10), np.zeros(20, dtype=int))
    assert score == (0.5, 0.0)
    assert score.combined == 0.5


def test_search_returns_the_best_of_all_settings():
    X, target = make_blobs(200, centers=[[0, 0], [4, 0], [0, 4]], random_state=0)
    tried = list(dbscan.settings(X, target))
    best = dbscan.tuned(X, target)
    assert len({(setting.eps, setting.min_samples) for setting in tried}) == len(dbscan.EPS) * len(dbscan.MIN_SAMPLES)
    assert best.agreement.combined == max(setting.agreement.combined for setting in tried)
    assert best.n_clusters == 3
    assert dbscan.EPS[0] < best.eps < dbscan.EPS[-1]


def test_noise_counts_as_a_cluster():
    X = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 0.0], [5.1, 0.0], [40.0, 0.0], [-40.0, 0.0]])
    setting = next(dbscan.settings(X, np.array([0, 0, 1, 1, 2, 2]), (0.5,), (2,)))
    assert (setting.n_clusters, setting.noise) == (2, pytest.approx(1 / 3))
    assert setting.agreement == (1.0, pytest.approx(1.0))
