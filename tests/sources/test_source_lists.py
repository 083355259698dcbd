"""Columns of lists of numbers, as in tables of embeddings: each list is a row of the data."""

import json

import numpy as np
import pytest

from cprime import GaussianMixture, KMeans, open_data

pa = pytest.importorskip("pyarrow")
N, D = 300, 6


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)


def lists(X, kind="fixed", dtype=None):
    """Return the rows of X as an Arrow array of lists."""
    flat = pa.array(X.reshape(-1).astype(dtype or X.dtype))
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(flat, X.shape[1])
    made = pa.ListArray if kind == "list" else pa.LargeListArray
    return made.from_arrays(np.arange(len(X) + 1, dtype=np.int32) * X.shape[1], flat)


def table(X, kind="fixed", dtype=None):
    """Return a table of lists with a column of text ids."""
    return pa.table({"id": [f"doc {n}" for n in range(len(X))], "embedding": lists(X, kind, dtype)})


def parquet(folder, X, kind, dtype=None):
    from pyarrow import parquet

    parquet.write_table(table(X, kind, dtype), folder / "x.parquet", row_group_size=70)
    return folder / "x.parquet"


def ipc(folder, X, kind, dtype=None):
    from pyarrow import feather

    feather.write_feather(table(X, kind, dtype), folder / "x.arrow", chunksize=70)
    return folder / "x.arrow"


def parts(folder, X, kind, dtype=None):
    """Write a folder of three files, one of them without rows; return its path."""
    from pyarrow import parquet

    (folder / "parts").mkdir()
    for i, (a, b) in enumerate([(0, 90), (90, 90), (90, N)]):
        parquet.write_table(table(X[a:b], kind, dtype), folder / "parts" / f"{i}.parquet")
    return folder / "parts"


def pattern(folder, X, kind, dtype=None):
    return parts(folder, X, kind, dtype) / "?.parquet"


def dataset(folder, X, kind, dtype=None):
    return pytest.importorskip("pyarrow.dataset").dataset(parts(folder, X, kind, dtype), format="parquet")


def lance(folder, X, kind, dtype=None):
    written = pytest.importorskip("lance").write_dataset
    return written(table(X, kind, dtype), folder / "x.lance", max_rows_per_file=90).uri


def in_memory(folder, X, kind, dtype=None):
    return table(X, kind, dtype)


def batch(folder, X, kind, dtype=None):
    return table(X, kind, dtype).combine_chunks().to_batches()[0]


def polars(folder, X, kind, dtype=None):
    return pytest.importorskip("polars").from_arrow(table(X, kind, dtype))


def pandas(folder, X, kind, dtype=None):
    frame = pytest.importorskip("pandas").DataFrame({"id": [f"doc {n}" for n in range(len(X))]})
    frame["embedding"] = list(X.astype(dtype or X.dtype))
    return frame


STORES = [parquet, ipc, parts, pattern, dataset, lance, in_memory, batch, polars, pandas]


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.__name__)
@pytest.mark.parametrize("kind", ["fixed", "list", "large"])
def test_lists_are_rows(tmp_path, X, store, kind):
    data = store(tmp_path, X, kind)
    chosen = open_data(data, columns="embedding", chunk_rows=64)
    for source in (chosen, open_data(data), open_data(data, columns=["embedding"])):
        assert source.shape == (N, D)
        assert source.dtype == np.float32
        assert source.columns is None
        assert np.array_equal(source.read(0, N), X)
        assert np.array_equal(source.read(60, 101), X[60:101])
        assert np.array_equal(source.take([250, 3, 89, 90]), X[[250, 3, 89, 90]])
    fitted = KMeans(5, random_state=0).fit(chosen)
    same = KMeans(5, random_state=0).fit(open_data(X, chunk_rows=64))
    assert np.array_equal(fitted.cluster_centers_, same.cluster_centers_)
    assert not hasattr(fitted, "feature_names_in_")
    assert np.array_equal(fitted.predict(chosen), same.predict(X))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "u1", "i1"])
@pytest.mark.parametrize("store", [parquet, ipc, lance, in_memory, polars, pandas], ids=lambda store: store.__name__)
def test_lists_may_hold_numbers_of_every_width(tmp_path, X, store, dtype):
    stored = (X * 20 + 60).astype(dtype)
    source = open_data(store(tmp_path, stored, "fixed", dtype))
    assert source.dtype == (np.float64 if dtype == "f8" else np.float32)
    assert np.array_equal(source.read(0, N), stored)


