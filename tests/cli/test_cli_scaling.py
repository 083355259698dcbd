"""Commands with models of filled and scaled data: their figures are those of the prepared rows, applied once."""

import numpy as np
import pytest
from sklearn.preprocessing import scale

from cprime import KMeans, load


@pytest.fixture
def stretched(X):
    """Return rows whose columns have very different scales."""
    return X * [1000.0, 0.01] + [5e4, 3.0]


@pytest.fixture
def path(stretched, write):
    return write("stretched.npy", stretched)


@pytest.mark.parametrize("criterion", ["bic", "held_out"])
def test_a_sweep_scales_the_rows_once(criterion, cprime, stretched, path, write, tmp_path):
    outputs = tmp_path / "scaled.safetensors", tmp_path / "plain.safetensors"
    options = ("-m", "gmm", "-k", "1,2,4", "--criterion", criterion, "--json")
    found = cprime("sweep", path, "--scale", "-o", outputs[0], *options).json
    expected = cprime("sweep", write("scaled.npy", scale(stretched)), "-o", outputs[1], *options).json
    assert found["best"] == expected["best"]
    for name in (criterion, "free_energy", "inertia"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6, err_msg=name)
    np.testing.assert_array_equal(load(outputs[0]).predict(stretched), load(outputs[1]).predict(scale(stretched)))


@pytest.mark.parametrize("kind", ["kmeans", "gmm"])
def test_bounds_and_joined_models_are_those_of_scaled_rows(kind, cprime, stretched, path, tmp_path):
    model, joined = tmp_path / "m.safetensors", tmp_path / "joined.safetensors"
    found = cprime("fit", path, "-m", kind, "-k", 3, "--scale", "--bounds", "-o", model, "--json").json
    fit = load(model)
    assert found["free_energy"] == pytest.approx(fit.lower_bound_, rel=1e-3)
    assert cprime("combine", model, model, "-o", joined, "-q").code == 0
    np.testing.assert_array_equal(load(joined).predict(stretched), fit.predict(stretched))
    page = cprime("report", model, path, "-o", tmp_path / "page.html", "--json").json
    assert "Columns" in {light["name"] for light in page["lights"] if light["state"] == "good"} or kind == "gmm"
    assert cprime("predict", model, path, "--distance", "-o", tmp_path / "d.csv", "-q").code == 0
    distances = np.loadtxt(tmp_path / "d.csv", delimiter=",", skiprows=1)[:, 1]
    np.testing.assert_allclose(distances, fit.nearest(stretched)[1], rtol=1e-6)


def test_initial_centers_of_a_file_have_the_units_of_the_data(cprime, stretched, path, write, tmp_path):
    start, model = write("start.npy", stretched[:3]), tmp_path / "m.safetensors"
    assert cprime("fit", path, "-k", 3, "--scale", "--init", start, "-o", model, "-q").code == 0
    expected = KMeans(3, init=scale(stretched)[:3], random_state=0).fit(scale(stretched))
    np.testing.assert_allclose(load(model).cluster_centers_, expected.cluster_centers_, rtol=1e-9)
