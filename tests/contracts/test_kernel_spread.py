"""`spread_out`: greedy D² sampling within groups; `means`: centers of the M-step."""

import numpy as np
import pytest
from kernel_calls import native, reference
from kernel_data import DTYPES, clustered, rounding


def draw(offsets, n_chosen, trials, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    candidates = clustered(offsets[-1], 5, dtype, seed)
    return (
        candidates,
        np.array(offsets),
        rng.exponential(size=offsets[-1]),
        np.array(n_chosen),
        rng.random((sum(n_chosen), trials)),
    )


@pytest.mark.parametrize("trials", [1, 3])
def test_spread_out_equals_the_reference(trials):
    arguments = draw([0, 40, 40, 47, 147], [13, 0, 7, 30], trials)
    np.testing.assert_array_equal(native.spread_out(*arguments), reference.spread_out(*arguments))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_are_chosen_once_and_copies_last(kernels, dtype):
    candidates, offsets, weights, _, uniform = draw([0, 30], [12], 3, dtype)
    candidates[:] = candidates[np.arange(30) % 8]
    chosen = kernels.spread_out(candidates, offsets, weights, np.array([12]), uniform)
    assert len(set(chosen)) == 12
    assert len(np.unique(candidates[chosen[:8]], axis=0)) == 8


def test_spread_out_is_the_same_for_any_number_of_threads():
    arguments = draw(list(range(0, 500, 20)), [9] * 24, 3, np.float32)
    expected = native.spread_out(*arguments, n_threads=1)
    np.testing.assert_array_equal(native.spread_out(*arguments, n_threads=4), expected)


def test_spread_out_lowers_the_distortion(kernels):
    candidates, offsets, weights, n_chosen, uniform = draw([0, 300], [12], 3)
    chosen = candidates[kernels.spread_out(candidates, offsets, weights, n_chosen, uniform)]
    at_random = candidates[:12]
    distortion = [kernels.nearest(candidates, c)[1][:, 0] @ weights for c in (chosen, at_random)]
    assert distortion[0] < distortion[1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("from_origin", [False, True])
def test_means_equal_the_reference(from_origin, dtype):
    rng = np.random.default_rng(0)
    counts, centers = rng.integers(0, 4, 600).astype(float), clustered(600, 7, dtype)
    sums = rng.standard_normal((600, 7)) * counts[:, None]
    origin = rng.standard_normal(7) if from_origin else None
    new, squares = native.means(counts, sums, centers, origin)
    expected, expected_squares = reference.means(counts, sums, centers, origin)
    np.testing.assert_allclose(new, expected, rtol=rounding(dtype, 1))
    np.testing.assert_allclose(squares, expected_squares, rtol=1e-12)
    np.testing.assert_array_equal(new[counts == 0], centers[counts == 0])


def test_accumulate_adds_in_place(kernels):
    X, kept = clustered(50, 4, np.float64), np.random.default_rng(0).integers(0, 6, (50, 1)).astype(np.int32)
    before = np.random.default_rng(1).standard_normal((6, 4))
    onto = before.copy()
    counts, sums = kernels.accumulate(X, kept, n_components=6, onto=onto)
    expected = kernels.accumulate(X, kept, n_components=6)
    assert sums is onto
    np.testing.assert_array_equal(counts, expected[0])
    np.testing.assert_allclose(sums, before + expected[1], rtol=1e-12, atol=1e-12)
