"""`cprime demo --small`: a table, two models and four pictures."""

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import cprime as package
from cprime.cli import demo

FILES = [
    "codebook-kmeans-c3.png",
    "codebook-kmeans.png",
    "curves.png",
    "kmeans-c3.safetensors",
    "kmeans.safetensors",
    "photograph.png",
]


@pytest.fixture
def quick(monkeypatch):
    """Four iterations for sixteen clusters instead of twenty for sixty-four."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("PIL")
    monkeypatch.setattr(demo, "SMALL", demo.Scale(16, (1, 2, 4)))


def test_demo_writes_models_and_pictures(quick, cprime, tmp_path):
    folder = tmp_path / "made" / "demo"
    figures = cprime("demo", "--small", "--threads", 1, "-o", folder, "--json").json
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert (figures["n_samples"], figures["n_components"], figures["n_iter"]) == (64478, 16, 4)
    for run, name in zip(figures["runs"], ("kmeans", "kmeans-c3"), strict=True):
        model = package.load(folder / f"{name}.safetensors")
        assert model.n_active_ == run["n_active"]
        assert model.lower_bound_ == run["free_energy"]
        assert run["kl_gap"] >= 0
        assert len(model.history_) == model.n_iter_ == model.max_iter == 4
        assert np.all(np.diff(model.history_["lower_bound"]) > 0)
    from PIL import Image

    for name in FILES:
        if name.endswith(".png"):
            with Image.open(folder / name) as image:
                assert min(image.size) > 200


def test_stopping_at_checkpoints_gives_the_uninterrupted_fit(quick, cprime, tmp_path):
    assert cprime("demo", "--small", "--threads", 1, "-o", tmp_path).code == 0
    for name in ("kmeans", "kmeans-c3"):
        model = package.load(tmp_path / f"{name}.safetensors")
        X = demo.patches(demo._half(demo.patches(size=1).images[0])).data
        first = demo.seed(X, 16, "afk-mc2", random_state=0)
        start = {"init": first} if name == "kmeans" else {"means_init": first, "precisions_init": None}
        again = type(model)(**{**model.get_params(), **start})
        with pytest.warns(ConvergenceWarning) if name == "kmeans-c3" else nullcontext():
            again.fit(X)
        np.testing.assert_allclose(again.history_["lower_bound"], model.history_["lower_bound"], rtol=1e-9)
        np.testing.assert_array_equal(again.labels_, model.labels_)


def test_demo_prints_a_table(quick, cprime, tmp_path):
    outcome = cprime("demo", "--small", "--threads", 1, "-o", tmp_path)
    assert outcome.code == 0
    for word in (
        "64,478 patches",
        "k-means-C′",
        "L−F",
        "PSNR",
        "scikit-learn",
        "nearest center found for",
        "photograph.png",
    ):
        assert word in outcome.out


def test_quantised_photographs_are_made_of_centers(tmp_path):
    image = np.tile(np.arange(16.0, dtype=np.float32), (24, 1))
    blocks = np.stack([image[:8, :8].ravel(), image[:8, 8:].ravel()])
    model = package.KMeans(2, init=blocks).fit(np.repeat(blocks, 3, axis=0))
    np.testing.assert_array_equal(demo._quantised(model, image), image)
    assert demo._cropped(np.zeros((31, 25))).shape == (24, 24)


@pytest.mark.parametrize(("module", "package_name"), [("matplotlib", "matplotlib"), ("PIL", "pillow")])
def test_demo_without_an_extra_says_what_to_install(module, package_name, fails, tmp_path, monkeypatch):
    found = demo.find_spec
    monkeypatch.setattr(demo, "find_spec", lambda name: None if name == module else found(name))
    line = fails("demo", "--small", "-o", tmp_path / "demo")
    assert line == f'the demo needs {package_name}, which is missing: pip install "cprime[plots,images]"'


def test_demo_into_a_place_that_cannot_be_written(quick, fails, tmp_path):
    (tmp_path / "file").touch()
    assert str(tmp_path / "file") in fails("demo", "--small", "-o", tmp_path / "file")
    assert "No such file" in fails("demo", "--small", "-o", "/proc/demo")
