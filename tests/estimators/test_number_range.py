"""Finite data whose squares exceed their type's range raise an error that suggests a remedy, and the remedy works."""

import numpy as np
import pytest

from cprime import FuzzyKMeans, GaussianMixture, GMeans, KMeans, KMeans1D, KMedoids, SoftKMeans, XMeans
from cprime.search import Graph

SHAPES = np.random.default_rng(0).standard_normal((400, 3)) + 8 * np.repeat(np.eye(4, 3), 100, axis=0)
ESTIMATORS = {
    "full": KMeans(9, search="full", random_state=0),
    "bounded": KMeans(9, search="bounded", random_state=0),
    "exact": KMeans(9, search="exact", random_state=0),
    "estimated": KMeans(9, search="estimated", random_state=0),
    "graph": KMeans(9, search=Graph(), random_state=0),
    "two-level": KMeans(9, init="two-level", random_state=0),
    "soft": SoftKMeans(9, random_state=0),
    "fuzzy": FuzzyKMeans(9, random_state=0),
    "medoids": KMedoids(9, random_state=0),
    "xmeans": XMeans(random_state=0),
    "gmeans": GMeans(random_state=0),
    "exact mixture": GaussianMixture(9, random_state=0),
    "truncated mixture": GaussianMixture(9, n_active=3, random_state=0),
    "full mixture": GaussianMixture(4, covariance_type="full", random_state=0),
}
TOO_LARGE = [(np.float32, 1e19), (np.float32, 1e37), (np.float64, 1e153), (np.float64, 1e306)]
TOO_SMALL = [(np.float32, 1e-21), (np.float32, 1e-40), (np.float64, 1e-161), (np.float64, 1e-310)]


def scaled(dtype, scale):
    with np.errstate(under="ignore"):
        return (SHAPES * scale).astype(dtype)


def assert_refused(name, dtype, scale, message):
    with pytest.raises(ValueError, match=message) as caught:
        ESTIMATORS[name].fit(scaled(dtype, scale))
    assert ("give it as float64" in str(caught.value)) == (dtype == np.float32)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(("dtype", "scale"), TOO_LARGE)
def test_numbers_whose_squares_overflow_are_refused(name, dtype, scale):
    assert_refused(name, dtype, scale, r"X has numbers up to .* Divide X by a constant")


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(("dtype", "scale"), TOO_SMALL)
def test_differences_whose_squares_underflow_are_refused(name, dtype, scale):
    assert_refused(name, dtype, scale, r"X has rows that differ by .* Multiply X by a constant")


@pytest.mark.parametrize("scale", [1e19, 1e-21])
def test_float64_is_a_remedy_for_float32(scale):
    X = scaled(np.float32, scale)
    expected = KMeans(9, random_state=0).fit(SHAPES)
    found = KMeans(9, random_state=0).fit(X.astype(np.float64))
    np.testing.assert_allclose(found.inertia_ / scale**2, expected.inertia_, rtol=1e-4)


@pytest.mark.parametrize(
    ("dtype", "scale"), [(np.float32, 1e16), (np.float32, 1e-14), (np.float64, 1e62), (np.float64, 1e-82)]
)
@pytest.mark.parametrize("name", ["full", "bounded", "exact", "estimated", "graph", "soft", "medoids"])
def test_numbers_within_the_range_give_what_their_shapes_give(name, dtype, scale):
    """Data scaled by a power of two give scaled centers, because the scale causes no rounding."""
    power = dtype(2.0 ** np.round(np.log2(scale)))
    shapes = SHAPES.astype(dtype)
    expected = ESTIMATORS[name].fit(shapes).cluster_centers_.copy()
    found = ESTIMATORS[name].fit(shapes * power).cluster_centers_
    np.testing.assert_allclose(found / power, expected, rtol=1e-5)


def test_rows_that_are_all_equal_are_no_underflow():
    for value in (0.0, 1e-30, 5.0):
        assert KMeans(1).fit(np.full((20, 2), value)).inertia_ == 0


def test_rows_to_predict_are_refused_where_their_distances_overflow():
    fitted = KMeans(4, random_state=0).fit(SHAPES.astype(np.float32))
    for call in (fitted.predict, fitted.transform, fitted.score):
        with pytest.raises(ValueError, match="X has numbers up to"):
            call(SHAPES * 1e25)
    assert len(fitted.predict(SHAPES * 1e-30)) == 400


def test_centers_that_are_given_are_refused_where_their_distances_overflow():
    start = SHAPES[:4].astype(np.float32)
    start[2] = 1e20
    with pytest.raises(ValueError, match=r"init has numbers up to 1e\+20"):
        KMeans(4, init=start).fit(SHAPES.astype(np.float32))
    with pytest.raises(ValueError, match=r"means_init has numbers up to 1e\+20"):
        GaussianMixture(4, means_init=start).fit(SHAPES.astype(np.float32))


def test_chunks_of_a_file_are_refused_as_arrays_are(tmp_path):
    from cprime.sources import open_data

    for name, factor, message in (("large", 1e20, "numbers up to"), ("small", 1e-22, "rows that differ by")):
        path = tmp_path / f"{name}.npy"
        np.save(path, (SHAPES * factor).astype(np.float32))
        with pytest.raises(ValueError, match=f"{name}.npy has {message}"):
            KMeans(4, random_state=0).fit(open_data(path, chunk_rows=150))
    fitted = KMeans(4, random_state=0).fit(SHAPES.astype(np.float32))
    tiny = open_data(tmp_path / "small.npy", chunk_rows=150)
    labels = fitted.predict(np.load(tmp_path / "small.npy"))
    np.testing.assert_array_equal(fitted.predict(tiny), labels)
    dask_array = pytest.importorskip("dask.array")
    np.testing.assert_array_equal(fitted.predict(dask_array.from_array(np.load(tmp_path / "small.npy"), 150)), labels)
    mixed = SHAPES.astype(np.float32)
    mixed[:150] *= np.float32(1e-22)  # a chunk of tiny numbers before chunks of ordinary ones
    np.save(tmp_path / "mixed.npy", mixed)
    KMeans(4, random_state=0).fit(open_data(tmp_path / "mixed.npy", chunk_rows=150))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_weights_whose_sums_leave_their_type_are_refused(scale):
    with pytest.raises(ValueError, match=r"sample_weight sums to .* multiply it by a constant"):
        KMeans(4, random_state=0).fit(SHAPES, sample_weight=np.full(400, scale))


def test_one_dimension_is_refused_as_more_are():
    X = SHAPES[:, :1]
    KMeans1D(4).fit(X * 1e60)
    with pytest.raises(ValueError, match="X has numbers up to"):
        KMeans1D(4).fit(X * 1e200)
    with pytest.raises(ValueError, match="X has rows that differ by"):
        KMeans1D(4).fit(X * 1e-200)


def test_infinite_entries_of_both_signs_are_named_without_a_warning():
    with pytest.raises(ValueError, match="Input X contains infinity"):
        KMeans(1).fit(np.array([[np.inf], [-np.inf], [1.0]]))
