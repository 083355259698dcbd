"""`cprime predict` writes labels in every format, and `cprime info` describes models."""

import numpy as np
import pytest

import cprime as package


@pytest.fixture
def new(X):
    """Return points that differ from those of the fit."""
    return X[::-1] + 0.25


def labels_in(path):
    if path.suffix == ".npy":
        return np.load(path)
    pytest.importorskip("pyarrow")
    from pyarrow import csv, feather, parquet

    read = {".csv": csv.read_csv, ".parquet": parquet.read_table, ".feather": feather.read_table}[path.suffix]
    table = read(path)
    assert table.column_names == ["label"]
    return table["label"].to_numpy()


@pytest.fixture
def expected(model, new):
    estimator = package.load(model)
    del estimator.feature_names_in_
    return estimator.predict(new)


@pytest.mark.parametrize("name", ["l.npy", "l.csv", "l.parquet", "l.feather"])
def test_labels_in_every_format(name, cprime, model, write, new, expected, tmp_path):
    outcome = cprime("predict", model, write("x.npy", new), "-q", "-o", tmp_path / name)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    np.testing.assert_array_equal(labels_in(tmp_path / name), expected)


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.csv", "x.parquet", "x.feather"])
def test_data_in_every_format(name, cprime, model, write, new, expected, tmp_path):
    source = write(name, {"X": new} if name == "x.npz" else new)
    figures = cprime("predict", model, source, "-o", tmp_path / "l.npy", "--json", "--threads", 1).json
    labels = np.load(tmp_path / "l.npy")
    np.testing.assert_array_equal(labels, expected)
    assert labels.dtype == np.int32
    assert (figures["n_samples"], figures["n_components"]) == (180, 9)
    assert figures["n_components_used"] == len(np.unique(expected))
    assert figures["output"] == str(tmp_path / "l.npy")


def test_tables_are_read_in_the_columns_of_the_model(cprime, model, write, new, expected, tmp_path):
    source = write("x.csv", {"b": new[:, 1], "name": ["x"] * len(new), "a": new[:, 0]})
    assert cprime("predict", model, source, "-o", tmp_path / "l.npy").code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "l.npy"), expected)
    assert cprime("predict", model, source, "--columns", "b,a", "-o", tmp_path / "l.npy").code == 0
    assert not np.array_equal(np.load(tmp_path / "l.npy"), expected)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_labels_of_the_training_data_come_again(precision, cprime, write, X, tmp_path):
    source = write("x.csv", X / 3)
    path = tmp_path / "m.safetensors"
    assert cprime("fit", source, "-k", 9, "--dtype", precision, "-o", path).code == 0
    assert cprime("predict", path, source, "-o", tmp_path / "l.npy").code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "l.npy"), package.load(path).labels_)


def test_info_as_json(cprime, model):
    figures = cprime("info", model, "--json").json
    fitted = package.load(model)
    assert figures["model"] == "kmeans"
    assert (figures["n_components"], figures["n_features"], figures["n_active"]) == (9, 2, 1)
    assert figures["quantization_error"] == fitted.inertia_
    assert figures["free_energy"] == fitted.lower_bound_
    assert figures["columns"] == ["a", "b"]
    assert figures["cprime_version"] == package.__version__
    assert figures["params"]["n_clusters"] == 9
    assert figures["bytes"] == model.stat().st_size


def test_info_says_the_shape_of_array_parameters(cprime, write, X, tmp_path):
    path = tmp_path / "m.safetensors"
    start = write("start.npy", X[:9])
    assert cprime("fit", write("x.npy", X), "-k", 9, "--init", start, "-o", path).code == 0
    assert cprime("info", path, "--json").json["params"]["init"] == "array (9, 2)"


def test_info_for_people(cprime, model):
    outcome = cprime("info", model)
    assert outcome.code == 0
    for word in ("kmeans", "components C", "free energy F", "a, b", package.__version__):
        assert word in outcome.out
