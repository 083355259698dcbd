"""Proposition 1 and Corollary 1 of Lücke & Forster, and the effect of nested active sets on free energy, eq. (7)."""

from itertools import combinations, product

import numpy as np
import pytest
from theory_data import (
    DTYPES,
    bound_of,
    e_step,
    free_energy,
    log_likelihood,
    model_of,
    nearest_sets,
    resolution,
    responsibilities,
    truncated_posterior,
)

from cprime.execution.block import ActiveSet
from fits import clustered, random_weights, squared_distances

RELATIVE = {np.float32: 2e-6, np.float64: 1e-14}


def example(n, D, C, dtype=np.float64, seed=0):
    """Return points, centers that are not optimal, and a variance."""
    rng = np.random.default_rng(seed)
    X = clustered(n, D, dtype, seed)
    return X, (3 * rng.standard_normal((C, D))).astype(dtype), 1.7


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("C", "n_active"), [(4, 1), (5, 2), (5, 4), (7, 3)])
def test_bound_is_the_formula_for_any_kept_sets(dtype, C, n_active):
    X, centers, variance = example(50, 3, C, dtype)
    rng = np.random.default_rng(3)
    kept = np.argsort(rng.random((len(X), C)), axis=1)[:, :n_active]
    weight = random_weights(len(X))
    ours = bound_of(X, model_of(centers, variance), n_active, kept, weight)
    assert ours == pytest.approx(free_energy(X, centers, variance, kept, weight), rel=RELATIVE[dtype])


@pytest.mark.parametrize("n_active", [1, 2, 3])
def test_proposition_1_exchange_raises_the_bound_iff_the_new_component_is_nearer(n_active):
    X, centers, variance = example(4, 2, 5)
    model = model_of(centers, variance)
    distances = squared_distances(X, centers)
    kept = np.argsort(np.random.default_rng(8).random((4, 5)), axis=1)[:, :n_active]
    start = bound_of(X, model, n_active, kept)
    seen = set()
    for n in range(len(X)):
        for place, new in product(range(n_active), set(range(5)) - set(kept[n])):
            exchanged = kept.copy()
            exchanged[n, place] = new
            rises = bound_of(X, model, n_active, exchanged) > start
            assert rises == (distances[n, new] < distances[n, kept[n, place]])
            seen.add(rises)
    assert seen == {False, True}


def test_proposition_1_exchange_between_equal_distances_changes_nothing():
    X = np.zeros((1, 2))
    centers = np.array([[1.0, 0.0], [0.0, -1.0], [2.0, 0.0]])
    model = model_of(centers, 0.5)
    assert bound_of(X, model, 2, [[0, 2]]) == bound_of(X, model, 2, [[1, 2]])
    assert bound_of(X, model, 1, [[0]]) == bound_of(X, model, 1, [[1]])


@pytest.mark.parametrize("n_active", [1, 2, 3])
def test_corollary_1_bound_is_maximal_iff_the_nearest_are_kept(n_active):
    X, centers, variance = example(3, 2, 5, seed=4)
    model = model_of(centers, variance)
    sets = list(combinations(range(5), n_active))
    nearest = tuple(tuple(sorted(row)) for row in nearest_sets(X, centers, n_active).tolist())
    bounds = {kept: bound_of(X, model, n_active, kept) for kept in product(sets, repeat=len(X))}
    best = max(bounds, key=bounds.__getitem__)
    assert best == nearest
    assert sorted(bounds.values())[-2] < bounds[best]
    assert bound_of(X, model, n_active) == pytest.approx(bounds[best], rel=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
def test_e_step_keeps_the_nearest_whatever_was_kept_before(dtype):
    X, centers, variance = example(80, 4, 9, dtype)
    for n_active in (1, 3, 8):
        before = np.argsort(np.random.default_rng(1).random((80, 9)), axis=1)[:, :n_active].astype(np.int32)
        kept, totals = e_step(X, model_of(centers, variance), n_active, before=ActiveSet(before))
        assert np.array_equal(kept.ids, nearest_sets(X, centers, n_active))
        assert totals.tally.n_distances == 80 * 9


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_larger_kept_sets_give_larger_bounds_up_to_the_likelihood(dtype, weighted):
    X, centers, variance = example(120, 3, 8, dtype)
    weight = random_weights(len(X)) if weighted else None
    model = model_of(centers, variance)
    bounds = np.array([bound_of(X, model, n_active, weight=weight) for n_active in range(1, 9)])
    assert (np.diff(bounds) > 0).all()
    assert bounds[-1] == pytest.approx(log_likelihood(X, centers, variance, weight), rel=RELATIVE[dtype])


@pytest.mark.parametrize("seed", range(5))
def test_a_kept_set_inside_another_never_has_the_larger_bound(seed):
    X, centers, variance = example(30, 2, 7, seed=seed)
    model = model_of(centers, variance)
    order = np.argsort(np.random.default_rng(seed).random((30, 7)), axis=1)
    bounds = [bound_of(X, model, n_active, order[:, :n_active]) for n_active in range(1, 8)]
    assert (np.diff(bounds) > 0).all()


@pytest.mark.parametrize("n_active", [1, 2, 4, 6])
@pytest.mark.parametrize("weighted", [False, True])
def test_gap_of_the_bound_is_the_divergence_of_the_posteriors(n_active, weighted):
    """L − F = D_KL(q ‖ r) = −1/W Σ_n w_n log Σ_{c∈K(n)} r_nc, for any active sets K(n)."""
    X, centers, variance = example(60, 3, 6)
    weight = random_weights(60) if weighted else np.ones(60)
    kept = np.argsort(np.random.default_rng(5).random((60, 6)), axis=1)[:, :n_active]
    exact = responsibilities(X, centers, variance)
    q = truncated_posterior(X, centers, variance, kept)
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = np.where(q > 0, q * np.log(q / exact), 0).sum(axis=1)
    mass = np.take_along_axis(exact, kept, axis=1).sum(axis=1)
    gap = log_likelihood(X, centers, variance, weight) - bound_of(
        X, model_of(centers, variance), n_active, kept, weight
    )
    assert gap == pytest.approx(np.average(-np.log(mass), weights=weight), abs=1e-12)
    assert gap == pytest.approx(np.average(divergence, weights=weight), abs=1e-12)
    assert gap >= -resolution(np.float64, 3)
