"""Draws of seeding methods agree with the exact probabilities of the published algorithms."""

import itertools
from importlib import import_module

import numpy as np
import pytest
from seeding_data import assert_frequencies, clustered

from cprime.seeding import afk_mc2, kmeans_plusplus, random_rows
from cprime.seeding.sampling import draw, draw_distinct
from marks import long_but
from reference import Reference

X = np.array([[0.0], [1.0], [3.0], [3.5], [7.0]])
WEIGHTS = {"equal": None, "weighted": np.array([1.0, 0.5, 0.0, 3.0, 0.25])}
N_DRAWS = 600
weighted = pytest.mark.parametrize(
    "w",
    [
        pytest.param(WEIGHTS["equal"], id="equal", marks=pytest.mark.long),
        pytest.param(WEIGHTS["weighted"], id="weighted"),
    ],
)


def normalised(mass):
    return mass / mass.sum()


def masses(w):
    return np.ones(len(X)) if w is None else w


def squared_distances():
    return np.square(X - X.T)


def draws(method, w, **options):
    rng = np.random.RandomState(0)
    return np.array([method(X, 2, sample_weight=w, random_state=rng, **options)[1] for _ in range(N_DRAWS)])


def assert_first_and_second(pairs, w, conditional):
    """Check the first index against the weights, and the second against conditional[first]."""
    assert_frequencies(pairs[:, 0], normalised(masses(w)))
    for first in np.unique(pairs[:, 0]):
        assert_frequencies(pairs[pairs[:, 0] == first, 1], conditional[first])


@pytest.mark.parametrize("method", [random_rows, kmeans_plusplus, afk_mc2])
@weighted
@pytest.mark.long
def test_the_first_center_is_drawn_by_weight(method, w):
    assert_frequencies(draws(method, w)[:, 0], normalised(masses(w)))


@weighted
def test_random_rows_are_drawn_one_after_another_without_replacement(w):
    conditional = np.array([normalised(np.where(np.arange(5) == i, 0, masses(w))) for i in range(5)])
    assert_first_and_second(draws(random_rows, w), w, conditional)


@weighted
def test_plain_kmeans_plusplus_draws_by_squared_distance(w):
    conditional = np.array([normalised(masses(w) * row) for row in squared_distances()])
    assert_first_and_second(draws(kmeans_plusplus, w, n_local_trials=1), w, conditional)


@pytest.mark.parametrize(
    ("n_local_trials", "w"),
    [(1, WEIGHTS["weighted"]), pytest.param(2, WEIGHTS["equal"], marks=pytest.mark.long)],
    ids=["1", "2"],
)
def test_candidates_that_are_proposed_ahead_are_drawn_by_the_distances_of_their_turn(n_local_trials, w, monkeypatch):
    """Candidates for the third center, proposed before the second was known, have the exact probabilities."""
    monkeypatch.setattr(import_module("cprime.seeding.kmeans_plusplus"), "_steps_ahead", lambda *_: 3)
    d, rng = squared_distances(), np.random.RandomState(1)
    options = {"sample_weight": w, "random_state": rng, "n_local_trials": n_local_trials}
    triples = np.array([kmeans_plusplus(X, 3, **options)[1] for _ in range(2 * N_DRAWS)])
    n_judged = 0
    for first, second in np.unique(triples[:, :2], axis=0):
        third = triples[(triples[:, :2] == (first, second)).all(axis=1), 2]
        closest = np.minimum(d[first], d[second])
        p = normalised(masses(w) * closest)
        potential = np.array([masses(w) @ np.minimum(closest, d[i]) for i in range(5)])
        expected = np.zeros(5)
        for trials in itertools.product(range(5), repeat=n_local_trials):
            expected[min(trials, key=lambda i: potential[i])] += np.prod(p[list(trials)])
        if len(third) > 60:
            assert_frequencies(third, expected)
            n_judged += 1
    assert n_judged >= 4


@weighted
@pytest.mark.parametrize("n_local_trials", long_but([2], [2, 3]))
def test_greedy_kmeans_plusplus_keeps_the_best_of_its_trials(n_local_trials, w):
    d = squared_distances()
    conditional = np.zeros((5, 5))
    for first in range(5):
        p = normalised(masses(w) * d[first])
        potential = np.array([masses(w) @ np.minimum(d[first], d[second]) for second in range(5)])
        for trials in itertools.product(range(5), repeat=n_local_trials):
            best = min(trials, key=lambda second: potential[second])
            conditional[first, best] += np.prod(p[list(trials)])
    assert_first_and_second(draws(kmeans_plusplus, w, n_local_trials=n_local_trials), w, conditional)


