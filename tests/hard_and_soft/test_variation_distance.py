"""Variation distance: closed forms, plain integrals, draws."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm, uniform

from cprime import KMeans
from cprime.theory import Gaussians, Univariate, variation_distance


@pytest.mark.parametrize("distance", [0.0, 0.3, 1.0, 4.0, 9.0])
def test_equal_deviations_have_a_closed_form(distance):
    found = variation_distance(Gaussians.spherical([1, 1 + 2 * distance], 2.0))
    assert found.distance[0, 1] == pytest.approx(2 * (2 * norm.cdf(distance / 2) - 1), abs=1e-9)
    np.testing.assert_array_equal(found.lower, found.upper)


def test_other_pairs_are_the_integral():
    mixture = Gaussians.spherical([0, 1, 3], [1, 0.2, 2], [0.98, 0.01, 0.01])
    found = variation_distance(mixture).distance
    for i in range(3):
        for j in range(3):
            a, b = (norm(mixture.means[k, 0], mixture.standard_deviations[k]) for k in (i, j))
            edges = np.linspace(-15, 20, 36)
            expected = sum(
                quad(lambda x, a=a, b=b: abs(a.pdf(x) - b.pdf(x)), low, high, limit=200)[0]
                for low, high in pairwise(edges)
            )
            assert found[i, j] == pytest.approx(expected, abs=1e-6)


def test_densities_without_overlap_differ_by_two():
    mixture = Univariate([uniform(0, 1), uniform(3, 1), uniform(0.5, 1)])
    found = variation_distance(mixture).distance
    np.testing.assert_allclose(found, [[0, 2, 1], [2, 0, 2], [1, 2, 0]], atol=1e-6)


def test_intervals_of_draws_cover_the_exact_distance():
    plane = Gaussians.spherical([[0, 0], [2, 0], [0, 1]], 1.0)
    exact = [2 * (2 * norm.cdf(d / 2) - 1) for d in (2, 1, 5**0.5)]
    inside = np.zeros(3)
    for seed in range(150):
        found = variation_distance(plane, n_samples=1000, random_state=seed)
        at = np.triu_indices(3, 1)
        inside += (found.lower[at] <= exact) & (exact <= found.upper[at])
        np.testing.assert_array_equal(found.distance, found.distance.T)
    assert (inside / 150 > 0.89).all(), inside


def test_one_component_and_an_estimator(rng):
    assert variation_distance(Gaussians.spherical([0], 1.0)).distance.tolist() == [[0]]
    km = KMeans(2, random_state=0).fit(rng.standard_normal((50, 1)))
    gap = float(abs(np.diff(km.cluster_centers_[:, 0]))[0] / km.variance_**0.5)
    assert variation_distance(km).distance[0, 1] == pytest.approx(2 * (2 * norm.cdf(gap / 2) - 1))
