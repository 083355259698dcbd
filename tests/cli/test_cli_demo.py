"""`cprime demo --small` writes two tables, two models, three pictures and a report."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import cprime as package
from cprime.cli import demo
from cprime.cli.app import app

FILES = [
    "codebook.png",
    "curves.png",
    "kmeans.safetensors",
    "mixture.safetensors",
    "photograph.png",
    "report.html",
]


def quickly(monkeypatch):
    """Reduce the demo to few clusters, few iterations and smaller photographs."""
    for module in ("matplotlib", "PIL", "jinja2"):
        pytest.importorskip(module)
    half = demo._half
    monkeypatch.setattr(demo, "SMALL", demo.Scale(16, 4, 8, 1500, 500))
    monkeypatch.setattr(demo, "_half", lambda image: half(half(image)))


@pytest.fixture
def quick(monkeypatch):
    quickly(monkeypatch)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the folder that a demo wrote, and the figures that it printed."""
    folder = tmp_path_factory.mktemp("made") / "new" / "demo"
    with pytest.MonkeyPatch.context() as monkeypatch:
        quickly(monkeypatch)
        result = CliRunner().invoke(app, ["demo", "--small", "--threads", "1", "-o", str(folder), "--json"])
    assert result.exit_code == 0
    return folder, json.loads(result.stdout)


def test_demo_writes_models_pictures_and_a_report(made):
    folder, figures = made
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert (figures["n_samples"], figures["n_clusters"]) == (2 * 99 * 153, 16)
    peer, same, default = figures["k_means"]
    assert peer["n_iter"] == same["n_iter"] == 4
    np.testing.assert_allclose(same["quantization_error"], peer["quantization_error"], rtol=1e-3)
    k_means, mixture = (package.load(folder / name) for name in ("kmeans.safetensors", "mixture.safetensors"))
    assert (k_means.inertia_, k_means.n_iter_) == (default["quantization_error"], default["n_iter"])
    assert [model["n_active"] for model in figures["models"]] == [1, 1, 3]
    assert mixture.n_active_ == 3
    from PIL import Image

    for name in FILES:
        if name.endswith(".png"):
            with Image.open(folder / name) as image:
                assert min(image.size) > 400


def test_gaps_of_the_demo_are_never_negative_and_c3_leaves_less(made):
    k_means, hard, soft = made[1]["models"]
    for model in (k_means, hard, soft):
        assert len(model["kl_gaps"]) > 1
        assert min(model["kl_gaps"]) >= 0
        assert model["kl_gaps"][-1] == model["kl_gap"] == model["log_likelihood"] - model["free_energy"]
    assert soft["kl_gap"] < hard["kl_gap"]


def test_the_demo_restores_photographs(made):
    figures = made[1]
    noisy = 10 * np.log10(255**2 / demo._NOISE**2)
    assert figures["psnr_noisy"] == pytest.approx(noisy, abs=0.2)
    k_means, hard, soft = figures["models"]
    assert min(hard["psnr"], soft["psnr"]) > max(noisy, k_means["psnr"]) + 1


@pytest.mark.long
def test_demo_prints_tables(quick, cprime, tmp_path):
    outcome = cprime("demo", "--small", "--threads", 1, "-o", tmp_path)
    assert outcome.code == 0
    for word in ("30,294 patches", "scikit-learn", "the same", "ΔJ", "mixture", "L − F", "dB", "report.html"):
        assert word in outcome.out


def test_demo_prints_the_certificate_of_a_partial_search(capsys):
    rows = [
        {"name": name, "n_iter": 3, "seconds": 1.0, "quantization_error": 2.0, "certificate": text}
        for name, text in (("scikit-learn", None), ("cprime", "nearest center found for 99 % [98 to 100]"))
    ]
    figures = {"n_samples": 9, "n_features": 2, "n_clusters": 2, "k_means": rows, "models": [], "n_train": 5}
    figures |= {"n_held_out": 4, "psnr_noisy": 20.0, "seconds_total": 1.0, "output": demo.Path("demo")}
    demo._print(figures, ["curves.png"])
    assert "certificate: nearest center found for 99 % [98 to 100]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("module", "package_name"), [("matplotlib", "matplotlib"), ("PIL", "pillow"), ("jinja2", "jinja2")]
)
def test_demo_without_an_extra_says_what_to_install(module, package_name, fails, tmp_path, monkeypatch):
    found = demo.find_spec
    monkeypatch.setattr(demo, "find_spec", lambda name: None if name == module else found(name))
    line = fails("demo", "--small", "-o", tmp_path / "demo")
    assert line == f"the demo needs {package_name}, which is missing: pip install {package_name}"


def test_demo_names_a_place_that_cannot_be_written(quick, fails, tmp_path):
    (tmp_path / "file").touch()
    assert str(tmp_path / "file") in fails("demo", "--small", "-o", tmp_path / "file")
    assert "No such file" in fails("demo", "--small", "-o", "/proc/demo")
