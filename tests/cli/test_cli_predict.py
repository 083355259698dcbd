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


FITS = [(), ("--metric", "cosine"), ("--scale",), ("--chunk-rows", 50), ("--dtype", "float32")]


@pytest.mark.parametrize("options", FITS)
def test_the_nearest_clusters_are_those_of_all_distances(options, cprime, write, X, tmp_path):
    source, path, out = write("x.csv", X), tmp_path / "m.safetensors", tmp_path / "l.npy"
    assert cprime("fit", source, "-k", 9, *options, "-o", path, "-q").code == 0
    chunks = options if "--chunk-rows" in options else ()
    assert cprime("predict", path, source, "--nearest", 3, "-o", out, *chunks, "-q").code == 0
    found, estimator = np.load(out), package.load(path)
    distances = estimator.transform(source)
    order = np.argsort(distances, axis=1, kind="stable")[:, :3]
    assert found.dtype.names == ("label", *(f"{what}_{n}" for n in (1, 2, 3) for what in ("nearest", "distance")))
    np.testing.assert_array_equal(found["label"], estimator.predict(source))
    np.testing.assert_array_equal(found["nearest_1"], found["label"])
    for n in range(3):
        near = np.take_along_axis(distances, found[f"nearest_{n + 1}"][:, np.newaxis], 1)[:, 0]
        np.testing.assert_allclose(near, np.take_along_axis(distances, order, 1)[:, n], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found[f"distance_{n + 1}"], near, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", FITS)
def test_new_rows_are_assigned_within_bounds_of_sizes(options, cprime, write, X, new, tmp_path):
    source, path, out = write("x.csv", new[:100]), tmp_path / "m.safetensors", tmp_path / "l.npy"
    assert cprime("fit", write("train.csv", X), "-k", 9, *options, "-o", path, "-q").code == 0
    chunks = options if "--chunk-rows" in options else ()
    bounds = ("--size-max", "1.2x", "--size-min", 7, "--distance", *chunks)
    figures = cprime("predict", path, source, *bounds, "-o", out, "--json").json
    sizes, found, estimator = np.bincount(np.load(out)["label"], minlength=9), np.load(out), package.load(path)
    assert (figures["sizes"]["least"], figures["sizes"]["greatest"]) == (sizes.min(), sizes.max())
    assert 7 <= sizes.min() <= sizes.max() <= 14
    distances = estimator.transform(source)
    own = np.take_along_axis(distances, found["label"][:, np.newaxis], 1)[:, 0]
    np.testing.assert_allclose(found["distance"], own, rtol=1e-5, atol=1e-6)
    free = cprime("predict", path, source, "--size-max", 100, "-o", out, "-q", *chunks)
    assert free.code == 0
    np.testing.assert_array_equal(np.load(out), estimator.predict(source))


def test_clusters_and_bounds_that_cannot_be_are_refused(cprime, fails, model, write, X, tmp_path):
    source, out = write("x.csv", X), ("-o", tmp_path / "l.npy")
    assert (
        fails("predict", model, source, "--nearest", 10, *out)
        == "--nearest 10 is more than the 9 clusters of the model"
    )
    assert (
        fails("predict", model, source, "--size-max", 5, *out)
        == "--size-max 5 allows 45 points in 9 clusters, got 180."
    )
    assert "--size-min '2x' needs" in fails("predict", model, source, "--size-min", "2x", *out)
    path = tmp_path / "gm.safetensors"
    assert cprime("fit", source, "-m", "gmm", "-k", 3, "-o", path, "-q").code == 0
    for option in ("--nearest", "--size-max", "--size-min"):
        line = fails("predict", path, source, option, 2, *out)
        assert line == f"{option} needs a k-means, the model is a GaussianMixture"
