"""The programs in docs/pictures draw the pictures of the README and the site."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="plots need matplotlib: pip install cprime[plots]")
Image = pytest.importorskip("PIL.Image", reason="films need Pillow: pip install cprime[images]")
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
if not PICTURES.is_dir():
    pytest.skip("docs/pictures is not here", allow_module_level=True)


@pytest.fixture
def program(monkeypatch):
    """Yield a function that imports a program by name, as if Python ran in its folder."""
    monkeypatch.syspath_prepend(PICTURES)
    before = set(sys.modules)
    yield lambda name: __import__(name)
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and Path(sys.modules[name].__file__).parent == PICTURES:
            del sys.modules[name]


def test_films_keep_white_and_durations(program, tmp_path):
    film = program("film")
    pixels = np.full((3, 40, 50, 3), 255, dtype=np.uint8)
    for k, color in enumerate(((0, 114, 178), (213, 94, 0), (0, 158, 115))):
        pixels[k, 10 * k : 10 * k + 10, :20] = color
    film.save(tmp_path / "film.gif", [film.Frame(p, 100 * (k + 1)) for k, p in enumerate(pixels)], colors=4)
    with Image.open(tmp_path / "film.gif") as found:
        assert (found.n_frames, found.size, found.info["loop"]) == (3, (50, 40), 0)
        for k, expected in enumerate(pixels):
            found.seek(k)
            assert found.info["duration"] == 100 * (k + 1)
            np.testing.assert_allclose(np.asarray(found.convert("RGB"), dtype=int), expected, atol=2)


def test_colors_are_mixed_as_light(program):
    mixed = program("film").mixed
    colors = np.array([[1.0, 0.0, 0.5], [0.0, 0.0, 0.5]])
    np.testing.assert_allclose(mixed(np.eye(2), colors), colors)
    assert 0.7 < mixed(np.array([[0.5, 0.5]]), colors)[0, 0] < 0.75


def test_all_of_the_family_raise_f_below_l(program, monkeypatch):
    family = program("family")
    monkeypatch.setattr(family, "N_ITERATIONS", 4)
    X = family.points()
    gaps = []
    for *_, n_active in family.MEMBERS:
        states = family.fit(X, n_active)
        F, L = (np.array([getattr(state, name) for state in states]) for name in ("free_energy", "log_likelihood"))
        assert (np.diff(F) > 0).all()
        assert (L >= F - 1e-12).all()
        assert ((states[-1].responsibilities > 0).sum(axis=1) <= n_active).all()
        gaps.append(L[-1] - F[-1])
    assert gaps[0] > gaps[1] > gaps[2] == pytest.approx(0, abs=1e-9)


def test_the_chart_says_what_the_benchmark_found(program, monkeypatch, tmp_path):
    quality = program("quality")
    found = quality.curves(quality.RESULTS)
    assert set(found) == {peer for peer, *_ in quality.PEERS}
    for records in found.values():
        assert np.all(np.diff([record["seconds"] for record in records]) > 0)
        assert np.all(np.diff([record["J"] for record in records]) < 0)
    monkeypatch.setattr(quality, "OUTPUT", tmp_path / "quality.png")
    quality.main()
    with Image.open(tmp_path / "quality.png") as picture:
        assert picture.size == (1400, 780)
