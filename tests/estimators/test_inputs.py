"""Accepted data: dtypes, layouts, memory maps and data frames, and which of them are not copied."""

import mmap
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from estimator_data import DTYPES, MAKERS, start_of

from cprime import KMeans
from cprime.kernels import Dense
from cprime.sources import base
from fits import centers_of, clustered, outcome


@pytest.fixture(params=MAKERS.values(), ids=MAKERS.keys())
def make(request):
    """Return a function that makes estimators with the first rows of X as initial centers."""

    def made(X, C=4, **changes):
        estimator, start = request.param(C, **changes), np.array(X[:C], order="C")
        start.flags.writeable = False
        return estimator.set_params(**{start_of(estimator): start})

    return made


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_is_kept(make, dtype):
    X = clustered(90, 3, dtype)
    estimator = make(X).fit(X)
    assert centers_of(estimator).dtype == dtype
    assert estimator.labels_.dtype == np.int32
    assert estimator.predict(X).dtype == np.int32
    assert isinstance(estimator.variance_, float)
    assert isinstance(estimator.lower_bound_, float)
    if isinstance(estimator, KMeans):
        assert estimator.transform(X).dtype == dtype
        assert isinstance(estimator.inertia_, float)
    else:
        assert estimator.predict_proba(X).dtype == dtype
        assert estimator.score_samples(X).dtype == dtype
        assert estimator.weights_.dtype == dtype
        assert estimator.sample(3)[0].dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES)
def test_predictions_are_made_in_the_dtype_of_the_fit(make, dtype):
    X = clustered(90, 3, dtype)
    other = X.astype(np.float64 if dtype is np.float32 else np.float32)
    estimator = make(X).fit(X)
    assert np.array_equal(estimator.predict(other), estimator.predict(other.astype(dtype)))
    assert estimator.score(other) == estimator.score(other.astype(dtype))


def layouts(X, folder):
    """Return the same matrix in other memory layouts."""
    wide = np.full((2 * len(X), 2 * X.shape[1]), np.nan, dtype=X.dtype)
    wide[::2, ::2] = X
    np.save(folder / "X.npy", X)
    np.save(folder / "fortran.npy", np.asfortranarray(X))
    read_only = X.copy()
    read_only.flags.writeable = False
    return {
        "fortran": np.asfortranarray(X),
        "strided": wide[::2, ::2],
        "reversed": np.ascontiguousarray(X[::-1])[::-1],
        "read-only": read_only,
        "read-only memory map": np.load(folder / "X.npy", mmap_mode="r"),
        "fortran memory map": np.load(folder / "fortran.npy", mmap_mode="r"),
        "swapped bytes": X.astype(X.dtype.newbyteorder()),
    }


@pytest.mark.parametrize("dtype", DTYPES)
def test_layout_changes_nothing(make, dtype, tmp_path):
    X = clustered(90, 3, dtype)
    weight = np.random.default_rng(0).random(90)
    weight.flags.writeable = False
    expected = make(X).fit(X, sample_weight=weight)
    for name, data in layouts(X, tmp_path).items():
        assert np.array_equal(data, X), name
        fitted = make(X).fit(data, sample_weight=np.repeat(weight, 2)[::2])
        assert outcome(fitted) == outcome(expected), name
        assert np.array_equal(fitted.predict(data), expected.labels_), name


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_tables_are_data_with_names(make, dtype, frame):
    X = clustered(90, 3, dtype)
    table = frame({name: X[:, i] for i, name in enumerate("abc")})
    fitted = make(X).fit(table)
    expected = make(X).fit(X)
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    assert not hasattr(expected, "feature_names_in_")
    assert np.array_equal(centers_of(fitted), centers_of(expected))
    assert centers_of(fitted).dtype == dtype
    assert np.array_equal(fitted.predict(table), expected.labels_)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(frame({name: X[:, i] for i, name in enumerate("abd")}))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fitted.predict(X)


def test_weights_may_be_a_series_a_list_or_integers(make):
    X = clustered(60, 2)
    weight = np.random.default_rng(0).integers(1, 5, 60)
    expected = outcome(make(X).fit(X, sample_weight=weight.astype(np.float64)))
    for given in (weight, weight.tolist(), weight.astype(np.float32), pd.Series(weight)):
        assert outcome(make(X).fit(X, sample_weight=given)) == expected


@pytest.fixture
def seen(monkeypatch):
    """Return the list of the matrices that E-step kernels receive."""
    matrices = []

    def watched(kernel):
        def call(X, *args, **kwargs):
            matrices.append(X.given())
            return kernel(X, *args, **kwargs)

        return call

    for name in ("nearest", "assign", "lloyd", "expect_all", "accumulate"):
        monkeypatch.setattr(Dense, name, watched(getattr(Dense, name)))
    return matrices


@pytest.mark.parametrize("dtype", DTYPES)
def test_kernels_never_see_a_memory_map_that_may_be_cut_short(make, dtype, tmp_path, seen):
    np.save(tmp_path / "X.npy", clustered(90, 3, dtype))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    make(X).fit(X)
    assert seen
    for matrix in seen:
        assert matrix.shape == X.shape
        while isinstance(matrix, np.ndarray):
            matrix = matrix.base
        assert not isinstance(matrix, mmap.mmap)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The fit did not converge")
def test_fit_to_a_memory_map_takes_much_less_memory_than_the_data(make, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "CHUNK_BYTES", 2**20)
    monkeypatch.setattr(base, "WHOLE_BYTES", 2**20)
    X = np.random.default_rng(0).standard_normal((60_000, 64), dtype=np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    estimator = make(mapped).set_params(max_iter=2)
    tracemalloc.start()
    try:
        estimator.fit(mapped)
        rise = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rise < X.nbytes / 2
