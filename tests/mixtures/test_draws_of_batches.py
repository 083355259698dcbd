"""Stochastic EM on mini-batches: every batch has its own random numbers, and all of them follow from the seed."""

import numpy as np
import pytest
from mixture_data import FAMILIES

from cprime import GaussianMixture

N_BATCHES = 6
# All points and all means coincide, so every active component has the same probability in every batch.
SAME = np.zeros((800, 2))


def shares_of_batches(family, n_components, n_active, random_state):
    """Return the number of points in each batch drawn for each component: (N_BATCHES, C)."""
    gm = GaussianMixture(
        n_components,
        covariance_type=family,
        weights="equal",
        n_active=n_active,
        assignment="sampled",
        means_init=np.zeros((n_components, 2)),
        random_state=random_state,
    )
    counts = [np.zeros(n_components)]
    for _ in range(N_BATCHES):
        counts.append(gm.partial_fit(SAME).counts_.copy())
    return np.diff(counts, axis=0)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("n_components", "n_active"), [(2, None), (3, 2)])
def test_equal_batches_are_not_drawn_alike(family, n_components, n_active):
    found = shares_of_batches(family, n_components, n_active, 0)
    np.testing.assert_allclose(found.sum(axis=1), len(SAME))
    np.testing.assert_allclose(found[:, 2:], 0, atol=1e-6)  # ties are broken by index, so the first two are active
    heads = found[:, 0]
    assert len(np.unique(heads.round(3))) > 2
    assert 0 < np.abs(heads - 400).max() < 6 * np.sqrt(800 / 4)  # binomial counts: at most six standard deviations


def test_draws_follow_from_the_seed():
    first = shares_of_batches("tied_spherical", 2, None, 5)
    np.testing.assert_array_equal(shares_of_batches("tied_spherical", 2, None, 5), first)
    assert (shares_of_batches("tied_spherical", 2, None, 6) != first).any()
