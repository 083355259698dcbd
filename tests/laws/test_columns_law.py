"""A table gives the same features, or the same error, from every library and file format."""

import datetime
import decimal
import re

import numpy as np
import pytest

from cprime import (
    FuzzyKMeans,
    GaussianMixture,
    GMeans,
    KMeans,
    KMeans1D,
    KMedoids,
    SoftKMeans,
    StudentTMixture,
    XMeans,
    open_data,
)
from cprime.coresets import lightweight
from cprime.estimators.opening import opened
from cprime.seeding import kmeans_plusplus
from cprime.theory import Gaussians, fit_assignment, partition_loss
from pairwise import covering

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
dd = pytest.importorskip("dask.dataframe")
dask = pytest.importorskip("dask")

N = 6
NAN = float("nan")
DAYS = pd.date_range("2024-01-01", periods=N)
MONEY = [decimal.Decimal(cents) / 100 for cents in (0, 35, 69, 1999, -458, 100_07)]
DIGITS = [decimal.Decimal(f"{k}.{k}23456789012345678") for k in range(N)]
LARGE = [2**53 + 1, None, 2**62 + 3, -(2**62) - 513, 2**63 - 1, 0]
WHOLE = [1, 2, 3, 1, 2, 3]
LETTERS = ["a", "b", "c", "a", "b", "c"]

# Column type: the column, its features, and the narrower of float32 and float64 that represents them exactly.
FEATURES = {
    "int8": (pa.array(range(N), pa.int8()), range(N), "f4"),
    "int64": (pa.array(range(N)), range(N), "f8"),
    "int64, large and some missing": (pa.array(LARGE), [NAN if k is None else float(k) for k in LARGE], "f8"),
    "int64, some missing": (pa.array([1, None, 3, 4, 5, 6]), [1, NAN, 3, 4, 5, 6], "f8"),
    "uint64": (
        pa.array([2**63 + 2**13 * k for k in range(N)], pa.uint64()),
        [2**63 + 2**13 * k for k in range(N)],
        "f8",
    ),
    "float16": (pa.array(np.arange(N) / 4, pa.float16()), np.arange(N) / 4, "f4"),
    "float32": (pa.array(np.arange(N) / 4, pa.float32()), np.arange(N) / 4, "f4"),
    "float64": (pa.array(np.arange(N) / 3), np.arange(N) / 3, "f8"),
    "float64, some missing": (pa.array([0.5, None, 1, 2, 3, 4]), [0.5, NAN, 1, 2, 3, 4], "f8"),
    "float64, all missing": (pa.nulls(N, pa.float64()), [NAN] * N, "f8"),
    "boolean": (pa.array([True, False, True] * 2), [1, 0, 1] * 2, "f4"),
    "boolean, some missing": (pa.array([True, None, False] * 2), [1, NAN, 0] * 2, "f4"),
    "decimal": (pa.array(MONEY, pa.decimal128(9, 2)), list(map(float, MONEY)), "f8"),
    "decimal of many digits": (pa.array(DIGITS, pa.decimal128(38, 18)), list(map(float, DIGITS)), "f8"),
}
# Column type: the column, and the name of its type in each library's error message.
REFUSED = {
    "categories of whole numbers": (pa.array(WHOLE).dictionary_encode(), "category|dictionary"),
    "categories of text": (pa.array(LETTERS).dictionary_encode(), "category|dictionary|Categorical|str"),
    "date": (pa.array(DAYS.date), "(?i)date"),
    "datetime": (pa.array(DAYS), "(?i)datetime|timestamp"),
    "datetime with time zone": (pa.array(DAYS.tz_localize("Europe/Berlin")), "(?i)datetime|timestamp"),
    "time of day": (pa.array([datetime.time(hour) for hour in range(N)]), "(?i)time"),
    "duration": (pa.array(pd.to_timedelta(range(N), unit="s")), "(?i)timedelta|duration"),
    "text": (pa.array(LETTERS), "(?i)str|text"),
    "text of numbers": (pa.array([str(k) for k in range(N)]), "(?i)str|text"),
    "bytes": (pa.array([b"a"] * N), "(?i)bytes|binary"),
    "lists of text": (pa.array([["a"]] * N), "list"),
    "lists beside numbers": (pa.array([[1.0, 2.0]] * N), "list"),
    "nested": (pa.array([[{"u": 1.0}]] * N), "(?i)struct|dict|lists of|list"),
    "no type, all missing": (pa.nulls(N), "(?i)null|object"),
}
# Text files have no types, so these columns are read as numbers.
NUMBERS_AS_TEXT = {
    "categories of whole numbers": WHOLE,
    "text of numbers": range(N),
    "no type, all missing": [NAN] * N,
}
NULLABLE = {
    pa.int8(): pd.Int8Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
    pa.float32(): pd.Float32Dtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
    pa.string(): pd.StringDtype(),
}


