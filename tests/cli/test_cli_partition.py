"""`cprime predict --partition-by-cluster` writes a folder with one Parquet file per cluster, or nothing if it fails."""

import numpy as np
import pytest

import cprime as package
from cprime.cli import partition
from cprime.execution import results

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
dataset = pytest.importorskip("pyarrow.dataset")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def documents(X, tmp_path):
    """Return a folder of two Parquet files with text ids and a column of lists."""
    folder = tmp_path / "documents"
    folder.mkdir()
    for part in range(2):
        rows = X[part::2].astype(np.float32)
        ids = [f"{part}-{n}" for n in range(len(rows))]
        lists = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 2)
        parquet.write_table(pa.table({"doc": ids, "embedding": lists}), folder / f"{part}.parquet")
    return folder


@pytest.fixture
def of_documents(cprime, documents, tmp_path):
    path = tmp_path / "m.safetensors"
    assert cprime("fit", documents, "--id", "doc", "-k", 9, "-o", path, "-q").code == 0
    return path


def expected(model, X):
    """Return the rows in the order of the partition: sorted by cluster, then by row."""
    estimator = package.load(model)
    estimator.__dict__.pop("feature_names_in_", None)
    labels, distances = estimator.nearest(X)
    table = pd.DataFrame({"row": np.arange(len(X)), "distance": distances, "cluster": labels.astype(int)})
    return table.sort_values(["cluster", "row"], ignore_index=True)


def read(folder):
    return pd.read_parquet(folder).astype({"cluster": int}).sort_values("cluster", kind="stable", ignore_index=True)


