"""The variation distance and its bounds agree with closed forms, numerical integrals and random draws."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm, rv_histogram, uniform

from cprime import KMeans
from cprime.theory import Gaussians, Univariate, variation_bounds, variation_distance


@pytest.mark.parametrize("distance", [0.0, 0.3, 1.0, 4.0, 9.0])
def test_equal_deviations_have_a_closed_form(distance):
    found = variation_distance(Gaussians.spherical([1, 1 + 2 * distance], 2.0))
    assert found.distance[0, 1] == pytest.approx(2 * (2 * norm.cdf(distance / 2) - 1), abs=1e-9)
    np.testing.assert_array_equal(found.lower, found.upper)


@pytest.mark.long
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


def test_one_component_and_an_estimator_are_taken(rng):
    assert variation_distance(Gaussians.spherical([0], 1.0)).distance.tolist() == [[0]]
    km = KMeans(2, random_state=0).fit(rng.standard_normal((50, 1)))
    gap = float(abs(np.diff(km.cluster_centers_[:, 0]))[0] / km.variance_**0.5)
    assert variation_distance(km).distance[0, 1] == pytest.approx(2 * (2 * norm.cdf(gap / 2) - 1))


MODELS = {
    "the density itself": Gaussians.spherical([-1, 1], [1, 1]),
    "uneven": Gaussians.spherical([-2, 0.5], [0.5, 2], [0.2, 0.8]),
    "far": Gaussians.spherical([-6, 4], [1, 0.3]),
}


@pytest.mark.parametrize("weights", ["equal", "free"])
@pytest.mark.parametrize("assignment", ["hard", "posterior"])
@pytest.mark.parametrize("name", MODELS)
def test_bounds_are_below_the_distance_and_in_order(name, assignment, weights):
    """Eqs. (34), (35) and (38) of Kearns et al., and Pinsker's inequality."""
    Q = Gaussians.spherical([-1, 1.5], [1, 0.8], [0.4, 0.6])
    found = variation_bounds(MODELS[name], Q, assignment=assignment, weights=weights)
    assert found.distance >= found.triangle - 1e-8
    assert found.triangle >= found.pinsker - 1e-8
    assert found.triangle >= found.weighted - 1e-8
    assert (found.misfits <= np.sqrt(2 * np.log(2) * found.divergences) + 1e-8).all()
    assert (found.partition_distance == pytest.approx(2)) == (assignment == "hard")


def test_parts_of_a_partition_are_the_integrals():
    P, Q = (norm(-1, 1), norm(2, 0.5)), norm(0, 1.5)
    found = variation_bounds(Gaussians.spherical([-1, 2], [1, 0.5]), Gaussians.spherical([0], 1.5))
    x = np.linspace(-12, 12, 2_000_001)
    p, q = np.stack([each.pdf(x) for each in P]), Q.pdf(x)
    winner = p.argmax(axis=0)
    for b in (0, 1):
        share = np.trapezoid(q * (winner == b), x)
        assert found.shares[b] == pytest.approx(share, abs=1e-5)
        assert found.misfits[b] == pytest.approx(np.trapezoid(np.abs(q * (winner == b) / share - p[b]), x), abs=1e-4)


def test_draws_in_the_plane_agree_with_quadrature():
    line = variation_bounds(Gaussians.spherical([-1, 1], [1, 1]), Gaussians.spherical([-1, 1], [1, 1]))
    plane = Gaussians.spherical([[-1, 0], [1, 0]], [1, 1])
    found = variation_bounds(plane, plane, random_state=0)
    for name in ("distance", "triangle", "pinsker", "weighted", "printed"):
        assert getattr(found, name) == pytest.approx(getattr(line, name), abs=0.02)


def test_the_printed_inequality_is_false():
    """V ≤ √KL, with KL in bits, does not hold; V ≤ √(2 ln 2 KL) does."""
    steps = rv_histogram((np.array([0.6, 0.4]), np.array([0.0, 0.5, 1.0])))
    distance = variation_distance(Univariate([uniform(0, 1), steps])).distance[0, 1]
    kl = 0.5 * np.log2(0.5 / 0.6) + 0.5 * np.log2(0.5 / 0.4)
    assert distance == pytest.approx(0.2)
    assert np.sqrt(kl) < distance <= np.sqrt(2 * np.log(2) * kl)


@pytest.mark.parametrize("weights", ["equal", "free"])
def test_bounds_of_pairs_hold_and_are_those_of_two_components(weights):
    Q = Gaussians.spherical([-3, 0, 4], [1.0, 0.7, 1.5], [0.3, 0.3, 0.4])
    found = variation_bounds(Q, Q, weights=weights)
    off = ~np.eye(3, dtype=bool)
    for bound in (found.triangle, found.weighted, found.pinsker):
        assert (bound[off] <= found.distance[off] + 1e-9).all()
        np.testing.assert_array_equal(bound, bound.T)
    two = Gaussians.spherical([-3, 0], [1.0, 0.7], [0.4, 0.6])
    far = Gaussians.spherical([-3, 0, 900], [1.0, 0.7, 1], [0.4 / 2, 0.6 / 2, 0.5])
    alone, among = variation_bounds(two, two), variation_bounds(far, far)
    for name in ("distance", "partition_distance", "triangle", "weighted", "pinsker", "printed"):
        assert getattr(among, name)[0, 1] == pytest.approx(getattr(alone, name), abs=1e-6)


@pytest.mark.parametrize(
    ("model", "given", "message"),
    [
        (Gaussians.spherical([0], 1.0), {}, "model must have at least two components, got 1"),
        (Gaussians.spherical([0, 1], 1.0), {"assignment": "soft"}, "assignment must be one of"),
        (Gaussians.spherical([0, 900], 1.0), {}, "must get a part of Q, got the shares"),
    ],
)
def test_bounds_refuse(model, given, message):
    with pytest.raises(ValueError, match=message):
        variation_bounds(model, Gaussians.spherical([0], 1.0), **given)
