"""A fit whose process is killed resumes from its checkpoint, and its result is bit-identical."""

import os
import subprocess
import sys
from pathlib import Path
from time import sleep

import numpy as np
import pytest
from killed_fit import PAUSE, fits

import cprime

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
KILLS = int(os.environ.get("CPRIME_KILLS", "3"))  # `make faults` sets a larger number
SEED = int(os.environ.get("CPRIME_KILLS_SEED", "20260101"))


@pytest.fixture(scope="module")
def expected():
    """Return the results of the same fits without any kill."""
    return [estimator.fit(given) for estimator, given in fits()]


@pytest.fixture(scope="module")
def seconds(expected):
    """Return the least time of each fit with its pauses [s]."""
    return [fitted.history_["seconds"].sum() + PAUSE * fitted.n_iter_ for fitted in expected]


def started(folder, number):
    """Start a process and return it once it has read its data and begins the fit."""
    script = Path(__file__).with_name("killed_fit.py")
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", script, folder, str(number)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "begun\n"
    return process


@pytest.mark.parametrize("kill", range(KILLS))
@pytest.mark.long
def test_a_killed_fit_ends_in_the_same_bits(kill, expected, seconds, tmp_path):
    number, rng = kill % 3, np.random.default_rng([SEED, kill])
    folder, moments = tmp_path / "folder", rng.uniform(0, 0.9, size=1 + kill % 2) * seconds[number]
    print(f"CPRIME_KILLS_SEED={SEED}, kill {kill}: fit {number} after {moments} s")  # noqa: T201
    for moment in moments:
        with started(folder, number) as process:
            sleep(moment)
            process.kill()
    estimator, given = fits(folder)[number]
    if (folder / "data.npy").exists() or (folder / "model.safetensors").exists():
        found = cprime.resume(folder)
    else:  # killed before the data were stored
        found = estimator.fit(given)
    for name in ("cluster_centers_", "means_", "covariances_", "labels_", "lower_bound_", "n_iter_", "neighbors_"):
        if hasattr(expected[number], name):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected[number], name), name)
    for column in ("lower_bound", "quantization_error", "n_distances", "n_moved"):
        np.testing.assert_array_equal(found.history_[column], expected[number].history_[column], column)
