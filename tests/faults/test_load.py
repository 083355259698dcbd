"""`python -m reliability load`: results of many concurrent threads, and reports of jobs that fail."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from reliability import load

ROOT = Path(__file__).parents[2]


def run_with(jobs, monkeypatch):
    monkeypatch.setattr(load, "jobs", lambda seed, folder: jobs)
    return load.main(["--minutes", "0.01", "--threads", "4", "--seed", "3"])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_second_of_load(monkeypatch, capsys, tmp_path):
    X = load.data(0, n=400)
    models = {n: load.mixture("full", n).fit(X) for n in (1, 2, 3)}
    jobs = {
        "fit": lambda n: load.fitted_k_means(X, "bounded", n),
        "fit a mixture": lambda n: load.fitted_mixture(X, "diag", 3, n),
        "predict": lambda n: load.asked(models, "predict_proba", X, n),
    }
    monkeypatch.setattr(load, "jobs", lambda seed, folder: jobs)
    assert load.main(["--minutes", "0.008", "--threads", "16"]) == 0
    assert "16 threads" in capsys.readouterr().out


@pytest.mark.long
def test_every_kind_of_job_under_load():
    command = [sys.executable, "-m", "reliability", "load", "--minutes", "0.05", "--threads", "8"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, env=dict(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failures: 0" in done.stdout


def test_other_bits_are_a_failure(monkeypatch, capsys):
    numbers = itertools.count()
    assert run_with({"steady": lambda n: b"1", "drifting": lambda n: b"%d" % next(numbers)}, monkeypatch) == 1
    assert "drifting, " in capsys.readouterr().out


def test_an_error_is_a_failure(monkeypatch, capsys):
    calls = itertools.count()

    def later(n):
        if next(calls):
            raise KeyError("lost")
        return b""

    assert run_with({"broken": later}, monkeypatch) == 1
    assert "KeyError" in capsys.readouterr().out


def test_memory_that_grows_is_seen():
    steady, growing = [100] * 40, np.linspace(100, 160, 40).astype(int).tolist()
    assert load.growth(steady) == 1
    assert load.growth([10] * 10 + steady) == 1, "what is there after the warm-up stays"
    assert load.growth(growing) > load.GROWTH
    assert load.resident() > 2**20
