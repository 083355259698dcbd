"""Sources of tables: in memory, in Arrow files, in text files, in folders."""

import logging
import pickle

import numpy as np
import pytest
from source_formats import write_ipc, write_parquet

from cprime.sources import open_data, reopened

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
ds = pytest.importorskip("pyarrow.dataset")

MIXED = {
    "half": pa.array([1, None, 3], pa.float16()),
    "byte": pa.array([1, None, 3], pa.uint8()),
    "long": pa.array([1, None, 3], pa.int64()),
    "flag": pa.array([True, None, False]),
    "money": pa.array([1, None, 3], pa.decimal128(9, 2)),
    "text": pa.array(["x", None, "z"]),
    "list": pa.array([["a"], None, ["b"]]),
    "day": pa.array([1, None, 3], pa.date32()),
}


def tables(table, folder):
    """Yield a table in memory and in several kinds of files."""
    yield table
    yield write_parquet(folder / "t.parquet", table, 2)
    yield write_ipc(folder / "t.feather", table, 2)
    yield ds.dataset(folder / "t.parquet")
    yield ds.dataset(table)


@pytest.mark.parametrize(("column", "dtype"), [("half", "f4"), ("byte", "f4"), ("long", "f8"), ("money", "f8")])
def test_missing_values_are_not_finite(column, dtype, tmp_path):
    for data in tables(pa.table(MIXED), tmp_path):
        source = open_data(data, columns=[column])
        X = source.read(0, 3)
        assert source.dtype == dtype
        assert np.array_equal(X, [[1], [np.nan], [3]], equal_nan=True)
        with pytest.raises(ValueError, match=f"row 1.*, column '{column}': nan; values must be finite"):
            source.check_finite(X, 0)


def test_flags_are_numbers(tmp_path):
    for data in tables(pa.table(MIXED), tmp_path):
        assert np.array_equal(open_data(data, columns=["flag"]).read(0, 3), [[1], [np.nan], [0]], equal_nan=True)


@pytest.mark.parametrize("column", ["text", "list", "day"])
def test_columns_that_are_no_numbers_are_named(column, tmp_path):
    for data in tables(pa.table(MIXED), tmp_path):
        with pytest.raises(
            ValueError,
            match=f"column '{column}' is not numeric, it has the type .*; choose numeric columns with open_data",
        ):
            open_data(data, columns=[column])
        with pytest.raises(ValueError, match=r"columns 'text' \(string\), 'list' \(.*\), 'day' \(.*\) are not numeric"):
            open_data(data)


def test_columns_of_pandas_and_polars_are_read():
    frame = pd.DataFrame(
        {
            "a": pd.array([1, None, 3], dtype="Int8"),
            "b": pd.array([True, None, False], dtype="boolean"),
            "c": np.arange(3, dtype="f4"),
            "d": pd.Series([1.5, None, 2], dtype="float64[pyarrow]"),
            "e": ["x", "y", "z"],
            "f": pd.Categorical([1, 2, 3]),
        }
    )
    expected = np.array([[1, 1, 0], [np.nan, np.nan, 1], [3, 0, 2]])
    for data in (frame, pl.from_pandas(frame.drop(columns="f"))):
        source = open_data(data, columns=["a", "b", "c"])
        assert source.dtype == np.float32
        assert np.array_equal(source.read(0, 3), expected, equal_nan=True)
        assert np.array_equal(open_data(data, columns=["d"]).read(0, 3), [[1.5], [np.nan], [2]], equal_nan=True)
        with pytest.raises(ValueError, match=r"X: columns? 'e' .*(is|are) not numeric"):
            open_data(data)
    with pytest.raises(ValueError, match="X: column 'f' is not numeric, it has the type category"):
        open_data(frame, columns=["f"])
    money = pl.DataFrame({"m": ["1.25"]}).cast(pl.Decimal(9, 2))
    assert open_data(money).read(0, 1) == 1.25


def test_names_are_distinct(tmp_path):
    twice = pa.Table.from_arrays([pa.array([1.0])] * 2, names=["a", "a"])
    write_parquet(tmp_path / "t.parquet", twice)
    (tmp_path / "t.csv").write_text("a,a\n1,2\n")
    for data in (twice, tmp_path / "t.parquet", tmp_path / "t.csv"):
        with pytest.raises(ValueError, match="more than one column 'a'"):
            open_data(data)


def test_tables_without_rows_or_columns_are_refused(tmp_path):
    for data in tables(pa.table({"a": pa.array([], pa.float32())}), tmp_path):
        with pytest.raises(ValueError, match="must have at least one row, got none"):
            open_data(data)
    for data in tables(pa.table({}), tmp_path):
        with pytest.raises(ValueError, match="must have at least one column"):
            open_data(data)


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".arrow", ".ipc", ".csv"])
def test_what_is_no_table_is_named(suffix, tmp_path):
    path = tmp_path / f"t{suffix}"
    for content in (b"", b"\xff\xfe,no table"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"t{suffix}"):
            open_data(path)


