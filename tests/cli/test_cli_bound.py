"""`cprime bound`: the bound is that of the Python API, is stored in the model, and appears in `info` and `report`."""

import numpy as np
import pytest

import cprime as package
from cprime.theory import lower_bound

pytest.importorskip("pyarrow")


@pytest.fixture
def rows(X):
    """Return 20 of the rows, few enough for the exact method."""
    return np.ascontiguousarray(X[:: len(X) // 20][:20])


@pytest.fixture
def fitted(cprime, write, rows, tmp_path):
    """Return the paths of the rows and of a model of 3 clusters."""
    path, model = write("rows.csv", rows), tmp_path / "three.safetensors"
    assert cprime("fit", path, "-k", 3, "-o", model, "-q").code == 0
    return path, model


def test_bound_is_that_of_python_and_is_stored(cprime, fitted, rows, tmp_path):
    path, model = fitted
    out = tmp_path / "certified.safetensors"
    figures = cprime("bound", model, path, "-o", out, "--json").json
    km = package.load(model)
    del km.feature_names_in_
    expected = lower_bound(rows, km, random_state=0)
    assert figures["bound"] == pytest.approx(expected.value, rel=1e-9)
    assert figures["quantization_error"] == pytest.approx(expected.inertia, rel=1e-9)
    assert (figures["method"], figures["parts"], figures["n_components"]) == ("enumeration", 1, 3)
    assert package.load(out).objective_bound_["value"] == figures["bound"]
    assert "J* >= " in cprime("info", out).out
    assert "J* >= " not in cprime("info", model).out
    assert "lower bound of J of all clusterings" in cprime("bound", model, path).out
    assert cprime("bound", model, path, "-q").out == ""


def test_weights_and_preparation_of_the_fit_apply(cprime, write, rows, tmp_path):
    weights = np.arange(1.0, 21)
    path = write("weighted.csv", {"a": rows[:, 0], "b": 100 * rows[:, 1], "w": weights})
    model = tmp_path / "scaled.safetensors"
    assert cprime("fit", path, "-k", 3, "--sample-weight", "w", "--scale", "-o", model, "-q").code == 0
    figures = cprime("bound", model, path, "--sample-weight", "w", "--json").json
    km = package.load(model)
    assert figures["bound"] <= figures["quantization_error"] <= km.inertia_ * (1 + 1e-9)
    scaled = rows * [1, 100] / km.preparation_["scale"]
    expected = lower_bound(scaled, 3, sample_weight=weights, random_state=0)
    assert figures["bound"] == pytest.approx(expected.value, rel=1e-9)


def test_report_has_a_light_and_a_figure(rows):
    km = package.KMeans(3, random_state=0).fit(rows)
    assert "Optimum" not in [light.name for light in km.report(rows).lights]
    lower_bound(rows, km)
    page = km.report(rows)
    light = next(light for light in page.lights if light.name == "Optimum")
    assert (light.state.name == "GOOD") == (km.objective_bound_["gap"] <= 0.03)
    assert "gap to J*" in page.html
    km.objective_bound_["gap"] = 0.2
    light = next(light for light in km.report(rows).lights if light.name == "Optimum")
    assert light.state.name == "LOOK"
    assert "20.00 % lower" in light.finding
    assert "n_init" in light.remedy


def test_wrong_requests_are_one_line(fails, cprime, fitted, tmp_path):
    path, model = fitted
    mixture = tmp_path / "mixture.safetensors"
    cprime("fit", path, "-k", 2, "-m", "gmm", "-o", mixture, "-q")
    assert "is a model of kind gmm; lower bounds are for k-means" in fails("bound", mixture, path)
    assert "must end with .safetensors" in fails("bound", model, path, "-o", tmp_path / "m.npy")
    outcome = cprime("bound", model, path, "--time-limit", -1)
    assert outcome.code == 2
    assert "--time-limit" in outcome.err
