"""Every example on little data: it writes its picture and lines, and what the lines say is so."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from example_lines import numbers, row
from sklearn.mixture import GaussianMixture

from cprime.datasets import old_faithful

pytest.importorskip("matplotlib")
PHOTOGRAPHS = ("china", "flower")


def check_bounds(F, L, gap):
    assert F <= L
    assert gap == pytest.approx(L - F, abs=1.01e-4)


def test_old_faithful(run):
    lines = run("old_faithful")
    shown = {name: row(lines, name) for name in ("k-means", "k-means-C′", "EM", "EM, full covariances")}
    for *_, F, L, gap in shown.values():
        check_bounds(F, L, gap)
    assert [values[:2] for values in shown.values()] == [[6, 1], [6, 2], [6, 6], [2, 2]]
    assert shown["k-means"][2] < shown["k-means-C′"][2] < shown["EM"][2]
    assert shown["k-means"][4] > shown["k-means-C′"][4] > shown["EM"][4] == shown["EM, full covariances"][4] == 0
    X = old_faithful().data
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    theirs = GaussianMixture(2, n_init=3, tol=1e-6, random_state=0).fit(X).score(X)
    assert shown["EM, full covariances"][3] == pytest.approx(theirs, abs=1e-3)


def test_image_compression(run):
    lines = run("image_compression", "PIL")
    heads = [i for i, line in enumerate(lines) if line.startswith(tuple(f"{name}: C" for name in PHOTOGRAPHS))]
    assert len(heads) == 2
    for head in heads:
        palettes = np.array([numbers(line) for line in lines[head + 1 : head + 3]])
        pixels = 104 * 160
        np.testing.assert_allclose(palettes[:, 1], np.log2(palettes[:, 0]) + 24 * palettes[:, 0] / pixels, atol=0.005)
        assert (np.diff(palettes[:, 2:], axis=0) > 0).all()
        assert (palettes[:, 2] >= palettes[:, 3]).all()  # k-means after median cut
        for name, line in zip(("our 2 × 2", "our 4 × 4", "JPEG"), lines[head + 3 : head + 6], strict=True):
            assert line.startswith(f"{name}: ")
            pairs = np.reshape(numbers(line.removeprefix(f"{name}: ")), (-1, 2))
            assert (np.diff(pairs, axis=0) > 0).all()


def test_as_many_patches_as_there_are_lose_nothing(rng):
    pytest.importorskip("PIL")
    from examples.image_compression import psnr, tiled

    few = rng.integers(0, 256, (5, 2, 2, 3), dtype=np.uint8)
    image = few[rng.integers(0, 5, (6, 9))].swapaxes(1, 2).reshape(12, 18, 3)
    coded = tiled(image, 2, 5)
    np.testing.assert_array_equal(coded.image, image)
    assert coded.bits == pytest.approx(np.log2(5) / 4 + 8 * 5 * 12 / (12 * 18))
    assert psnr(image, tiled(image, 2, 2).image) < psnr(image, tiled(image, 2, 4).image)
    assert psnr(np.zeros((1, 1, 3), np.uint8), np.full((1, 1, 3), 51, np.uint8)) == pytest.approx(20 * np.log10(5))


def test_segmentation(run):
    from examples.segmentation import n_pieces

    lines = run("segmentation", "PIL")
    shown = {name: row(lines, name) for name in ("k-means", "mixture, hard", "mixture, soft")}
    for _, agreement, F, L, gap in shown.values():
        check_bounds(F, L, gap)
        assert agreement <= 1
    assert shown["mixture, soft"][1] == 1
    assert shown["mixture, soft"][4] == 0 < shown["mixture, hard"][4]
    assert shown["k-means"][2] < shown["mixture, hard"][2] < shown["mixture, soft"][2]
    assert 0 < float(lines[-1].partition("%")[0]) < 100
    assert n_pieces(np.array([[0, 0, 1], [1, 1, 0], [2, 2, 2]])) == 5


def test_outliers(run):
    from examples.outliers import apart

    lines = run("outliers")
    half = next(i for i, line in enumerate(lines) if line.startswith("digits"))
    names = ("mixture, C = 1", "mixture, C = 5", "mixture, C = 30", "IsolationForest")
    for part, best in ((lines[:half], "mixture, C = 30"), (lines[half:], "mixture, C = 1")):
        shown = {name: row(part, name) for name in names}
        assert max(shown, key=lambda name: shown[name][0]) == best
        for values in shown.values():
            assert all(0 <= value <= 1 for value in values)
    assert shown["mixture, C = 30"][2] > 0.5 > shown["mixture, C = 1"][2]
    assert apart(np.array([0, 0, 1, 1, 1]), np.array([True, False, True, True, False])) == pytest.approx(2 / 3)


def test_choosing_c(run):
    lines = run("choosing_c")
    for name in ("BIC", "BIC of F", "AIC", "held out", "elbow of J", "XMeans", "GMeans"):
        (found,) = [line.split()[-1] for line in lines if line.rpartition(" ")[0].rstrip() == name]
        assert found == "9"


def answers(lines: list[str], first: str) -> list[str]:
    """The last words of the rows of a table from its heading on, or of one line."""
    return [line.split()[-1] for line in lines[next(i for i, line in enumerate(lines) if line.startswith(first)) :]]


@pytest.mark.long
def test_larger_than_memory(run):
    lines = run("larger_than_memory", "pyarrow")
    streamed, whole = row(lines, "by its path"), row(lines, "read first")
    if whole[1] == 0:
        pytest.skip("the memory of a process is not known on this system: no /proc")
    assert streamed[1] < whole[1]
    assert streamed[4] == whole[4]
    assert answers(lines, "centers and labels to the same bits")[0] == "yes"


@pytest.mark.long
def test_resume_after_a_kill(run):
    if not hasattr(signal, "SIGKILL"):
        pytest.skip("this system has no SIGKILL")
    lines = run("resume_after_a_kill")
    (killed,) = [line for line in lines if line.startswith("process 1")]
    (resumed,) = [line for line in lines if line.startswith("process 2")]
    assert killed.endswith("SIGKILL")
    first, last = map(int, killed.split()[2:4])
    assert 1 == first < last
    first, end = map(int, resumed.split()[2:4])
    assert 1 < first <= last < end
    assert f"{end}, done more than once: {last - first + 1}" in "\n".join(lines)
    assert answers(lines, "centers ") == ["yes"] * 4


@pytest.mark.long
def test_dask_cluster_in_a_process_of_its_own(tmp_path):
    """Dask brings threads, and warnings of processes that are killed."""
    for library in ("distributed", "dask.array"):
        pytest.importorskip(library)
    arguments = [sys.executable, "-m", "examples", "dask-cluster", "--small", "--output", str(tmp_path)]
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        arguments, cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "dask-cluster.txt").read_text(encoding="utf-8").splitlines()
    for name in ("one process", "two workers", "two workers, one killed"):
        assert next(line for line in lines if line.startswith(f"{name}  ")).endswith("yes")
    assert "dask.array.core.Array in 16 chunks" in "\n".join(lines)
    assert (tmp_path / "dask-cluster.png").stat().st_size > 10_000