def test_one_pass_decodes_each_row_group_once(tmp_path, rng, monkeypatch):
    X = rng.normal(size=(100_000, 2))
    source = open_data(write_parquet(tmp_path / "t.parquet", pa.table({"a": X[:, 0], "b": X[:, 1]}), 10_000))
    decoded = []
    batches = type(source)._batches

    def listening(self, file, piece):
        decoded.append(piece)
        return batches(self, file, piece)

    monkeypatch.setattr(type(source), "_batches", listening)
    for a in range(0, 100_000, 3000):
        source.read(a, min(a + 3000, 100_000))
    assert decoded == list(range(10))
    decoded.clear()
    source.take([95_000, 20, 30, 42_000])
    assert decoded == [0, 4, 9]


def test_large_row_groups_are_read_page_by_page(tmp_path, rng, monkeypatch):
    monkeypatch.setattr("cprime.sources.arrow.COLUMN_BYTES", 8)
    X = rng.normal(size=(3000, 2))
    source = open_data(write_parquet(tmp_path / "t.parquet", pa.table({"a": X[:, 0], "b": X[:, 1]}), 2000))
    assert np.array_equal(source.read(10, 2500), X[10:2500])
    assert np.array_equal(source.take([2999, 5]), X[[2999, 5]])


def test_partitions_of_a_dataset_are_columns_if_they_are_named(tmp_path, rng):
    table = pa.table({"a": rng.normal(size=20), "year": np.repeat([2020, 2021], 10)})
    ds.write_dataset(table, tmp_path, format="parquet", partitioning=["year"], partitioning_flavor="hive")
    dataset = ds.dataset(tmp_path, partitioning="hive")
    assert open_data(dataset).columns == open_data(tmp_path).columns == ["a"]
    source = pickle.loads(pickle.dumps(open_data(dataset, columns=["a", "year"])))
    assert source.columns == ["a", "year"]
    assert np.array_equal(source.read(0, 20)[:, 1], table["year"])
    assert source._where(13).endswith("row 3 (row 13 of all)")
    with pytest.raises(ValueError, match="filter"):
        open_data(dataset.filter(ds.field("year") == 2020))


def test_folders_of_partitions_hold_files_of_one_format(tmp_path, rng):
    for year, ending in ((2020, "parquet"), (2021, "csv")):
        (tmp_path / f"year={year}").mkdir()
        (tmp_path / f"year={year}" / f"part.{ending}").touch()
    with pytest.raises(ValueError, match=r"folders of partitions, expected files .* got '\.csv', '\.parquet'"):
        open_data(tmp_path)
    with pytest.raises(ValueError, match="header is not for folders of partitions"):
        open_data(tmp_path, header=True)


