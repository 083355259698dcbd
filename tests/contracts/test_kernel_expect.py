"""`expect_all` and `log_sum_exp`: one exact E-step over all components."""

import numpy as np
import pytest
from kernel_calls import native, reference
from kernel_data import DTYPES, clustered, rounding, sixteenths, weights


def assert_expectation(X, centers, variance, w=None):
    """Compare with the reference; tolerances follow from the rounding of ‖x − μ‖² / 2σ²."""
    result = native.expect_all(X, centers, variance, w)._asdict()
    truth = reference.expect_all(X, centers, variance, w)._asdict()
    total = len(X) if w is None else w.sum()
    exponent = reference.nearest(X, centers)[1].max() / (2 * variance)
    error = max(1e-12, rounding(X.dtype, X.shape[1]) * (1 + exponent))
    for name in ("squares", "log_sum", "entropy", "quantization_error"):
        assert isinstance(result[name], float), name
    assert result["counts"].dtype == result["sums"].dtype == np.float64
    assert result["counts"].shape == (len(centers),)
    assert result["sums"].shape == centers.shape
    spread = np.abs(X.astype(np.float64)).max()
    np.testing.assert_allclose(result["counts"].sum(), total, rtol=1e-6 if X.dtype == np.float32 else 1e-13)
    np.testing.assert_allclose(result["counts"], truth["counts"], rtol=error, atol=error * total)
    np.testing.assert_allclose(result["sums"], truth["sums"], rtol=error, atol=error * total * spread)
    for name in ("squares", "quantization_error"):
        np.testing.assert_allclose(result[name], truth[name], rtol=error, atol=1e-300, err_msg=name)
    np.testing.assert_allclose(result["log_sum"], truth["log_sum"], rtol=error, atol=error * total)
    entropy_error = 4 * error * (1 + np.log(len(centers))) * max(total, 1e-300)
    np.testing.assert_allclose(result["entropy"], truth["entropy"], rtol=0, atol=entropy_error)

    per_point = native.log_sum_exp(X, centers, variance)
    assert per_point.dtype == np.float64
    expected = reference.log_sum_exp(X, centers, variance)
    np.testing.assert_allclose(per_point, expected, rtol=error, atol=error)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("D", [1, 2, 17, 64, 200])
@pytest.mark.parametrize("n_centers", [1, 2, 15, 16, 17, 300])
def test_equals_the_reference(n_centers, D, dtype, weighted):
    for n, variance in ((1, 1.0), (7, 0.3), (131, 1.0), (131, 30.0)):
        X = clustered(n, D, dtype, seed=D)
        centers = clustered(n_centers, D, dtype, seed=n)
        assert_expectation(X, centers, variance, weights(n) + 1e-3 if weighted else None)


@pytest.mark.parametrize("variance", [1e-30, 1e-12, 1e-6, 1e-3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_small_variance_is_hard_assignment(dtype, variance, kernels):
    """For σ² → 0 each point belongs to its nearest center, if no other center is nearly as near."""
    places = (100 * np.arange(20)[:, np.newaxis] * np.ones(3)).astype(dtype)
    X = (np.repeat(places, 5, axis=0) + clustered(100, 3, dtype) / dtype(16)).astype(dtype)
    counts, sums, squares, log_sum, entropy, least = kernels.expect_all(X, places, variance)
    np.testing.assert_allclose(counts, 5, rtol=1e-12)
    truth = X.reshape(20, 5, 3).sum(axis=1, dtype=np.float64)
    np.testing.assert_allclose(sums, truth, rtol=0, atol=5 * 2000 * np.finfo(dtype).eps)
    expected = reference.nearest(X.astype(np.float64), places.astype(np.float64))[1].sum()
    np.testing.assert_allclose([squares, least], expected, rtol=1e-5)
    np.testing.assert_allclose(log_sum, -expected / (2 * variance), rtol=1e-5)
    assert 0 <= entropy < 1e-9
    assert np.isfinite(kernels.log_sum_exp(X, places, variance)).all()


@pytest.mark.parametrize("variance", [1e-12, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("dtype", DTYPES)
def test_identical_points_and_centers(dtype, variance, kernels):
    """If all points and centers are equal, responsibilities are uniform for every variance."""
    X = np.full((30, 4), 1e6 + 0.5, dtype=dtype)
    counts, sums, squares, log_sum, entropy, least = kernels.expect_all(X, X[:8], variance)
    np.testing.assert_allclose(counts, 30 / 8, rtol=1e-6)
    np.testing.assert_allclose(sums, float(X[0, 0]) * 30 / 8, rtol=1e-6)
    assert squares == least == 0
    np.testing.assert_allclose(log_sum, 30 * np.log(8), rtol=1e-6)
    np.testing.assert_allclose(entropy, 30 * np.log(8), rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_far_outliers_leave_the_others_alone(dtype, kernels):
    """Three rows and one component at 1e8 do not change the results of the other rows."""
    X, centers = clustered(60, 5, dtype), clustered(20, 5, dtype, seed=2)
    X[::20] = 1e8
    centers[7] = -1e8
    w = np.where(np.arange(60) % 20 == 0, 0.0, 1.0)
    others = np.delete(np.arange(20), 7)
    error = 1e-9 if dtype == np.float64 else 1e-4

    log_sum = kernels.log_sum_exp(X, centers, 1.0)
    assert np.isfinite(log_sum).all()
    expected = reference.log_sum_exp(X[w > 0], centers[others], 1.0)
    np.testing.assert_allclose(log_sum[w > 0], expected, rtol=error, atol=error)

    assert all(np.isfinite(result).all() for result in kernels.expect_all(X, centers, 1.0))
    result = kernels.expect_all(X, centers, 1.0, w)._asdict()
    truth = reference.expect_all(X[w > 0], centers[others], 1.0)._asdict()
    assert result["counts"][7] == 0
    for name in ("counts", "sums"):
        np.testing.assert_allclose(result[name][others], truth[name], rtol=error, atol=error, err_msg=name)
    for name in ("squares", "log_sum", "entropy", "quantization_error"):
        np.testing.assert_allclose(result[name], truth[name], rtol=error, atol=error, err_msg=name)


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_offset_of_a_million_changes_little(dtype):
    """Differences are exact, so only the sums over x_n may depend on the offset."""
    X, centers, w = sixteenths(120, 6, dtype), sixteenths(33, 6, dtype, seed=1), weights(120)
    near = native.expect_all(X, centers, 1.5, w)._asdict()
    far = native.expect_all(X + dtype(1e6), centers + dtype(1e6), 1.5, w)._asdict()
    error = 1e-4 if dtype == np.float32 else 1e-8
    for name in ("counts", "squares", "log_sum", "entropy", "quantization_error"):
        np.testing.assert_allclose(far[name], near[name], rtol=error, atol=error, err_msg=name)
    shifted = near["sums"] + 1e6 * near["counts"][:, np.newaxis]
    np.testing.assert_allclose(far["sums"], shifted, rtol=1e-6 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("variance", [1e-300, 0.01, 1.0, 1e308])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sum_over_many_components_is_relative_to_the_nearest(dtype, variance):
    """The sum is accurate at any position of the nearest center among components that are processed in batches."""
    X, centers = clustered(30, 3, dtype), clustered(1500, 3, dtype, seed=1)
    far_first = centers[np.argsort(-np.square(centers - X[0]).sum(axis=1))]
    for order in (far_first, far_first[::-1]):
        found = native.log_sum_exp(X, order, variance)
        np.testing.assert_allclose(found, reference.log_sum_exp(X, order, variance), rtol=1e-5, atol=1e-4)