@pytest.mark.parametrize("chunk_rows", [180, 50])
def test_rows_of_each_cluster_are_in_a_file_of_its_own(chunk_rows, cprime, model, write, X, tmp_path, monkeypatch):
    monkeypatch.setattr(partition, "_GROUP_BYTES", 200)
    folder, source = tmp_path / "clusters", write("x.npy", X)
    args = ("predict", model, source, "--partition-by-cluster", folder, "--chunk-rows", chunk_rows)
    figures = cprime(*args, "--json").json
    assert (figures["output"], figures["partitions"]) == (None, str(folder))
    rows = expected(model, X)
    pd.testing.assert_frame_equal(read(folder), rows)
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*"))
    assert files == sorted(f"cluster={c}/part-0.parquet" for c in rows["cluster"].unique())
    table = dataset.dataset(folder, partitioning="hive").to_table(filter=dataset.field("cluster") == 3)
    np.testing.assert_array_equal(table["row"], rows["row"][rows["cluster"] == 3])
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_dask_reads_it(cprime, model, write, X, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    folder = tmp_path / "clusters"
    assert cprime("predict", model, write("x.npy", X), "--partition-by-cluster", folder, "-q").code == 0
    assert len(dd.read_parquet(folder).compute()) == len(X)


def test_ids_and_data_of_lists_are_written(cprime, of_documents, documents, X, tmp_path):
    folder = tmp_path / "clusters"
    args = ("predict", of_documents, documents, "--id", "doc", "--partition-by-cluster", folder, "--with-data")
    assert cprime(*args, "-o", tmp_path / "labels.parquet", "--chunk-rows", 70).code == 0
    stored = pd.read_parquet(documents)
    labels = pd.read_parquet(tmp_path / "labels.parquet")
    assert list(labels) == ["doc", "embedding", "label", "distance"]
    rows = read(folder)
    assert list(rows) == ["doc", "embedding", "distance", "cluster"]
    merged = rows.merge(stored, on="doc").merge(labels, on="doc")
    assert len(merged) == len(X)
    np.testing.assert_array_equal(np.stack(merged["embedding_x"]), np.stack(merged["embedding_y"]))
    np.testing.assert_array_equal(merged["cluster"], merged["label"])
    np.testing.assert_array_equal(merged["distance_x"], merged["distance_y"])
    again = package.KMeans(2, random_state=0).fit(package.open_data(folder / "cluster=0", columns="embedding"))
    assert again.n_features_in_ == 2


def test_data_of_a_table_are_those_that_were_stored(cprime, write, X, tmp_path):
    gaps = X.copy()
    gaps[5, 0] = np.nan
    source, path = write("x.parquet", gaps), tmp_path / "m.safetensors"
    assert cprime("fit", source, "-k", 9, "--missing", "mean", "--scale", "-o", path, "-q").code == 0
    folder = tmp_path / "clusters"
    assert cprime("predict", path, source, "--partition-by-cluster", folder, "--with-data", "-q").code == 0
    rows = read(folder).sort_values("row")
    np.testing.assert_array_equal(rows[["a", "b"]], gaps)


def test_rows_that_are_left_out_keep_the_numbers_of_the_others(cprime, model, write, X, tmp_path):
    gaps = X.copy()
    gaps[5, 0] = np.nan
    folder = tmp_path / "clusters"
    args = ("--partition-by-cluster", folder, "--missing", "drop", "--with-data")
    assert cprime("predict", model, write("x.csv", gaps), *args, "-q").code == 0
    rows = read(folder).sort_values("row")
    np.testing.assert_array_equal(rows["row"], np.delete(np.arange(len(X)), 5))
    np.testing.assert_array_equal(rows[["a", "b"]], np.delete(X, 5, axis=0))


def test_probabilities_of_a_mixture_go_by_pieces(cprime, write, X, tmp_path, monkeypatch):
    source, path = write("x.npy", X), tmp_path / "gm.safetensors"
    assert cprime("fit", source, "-m", "gmm", "-k", 4, "-o", path, "-q").code == 0
    args = ("predict", path, source, "--proba", "--score", "--partition-by-cluster")
    assert cprime(*args, tmp_path / "once", "-q").code == 0
    monkeypatch.setattr(results, "CHUNK_BYTES", 1)
    monkeypatch.setattr(results, "_LEAST_ROWS", 50)
    assert cprime(*args, tmp_path / "pieces", "-q").code == 0
    pd.testing.assert_frame_equal(read(tmp_path / "once"), read(tmp_path / "pieces"))
    assert {"score", "proba_0", "proba_3"} <= set(read(tmp_path / "once"))


def test_an_empty_folder_takes_it_and_another_is_refused(cprime, fails, model, write, X, tmp_path):
    folder, source = tmp_path / "clusters", write("x.npy", X)
    folder.mkdir()
    args = ("predict", model, source, "--partition-by-cluster")
    assert cprime(*args, folder, "-q").code == 0
    assert "must be a new or empty folder" in fails(*args, folder)
    assert "is not a folder" in fails(*args, source)
    assert "does not exist" in fails(*args, tmp_path / "absent" / "clusters")


def test_nothing_is_left_where_it_fails(fails, model, write, X, tmp_path):
    bad = X.copy()
    bad[-1] = np.nan
    source = write("x.npy", bad)
    for folder in (tmp_path / "new", tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        line = fails("predict", model, source, "--partition-by-cluster", folder, "--chunk-rows", 50)
        assert "row 179" in line


def test_names_that_are_taken(fails, model, write, X, tmp_path):
    for name in ("cluster", "distance"):
        source = write("x.parquet", {name: np.arange(len(X)), "a": X[:, 0], "b": X[:, 1]})
        line = fails("predict", model, source, "--id", name, "--partition-by-cluster", tmp_path / "c")
        assert f"are both called '{name}'" in line
    source = write("y.parquet", {"label": np.arange(len(X)), "a": X[:, 0], "b": X[:, 1]})
    assert "are both called 'label'" in fails("predict", model, source, "--id", "label", "-o", tmp_path / "l.csv")


def test_the_folder_is_read_again(cprime, model, write, X, tmp_path, caplog):
    """A partitioned folder is read as one data set: its column `cluster` is no feature unless it is selected."""
    table = pd.DataFrame(X, columns=["a", "b"])
    folder = tmp_path / "clusters"
    table.to_parquet(tmp_path / "x.parquet")
    assert cprime("fit", tmp_path / "x.parquet", "-k", 9, "-o", tmp_path / "m.safetensors", "-q").code == 0
    args = ("predict", tmp_path / "m.safetensors", tmp_path / "x.parquet", "--with-data")
    outcome = cprime(*args, "--partition-by-cluster", folder, "-q")
    assert outcome.code == 0, outcome.err
    with caplog.at_level("INFO", logger="cprime"):
        source = package.open_data(folder)
    assert "column 'cluster' is a partition and is left out of the data" in caplog.text
    assert "cluster" not in source.columns
    found = package.open_data(folder, columns=["a", "b", "cluster"]).read(0, len(X))
    labels = package.load(tmp_path / "m.safetensors").predict(table)
    expected = np.column_stack([X, labels])
    np.testing.assert_array_equal(found[np.lexsort(found.T)], expected[np.lexsort(expected.T)])
    args = ("fit", folder, "--columns", "a,b", "--id", "cluster", "-k", 3, "-q")
    outcome = cprime(*args, "-o", tmp_path / "n.safetensors")
    assert outcome.code == 0, outcome.err