def parquet(table, folder):
    pytest.importorskip("pyarrow.parquet").write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


def parquet_of_pandas(table, folder):
    table.to_pandas().to_parquet(folder / "pandas.parquet")
    return folder / "pandas.parquet"


def parquet_of_polars(table, folder):
    pl.from_arrow(table).write_parquet(folder / "polars.parquet")
    return folder / "polars.parquet"


def dataset(table, folder):
    return pytest.importorskip("pyarrow.dataset").dataset(parquet(table, folder))


def feather(table, folder):
    pytest.importorskip("pyarrow.feather").write_feather(table, folder / "t.feather")
    return folder / "t.feather"


def csv(table, folder):
    table.to_pandas().to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def dask_of(frame):
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_pandas(frame, npartitions=2)


IN_MEMORY = {
    "pyarrow": lambda table, folder: table,
    "pandas": lambda table, folder: table.to_pandas(),
    "pandas, nullable": lambda table, folder: table.to_pandas(types_mapper=NULLABLE.get),
    "pandas, Arrow": lambda table, folder: table.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas, objects": lambda table, folder: table.to_pandas().astype(object),
    "polars": lambda table, folder: pl.from_arrow(table),
}
SOURCES = {
    **IN_MEMORY,
    "parquet": parquet,
    "parquet of pandas": parquet_of_pandas,
    "parquet of polars": parquet_of_polars,
    "data set": dataset,
    "feather": feather,
    "csv": csv,
    "dask": lambda table, folder: dask_of(table.to_pandas()),
    "dask, nullable": lambda table, folder: dask_of(table.to_pandas(types_mapper=NULLABLE.get)),
    "dask, Arrow": lambda table, folder: dask_of(table.to_pandas(types_mapper=pd.ArrowDtype)),
}
# Types that a source lacks: it stores other values in their place, integers or None.
LACKING = {
    "pandas, objects": ("categories of whole numbers", "float64, all missing"),
    "polars": ("categories of whole numbers",),
    "parquet of polars": ("categories of whole numbers",),
}


def table_of(column):
    return pa.table({"x": pa.array(np.arange(N), pa.float32()), "c": column})


def features(data):
    with dask.config.set(scheduler="synchronous"):
        return opened(KMeans(2, missing="marginal"), data, None).source.read(0, N)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_numbers_are_the_same_features(dtype, source, tmp_path):
    names = [name for name in FEATURES if FEATURES[name][2] == dtype and name not in LACKING.get(source, ())]
    data = SOURCES[source](pa.table({name: FEATURES[name][0] for name in names}), tmp_path)
    found = features(data)
    assert found.dtype == ("f8" if source in ("csv", "pandas, objects") else dtype)
    np.testing.assert_array_equal(found, np.column_stack([list(FEATURES[name][1]) for name in names]))
    if not source.startswith("dask"):
        read = open_data(data).read(0, N)
        assert read.dtype == found.dtype
        np.testing.assert_array_equal(read, found)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", ["int64, some missing", "boolean, some missing"])
def test_missing_values_are_named_with_row_column_and_remedy(kind, source, tmp_path):
    data = SOURCES[source](table_of(FEATURES[kind][0]), tmp_path)
    message = r"row 1( \(row 1 of all\))?, column 'c'.*missing=\"marginal\""
    with dask.config.set(scheduler="synchronous"), pytest.raises(ValueError, match=message) as error:
        KMeans(2).fit(data)
    assert len(str(error.value)) < 250 + len(str(tmp_path))


