"""`cprime predict` reads the columns of its model, and `cprime info` describes models."""

import numpy as np
import pytest

import cprime as package


@pytest.fixture
def new(X):
    """Return points that differ from those of the fit."""
    return X[::-1] + 0.25


@pytest.fixture
def expected(model, new):
    estimator = package.load(model)
    del estimator.feature_names_in_
    return estimator.predict(new)


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


def test_info_as_json_has_the_attributes_of_the_model(cprime, model):
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


def test_info_shows_the_figures_of_the_model(cprime, model):
    outcome = cprime("info", model)
    assert outcome.code == 0
    for word in ("kmeans", "components C", "free energy F", "a, b", package.__version__):
        assert word in outcome.out
