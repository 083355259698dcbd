"""Log lines of a fit on standard error: one a minute without a terminal, and all with --verbose."""

import numpy as np
import pytest

import cprime as package
from cprime.em import loop


@pytest.fixture
def slow(monkeypatch):
    """Let each iteration take 20 s of a clock that only the loop of fits reads."""
    clock = iter(range(0, 10**9, 20))
    monkeypatch.setattr(loop, "perf_counter", lambda: next(clock))


@pytest.fixture
def args(write, X, tmp_path):
    rows = np.random.default_rng(0).standard_normal((600, 2))
    return "fit", write("x.npy", rows), "-k", 30, "--search", "full", "-o", tmp_path / "m.safetensors"


def test_a_long_fit_writes_a_line_a_minute(cprime, args, slow, tmp_path):
    outcome = cprime(*args)
    assert outcome.code == 0
    note, *lines = outcome.err.splitlines()
    n_iter = package.load(tmp_path / "m.safetensors").n_iter_
    assert note.startswith("note: ")
    assert [line.split(":")[0] for line in lines] == [f"[cprime] iteration {n}" for n in range(3, n_iter + 1, 3)]
    assert len(lines) > 1


def test_a_short_fit_writes_none_of_these_lines(cprime, args):
    assert cprime(*args).err.count("\n") == 1


def test_quiet_writes_no_lines(cprime, args, slow):
    assert cprime(*args, "-q").err == ""


def test_verbose_writes_every_iteration_once(cprime, args, slow, tmp_path):
    lines = cprime(*args, "-v").err.splitlines()
    n_iter = package.load(tmp_path / "m.safetensors").n_iter_
    found = [line.split(":")[1] for line in lines if line.startswith("note: iteration ")]
    assert found == [f" iteration {n}" for n in range(1, n_iter + 1)]
    assert lines[-1].startswith(f"note: converged after {n_iter} iterations")
    assert len([line for line in lines if "read in one chunk" in line]) == 1


def test_verbose_writes_notes_about_data_once(cprime, write, X, tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "x.csv").write_text("\n".join(f"{a};{b}" for a, b in [("a", "b"), *X.tolist()]) + "\n")
    outcome = cprime("fit", tmp_path / "x.csv", "-k", 3, "-v", "-o", tmp_path / "m.safetensors")
    assert outcome.err.count("is read with semicolons between its values") == 1


def test_a_line_a_minute_is_not_drawn_over_a_bar(terminal, cprime, args, slow):
    assert "[cprime] iteration" not in cprime(*args).err