def quick(cases):
    """Return cases of several values as parameters; those are quick that contain every value."""
    chosen = covering(cases, together=1)
    return [pytest.param(*case, marks=() if i in chosen else pytest.mark.long) for i, case in enumerate(cases)]


@pytest.mark.parametrize(
    ("kind", "source"),
    quick([(kind, source) for kind in REFUSED for source in SOURCES if kind not in LACKING.get(source, ())]),
)
def test_other_columns_are_refused_with_name_type_and_remedy(kind, source, tmp_path):
    column, what = REFUSED[kind]
    data = SOURCES[source](table_of(column), tmp_path)
    if source == "csv" and kind in NUMBERS_AS_TEXT:
        np.testing.assert_array_equal(features(data)[:, 1], list(NUMBERS_AS_TEXT[kind]))
        return
    with pytest.raises((ValueError, TypeError)) as error:
        features(data)
    message = str(error.value)
    assert "column 'c'" in message
    assert "columns=" in message or (source.startswith("dask") and "X[[...]]" in message)
    assert source == "csv" or re.search(what, message.split("column 'c'")[1])
    rest = data[["x"]] if source.startswith("dask") else open_data(data, columns=["x"])
    np.testing.assert_array_equal(features(rest), np.arange(N)[:, np.newaxis])


OF_ONE_LIBRARY = {
    "categories of polars": (pl.DataFrame({"c": pl.Series(LETTERS, dtype=pl.Categorical)}), "Categorical"),
    "enumerated values of polars": (pl.DataFrame({"c": pl.Series(LETTERS, dtype=pl.Enum(["a", "b", "c"]))}), "Enum"),
    "categories of pandas": (pd.DataFrame({"c": pd.Categorical(WHOLE)}), "category"),
    "categories of pandas and Arrow": (
        pd.DataFrame({"c": pd.array(pa.array(WHOLE).dictionary_encode(), pd.ArrowDtype(pa.dictionary("i4", "i8")))}),
        "dictionary",
    ),
    "periods": (pd.DataFrame({"c": pd.period_range("2024-01", periods=N, freq="M")}), r"period\[M\]"),
    "intervals": (pd.DataFrame({"c": pd.interval_range(0, N)}), "interval"),
    "complex numbers": (pd.DataFrame({"c": np.ones(N, complex)}), "complex128"),
    "numbers and text": (pd.DataFrame({"c": [1, 2, 3, "a", 5, 6]}), r"object \(str\)"),
    "objects": (pd.DataFrame({"c": [{"u": 1}] * N}), r"object \(dict\)"),
}


@pytest.mark.parametrize("kind", OF_ONE_LIBRARY)
def test_types_of_one_library_are_refused(kind):
    data, what = OF_ONE_LIBRARY[kind]
    for read in (KMeans(2).fit, open_data, GaussianMixture(2).fit):
        with pytest.raises(ValueError, match=f"X: column 'c' is not numeric, it has the type {what}.*columns="):
            read(data)


def test_text_that_dask_has_made_of_objects_is_refused():
    frame = dd.from_pandas(pd.DataFrame({"c": LETTERS}), npartitions=2)
    with pytest.raises(
        ValueError, match="X: column 'c' is not numeric, it has the type string; choose numeric columns"
    ):
        features(frame)


@pytest.mark.parametrize("missing", [None, NAN, pd.NA, pd.NaT], ids=str)
def test_objects_of_pandas_may_be_missing(missing):
    frame = pd.DataFrame({"c": pd.Series([1, missing, True, decimal.Decimal("0.1"), 2.5, 6], dtype=object)})
    for found in (features(frame), open_data(frame).read(0, N)):
        np.testing.assert_array_equal(found, [[1], [NAN], [1], [0.1], [2.5], [6]])


def test_sparse_columns_of_pandas_are_numbers():
    values = [0.0, 0.0, 1.5, 0.0, 0.0, 2.0]
    frame = pd.DataFrame({"x": np.arange(N), "c": pd.arrays.SparseArray(values, fill_value=0)})
    with pytest.warns(UserWarning, match="sparse columns found"):  # raised by scikit-learn
        found = features(frame)
    np.testing.assert_array_equal(found, np.column_stack([np.arange(N), values]))
    np.testing.assert_array_equal(open_data(frame).read(0, N), np.column_stack([np.arange(N), values]))


