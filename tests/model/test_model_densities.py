"""Densities, costs, posteriors, noise and numbers of free parameters of every family agree with SciPy."""

import pickle

import numpy as np
import pytest
from model_data import CENTERS, NAMES, SHARES, C, D, known, points

from cprime.kernels import as_rows
from cprime.model.base import log_weights
from cprime.model.tied_spherical import FixedVariance, TiedSpherical, variance_floor

families = pytest.mark.parametrize("name", NAMES)
weights = pytest.mark.parametrize("free", [False, True])


@weights
@families
def test_likelihoods_and_posteriors_are_those_of_the_normal_densities(name, free):
    X, truth = points(), known(name, free)
    np.testing.assert_allclose(truth.model.log_likelihood(as_rows(X)), truth.likelihood(X), rtol=1e-12)
    np.testing.assert_allclose(truth.model.responsibilities(as_rows(X)), truth.posterior(X), rtol=1e-9, atol=1e-14)


@weights
@families
def test_costs_are_log_densities_of_components(name, free):
    """log p(c, x) = log_scale + scale · cost, for every component that a search may return."""
    X, truth = points(), known(name, free)
    model, components = truth.model, truth.model.components()
    embedded = model.embed(as_rows(X))
    ids, costs = components.best(embedded, C)
    expected = np.take_along_axis(truth.joint(X), ids, axis=1)
    np.testing.assert_allclose(model.log_scale + model.scale * costs, expected, rtol=1e-11)
    assert (np.diff(costs, axis=1) >= 0).all()
    assert (costs >= -1e-12).all()
    label = ids[:, :1].copy()
    again = components.search_lists(embedded, np.empty((C, 0), np.int32), label, 1).costs
    np.testing.assert_allclose(again, costs[:, :1], rtol=1e-12, atol=1e-12)


@weights
@families
def test_float32_keeps_its_type(name, free):
    truth = known(name, free)
    model = type(truth.model)(**{**truth.model.__getstate__(), "centers": CENTERS.astype(np.float32)})
    X = points().astype(np.float32)
    assert model.embed(as_rows(X)).dtype == np.float32
    np.testing.assert_allclose(model.log_likelihood(as_rows(X)), truth.likelihood(points()), rtol=1e-5)


@weights
def test_whitened_points_far_from_the_origin_keep_their_digits(free):
    """Points are shifted by the mean of the centers before products in float32, so no digits are lost."""
    truth = known("tied", free)
    X, far = (points() + 4096).astype(np.float32), (CENTERS + 4096).astype(np.float32)
    model = type(truth.model)(**{**truth.model.__getstate__(), "centers": far})
    exact = type(truth.model)(**{**truth.model.__getstate__(), "centers": far.astype(float)})
    expected = type(truth)(exact, truth.covariances).likelihood(X.astype(float))
    np.testing.assert_allclose(model.log_likelihood(as_rows(X)), expected, rtol=1e-5)


@families
def test_what_has_been_made_of_parameters_does_not_travel(name):
    model = known(name, True).model
    model.log_likelihood(as_rows(points()))
    again = pickle.loads(pickle.dumps(model))
    assert set(vars(again)) == set(model.__getstate__()) >= {"centers", "weights"}
    np.testing.assert_array_equal(again.log_likelihood(as_rows(points())), model.log_likelihood(as_rows(points())))


@pytest.mark.parametrize(
    ("name", "covariances"),
    [("tied_spherical", 1), ("spherical", C), ("diag", C * D), ("tied", 6), ("full", 6 * C)],
)
def test_free_parameters_are_counted(name, covariances):
    assert known(name).model.n_parameters == C * D + covariances
    assert known(name, True).model.n_parameters == C * D + covariances + C - 1
    assert FixedVariance(CENTERS, 1.0, 1e-9).n_parameters == C * D


@families
def test_noise_has_the_covariance_of_the_component(name):
    """For unit vectors, the noise is the columns of a root of Σ_c."""
    truth = known(name)
    for c in range(C):
        root = truth.model.noise(np.full(D, c), np.eye(D))
        np.testing.assert_allclose(root.T @ root, truth.covariances[c], rtol=1e-12, atol=1e-14)
    mixed = truth.model.noise(np.arange(C), np.ones((C, D)))
    alone = [truth.model.noise(np.array([c]), np.ones((1, D)))[0] for c in range(C)]
    np.testing.assert_allclose(mixed, alone, rtol=1e-12)


@families
def test_covariances_as_they_are_shown(name):
    model, shape = known(name).model, {"tied_spherical": (), "spherical": (C,), "diag": (C, D), "tied": (D, D)}
    assert np.shape(model.covariances) == shape.get(name, (C, D, D))
    assert model.covariances == model.variance if name == "tied_spherical" else (model.covariances > -9).all()
    assert getattr(model.prior, "full", None) == {"tied_spherical": False, "tied": True}.get(name)
    assert (model.n_components, model.n_features) == (C, D)


@weights
@families
def test_points_are_embedded_once_where_the_parameters_do_not_matter(name, free):
    X, model = as_rows(points()), known(name, free).model
    made = model.embed(X)
    again = model.embed(X, made)
    steady = name != "tied" and not (free and name == "tied_spherical")
    assert (made is X) == steady
    if name == "tied_spherical" and free:
        assert again is made
        np.testing.assert_array_equal(made.given(), np.column_stack([X.given(), np.zeros(len(X))]))
        assert model.embed(X, X).shape == (len(X), D + 1)
    else:
        assert again is X or name == "tied"
    components = model.components()
    assert components.steady == (name == "tied_spherical")
    assert components.squared_distances == (name in ("tied_spherical", "tied"))


def test_the_weight_of_a_component_without_points_is_finite():
    np.testing.assert_allclose(log_weights(None, np.zeros((8, 1))), np.full(8, -np.log(8)))
    np.testing.assert_allclose(log_weights(SHARES, np.zeros((C, 1))), np.log(SHARES))
    least = log_weights(np.array([0.0, 1.0]), np.zeros((2, 1)))
    assert least[1] == 0
    assert -709 < least[0] < -700


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_least_variance_is_that_which_numbers_of_the_size_of_the_centers_show(dtype):
    eps = np.finfo(dtype).eps
    assert variance_floor(dtype([[3, -500], [4, 7]])) == pytest.approx((500 * eps) ** 2, rel=1e-6)
    assert variance_floor(np.zeros((2, 2), dtype)) == {np.float32: 2.0**-120, np.float64: 1e-200}[dtype]


def test_a_variance_is_a_mean_square_by_dimension_and_not_below_the_floor():
    model = TiedSpherical(CENTERS, 1.0, 0.5)
    assert model.with_variance(6.0).variance == 2.0
    assert model.with_variance(0.3).variance == 0.5
    assert model.with_variance(6.0).variance_floor == 0.5
    assert model.with_variance(6.0).centers is CENTERS
