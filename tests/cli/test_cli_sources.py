"""`fit`, `predict` and `info` on data of every source format, read in chunks."""

import struct
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import cprime as package
from cprime import GaussianMixture, KMeans
from cprime.sources import open_data

CHUNK = 50


@pytest.fixture(params=["folder", ".npy", ".NPY", ".npz", ".parquet", ".csv", ".arrow", ".fvecs", ".h5", ".zarr"])
def source(request, X, tmp_path):
    """Return the path of the data X in one file format, or in a folder."""
    path = tmp_path / f"x{request.param}"
    if request.param == "folder":
        path.mkdir()
        np.save(path / "1.npy", X[:70])
        np.save(path / "2.npy", X[70:])
    elif request.param == ".npz":
        np.savez(path, X=X)
    elif request.param in (".npy", ".NPY"):
        np.save(tmp_path / "x.npy", X)
        (tmp_path / "x.npy").rename(path)
    elif request.param == ".fvecs":
        path.write_bytes(b"".join(struct.pack("<i", 2) + row.astype("<f4").tobytes() for row in X))
    elif request.param == ".h5":
        with pytest.importorskip("h5py").File(path, "w") as file:
            file["X"], file["y"] = X, np.ones(len(X))
    elif request.param == ".zarr":
        pytest.importorskip("zarr").save(str(path), X)
    else:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import csv, feather, parquet

        table = pa.table({"a": X[:, 0], "b": X[:, 1]})
        writer = {".csv": csv.write_csv, ".parquet": parquet.write_table, ".arrow": feather.write_feather}
        writer[request.param](table, str(path))
    return path


def test_one_chunk_is_the_fit_of_the_array(cprime, source, X, tmp_path):
    outcome = cprime(
        "fit", source, "-k", 9, "--threads", 1, "--dtype", "float64", "-q", "-o", tmp_path / "m.safetensors"
    )
    assert (outcome.code, outcome.err) == (0, "")
    expected = KMeans(9, random_state=0).fit(X)
    loaded = package.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.cluster_centers_, expected.cluster_centers_)
    np.testing.assert_array_equal(loaded.labels_, expected.labels_)


@pytest.mark.parametrize("model", ["kmeans", "gmm"])
def test_several_chunks_are_the_fit_of_the_source(model, cprime, source, tmp_path):
    path = tmp_path / "m.safetensors"
    options = ("-m", model, "--threads", 1, "--chunk-rows", CHUNK, "--max-iter", 9, "--bounds", "--json", "-o", path)
    outcome = cprime("fit", source, "-k", 9, *options)
    data = open_data(source, chunk_rows=CHUNK)
    estimator = {"kmeans": KMeans, "gmm": GaussianMixture}[model](9, max_iter=9, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(data)
    np.testing.assert_array_equal(package.load(path).labels_, estimator.labels_)
    assert outcome.json["n_samples"] == 180
    assert outcome.json["log_likelihood"] == estimator.bounds(data).log_likelihood
    assert outcome.json["columns"] == data.columns


@pytest.mark.parametrize("name", ["l.npy", "l.csv", "l.parquet", "l.feather"])
def test_labels_are_written_chunk_by_chunk(name, cprime, source, X, tmp_path):
    path = tmp_path / "m.safetensors"
    estimator = KMeans(9, random_state=0).fit(X)
    estimator.save(path)
    output = tmp_path / name
    figures = cprime("predict", path, source, "--chunk-rows", 37, "-o", output, "--json").json
    expected = estimator.predict(X)
    assert (figures["n_samples"], figures["n_components"], figures["output"]) == (180, 9, str(output))
    assert figures["n_components_used"] == len(np.unique(expected))
    labels = np.load(output) if name == "l.npy" else open_data(output).read(0, 180)[:, 0]
    np.testing.assert_array_equal(labels, expected)
    if name == "l.npy":
        assert labels.dtype == np.int32


def test_info_describes_data_and_its_chunks(cprime, source):
    figures = cprime("info", source, "--chunk-rows", CHUNK, "--json").json
    data = open_data(source)
    assert (figures["n_samples"], figures["n_features"]) == (180, 2)
    assert (figures["n_chunks"], figures["chunk_rows"]) == (4, CHUNK)
    assert figures["chunk_bytes"] == CHUNK * 2 * data.dtype.itemsize
    assert figures["dtype"] == data.dtype.name
    assert figures["columns"] == data.columns
    assert figures["bytes"] == data.n_bytes > 0
    shown = cprime("info", source).out
    for word in ("points N", "180", "dimensions D", "chunks", "stored bytes"):
        assert word in shown


def test_weights_are_read_from_another_file_or_array(cprime, write, X, tmp_path):
    weights = 1.0 + np.arange(len(X)) % 3
    expected = KMeans(9, random_state=0).fit(X, sample_weight=weights)
    path = tmp_path / "m.safetensors"
    rows = write("x.npy", X)
    sources = [(rows, write("w.npy", weights))]
    with pytest.importorskip("h5py").File(tmp_path / "x.h5", "w") as file:
        file["X"], file["w"] = X, weights
    sources.append((tmp_path / "x.h5", "w"))
    for source, name in sources:
        options = ("--sample-weight", name, "-q", "-o", path)
        assert cprime("fit", source, "-k", 9, "--threads", 1, *options).code == 0
        np.testing.assert_array_equal(package.load(path).cluster_centers_, expected.cluster_centers_)


def test_columns_of_a_folder_of_tables_are_chosen(cprime, X, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    (tmp_path / "t").mkdir()
    for number, part in enumerate(np.split(X, 2)):
        table = {"id": ["x"] * len(part), "b": part[:, 1], "w": [1.0] * len(part), "a": part[:, 0]}
        parquet.write_table(pa.table(table), tmp_path / "t" / f"{number}.parquet")
    path = tmp_path / "m.safetensors"
    options = ("--drop", "id", "--sample-weight", "w", "--json", "-o", path)
    assert cprime("fit", tmp_path / "t", "-k", 9, *options).json["columns"] == ["b", "a"]
    assert cprime("predict", path, tmp_path / "t", "-o", tmp_path / "l.npy", "--chunk-rows", 40).code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "l.npy"), package.load(path).labels_)


def test_data_that_change_while_labels_are_made_leave_none(fails, model, write, X, tmp_path, monkeypatch):
    source, predict = write("x.npy", X), KMeans.predict

    def changing(estimator, rows):
        with source.open("ab") as file:
            file.write(b"more")
        return predict(estimator, rows)

    monkeypatch.setattr(KMeans, "predict", changing)
    assert "x.npy has changed since it was opened" in fails("predict", model, source, "-o", tmp_path / "l.npy")


def test_a_fit_in_chunks_shows_iterations_and_rows(terminal, cprime, write, X, tmp_path):
    path = tmp_path / "m.safetensors"
    assert cprime("fit", write("x.npy", X), "-k", 9, "--chunk-rows", CHUNK, "-o", path).code == 0
    assert f"{package.load(path).n_iter_}/300" in terminal.getvalue()
    assert "180 of 180 rows, " in terminal.getvalue()
