"""The index of a table is not data: in files written by pandas, in folders and data sets of them, and in memory."""

import logging

import numpy as np
import pytest

from cprime import KMeans
from cprime.sources import open_data, reopened

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
ds = pytest.importorskip("pyarrow.dataset")

NAMES = [f"star {i}" for i in range(40)]
INDEXES = {  # names of the columns in which an index is stored
    "none": (None, []),
    "range": (pd.RangeIndex(7, 47), []),
    "whole numbers": (pd.Index(np.arange(40)[::-1] * 1000), ["__index_level_0__"]),
    "named": (pd.Index(np.arange(40) * 1000, name="id"), ["id"]),
    "text": (pd.Index(NAMES, name="who"), ["who"]),
    "several": (pd.MultiIndex.from_product([range(8), range(5)], names=["i", None]), ["i", "__index_level_1__"]),
}
STORED = ("parquet", "feather", "arrow", "folder", "data set", "table", "table as a data set", "batch")
FILES = STORED[:4]


def stored(frame, how, folder):
    """Return a frame as pandas and pyarrow store it, with its index."""
    table = pa.Table.from_pandas(frame)
    if how == "parquet":
        frame.to_parquet(folder / "x.parquet")
    elif how == "feather":
        pytest.importorskip("pyarrow.feather").write_feather(frame, folder / "x.feather")
    elif how == "arrow":
        with pa.ipc.new_file(folder / "x.arrow", table.schema) as file:
            file.write_table(table)
    elif how in ("folder", "data set"):
        (folder / "parts").mkdir()
        frame.iloc[:30].to_parquet(folder / "parts" / "0.parquet")
        frame.iloc[30:].to_parquet(folder / "parts" / "1.parquet")
        return ds.dataset(folder / "parts") if how == "data set" else folder / "parts"
    elif how == "table as a data set":
        return ds.dataset(table)
    else:
        return table if how == "table" else table.to_batches()[0]
    return folder / f"x.{how}"


@pytest.fixture
def frame(rng):
    return pd.DataFrame(rng.normal(size=(40, 2)), columns=["b", "a"])


@pytest.mark.parametrize("how", STORED)
@pytest.mark.parametrize("kind", INDEXES)
def test_the_index_is_no_feature(kind, how, frame, tmp_path, caplog):
    index, stored_as = INDEXES[kind]
    frame.index = frame.index if index is None else index
    data = stored(frame, how, tmp_path)
    with caplog.at_level(logging.INFO, logger="cprime"):
        source = open_data(data)
    assert source.columns == ["b", "a"]
    np.testing.assert_array_equal(source.read(0, 40), frame.to_numpy())
    assert ("left out of the data" in caplog.text) == bool(stored_as)
    assert all(repr(name) in caplog.text for name in stored_as)
    model = KMeans(3, random_state=0).fit(data)
    np.testing.assert_array_equal(model.labels_, KMeans(3, random_state=0).fit(frame).labels_)
    np.testing.assert_array_equal(model.predict(frame), model.predict(data))


@pytest.mark.parametrize("how", STORED)
def test_the_index_can_be_chosen_and_can_weigh_rows(how, frame, tmp_path):
    frame.index = pd.Index(np.arange(40) * 1000, name="id")
    data = stored(frame, how, tmp_path)
    source = open_data(data, columns=["a", "id"])
    np.testing.assert_array_equal(source.read(0, 40), np.column_stack([frame["a"], frame.index]))
    weighted = open_data(data).with_weights("id")
    assert weighted.columns == ["b", "a"]
    np.testing.assert_array_equal(weighted.weights(0, 40), frame.index)


@pytest.mark.parametrize("how", FILES)
def test_the_index_can_name_rows(how, frame, tmp_path):
    frame.index = pd.Index(NAMES, name="who")
    assert (
        open_data(stored(frame, how, tmp_path)).as_stored(["who"]).read_stored(25, 35)["who"].to_pylist()
        == NAMES[25:35]
    )


@pytest.mark.parametrize("how", FILES)
def test_columns_are_chosen_again_where_a_file_is_reopened(how, frame, tmp_path):
    frame.index = pd.Index(NAMES, name="who")
    frame["text"] = "t"
    source = open_data(stored(frame, how, tmp_path), columns=["a"])
    np.testing.assert_array_equal(reopened(source.opened_from).read(0, 40), frame[["a"]])


@pytest.mark.parametrize("first", ["0", "2"])
def test_an_index_that_only_some_files_of_a_folder_have_is_left_out(first, frame, tmp_path, caplog):
    frame.iloc[:30].to_parquet(tmp_path / f"{first}.parquet")  # a RangeIndex is not stored as a column
    frame.iloc[[35, 31, 39]].to_parquet(tmp_path / "1.parquet")
    with caplog.at_level(logging.INFO, logger="cprime"):
        source = open_data(tmp_path)
    assert source.columns == ["b", "a"]
    assert "column '__index_level_0__' is the index and is left out of the data" in caplog.text
    order = [*range(30), 35, 31, 39] if first == "0" else [35, 31, 39, *range(30)]
    np.testing.assert_array_equal(source.read(0, 33), frame.iloc[order])


def test_a_column_that_is_the_index_of_one_file_of_a_folder_is_no_data(frame, tmp_path):
    frame["id"] = np.arange(40)
    frame.to_parquet(tmp_path / "0.parquet")
    frame.set_index("id").to_parquet(tmp_path / "1.parquet")
    assert open_data(tmp_path).columns == ["b", "a"]


def test_a_table_that_has_nothing_but_an_index_has_no_data(frame, tmp_path):
    frame.set_index(["a", "b"]).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"x\.parquet must have at least one column of data, got none"):
        open_data(tmp_path / "x.parquet")


@pytest.mark.parametrize("metadata", [b"no json", b"[1]", b'{"index_columns": 3}', b"\xff"])
def test_metadata_that_cannot_be_read_are_an_error_that_names_the_file(metadata, frame, tmp_path):
    table = pa.Table.from_pandas(frame).replace_schema_metadata({b"pandas": metadata})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"x\.parquet: the metadata of pandas in its schema cannot be read"):
        open_data(tmp_path / "x.parquet")


def test_the_index_of_a_dask_dataframe_is_no_feature(frame, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    frame.index = pd.Index(np.arange(40) * 1000, name="id")
    data = dd.read_parquet(stored(frame, "folder", tmp_path))
    model = KMeans(3, random_state=0).fit(data)
    assert model.feature_names_in_.tolist() == ["b", "a"]


def test_the_index_of_a_lance_data_set_is_no_feature(frame, tmp_path):
    lance = pytest.importorskip("lance")
    frame.index = pd.Index(np.arange(40) * 1000, name="id")
    lance.write_dataset(pa.Table.from_pandas(frame), tmp_path / "x.lance")
    assert open_data(tmp_path / "x.lance").columns == ["b", "a"]
