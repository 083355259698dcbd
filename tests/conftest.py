"""What every test may ask for: a seeded generator, the folder of real data, repeatable examples."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]

settings.register_profile("cprime", derandomize=True, deadline=None, max_examples=40, print_blob=False)
settings.load_profile("cprime")


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator that starts alike in every test."""
    return np.random.default_rng(20260101)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data, named by CPRIME_DATA; tests that need it are skipped where it is absent."""
    folder = (ROOT / os.environ.get("CPRIME_DATA", "../shared/data")).resolve()
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is not a folder (CPRIME_DATA names another)")
    return folder


@pytest.fixture
def cells_for_few(monkeypatch):
    """Approximate predictions of few components go by cells too, not only those of many."""
    monkeypatch.setattr("cprime.search.nearby._FEW", 0)
