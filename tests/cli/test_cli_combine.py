"""`cprime combine`: the written model is that of the Python API, and models that do not fit are errors of one line."""

import numpy as np
import pytest

import cprime as package


@pytest.fixture
def shards(cprime, write, X, tmp_path):
    paths = [tmp_path / f"{i}.safetensors" for i in range(3)]
    for i, path in enumerate(paths):
        assert cprime("fit", write(f"{i}.npy", X[i::3]), "-k", 12, "-o", path, "-q").code == 0
    return paths


def test_the_model_is_that_of_the_function(cprime, shards, tmp_path):
    out = tmp_path / "all.safetensors"
    figures = cprime("combine", *shards, "-n", 9, "--seed", 3, "-o", out, "--json").json
    expected = package.combine([package.load(path) for path in shards], 9, random_state=3)
    found = package.load(out)
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
    assert (figures["n_components"], figures["quantization_error"]) == (9, expected.inertia_)
    assert cprime("combine", shards[0], "-o", out, "-q").out == ""
    assert "components C" in cprime("combine", *shards, "-o", out).out
    assert len(package.load(out).cluster_centers_) == 12


def test_what_cannot_be_combined_is_one_line(cprime, fails, shards, write, X, tmp_path):
    out, mixture = tmp_path / "all.safetensors", tmp_path / "mixture.safetensors"
    cprime("fit", write("x.npy", X), "-k", 2, "-m", "student-t", "-o", mixture, "-q")
    assert f"{mixture} must be a KMeans or a GaussianMixture" in fails("combine", shards[0], mixture, "-o", out)
    assert "n_clusters=99 should be <= 36" in fails("combine", *shards, "-n", 99, "-o", out)
    assert "would replace the input" in fails("combine", *shards, "-o", shards[1])
    assert not out.exists()
