"""Initializations, random generators and argument checks of the drop-in classes equal scikit-learn's, in less time."""

import numpy as np
import pytest
import sklearn.cluster
from sklearn.cluster._kmeans import _kmeans_plusplus
from sklearn.utils.extmath import row_norms

import cprime.sklearn
from cprime._utils.random import seeded
from cprime.sklearn import draws


@pytest.mark.parametrize(("n", "D", "C"), [(7, 1, 7), (400, 5, 9)])
@pytest.mark.parametrize("weighted", [False, True])
def test_greedy_draws_are_those_of_scikit_learn(n, D, C, weighted):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, D))
    w = rng.integers(0, 4, n).astype(float) if weighted else np.ones(n)
    squares = row_norms(X, squared=True)
    for seed in range(20):
        theirs, ours = np.random.RandomState(seed), np.random.RandomState(seed)
        expected = _kmeans_plusplus(X, C, squares, w, theirs)[0]
        assert (draws.Greedy(X, squares, w).centers(C, ours) == expected).all()
        assert theirs.random_sample() == ours.random_sample()


@pytest.mark.parametrize("weights", [np.ones(1), np.full(997, 0.3, np.float32), np.ones(1024), np.arange(1.0, 50)])
def test_rows_are_chosen_as_by_random_state(weights):
    shares = np.cumsum(weights / weights.sum(), dtype=np.float64)
    shares /= shares[-1]
    inner = shares[:-1]
    edges = np.concatenate([[0.0, np.nextafter(1, 0)], inner, np.nextafter(inner, 0), np.nextafter(inner, 1)])
    uniform = np.concatenate([edges, np.random.default_rng(0).random(2000)])
    expected = shares.searchsorted(uniform, side="right")
    np.testing.assert_array_equal(draws.Choice(weights)(uniform), expected)


def test_a_later_scikit_learn_draws_for_itself(monkeypatch):
    monkeypatch.setattr(draws, "_AS_HERE", False)
    monkeypatch.setattr(draws, "Greedy", None)
    X = np.random.default_rng(0).standard_normal((60, 3))
    ours = cprime.sklearn.KMeans(4, random_state=1).fit(X)
    assert (ours.labels_ == sklearn.cluster.KMeans(4, random_state=1).fit(X).labels_).all()


def test_fits_within_a_fit_draw_for_themselves():
    """A callable init may run a fit in the same thread; generators of both fits stay independent."""
    X = np.random.default_rng(0).standard_normal((60, 3))
    alone = cprime.sklearn.KMeans(4, n_init=3, random_state=1).fit(X)
    with seeded(1) as outer:
        first = outer.random_sample()
        within = cprime.sklearn.KMeans(4, n_init=3, random_state=1).fit(X)
        second = outer.random_sample()
    assert (within.labels_ == alone.labels_).all()
    assert [first, second] == np.random.RandomState(1).random_sample(2).tolist()


def test_a_generator_that_a_function_was_given_stays_its_own():
    X = np.random.default_rng(0).standard_normal((60, 3))
    given = []

    def start(X, n_clusters, random_state):
        given.append(random_state)
        return X[random_state.permutation(len(X))[:n_clusters]]

    cprime.sklearn.KMeans(4, init=start, n_init=1, random_state=1).fit(X)
    (generator,) = given
    after = np.random.RandomState(1)
    after.permutation(60)
    cprime.sklearn.KMeans(4, random_state=7).fit(X)
    assert generator.random_sample() == after.random_sample()


def test_parameters_that_have_passed_are_told_from_equal_ones():
    X = np.arange(6.0)[:, np.newaxis]
    for good, bad in (({"n_init": 1}, {"n_init": 1.0}), ({"max_iter": 1}, {"max_iter": 1.0})):
        cprime.sklearn.KMeans(2, **good).fit(X)
        with pytest.raises(ValueError, match=f"The '{next(iter(bad))}' parameter"):
            cprime.sklearn.KMeans(2, **bad).fit(X)
