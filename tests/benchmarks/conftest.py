"""Fixtures with small data in a file; the folder of the package `benchmarks` is added to the import path."""

import multiprocessing
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


@pytest.fixture(autouse=True)
def _small_products(monkeypatch):
    """Use small matrices in the measurement of sgemm's peak rate, which takes a second and does not matter here."""
    from benchmarks.measures import iteration

    from benchmarks import machine

    small = partial(machine.sgemm_rate, n=64)
    monkeypatch.setattr(machine, "sgemm_rate", small)
    monkeypatch.setattr(iteration, "sgemm_rate", small)


@pytest.fixture
def own_choice_of_kernels(monkeypatch):
    """Skip the trial of OpenBLAS's kernels, which takes seconds for every peer."""
    from benchmarks import blas

    monkeypatch.setattr(blas, "fastest", lambda *_: blas.OWN_CHOICE)


@pytest.fixture
def loaded_once(monkeypatch):
    """Fork the processes of peers from one that has already imported the package; other tests measure the import."""
    from benchmarks import worker

    if "forkserver" in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["benchmarks.worker", "cprime.estimators"])
        monkeypatch.setattr(worker, "_CONTEXT", context)


@pytest.fixture
def points(rng) -> np.ndarray:
    """Return 600 points of twelve clusters in 40 dimensions, (600, 40) float32."""
    centers = 3 * rng.standard_normal((12, 40), dtype=np.float32)
    return centers[rng.integers(0, 12, 600)] + rng.standard_normal((600, 40), dtype=np.float32)


@pytest.fixture
def file(points, tmp_path) -> Path:
    path = tmp_path / "points.npy"
    np.save(path, points)
    return path