def test_estimators_take_tables_and_series(X):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    wanted = KMeans(4, random_state=0).fit(X)
    frame = pandas.DataFrame({"id": np.full(N, "x"), "embedding": list(X)})
    whole = table(X)
    for data in (
        *(frame, frame["embedding"], whole, whole["embedding"], lists(X)),
        *(polars.from_arrow(whole), polars.from_arrow(whole)["embedding"], polars.from_arrow(whole).lazy()),
        frame.astype({"embedding": pandas.ArrowDtype(pa.list_(pa.float32()))}),
    ):
        fitted = KMeans(4, random_state=0).fit(data)
        assert np.array_equal(fitted.labels_, wanted.labels_)
        assert np.array_equal(fitted.predict(data), wanted.labels_)
    mixture = GaussianMixture(3, random_state=0).fit(whole)
    assert mixture.score(whole) == GaussianMixture(3, random_state=0).fit(X).score(X)


def test_lists_of_one_piece_are_not_copied(X):
    from cprime.sources.foreign import plain

    array = lists(X)
    assert np.shares_memory(plain(array), np.frombuffer(array.values.buffers()[1], np.float32))


@pytest.mark.parametrize("store", [parquet, parts, in_memory, pandas], ids=lambda store: store.__name__)
def test_a_list_of_another_length_is_named(tmp_path, X, store):
    rows = [list(map(float, row)) for row in X]
    rows[200] = rows[200][:-1]
    wrong = pa.table({"embedding": rows})
    if store is pandas:
        data = wrong.to_pandas()
    elif store is in_memory:
        data = wrong
    else:
        data = store(tmp_path, X, "list")
        from pyarrow import parquet as written

        file = data if store is parquet else data / "2.parquet"
        names = pa.array([f"doc {n}" for n in range(N)])
        part = wrong if store is parquet else wrong.slice(90)
        written.write_table(part.add_column(0, "id", names[: len(part)]), file)
    place = r"2\.parquet: row 110" if store is parts else "row 200"
    with pytest.raises(ValueError, match=f"{place} has a list of {D - 1} numbers, expected {D}"):
        KMeans(3).fit(open_data(data))


def test_files_with_lists_of_other_lengths_are_refused(tmp_path, X):
    from pyarrow import parquet

    parquet.write_table(table(X, "list"), tmp_path / "a.parquet")
    parquet.write_table(table(X[:, 1:], "list"), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet has lists of 5 numbers, .*a\.parquet of 6"):
        open_data(tmp_path)


def test_lists_beside_other_columns_are_refused_or_chosen(X):
    both = table(X).append_column("age", pa.array(np.arange(N)))
    with pytest.raises(ValueError, match="column 'embedding' has lists of 6 float32, each of which is a whole row"):
        open_data(both, columns=["embedding", "age"])
    with pytest.raises(ValueError, match=r"column 'embedding' has lists"):
        KMeans(3).fit(both.drop(["id"]))
    assert open_data(both, columns="embedding").n_features == D
    assert open_data(both, columns="age").n_features == 1
    weighted = open_data(both, columns="embedding").with_weights("age")
    assert np.array_equal(weighted.weights(0, N), np.arange(N))
    assert np.array_equal(weighted.read(0, N), X)


@pytest.mark.parametrize("kind", ["fixed", "list"])
def test_missing_lists_are_rows_of_nan(tmp_path, X, kind):
    from pyarrow import parquet

    rows = [None if n == 7 else row.tolist() for n, row in enumerate(X)]
    inner = pa.list_(pa.float32(), D if kind == "fixed" else -1)
    parquet.write_table(pa.table({"embedding": pa.array(rows, inner)}), tmp_path / "x.parquet")
    source = open_data(tmp_path / "x.parquet")
    found = source.read(0, N)
    assert np.isnan(found[7]).all()
    assert np.array_equal(np.delete(found, 7, 0), np.delete(X, 7, 0))
    with pytest.raises(ValueError, match="row 7, column 'embedding', number 0 of its list: nan"):
        KMeans(3).fit(source)
    none = pa.table({"embedding": pa.array([None, None], inner)})
    parquet.write_table(none, tmp_path / "none.parquet")
    for data in (none, tmp_path / "none.parquet") if kind == "list" else ():
        with pytest.raises(ValueError, match="column 'embedding' must have lists, all of its values are missing"):
            open_data(data)
    with pytest.raises(ValueError, match="lists of column 'embedding' must have 1 to 16777216 numbers, got 0"):
        open_data(pa.table({"embedding": pa.array([[], []], pa.list_(pa.float32()))}))


def test_lists_without_rows_are_refused(X):
    for given in (table(X[:0], "list"), table(X[:0], "list").to_pandas()):
        with pytest.raises(ValueError, match=r"at least one row, got none|0 sample\(s\)"):
            KMeans(3).fit(given[["embedding"]] if hasattr(given, "loc") else given)


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32])
def test_arrays_in_an_array_are_rows(dtype, X):
    """An object array of arrays, as `Series.to_numpy()` returns it, is read like the lists."""
    stored = (40 + 10 * X).astype(dtype)
    column = np.empty(N, dtype=object)
    column[:] = list(stored)
    expected = KMeans(3, random_state=0).fit(stored)
    found = KMeans(3, random_state=0).fit(column)
    assert np.array_equal(found.cluster_centers_, expected.cluster_centers_)
    assert np.array_equal(found.predict(column), expected.labels_)
    assert open_data(column).stored == dtype
    column[7] = stored[7, 1:]
    with pytest.raises(ValueError, match=r"row 7 has the shape \(5,\), expected \(6,\) as those before it have"):
        KMeans(3).fit(column)
    column[7] = None
    with pytest.raises(ValueError, match=r"row 7 has the shape \(\), expected \(6,\)"):
        open_data(column)


