"""The elbow criterion finds the true number of clusters, and none in data without clusters."""

import numpy as np
import pytest
from selection_data import apart

from cprime import KMeans
from cprime.selection import sweep
from cprime.selection.criteria import critical_value, elbow, excess
from marks import long_but


def curve(X, largest=16, seed=0):
    found = sweep(KMeans(), X, range(1, largest + 1), holdout=None, criteria=(), random_state=seed)
    return found, found.elbow()


@pytest.mark.parametrize(("C", "D"), long_but([4], [(4, 2), (7, 3), (9, 8)]))
def test_separated_clusters_have_an_elbow_at_their_number(C, D):
    assert curve(apart(C, D, seed=C)[0])[1] == C


@pytest.mark.parametrize("D", long_but([1], [1, 2, 6]))
@pytest.mark.parametrize("noise", ["one Gaussian", "uniform"])
def test_noise_has_no_elbow(D, noise):
    rng = np.random.default_rng(D)
    X = rng.standard_normal((600, D)) if noise == "one Gaussian" else rng.random((600, D))
    found, at = curve(X, seed=D)
    assert at is None
    assert (np.diff(found.inertia) < 0).all()


def test_a_straight_line_with_noise_has_none_but_as_often_as_the_level_says(rng):
    C = np.arange(1, 25)
    found = [elbow(C, np.exp(rng.standard_normal(24) * np.log(1 + 1 / C) * 0.01) / C, 0.05) for _ in range(1000)]
    assert sum(at is not None for at in found) < 0.08 * 1000


def test_a_kink_is_found_and_its_mirror_image_is_not():
    C = np.arange(1, 21)
    slow, steep = C**-0.2, C**-1.0
    assert elbow(C, np.maximum(steep, slow * 8 ** (0.2 - 1)), 0.01) == 8
    assert elbow(C, np.minimum(slow, steep * 8 ** (1 - 0.2)), 0.01) is None


def test_too_few_numbers_of_components_have_none():
    C = np.arange(1, 7)
    assert elbow(C, np.maximum(C**-3.0, 3.0**-3), 0.01) is None


def test_points_that_all_have_a_center_are_left_out():
    C = np.arange(1, 13)
    inertia = np.maximum(C**-2.0, 5.0**-2) * C**-0.1
    expected = elbow(C[:10], inertia[:10], 0.01)
    inertia[10:] = 0
    assert elbow(C, inertia, 0.01) == expected == 5


def test_an_elbow_halves_the_slope():
    C = np.arange(1, 21)
    for after, expected in ((-0.6, None), (-0.4, 9)):
        assert elbow(C, np.where(C <= 9, C**-1.0, (C / 9.0) ** after / 9), 0.01) == expected


def test_critical_value_is_exceeded_as_often_as_the_level_says(rng):
    exceeds = excess(rng.standard_normal((20_000, 12))) > critical_value(12, 0.05)
    assert abs(exceeds.mean() - 0.05) < 4 * np.sqrt(2 * 0.05 * 0.95 / len(exceeds))


def test_excess_leaves_the_least_out():
    assert excess(np.array([-100.0, 1.0, 2.0, 3.0, 7.0])) == pytest.approx(5.0)
    assert excess(np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 3.0, 2.0]])).tolist() == pytest.approx(
        [0.0, 1.5 / np.sqrt(0.5)]
    )
