"""`posterior`, `accumulate` and `along`: responsibilities, M-step sums, and projections of points on directions."""

import numpy as np
import pytest
from kernel_calls import native, reference
from kernel_data import DTYPES, clustered, same_bits, weights
from scipy.sparse import csr_array

from cprime.kernels import SparseRows


def sparse(kernels, X):
    """Return the rows as sparse ones for the compiled kernels, unchanged for their reference."""
    return SparseRows.from_scipy(csr_array(X)) if kernels is native else X


def kept_and_responsibilities(n, n_kept, n_components, seed=0):
    """Return distinct ids (n, H) int32, and responsibilities (n, H) float64, some of which are tiny or 0."""
    rng = np.random.default_rng(seed)
    kept = np.argsort(rng.random((n, n_components)), axis=1)[:, :n_kept].astype(np.int32)
    return kept, rng.exponential(size=(n, n_kept)) * rng.choice([1, 0.1, 1e-20, 1e-40, 0], size=(n, n_kept))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_kept", [1, 2, 5, 16, 17, 300])
def test_posterior_equals_the_reference(n_kept, dtype):
    rng = np.random.default_rng(n_kept)
    for n in (1, 7, 131):
        log_joint = (30 * rng.standard_normal((n, n_kept)) - 1000).astype(dtype)
        log_joint[rng.random(log_joint.shape) < 0.1] = -np.inf
        log_joint[:, 0] = -1010
        q, log_sum, mean = native.posterior(log_joint)
        expected_q, expected_log_sum, expected_mean = reference.posterior(log_joint)
        assert q.dtype == log_sum.dtype == np.float64
        np.testing.assert_allclose(q, expected_q, rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(log_sum, expected_log_sum, rtol=1e-14)
        np.testing.assert_allclose(mean, expected_mean, rtol=1e-12)
        np.testing.assert_allclose(q.sum(axis=1), 1, rtol=1e-13)
        np.testing.assert_array_equal(q[np.isneginf(log_joint)], 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_posterior_of_extreme_rows_is_that_of_the_reference(dtype, kernels):
    log_joint = np.array(
        [[-1e30, -np.inf, -np.inf], [1e30, -1e30, 0], [700, 700, 700], [-1e5, -1e5 - 1, -2e5]], dtype=dtype
    )
    q, log_sum, _ = kernels.posterior(log_joint)
    e = 1 / (1 + np.exp(-1))
    np.testing.assert_allclose(q, [[1, 0, 0], [1, 0, 0], [1 / 3] * 3, [e, 1 - e, 0]], rtol=1e-12)
    expected = [dtype(-1e30), dtype(1e30), 700 + np.log(3), -1e5 + np.log1p(np.exp(-1))]
    np.testing.assert_allclose(log_sum, expected, rtol=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [-0.05, -1e22, 3e19])
def test_posterior_is_right_if_products_of_values_are_rounded(dtype, scale, kernels):
    """The maximum is subtracted as a rounded product, so scale · value must be rounded before the subtraction."""
    values = np.array([[1.1, 1.1, 1.1], [6e20 / 7, 6e20 / 7, 6e20 / 7]], dtype=dtype)
    q, log_sum, mean = kernels.posterior(values, scale)
    np.testing.assert_allclose(q, 1 / 3, rtol=1e-15)
    np.testing.assert_allclose(log_sum, scale * values[:, 0].astype(np.float64) + np.log(3), rtol=1e-14)
    np.testing.assert_allclose(mean, values[:, 0], rtol=1e-15)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_components", [1, 2, 15, 17, 300])
def test_accumulate_equals_the_reference(n_components, dtype, weighted):
    for n, D in ((1, 1), (7, 2), (131, 17), (200, 64), (40, 200)):
        X = clustered(n, D, dtype)
        w = weights(n) if weighted else None
        for n_kept in sorted({1, min(3, n_components), n_components}):
            kept, q = kept_and_responsibilities(n, n_kept, n_components)
            for given in (q, None) if n_kept == 1 else (q,):
                counts, sums = native.accumulate(X, kept, given, w, n_components=n_components)
                expected_counts, expected_sums = reference.accumulate(X, kept, given, w, n_components=n_components)
                assert counts.dtype == sums.dtype == np.float64
                assert sums.shape == (n_components, D)
                np.testing.assert_allclose(counts, expected_counts, rtol=1e-12)
                np.testing.assert_allclose(sums, expected_sums, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", DTYPES)
def test_float32_data_are_summed_in_float64(dtype, kernels):
    X = np.full((100_000, 1), 1.1, dtype=dtype)
    kept = np.zeros((len(X), 1), dtype=np.int32)
    counts, sums = kernels.accumulate(X, kept, n_components=2)
    np.testing.assert_array_equal(counts, [100_000, 0])
    np.testing.assert_allclose(sums[:, 0], [100_000 * float(dtype(1.1)), 0], rtol=1e-11)


def test_float32_weights_are_taken(kernels):
    X = clustered(50, 4, np.float64)
    kept, q = kept_and_responsibilities(50, 2, 6)
    w = weights(50).astype(np.float32)
    assert same_bits(
        kernels.accumulate(X, kept, q, w, n_components=6),
        kernels.accumulate(X, kept, q, w.astype(np.float64), n_components=6),
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_along_equals_the_reference(dtype):
    rng = np.random.default_rng(0)
    for n, D, C in ((1, 1, 1), (7, 3, 2), (130, 16, 9), (400, 33, 40), (5000, 70, 12)):
        X = clustered(n, D, dtype)
        centers, directions = clustered(C, D, dtype, seed=1), rng.standard_normal((C, D)).astype(dtype)
        labels = rng.integers(C, size=n).astype(np.int32)
        expected = reference.along(X, centers, directions, labels)
        assert expected.dtype == np.float64
        scale = np.linalg.norm(X - centers[labels], axis=1) * np.linalg.norm(directions[labels], axis=1)
        error = np.abs(native.along(X, centers, directions, labels) - expected)
        assert (error <= 4 * np.finfo(dtype).eps * scale).all()


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda k, X, *given, n: k.accumulate(X, *given, n_components=n), id="sums"),
        pytest.param(lambda k, X, *given, n: k.accumulate(sparse(k, X), *given, n_components=n), id="sparse"),
        pytest.param(lambda k, X, *given, n: k.moments(X, np.zeros((n, 3), X.dtype), *given, full=False), id="diag"),
        pytest.param(lambda k, X, *given, n: k.moments(X, np.zeros((n, 3), X.dtype), *given, full=True), id="full"),
        pytest.param(
            lambda k, X, *given, n: k.factor_moments(
                X, np.zeros((n, 3), X.dtype), None, np.ones((1, 2, 3), X.dtype), None, *given
            ),
            id="factors",
        ),
    ],
)
@pytest.mark.parametrize(("exponent", "dtype"), [(40, np.float32), (40, np.float64), (80, np.float64)])
@pytest.mark.parametrize("power", [1, 2])
def test_far_points_count_whatever_their_responsibility(power, exponent, dtype, call):
    """A responsibility of 2⁻⁸⁰ of a point at 2⁴⁰ adds as much to second moments as a responsibility of 1 at 1."""
    X = np.random.default_rng(0).integers(1, 8, size=(20, 3)).astype(dtype)
    X[10:] *= dtype(2.0**exponent)
    q = np.where(np.arange(20) < 10, 1.0, 2.0 ** (-power * exponent))
    given = np.tile(np.array([3, 90], dtype=np.int32), (20, 1)), np.column_stack([q, 1 - q]), None
    for found, expected in zip(call(native, X, *given, n=100), call(reference, X, *given, n=100), strict=True):
        np.testing.assert_allclose(found, expected, rtol=8 * np.finfo(dtype).eps)  # as moments of a run are in dtype