def words(inner=str):
    return [[inner(a), inner(b)] for a, b in ((1, 2), (3, 4))]


OTHER_LISTS = {
    "Arrow's": (lambda: pa.table({"id": ["a", "b"], "e": words()}), "list<.*string>"),
    "Arrow's lists of lists": (lambda: pa.table({"e": [[[1, 2]], [[3, 4]]]}), "list<.*list<.*int64>>"),
    "Arrow's lists of structures": (lambda: pa.table({"e": [[{"a": 1.0}], [{"a": 2.0}]]}), "list<.*struct<a: double>"),
    "pandas'": (lambda: pytest.importorskip("pandas").DataFrame({"e": words()}), "lists of str"),
    "pandas' matrices": (lambda: pytest.importorskip("pandas").DataFrame({"e": [np.eye(2)] * 3}), "arrays of shape"),
    "polars'": (lambda: pytest.importorskip("polars").DataFrame({"e": words()}), "list<.*string.*>"),
}


@pytest.mark.parametrize("name", OTHER_LISTS)
def test_lists_of_no_numbers_are_named(name):
    make, kind = OTHER_LISTS[name]
    for use in (KMeans(2).fit, open_data):
        with pytest.raises(ValueError, match=rf"X: .*'e'.*{kind}"):
            use(make())


def test_views_of_lists_are_rows(X):
    if not hasattr(pa, "list_view"):
        pytest.skip("an older pyarrow")
    views = pa.table({"embedding": pa.array(X.tolist(), pa.list_view(pa.float32()))})
    assert np.array_equal(open_data(views).read(0, N), X)


def test_brain_floats_in_arrays_of_pandas_are_numbers(X):
    pd, ml_dtypes = pytest.importorskip("pandas"), pytest.importorskip("ml_dtypes")
    stored = X.astype(ml_dtypes.bfloat16)
    source = open_data(pd.DataFrame({"id": ["a"] * N, "embedding": list(stored)}))
    assert np.array_equal(source.read(0, N), stored.astype(np.float32))
    assert np.array_equal(KMeans(3, random_state=0).fit(source).labels_, KMeans(3, random_state=0).fit(stored).labels_)


def test_lines_of_json_have_lists(tmp_path, X):
    lines = [json.dumps({"id": f"doc {n}", "embedding": row.tolist()}) for n, row in enumerate(X)]
    (tmp_path / "x.jsonl").write_text("\n".join(lines) + "\n")
    source = open_data(tmp_path / "x.jsonl")
    assert source.shape == (N, D)
    assert np.array_equal(source.read(0, N), X)
    lines[3] = json.dumps({"id": "doc 3", "embedding": [1.0, "two"]})
    (tmp_path / "y.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=r"y\.jsonl"):
        open_data(tmp_path / "y.jsonl", columns="embedding")
    lines[3] = json.dumps({"id": "doc 3", "embedding": [1.0, 2.0]})
    (tmp_path / "y.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=r"y\.jsonl: row 3 has a list of 2 numbers, expected 6"):
        open_data(tmp_path / "y.jsonl", columns="embedding").read(0, N)
