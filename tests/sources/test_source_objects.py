"""Files, streams and tables that other libraries write or hand over give the array that they were made from."""

import warnings

import anndata
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from astropy.io import fits
from astropy.table import Table
from scipy.sparse import csc_array, csr_array

import cprime
import datasets
from cprime import open_data

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4)).astype(np.float32)
NAMES = list("abcd")
ARROW = pa.table({name: X[:, j] for j, name in enumerate(NAMES)})
VECTORS = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 4)
IDS = pa.array(np.arange(300))
NESTED = pa.table({"e": pa.StructArray.from_arrays([IDS, VECTORS], ["id", "vec"]), "name": pa.array(["r"] * 300)})


def columns_of(X):
    return np.rec.fromarrays(X.T, names=NAMES)


def stream(folder, table=ARROW, name="x.arrow"):
    with pa.OSFile(str(folder / name), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=70):
            writer.write_batch(batch)
    return folder / name


def npy(folder):
    np.save(folder / "x.npy", columns_of(X))
    return folder / "x.npy"


def fits_file(folder):
    Table(X, names=NAMES).write(folder / "x.fits")
    return folder / "x.fits"


def h5ad(folder, matrix, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anndata.AnnData(matrix, **more).write_h5ad(folder / "x.h5ad")
    return folder / "x.h5ad"


def saved(folder):
    datasets.Dataset.from_dict({name: X[:, j] for j, name in enumerate(NAMES)}).save_to_disk(folder / "saved")
    return folder / "saved"


def parts(folder):
    for n, rows in enumerate(np.array_split(X, 3)):
        np.save(folder / f"{n}.npy", rows)
    return [folder / f"{n}.npy" for n in range(3)]


def relation(folder):
    return duckdb.sql("SELECT * FROM ARROW", alias="x")


SAME = {
    "structured array": lambda folder: columns_of(X),
    "structured .npy": npy,
    "table of astropy": lambda folder: Table(X, names=NAMES),
    "table with a column of vectors": lambda folder: Table({"vec": X}),
    "FITS": fits_file,
    "stream": stream,
    "stream, .arrows": lambda folder: stream(folder, name="x.arrows"),
    "record batch reader": lambda folder: pa.RecordBatchReader.from_batches(ARROW.schema, ARROW.to_batches(70)),
    "DuckDB": relation,
    "reader of DuckDB": lambda folder: relation(folder).to_arrow_reader(),
    "data set of Hugging Face": lambda folder: datasets.load_from_disk(saved(folder)),
    "folder of Hugging Face": saved,
    "AnnData": lambda folder: anndata.AnnData(X),
    ".h5ad": lambda folder: h5ad(folder, X),
    "tensors": lambda folder: pa.table({"t": pa.FixedShapeTensorArray.from_numpy_ndarray(X.reshape(-1, 2, 2))}),
    "structures of polars": lambda folder: pl.from_arrow(ARROW).select(pl.struct(NAMES)),
    "structures of pyarrow": lambda folder: pa.table({"s": ARROW.to_struct_array()}),
    "list of paths": parts,
    "masked array": lambda folder: np.ma.masked_array(X),
}


@pytest.mark.parametrize("kind", SAME)
def test_rows_of_other_libraries_are_those_of_the_array(kind, tmp_path):
    assert np.array_equal(open_data(SAME[kind](tmp_path)).read(0, 300), X)


@pytest.mark.parametrize("kind", SAME)
def test_fits_of_rows_of_other_libraries_are_those_of_the_array(kind, tmp_path):
    expected = cprime.KMeans(3, random_state=0).fit(X)
    data = SAME[kind](tmp_path)
    found = cprime.KMeans(3, random_state=0).fit(data)
    assert np.array_equal(found.cluster_centers_, expected.cluster_centers_)
    if not hasattr(data, "__next__"):  # readers can be read once
        assert np.array_equal(found.predict(data), expected.labels_)


@pytest.mark.parametrize("layout", [csr_array, csc_array])
def test_sparse_matrices_of_h5ad_files_are_fitted_as_sparse_arrays(layout, tmp_path):
    counts = RNG.poisson(0.3, size=(200, 30)).astype(np.float32)
    path = h5ad(tmp_path, layout(counts), layers={"raw": counts + 1})
    expected = cprime.KMeans(4, random_state=0).fit(csr_array(counts))
    found = cprime.KMeans(4, random_state=0).fit(path)
    assert np.array_equal(found.labels_, expected.labels_)
    assert np.array_equal(found.predict(path), expected.labels_)
    assert np.array_equal(open_data(path, key="layers/raw").read(0, 200), counts + 1)
    with pytest.raises(TypeError, match=r"X must have dense rows for GaussianMixture, .*h5ad has sparse rows"):
        cprime.GaussianMixture(2).fit(path)
    with pytest.raises(ValueError, match="no matrix 'layers/log'; it has 'X', 'layers/raw'"):
        open_data(path, key="layers/log")


def test_masked_values_of_astropy_are_missing(tmp_path):
    masked = np.ma.masked_array(X, np.zeros(X.shape, dtype=bool))
    masked[3, 1] = np.ma.masked
    table = Table(masked, names=NAMES)
    for data in (table, masked):
        assert np.array_equal(open_data(data).read(0, 300), masked.filled(np.nan), equal_nan=True)


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.arrows"])
def test_fields_of_structures_are_columns(name, tmp_path):
    categories = NESTED.append_column("category", pa.array([f"c{n % 3}" for n in range(300)]).dictionary_encode())
    if name == "x.parquet":
        pq.write_table(categories, tmp_path / name, row_group_size=90)
    else:
        stream(tmp_path, categories, name)
    source = open_data(tmp_path / name, columns="e.vec")
    order = np.array([299, 0, 80, 299])
    assert np.array_equal(source.take(order), X[order])
    assert np.array_equal(source.read(60, 200), X[60:200])
    assert np.array_equal(source.read(0, 80), X[:80])
    assert np.array_equal(open_data(tmp_path / name, columns=["e.id"]).read(140, 150)[:, 0], np.arange(140, 150))
    assert source.as_stored(["category"]).read_stored(69, 72)["category"].to_pylist() == ["c0", "c1", "c2"]


def test_a_stream_of_few_batches_is_read_in_any_order(tmp_path):
    source = open_data(stream(tmp_path))
    for begin, end in ((290, 300), (0, 10), (139, 141), (0, 300)):
        assert np.array_equal(source.read(begin, end), X[begin:end])


def test_a_torn_stream_is_an_error_that_names_the_file(tmp_path):
    path = stream(tmp_path)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(ValueError, match=r"x\.arrow cannot be read as a file of Arrow's format"):
        open_data(path)


def test_an_id_a_time_and_a_list_give_a_message_that_names_the_list(tmp_path):
    times = pd.date_range("2026-01-01", periods=300)
    pq.write_table(pa.table({"id": IDS, "time": pa.array(times), "vec": VECTORS}), tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"column .vec. has lists of 4 float32, .* with columns=.vec."):
        cprime.KMeans(2).fit(tmp_path / "x.parquet")
    km = cprime.KMeans(3, random_state=0).fit(open_data(tmp_path / "x.parquet", columns="vec"))
    assert km.list_column_ == "vec"
    km.save(tmp_path / "km.safetensors")
    again = cprime.load(tmp_path / "km.safetensors")
    assert np.array_equal(again.predict(tmp_path / "x.parquet"), km.labels_)
    assert np.array_equal(again.predict(X), km.labels_)
    assert not hasattr(km.fit(X), "list_column_")


def test_a_model_reads_its_columns_of_a_file_with_others(tmp_path):
    pq.write_table(ARROW, tmp_path / "x.parquet")
    pq.write_table(
        ARROW.append_column("name", pa.array(["r"] * 300)).select(["name", *NAMES[::-1]]), tmp_path / "y.parquet"
    )
    km = cprime.KMeans(3, random_state=0).fit(tmp_path / "x.parquet")
    assert np.array_equal(km.predict(tmp_path / "y.parquet"), km.labels_)


def test_lists_of_paths_keep_their_order_and_resume(tmp_path):
    paths = parts(tmp_path)[::-1]
    expected = np.concatenate([np.load(path) for path in paths])
    source = open_data(paths, chunk_rows=70)
    assert np.array_equal(source.read(0, 300), expected)
    assert "2.npy and 2 more" in source.name
    assert source.opened_from["path"] == [str(path) for path in paths]
    cprime.KMeans(3, random_state=0, checkpoint=tmp_path / "run").fit(paths)
    assert np.array_equal(
        cprime.resume(tmp_path / "run").predict(expected), cprime.KMeans(3, random_state=0).fit(paths).labels_
    )


def test_a_folder_of_several_data_sets_names_them(tmp_path):
    one = datasets.Dataset.from_dict({"a": [1.0, 2.0]})
    datasets.DatasetDict({"train": one, "test": one}).save_to_disk(tmp_path / "all")
    with pytest.raises(ValueError, match=r"all holds the data sets 'train', 'test': choose one, such as .*train"):
        open_data(tmp_path / "all")


def test_a_table_of_a_fits_file_is_chosen_by_name(tmp_path):
    units = [fits.BinTableHDU(Table(X[:, [j]], names=["v"]), name=name) for j, name in enumerate(("ONE", "TWO"))]
    fits.HDUList([fits.PrimaryHDU(), *units]).writeto(tmp_path / "x.fits")
    assert np.array_equal(open_data(tmp_path / "x.fits", key="TWO").read(0, 300)[:, 0], X[:, 1])
    with pytest.raises(ValueError, match="it has 2 tables: choose with key= from 'ONE', 'TWO'"):
        open_data(tmp_path / "x.fits")