def test_folders_hold_files_of_one_format_and_shape(tmp_path):
    with pytest.raises(ValueError, match=r"has no files: expected files that end in one of \.npy, \.parquet"):
        open_data(tmp_path)
    np.save(tmp_path / "a.npy", np.zeros((2, 3)))
    np.save(tmp_path / "b.npy", np.zeros((2, 4)))
    (tmp_path / ".hidden").write_bytes(b"")
    with pytest.raises(ValueError, match=r"b\.npy must have as many columns as .*a\.npy, 3, got 4"):
        open_data(tmp_path)
    (tmp_path / "b.csv").write_text("a\n1\n")
    with pytest.raises(ValueError, match=r"must hold files of one format, got '\.csv', '\.npy'"):
        open_data(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.txt").write_text("")
    with pytest.raises(ValueError, match=r"holds files of an unknown ending '\.txt'"):
        open_data(tmp_path / "other")


def test_files_of_a_folder_have_the_same_columns(tmp_path):
    write_parquet(tmp_path / "0.parquet", pa.table({"a": np.zeros(2, "f4"), "b": np.arange(2, dtype="f4")}))
    write_parquet(tmp_path / "1.parquet", pa.table({"b": np.arange(2), "a": np.zeros(2)}))
    source = open_data(tmp_path)
    assert source.dtype == np.float64
    assert np.array_equal(source.read(0, 4), [[0, 0], [0, 1], [0, 0], [0, 1]])
    assert np.array_equal(open_data(tmp_path, columns=["b"]).take([3]), [[1]])
    write_parquet(tmp_path / "2.parquet", pa.table({"a": ["x"], "b": [1]}))
    with pytest.raises(ValueError, match="column 'a' is not numeric"):
        open_data(tmp_path)
    write_parquet(tmp_path / "2.parquet", pa.table({"a": [1]}))
    with pytest.raises(ValueError, match=r"2\.parquet has no column 'b', which .*0\.parquet has"):
        open_data(tmp_path)


def test_text_is_read_in_pieces_of_whole_lines(tmp_path, rng, monkeypatch):
    monkeypatch.setattr("cprime.sources.lines.PIECE_BYTES", 100)
    X = rng.normal(size=(50, 3))
    lines = [",".join(map(repr, map(float, row))) for row in X]
    for end, last in (("\n", ""), ("\r\n", "\r\n"), ("\n\n", "\n\n")):
        (tmp_path / "t.csv").write_text(end.join(["a,b,c", *lines]) + last, newline="")
        source = open_data(tmp_path / "t.csv")
        assert len(source._ends) > 5
        assert np.array_equal(source.read(0, 50), X)
        assert np.array_equal(source.take([49, 3, 20]), X[[49, 3, 20]])


def test_text_without_a_header_is_numbered(tmp_path, caplog):
    (tmp_path / "t.csv").write_text("1,2\n3,4\n")
    with caplog.at_level(logging.INFO, logger="cprime"):
        source = open_data(tmp_path / "t.csv")
    assert source.columns == ["0", "1"]
    assert np.array_equal(source.read(0, 2), [[1, 2], [3, 4]])
    assert "has no header: its columns are called 0 to 1" in caplog.text


@pytest.mark.parametrize("sample", [1, 2**20])
def test_text_that_is_no_number_is_named_when_the_file_is_opened_or_read(sample, tmp_path, monkeypatch):
    monkeypatch.setattr("cprime.sources.lines.SAMPLE_BYTES", sample)
    monkeypatch.setattr("cprime.sources.lines.PIECE_BYTES", 8)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,\n5,x y\n")
    with pytest.raises(ValueError, match=r"t\.csv: row 2, column 'b' is not numeric: 'x y'; choose numeric columns"):
        open_data(tmp_path / "t.csv").read(0, 3)
    assert np.array_equal(open_data(tmp_path / "t.csv", columns=["a"]).read(0, 3), [[1], [3], [5]])
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,\n5\n")
    with pytest.raises(ValueError, match=r"t\.csv cannot be read as a \.csv file.*Expected 2 columns, got 1"):
        open_data(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,\n")
    source = open_data(tmp_path / "t.csv")
    with pytest.raises(ValueError, match=r"row 1, column 'b': nan"):
        source.check_finite(source.read(0, 2), 0)
    (tmp_path / "t.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match="must have at least one row"):
        open_data(tmp_path / "t.csv")


def test_sparse_data_are_refused():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="sparse data cannot be opened"):
        open_data(sparse.eye_array(3).tocsr())


def test_a_series_is_no_matrix():
    for data in (pd.Series([1.0]), pl.Series([1.0])):
        with pytest.raises(ValueError, match=r"X must hold a matrix \(rows, columns\), got an array of shape \(1,\)"):
            open_data(data)


def test_a_header_is_there_or_not_as_is_said(tmp_path):
    (tmp_path / "t.csv").write_text("0,1\n3,4\n")
    assert open_data(tmp_path / "t.csv", header=True).n_rows == 1
    source = open_data(tmp_path / "t.csv", header=False)
    assert source.columns == ["0", "1"]
    assert np.array_equal(source.read(0, 2), [[0, 1], [3, 4]])
    assert np.array_equal(reopened(source.opened_from).read(0, 2), [[0, 1], [3, 4]])
    (tmp_path / "t.csv").write_text("7,8\n3,4\n")
    for path in (tmp_path / "t.csv", tmp_path):
        source = open_data(path, header=True)
        assert source.columns == ["7", "8"]
        assert np.array_equal(source.read(0, 1), [[3, 4]])
    np.save(tmp_path / "t.npy", np.ones((2, 2)))
    for data in (tmp_path / "t.npy", np.ones((2, 2))):
        with pytest.raises(ValueError, match=r"header is for \.csv and \.tsv files, got .*(t\.npy|ndarray)"):
            open_data(data, header=True)


def test_text_in_one_file_of_a_folder_is_said_of_that_file(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for i, values in enumerate(([1.0, 2.0], ["x", "y"], [3.0, 4.0])):
        parquet.write_table(pa.table({"a": [1.0, 2.0], "b": values}), tmp_path / f"{i}.parquet")
    with pytest.raises(ValueError, match=r"1\.parquet: column 'b' is not numeric"):
        open_data(tmp_path)
    assert open_data(tmp_path, columns=["a"]).n_rows == 6
