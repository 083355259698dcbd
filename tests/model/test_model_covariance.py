"""Repair of covariances without a Cholesky factor, of zero variances and of components without points."""

import logging

import numpy as np
import pytest
from model_data import matrices

from cprime.model import Diag, FullCovariance, Spherical
from cprime.model.covariance import (
    DataScale,
    inverses,
    least_variance,
    of_empty,
    positive,
    repaired,
)


def scale_of(variance, shape=(1, 1)):
    """Return a `DataScale` with this mean variance, for data whose components have means 0."""
    return DataScale(variance, np.zeros(shape))


def test_a_covariance_with_a_factor_is_left_alone(caplog):
    given = matrices()
    with caplog.at_level(logging.INFO, "cprime"):
        found, lower = repaired(given)
    np.testing.assert_array_equal(found, given)
    assert found is not given
    np.testing.assert_allclose(lower @ lower.transpose(0, 2, 1), given, rtol=1e-12)
    np.testing.assert_array_equal(np.triu(lower, 1), 0)
    np.testing.assert_allclose(inverses(lower) @ lower, np.broadcast_to(np.eye(3), lower.shape), atol=1e-12)
    np.testing.assert_array_equal(np.triu(inverses(lower), 1), 0)
    assert not caplog.records


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_a_singular_covariance_gets_the_least_share_of_its_mean_variance_that_helps(scale, caplog):
    """A covariance of rank one with mean variance 5/3 needs 1e-10 of it; the other components are not changed."""
    line = np.array([2.0, 0.0, 1.0])
    given = np.stack([matrices()[0], scale * np.outer(line, line), matrices()[1]])
    before = given.copy()
    with caplog.at_level(logging.INFO, "cprime"):
        found, lower = repaired(given)
    np.testing.assert_array_equal(given, before)
    np.testing.assert_array_equal(found[[0, 2]], given[[0, 2]])
    np.testing.assert_allclose(found[1] - given[1], 1e-10 * scale * 5 / 3 * np.eye(3), rtol=1e-5, atol=0)
    np.testing.assert_allclose(lower[1] @ lower[1].T, found[1], rtol=1e-12)
    assert "1 singular covariance(s) repaired" in caplog.text


