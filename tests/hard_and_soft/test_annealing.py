"""Paths of soft k-means: separations at the critical stiffness, fixed points of EM, and k-means at the end."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logsumexp

from cprime import KMeans
from cprime.datasets import birch
from cprime.theory import soft_kmeans_path

X = birch(2, random_state=0).data
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def path():
    return soft_kmeans_path(X, 4, random_state=0)


def test_centers_of_two_points_solve_the_equation_of_the_mean_field():
    """For points ±1, m = tanh(2βm), which has a positive solution above β = 1/2."""
    betas = np.array([0.3, 0.45, 0.6, 1.0, 2.0])
    found = soft_kmeans_path([[-1.0], [1.0]], 2, stiffness=betas, tol=1e-12, random_state=0)
    expected = [0, 0, *(brentq(lambda m, b=b: m - np.tanh(2 * b * m), 0.1, 1) for b in betas[2:])]
    np.testing.assert_allclose(np.sort(found.centers[..., 0]), np.array([np.negative(expected), expected]).T, atol=0.01)
    assert found.critical_stiffness == pytest.approx(0.5)
    assert found.n_distinct.tolist() == [1, 1, 2, 2, 2]


def test_centers_separate_at_the_critical_stiffness_along_the_widest_direction():
    data = RNG.standard_normal((500, 3)) * [1.0, 4.0, 0.5]
    variances, directions = np.linalg.eigh(np.cov(data.T, bias=True))
    critical = 1 / (2 * variances[-1])
    found = soft_kmeans_path(data, 2, stiffness=critical * np.array([0.5, 0.9, 1.1]), tol=1e-10, random_state=1)
    assert found.critical_stiffness == pytest.approx(critical)
    assert found.n_distinct.tolist() == [1, 1, 2]
    separation = np.diff(found.centers[-1], axis=0)[0]
    assert abs(separation @ directions[:, -1]) > 0.99 * np.linalg.norm(separation)
    assert abs(found.direction @ directions[:, -1]) == pytest.approx(1)
    np.testing.assert_allclose(found.centers[0], np.tile(data.mean(axis=0), (2, 1)), atol=0.05)


def test_each_step_is_a_fixed_point_with_the_recorded_bound_and_error(path):
    D = X.shape[1]
    for beta, centers, bound, inertia in zip(path.stiffness, path.centers, path.lower_bound, path.inertia, strict=True):
        squared = ((X[:, np.newaxis] - centers) ** 2).sum(axis=2)
        log_p = -beta * squared + D / 2 * np.log(beta / np.pi) - np.log(4)
        assert bound == pytest.approx(logsumexp(log_p, axis=1).mean(), abs=1e-5)
        assert inertia == pytest.approx(squared.min(axis=1).sum(), rel=1e-6)
        r = np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))
        np.testing.assert_allclose(r.T @ X / r.sum(axis=0)[:, np.newaxis], centers, atol=0.05 / np.sqrt(beta))


def test_a_path_goes_from_one_center_to_a_k_means_solution(path):
    assert path.n_distinct[0] == 1
    assert path.n_distinct[-1] == 4
    np.testing.assert_allclose(path.stiffness[1:] / path.stiffness[:-1], 1.1)
    assert path.stiffness[0] < path.critical_stiffness < path.stiffness[-1]
    assert path.k_means.inertia_ == pytest.approx(path.inertia[-1], rel=1e-3)
    assert path.k_means.inertia_ == pytest.approx(KMeans(4, random_state=0).fit(X).inertia_, rel=1e-6)


def test_a_path_ends_if_every_point_has_a_center():
    found = soft_kmeans_path([[0.0], [1.0], [5.0]], 3, random_state=0)
    assert found.n_distinct[-1] == 3
    np.testing.assert_allclose(np.sort(found.centers[-1], axis=0), [[0], [1], [5]], atol=1e-3)


def test_a_path_has_the_unit_of_the_data(path):
    scaled = soft_kmeans_path(1000 * X, 4, random_state=0)
    np.testing.assert_allclose(scaled.stiffness, path.stiffness / 1e6)
    np.testing.assert_allclose(scaled.centers, 1000 * path.centers, rtol=1e-3, atol=20)


def test_the_picture_shows_a_line_for_each_center(path):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="plots need matplotlib")
    pyplot.switch_backend("Agg")
    ax = path.plot()
    assert path.plot(ax=ax) is ax
    drawn = np.array([line.get_ydata() for line in ax.lines[:4]])
    order = path.centers[-1].dot(path.direction).argsort()
    np.testing.assert_array_equal(drawn, ((path.centers - X.mean(axis=0)) @ path.direction)[:, order].T)
    assert ax.get_xscale() == "log"
    pyplot.close("all")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X": np.ones((5, 2))}, "X has 5 equal rows"),
        ({"n_clusters": 0}, "n_clusters == 0, must be >= 1"),
        ({"stiffness": [2.0, 1.0]}, "stiffness must be increasing positive numbers, got"),
        ({"stiffness": [-1.0, 1.0]}, "stiffness must be increasing positive numbers, got"),
        ({"stiffness": []}, "stiffness must be increasing positive numbers, got"),
        ({"perturbation": -1.0}, "perturbation"),
        ({"X": X[:3]}, "n_samples=3"),
    ],
)
def test_wrong_arguments_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        soft_kmeans_path(**{"X": X, "n_clusters": 4, "random_state": 0} | given)