FUNCTIONS = {
    "kmeans_plusplus": lambda X: kmeans_plusplus(X, 2),
    "lightweight": lambda X: lightweight(X, 2),
    "fit_assignment": lambda X: fit_assignment(X, Gaussians.spherical([[0, 0], [1, 1]], [1, 1])),
    "partition_loss": lambda X: partition_loss(Gaussians.spherical([[0, 0], [1, 1]], [1, 1]), X),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_functions_refuse_the_same_columns_and_missing_values(function, library):
    make = IN_MEMORY[library]
    with pytest.raises(ValueError, match=r"column 'c' is not numeric, it has the type .*columns="):
        function(make(table_of(REFUSED["categories of text"][0]), None))
    with pytest.raises(ValueError, match=r"contains NaN in row 1, column 'c'\. Fill missing values"):
        function(make(table_of(FEATURES["int64, some missing"][0]), None))


ESTIMATORS = [
    KMeans(2),
    GaussianMixture(2),
    StudentTMixture(2),
    KMedoids(2),
    KMedoids(2, metric="precomputed"),
    FuzzyKMeans(2),
    SoftKMeans(2),
    KMeans1D(2),
    XMeans(),
    GMeans(),
]
METHODS = (
    "predict",
    "predict_proba",
    "score",
    "score_samples",
    "uncertainty",
    "transform",
    "nearest",
    "bounds",
    "aic",
    "bic",
    "impute",
)


COLUMNS = [
    (kind, library)
    for kind in ("categories of whole numbers", "categories of text", "datetime", "text of numbers")
    for library in ("pandas", "pandas, objects", "polars", "pyarrow")
    if kind not in LACKING.get(library, ())
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@pytest.mark.parametrize(("kind", "library"), COLUMNS)
def test_every_method_refuses_columns_that_are_not_numeric(estimator, kind, library):
    estimator = type(estimator)(**estimator.get_params())
    bad = IN_MEMORY[library](table_of(REFUSED[kind][0]).select(["c"]), None)
    message = "column 'c' is not numeric, it has the type .*columns="
    with pytest.raises(ValueError, match=message):
        estimator.fit(bad)
    if estimator.get_params().get("metric") == "precomputed":
        return
    estimator.fit(pd.DataFrame({"c": [0.0, 0.5, 1.0, 9.0, 9.5, 10.0]}))
    methods = [name for name in METHODS if hasattr(estimator, name)]
    assert "predict" in methods
    for name in methods:
        with pytest.raises(ValueError, match=message):
            getattr(estimator, name)(bad)


OBJECTS = {
    "text": (np.array([[1.0, "a"], [2.0, "b"]], dtype=object), ValueError, "'a' in row 0, column 1"),
    "text of numbers": (np.array([[1.0, 2.0], ["3", 4.0]], dtype=object), ValueError, "'3' in row 1, column 0"),
    "dates": (np.array([[1.0, datetime.date(2024, 1, 1)]], dtype=object), TypeError, "in row 0, column 1.*'date'"),
    "strings": (np.array([["1", "2"]]), ValueError, "'1' in row 0, column 0"),
    "datetimes": (np.array([["2024-01-01"]], "M8[D]"), TypeError, r"datetime64\[D\]"),
    "a list of rows": ([[1.0, 2.0], [3.0, "b"]], ValueError, "text"),
}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@pytest.mark.parametrize("kind", OBJECTS)
def test_arrays_of_text_and_dates_are_refused(estimator, kind):
    X, error, message = OBJECTS[kind]
    with pytest.raises(error, match=f"X must hold numbers, got .*{message}"):
        type(estimator)(**estimator.get_params()).fit(X)


def test_objects_that_are_numbers_are_numbers():
    X = np.array([[1, 2.5], [True, decimal.Decimal(4)], [7, None]], dtype=object)
    np.testing.assert_array_equal(opened(KMeans(1, missing="marginal"), X, None).source.read(0, 3), X.astype(float))