def test_ever_more_is_added_until_there_is_a_factor():
    """If off-diagonals exceed the variances by 3e-8 of these, then 1e-10, 1e-9 and 1e-8 are tried in vain, and 1e-7
    works.
    """
    given = np.array([[[1.0, 1 + 3e-8], [1 + 3e-8, 1.0]]])
    found, _ = repaired(given)
    np.testing.assert_allclose(found - given, 1e-7 * np.eye(2)[np.newaxis], rtol=1e-6, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("unit", [2.0**-60, 1.0, 2.0**60])
def test_nothing_at_all_becomes_a_tiny_share_of_the_variance_of_the_data(unit, dtype):
    found, lower = repaired(np.zeros((1, 2, 2)), dtype, scale_of(unit))
    np.testing.assert_allclose(found, 1e-10 * unit * np.eye(2)[np.newaxis])
    np.testing.assert_allclose(lower, np.sqrt(1e-10 * unit) * np.eye(2)[np.newaxis])
    nothing = repaired(np.zeros((1, 2, 2)), dtype, scale_of(2.0**-500))[0][0, 0, 0]
    assert nothing == pytest.approx(least_variance(2.0**-500, dtype) if dtype == np.float32 else 1e-10 * 2.0**-500)
    assert np.isfinite(1 / dtype(nothing))


def test_the_variance_of_the_data_is_that_of_its_moments():
    """The data variance is the mean over columns; for equal points, 1e-10 of it is the square of their resolution."""
    counts, means = np.array([1.0, 3.0]), np.array([[0.0, 4.0], [8.0, 4.0]])
    scale = DataScale.measure(counts, means, np.array([[1.0, 0.0], [2.0, 0.5]]), np.float64)
    assert scale.variance == pytest.approx((0.25 * 1 + 0.75 * 2 + 12 + 0.75 * 0.5) / 2)
    equal = DataScale.measure(counts, np.full((2, 2), -8.0), np.zeros((2, 2)), np.float32).variance
    assert 1e-10 * equal == pytest.approx((8 * np.finfo(np.float32).eps) ** 2)
    assert DataScale.measure(counts, np.zeros((2, 2)), np.zeros((2, 2)), np.float32).variance == 1.0


def test_rounding_is_no_variance():
    """A covariance is singular if the last pivot is below four units in the last place of the last variance."""
    eps = np.finfo(np.float64).eps
    for rest, singular in ((2 * eps, True), (64 * eps, False)):
        given = np.array([[[1.0, 1.0], [1.0, 1.0 + rest]]])
        assert np.array_equal(repaired(given)[0], given) != singular


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_covariance_that_is_not_finite_is_named(bad):
    """A covariance with NaN or infinity is named even if LAPACK returns a factor without an error."""
    given = matrices()
    given[2, 1, 0] = given[2, 0, 1] = bad
    with pytest.raises(np.linalg.LinAlgError, match="the covariance of component 2 is not finite"):
        repaired(given)


def test_a_factor_without_inverse_is_named():
    lower = np.stack([np.eye(2), np.array([[1.0, 0.0], [5.0, 0.0]])])
    with pytest.raises(np.linalg.LinAlgError, match="the factor of component 1 is singular"):
        inverses(lower)


def test_variances_of_no_extent_become_a_tiny_share_of_the_mean_of_their_component(caplog):
    given = np.array([[2.0, 0.0], [4.0, np.nan]])
    with caplog.at_level(logging.INFO, "cprime"):
        found = positive(given, np.float64)
    np.testing.assert_allclose(found, [[2.0, 1e-10], [4.0, 2e-10]])
    assert "2 variance(s) were 0 up to rounding" in caplog.text
    caplog.clear()
    least = least_variance(1.0, np.float64)
    good = np.array([1.0, 2 * least])
    with caplog.at_level(logging.INFO, "cprime"):
        assert positive(good, np.float64) is good
    assert not caplog.records
    np.testing.assert_allclose(positive(np.array([1.0, least]), np.float64), [1.0, 1e-10])
    np.testing.assert_allclose(positive(np.zeros(3), np.float64), np.full(3, 1e-10))
    np.testing.assert_allclose(positive(np.zeros(3), np.float64, scale_of(4.0, 1)), np.full(3, 4e-10))
    tiny = least_variance(0.0, np.float32)
    np.testing.assert_allclose(positive(np.array([5 * tiny, 0.0]), np.float32), [5 * tiny, tiny])


@pytest.mark.parametrize("shape", [(), (2,), (2, 2)])
def test_components_without_points_take_the_weighted_mean_of_the_others(shape, caplog):
    given = np.arange(1.0, 5.0).reshape(4, *[1] * len(shape)) * np.ones((4, *shape))
    with caplog.at_level(logging.INFO, "cprime"):
        found = of_empty(np.array([1.0, 0.0, 3.0, np.nan]), given)
    mean = 0.25 * 1 + 0.75 * 3
    np.testing.assert_allclose(found, np.array([1, mean, 3, mean]).reshape(4, *[1] * len(shape)) * np.ones((4, *shape)))
    assert "2 component(s) without points" in caplog.text
    assert of_empty(np.ones(4), given) is given
    assert of_empty(np.zeros(4), given) is given


def test_a_family_repairs_what_an_m_step_gives():
    counts, centers = np.array([3.0, 5.0]), np.zeros((2, 2))
    flat = np.array([[1.0, 0.0], [3.0, 2.0]])
    np.testing.assert_allclose(Diag(centers, flat)._shaped(counts, flat, scale_of(1.0)), [[1, 0.5e-10], [3, 2]])
    np.testing.assert_allclose(Diag(centers, flat, 0.5)._shaped(counts, flat, scale_of(1.0)), flat + 0.5)
    np.testing.assert_allclose(
        Diag(centers, flat, 0.5)._shaped(counts, flat - 0.1, scale_of(1.0)), np.maximum(flat - 0.1, 0) + 0.5
    )
    np.testing.assert_allclose(Spherical(centers, flat[0], 0.5)._shaped(counts, flat, scale_of(1.0)), [1.0, 3.0])
    np.testing.assert_allclose(
        Spherical(centers, flat[0])._shaped(counts, np.array([[-1.0, 2], [1, 1]]), scale_of(1.0)), [1, 1]
    )
    singular = np.array([np.eye(2), np.ones((2, 2))])
    shaped = FullCovariance(centers, singular, 0.5)._shaped(counts, singular.copy(), scale_of(1.0))
    np.testing.assert_allclose(shaped, singular + 0.5 * np.eye(2))
    found = FullCovariance(centers, singular)._shaped(counts, singular.copy(), scale_of(1.0))
    np.testing.assert_allclose(found[1] - singular[1], 1e-10 * np.eye(2), rtol=1e-5)


def test_what_is_added_does_not_cancel():
    """A variance that rounding made negative is repaired although its size is a power of ten of the added variance."""
    covariances, _ = repaired(np.array([[[-2.7e-27]]]), np.float32, scale_of(1.8e-11))
    assert covariances[0, 0, 0] > least_variance(1.8e-11, np.float32)


@pytest.mark.parametrize("agree", [True, False])
def test_many_singular_covariances_are_repaired_together_as_each_alone(agree, monkeypatch):
    """The repaired covariances equal those of single repairs, even if SciPy's LAPACK finds a factor for every one of
    them.
    """
    rng = np.random.default_rng(0)
    roots = rng.standard_normal((60, 4, 4)) * 10.0 ** rng.integers(-9, 9, (60, 1, 1))
    roots[::3, :, 2:] = 0  # rank 2
    roots[1::3, :, 1:] = 0  # rank 1
    given = roots @ roots.transpose(0, 2, 1)
    alone = [repaired(each[np.newaxis], scale=scale_of(1.0)) for each in given]
    if not agree:
        monkeypatch.setattr("cprime.model.covariance.dpotrf", lambda array, lower: (array, 0))
    calls, cholesky = [], np.linalg.cholesky
    monkeypatch.setattr(np.linalg, "cholesky", lambda array: calls.append(len(array)) or cholesky(array))
    found, lower = repaired(given, scale=scale_of(1.0, (60, 1)))
    assert len(calls) < 20 or not agree  # fewer calls than components
    assert np.array_equal(found, np.concatenate([each[0] for each in alone]))
    assert np.array_equal(lower, np.concatenate([each[1] for each in alone]))
