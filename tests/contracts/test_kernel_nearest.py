"""`nearest`: the C′ nearest centers in ascending order, ties to the lower id, distances from differences."""

import numpy as np
import pytest
from kernel_calls import native, reference
from kernel_data import DTYPES, clustered, packed_beside_outliers, packed_far_away, rounding, same_bits, sixteenths


def assert_nearest(X, centers, kept, distances):
    """Compare a result with float64 distances; ids may differ only if distances tie within rounding."""
    n_kept = kept.shape[1]
    assert kept.dtype == np.int32
    assert distances.dtype == X.dtype
    assert distances.shape == kept.shape
    assert np.isfinite(distances).all()
    truth = reference.distances(X.astype(np.float64), centers.astype(np.float64)).T
    tolerance = rounding(X.dtype, X.shape[1])
    assert (np.sort(kept, axis=1)[:, 1:] != np.sort(kept, axis=1)[:, :-1]).all(), "an id is kept twice"
    np.testing.assert_allclose(distances, np.take_along_axis(truth, kept, axis=1), rtol=tolerance)
    np.testing.assert_allclose(distances, np.sort(truth, axis=1)[:, :n_kept], rtol=tolerance)
    step = np.diff(distances, axis=1)
    assert (step >= 0).all(), "distances do not ascend"
    assert (np.diff(kept, axis=1)[step == 0] > 0).all(), "a tie does not go to the lower id"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("D", [1, 2, 17, 64, 200])
@pytest.mark.parametrize("n_centers", [1, 2, 15, 16, 17, 300])
def test_finds_the_nearest(n_centers, D, dtype):
    for n in (1, 7, 131):
        X = clustered(n, D, dtype, seed=D)
        centers = clustered(n_centers, D, dtype, seed=n)
        for n_kept in sorted({1, min(2, n_centers), min(5, n_centers), n_centers}):
            assert_nearest(X, centers, *native.nearest(X, centers, n_kept))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_kept", [1, 2, 6, 50])
def test_a_hint_never_changes_the_result(n_kept, dtype):
    X, centers = clustered(203, 10, dtype), clustered(50, 10, dtype, seed=2)
    expected = native.nearest(X, centers, n_kept)
    rng = np.random.default_rng(0)
    random = np.array([rng.permutation(50)[:n_kept] for _ in range(len(X))], dtype=np.int32)
    farthest = reference.nearest(X, centers, 50)[0][:, ::-1][:, :n_kept]
    for hint in (expected[0], random, farthest):
        assert same_bits(native.nearest(X, centers, n_kept, hint=hint), expected)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("n_kept", [1, 4, 90, 150])  # 90 and more are sorted without comparisons
@pytest.mark.parametrize("D", [1, 2, 5, 64])
@pytest.mark.parametrize("dtype", DTYPES)
def test_ties_go_to_the_lower_id_and_an_offset_changes_nothing(dtype, D, n_kept, offset, kernels):
    """All differences and sums are exact here, so results must be bit-identical."""
    X, centers = sixteenths(150, D, dtype), sixteenths(150, D, dtype, seed=1)
    centers[40:50] = centers[:10]
    expected_kept, expected_distances = reference.nearest(X.astype(np.float64), centers.astype(np.float64), n_kept)
    kept, distances = kernels.nearest(X + dtype(offset), centers + dtype(offset), n_kept)
    np.testing.assert_array_equal(kept, expected_kept)
    np.testing.assert_array_equal(distances, expected_distances)


@pytest.mark.parametrize("scale", [1e-15, 1e-6, 1e6, 1e15])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_nearest_is_found_at_any_scale(dtype, scale):
    X, centers = clustered(97, 9, np.float64) * scale, clustered(35, 9, np.float64, seed=2) * scale
    X, centers = X.astype(dtype), centers.astype(dtype)
    assert_nearest(X, centers, *native.nearest(X, centers, 3))


@pytest.mark.parametrize("scales", [(1e-4, 1e4), (1e4, 1e-4)], ids=["first wide", "last wide"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_nearest_is_found_in_columns_of_different_scales(dtype, scales):
    column = np.geomspace(*scales, 12)
    X = (clustered(97, 12, np.float64) * column + column).astype(dtype)
    centers = (clustered(35, 12, np.float64, seed=2) * column + column).astype(dtype)
    assert_nearest(X, centers, *native.nearest(X, centers, 3))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_nearest_is_found_beside_far_outliers(dtype):
    X, centers = packed_beside_outliers(400, dtype)
    for n_kept in (1, 4):
        assert_nearest(X, centers, *native.nearest(X, centers, n_kept))


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e7])
def test_the_nearest_is_found_far_from_the_origin_in_float32(offset):
    """The nearest center of the float32 data is found, though rounding leaves few distinct coordinates."""
    X, centers = packed_far_away(offset)
    for n_kept in (1, 5):
        assert_nearest(X, centers, *native.nearest(X, centers, n_kept))


@pytest.mark.parametrize("value", [0.0, 1.1, -1e8])
@pytest.mark.parametrize("dtype", DTYPES)
def test_identical_centers_are_nearest_in_order_of_index(dtype, value, kernels):
    X = np.full((70, 5), value, dtype=dtype)
    kept, distances = kernels.nearest(X, X[:33], 4)
    np.testing.assert_array_equal(kept, np.tile(np.arange(4), (70, 1)))
    np.testing.assert_array_equal(distances, 0)


@pytest.mark.parametrize("D", [2, 19, 100])
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_point_per_cluster(dtype, D, kernels):
    X = clustered(150, D, dtype) + dtype(1000)
    kept, distances = kernels.nearest(X, X)
    np.testing.assert_array_equal(kept[:, 0], np.arange(150))
    np.testing.assert_array_equal(distances, 0)


@pytest.mark.parametrize("name", ["kddcup04_protein", "msd_sample"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_nearest_is_found_in_real_data_of_all_scales(name, dtype, data_folder):
    with np.load(data_folder / f"{name}.npz") as file:
        X = file["X"].astype(dtype)
    centers = X[::301].copy()
    centers[1:] = (centers[1:] + centers[:-1]) / 2
    for n_kept in (1, 5):
        assert_nearest(X[::211], centers, *native.nearest(X[::211], centers, n_kept))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_kept", [1, 4])
@pytest.mark.parametrize("spacing", [1.0, 1e-2, 1e-4])
def test_finds_the_nearest_where_the_spread_is_large_beside_the_spacing(spacing, n_kept, dtype):
    rng = np.random.default_rng(0)
    places = 100 * rng.standard_normal((5, 24))
    centers = (places[rng.integers(5, size=400)] + spacing * rng.standard_normal((400, 24))).astype(dtype)
    X = (centers[rng.integers(400, size=300)] + spacing * rng.standard_normal((300, 24))).astype(dtype)
    assert_nearest(X, centers, *native.nearest(X, centers, n_kept))


@pytest.mark.parametrize("D", [8, 27, 28, 59, 60])
def test_coordinates_of_zero_and_empty_tails_are_counted_as_nothing(D):
    X = np.zeros((70, D), dtype=np.float32)
    X[:, -1] = np.arange(70)
    kept, distances = native.nearest(X, X[::2].copy())
    np.testing.assert_array_equal(kept[:, 0], np.minimum(np.arange(70) // 2, 34))
    np.testing.assert_array_equal(distances[:, 0], np.arange(70) % 2)