@pytest.mark.parametrize(("n_clusters", "n_trials"), [(1, 2), (7, 3), (8, 4), (2000, 9)])
def test_the_number_of_trials_is_that_of_scikit_learn(n_clusters, n_trials):
    data = clustered(2000, 1)
    np.testing.assert_array_equal(
        kmeans_plusplus(data, n_clusters, random_state=0)[1],
        kmeans_plusplus(data, n_clusters, random_state=0, n_local_trials=n_trials)[1],
    )


@weighted
@pytest.mark.parametrize("chain_length", long_but([2], [1, 2, 5]))
def test_afk_mc2_has_the_distribution_of_its_chain(chain_length, w):
    """The second center has the distribution q Tᵐ⁻¹, where T is the transition matrix of Bachem et al. 2016, algorithm
    1.
    """
    conditional = np.zeros((5, 5))
    for first, distances in enumerate(squared_distances()):
        q = masses(w) * (0.5 * distances / (masses(w) @ distances) + 0.5 / masses(w).sum())
        target = masses(w) * distances
        transition = np.zeros((5, 5))
        for x, y in itertools.product(np.flatnonzero(q), repeat=2):
            if x != y:
                ratio = target[y] * q[x] / (target[x] * q[y]) if target[x] > 0 else 1.0
                transition[x, y] = q[y] * min(1.0, ratio)
        transition += np.diag(1 - transition.sum(axis=1))
        last = q @ np.linalg.matrix_power(transition, chain_length - 1)
        stuck = last[first]  # the chain proposed only the first center, so the draw is from the target
        last[first] = 0
        conditional[first] = last + stuck * normalised(target)
    assert_first_and_second(draws(afk_mc2, w, chain_length=chain_length), w, conditional)


@pytest.mark.long
@weighted
def test_a_long_chain_comes_to_the_draw_of_kmeans_plusplus(w):
    conditional = np.array([normalised(masses(w) * row) for row in squared_distances()])
    assert_first_and_second(draws(afk_mc2, w, chain_length=60), w, conditional)


@pytest.mark.parametrize("n_clusters", [2, 64, 65, 66, 150])
@pytest.mark.parametrize("use_weights", [False, True])
def test_afk_mc2_is_the_published_loop(n_clusters, use_weights):
    """Algorithm 1 as published, with all distances recomputed, gives the same centers from the same random numbers."""
    data = clustered(700, 3)
    m = 6
    w = np.random.default_rng(1).exponential(size=700) if use_weights else None
    _, indices = afk_mc2(data, n_clusters, sample_weight=w, random_state=5, chain_length=m)

    rng = np.random.RandomState(5)
    weight = np.ones(700) if w is None else w
    chosen = [rng.randint(700) if w is None else int(draw(np.cumsum(w), rng.uniform(size=1))[0])]
    d1 = Reference(data).distances(data[chosen])[0]
    q = weight * (0.5 * d1 / (weight @ d1) + 0.5 / weight.sum())
    proposals = draw(np.cumsum(q), rng.uniform(size=(n_clusters, m)))
    u = rng.uniform(size=(n_clusters, m))
    for c in range(1, n_clusters):
        d = weight * Reference(data).distances(data[chosen]).min(axis=0)
        x = proposals[c, 0]
        for j in range(1, m):
            y = proposals[c, j]
            if d[y] * q[x] > u[c, j] * d[x] * q[y]:
                x = y
        assert d[x] > 0, "the data are meant to give no stuck chain"
        chosen.append(int(x))
    np.testing.assert_array_equal(indices, chosen)


def test_draw_gives_nothing_to_entries_without_mass():
    cumulative = np.cumsum([0.0, 1.0, 0.0, 3.0, 0.0])
    np.testing.assert_array_equal(draw(cumulative, np.array([0.0, 0.2499, 0.25, 1 - 2**-53, 1.0])), [1, 1, 3, 3, 3])


@weighted
def test_draw_distinct_gives_every_order_its_probability(w):
    """All orders of five rows have the probability of successive draws; the row of weight zero is last."""
    rng = np.random.RandomState(0)
    orders = [tuple(draw_distinct(5, 5, w, rng).tolist()) for _ in range(N_DRAWS)]
    possible = list(itertools.permutations(range(5)))
    probabilities = []
    for order in possible:
        left, p = masses(w).copy(), 1.0
        for i in order:
            p *= left[i] / left.sum() if left.sum() > 0 else 1.0
            left[i] = 0
        probabilities.append(p)
    assert_frequencies(np.array([possible.index(order) for order in orders]), np.array(probabilities))
