"""`respond`, `responsibilities` and `moments`: exact E-steps of general Gaussian mixtures, and sums for M-steps."""

import numpy as np
import pytest
from kernel_calls import native, reference
from kernel_data import (
    SIZES,
    THREADS,
    assert_moments,
    clustered,
    cost_rounding,
    every_dtype,
    every_shape,
    exact_gaussians,
    gaussians,
    same_bits,
    sixteenths,
    weights,
)

from cprime.kernels import GaussianParameters
from reference.distances import costs_of


def assert_responses(found, expected, X, given, w=None):
    """Compare with the reference; errors of costs are exponentiated and bound the relative errors of the sums."""
    tiny = 1e-13 if X.dtype == np.float64 else 1e-5
    error = tiny + 2 * cost_rounding(X, given).max()
    total = len(X) if w is None else w.sum()
    span = np.abs(X.astype(np.float64)[:, np.newaxis] - given.means).max(initial=0)
    assert found.labels.dtype == np.int32
    assert all(array.dtype == np.float64 for array in found[1:])
    cost = costs_of(X, *given[:4])
    own = np.take_along_axis(cost, found.labels[:, np.newaxis], axis=1)[:, 0]
    assert (own <= cost.min(axis=1) + error).all()
    np.testing.assert_allclose(found.log_sum, expected.log_sum, rtol=tiny, atol=error)
    scale = 1 + np.log(len(given.means)) + np.abs(expected.mean)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=0, atol=4 * error * scale.max())
    np.testing.assert_allclose(found.counts, expected.counts, rtol=0, atol=error * total)
    np.testing.assert_allclose(found.first, expected.first, rtol=0, atol=error * total * span)
    np.testing.assert_allclose(found.second, expected.second, rtol=0, atol=error * total * span**2)
    assert found.second.shape == given.factors.shape


@pytest.mark.parametrize("weighted", [False, True])
@every_shape
@every_dtype
@pytest.mark.parametrize(("n", "D", "C"), SIZES)
def test_respond_equals_the_reference(n, D, C, dtype, full, weighted):
    X, given = clustered(n, D, dtype, seed=D), gaussians(C, D, dtype, full, seed=n)
    w = weights(n) if weighted else None
    found, expected = native.respond(X, given, w), reference.respond(X, given, w)
    assert_responses(found, expected, X, given, w)
    if full:
        np.testing.assert_array_equal(found.second, found.second.transpose(0, 2, 1))
    bare = native.respond(X, given, w, moments=False)
    assert same_bits(tuple(bare[:3]), tuple(found[:3]))
    assert bare.counts.size == bare.first.size == bare.second.size == 0
    r = native.responsibilities(X, given)
    assert r.shape == (n, C)
    assert r.dtype == np.float64
    error = (1e-13 if dtype == np.float64 else 1e-5) + 2 * cost_rounding(X, given).max()
    np.testing.assert_allclose(r, reference.responsibilities(X, given), rtol=0, atol=error)
    np.testing.assert_allclose(r.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("unit", [1e40, 1e-44])
@pytest.mark.parametrize("scale", [2.0**50, 2.0**-50])
def test_moments_hold_all_numbers_that_data_may_have(unit, scale, kernels):
    """Moments are accurate even if one column's squares would underflow in single precision."""
    X, means = clustered(300, 20, np.float32), clustered(7, 20, np.float32, seed=1)
    kept = np.random.default_rng(0).integers(7, size=(300, 3)).astype(np.int32)
    q, w, columns = np.full((300, 3), 1 / 3), weights(300), np.where(np.arange(20) == 3, 1 / scale, scale)
    expected = reference.moments(X, means, kept, q, w, full=False)
    far = (X * columns).astype(np.float32), (means * columns).astype(np.float32)
    counts, first, second = kernels.moments(*far, kept, q, unit * w, full=False)
    found = counts / unit, first / unit / columns, second / unit / columns**2
    assert_moments(found, expected, X, means, kept, q, w)


def test_moments_of_subnormal_numbers_are_exact(kernels):
    """Moments of subnormal numbers are exact, though their scaling factor exceeds the range of single precision."""
    X, means = np.full((6, 2), 2.0**-140, np.float32), np.zeros((1, 2), np.float32)
    counts, first, second = kernels.moments(X, means, np.zeros((6, 1), np.int32), full=False)
    assert counts == 6
    np.testing.assert_array_equal(first, np.full((1, 2), 6 * 2.0**-140))
    np.testing.assert_array_equal(second, np.full((1, 2), 6 * 2.0**-280))


@pytest.mark.parametrize("weighted", [False, True])
@every_shape
@every_dtype
@pytest.mark.parametrize(("n", "D", "C"), SIZES)
def test_moments_equal_the_reference(n, D, C, dtype, full, weighted):
    """Matrices are accurate to double precision for all data; diagonals to a few units in the data's last place."""
    X, means = clustered(n, D, dtype, seed=D), clustered(C, D, dtype, seed=n)
    w = weights(n) if weighted else None
    rng = np.random.default_rng(n)
    for H in (1, 2, 5):
        kept = rng.integers(C, size=(n, H)).astype(np.int32)
        for q in (None, rng.dirichlet(np.ones(H), n), rng.choice([-1.0, 0.0, 1.0], (n, H))):
            found = native.moments(X, means, kept, q, w, full=full)
            expected = reference.moments(X, means, kept, q, w, full=full)
            assert [array.dtype for array in found] == [np.float64] * 3
            assert [a.shape for a in found] == [b.shape for b in expected]
            assert_moments(found, expected, X, means, kept, q, w)
            if full:
                np.testing.assert_array_equal(found[2], found[2].transpose(0, 2, 1))


@every_dtype
def test_large_matrices_are_summed_in_parts(dtype):
    """Large matrices, summed by rows and in batches of segments, are bit-identical for any number of threads."""
    X, given, w = clustered(700, 400, dtype), gaussians(1, 400, dtype, True), weights(700)
    found = [native.respond(X, given, w, n_threads=n) for n in THREADS]
    assert_responses(found[0], reference.respond(X, given, w), X, given, w)
    assert all(same_bits(tuple(found[0]), tuple(other)) for other in found)
    kept = np.zeros((700, 1), dtype=np.int32)
    sums = [native.moments(X, given.means, kept, None, w, full=True, n_threads=n) for n in THREADS]
    assert all(same_bits(sums[0], other) for other in sums)
    for a, b in zip(sums[0], reference.moments(X, given.means, kept, None, w, full=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-9)


@every_shape
@every_dtype
def test_an_offset_of_a_million_changes_nothing(dtype, full):
    """Costs and moments are relative to the means, so an offset changes nothing if differences are exact."""
    X, given, w = sixteenths(120, 3, dtype, span=9), exact_gaussians(33, 3, dtype, full), weights(120)
    far = X + dtype(1e6), given._replace(means=given.means + dtype(1e6))
    near, moved = native.respond(X, given, w), native.respond(*far, w)
    np.testing.assert_array_equal(moved.labels, near.labels)
    for a, b in zip(near[1:], moved[1:], strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-6)
    kept = np.random.default_rng(0).integers(33, size=(120, 2)).astype(np.int32)
    q = np.full((120, 2), 0.5)
    sums = [native.moments(x, g.means, kept, q, w, full=full) for x, g in ((X, given), far)]
    assert same_bits(*sums)


@every_shape
def test_small_responsibilities_of_far_points_count(full):
    """A responsibility of 3e-19 for a row at 2²¹ standard deviations adds 1e-6 to second moments."""
    n, far = 64, 2.0**21
    X = np.array([[9.25, 0.0]] * n + [[0.0, far]])
    factors = np.tile(np.eye(2), (2, 1, 1)) if full else np.ones((2, 2))
    given = GaussianParameters(np.array([[0.0, 0.0], [9.25, 0.0]]), factors, np.zeros(2))
    found, expected = native.respond(X, given), reference.respond(X, given)
    square = found.second[1][1, 1] if full else found.second[1][1]
    np.testing.assert_allclose(square, far**2 * np.exp(-(9.25**2) / 2), rtol=1e-2)
    np.testing.assert_allclose(found.second, expected.second, rtol=1e-3, atol=1e-12)


@every_shape
@every_dtype
def test_far_points_and_narrow_components_stay_finite(dtype, full, kernels):
    """Costs beyond the range of the type give responsibility 0, and the nearest component gets the point."""
    X, given = clustered(60, 4, dtype), gaussians(20, 4, dtype, full)
    X[::20] = 1e5
    factors = given.factors.copy()
    factors[3] *= dtype(1e4)
    found = kernels.respond(X, given._replace(factors=factors))
    assert all(np.isfinite(array).all() for array in found)
    r = kernels.responsibilities(X, given._replace(factors=factors))
    np.testing.assert_allclose(r.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(r[::20].max(axis=1), 1)


@every_shape
def test_blocks_of_rows_add_up(full):
    """The sums over more rows than a block has equal those of the reference."""
    n, C = 70_001, 3
    X, given = clustered(n, 2, np.float64), gaussians(C, 2, np.float64, full)
    assert_responses(native.respond(X, given), reference.respond(X, given), X, given)
