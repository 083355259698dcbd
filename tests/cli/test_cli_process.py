"""The command line in a process of its own: entry points, streams, exit codes, start-up time.

Other tests cover what commands do to data, in a process that has already loaded the libraries.
"""

import json
import signal
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

import cprime as package
from cprime.callbacks import ProgressBar


def run(*args, module="cprime"):
    command = [sys.executable, "-m", module, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def loaded(forked):
    """Return a function that runs the command line in a forked process, which need not load the libraries."""
    return lambda *args: forked("from cprime.cli import main; main()", *args)


def test_version_and_help_are_printed():
    result = run("--version")
    assert (result.returncode, result.stdout) == (0, f"cprime {package.__version__}\n")
    result = run("--help")
    assert result.returncode == 0
    for command in ("fit", "predict", "info", "demo"):
        assert command in result.stdout


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom cprime.cli import main\nsys.argv = ['cprime', 'fit', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage: cprime fit" in result.stdout
    assert not {"numpy", "sklearn", "scipy", "pyarrow", "matplotlib"} & set(result.stderr.split())


@pytest.mark.long
def test_predicted_labels_are_those_of_the_fit(loaded, write, X, tmp_path):
    source, model, labels = write("x.npy", X), tmp_path / "m.safetensors", tmp_path / "labels.npy"
    result = loaded("fit", source, "-k", 9, "-o", model, "--json")
    assert (result.returncode, result.stderr.count("\n")) == (0, 1)
    assert json.loads(result.stdout)["n_components"] == 9
    assert loaded("predict", model, source, "-o", labels).returncode == 0
    np.testing.assert_array_equal(np.load(labels), package.load(model).labels_)


@pytest.mark.long
def test_errors_are_one_line_on_stderr(loaded, tmp_path):
    result = loaded("fit", tmp_path / "absent.npy", "-k", 3, "-o", tmp_path / "m.safetensors")
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == f"error: {tmp_path / 'absent.npy'} does not exist\n"
    assert loaded("fit").returncode == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_commands_that_fail_end_with_their_own_status(loaded, write, tmp_path):
    rows = "".join(f"{n},0.5\n" for n in range(2000))
    (tmp_path / "text.csv").write_text(f"a,b\n{rows}1,x\n")
    (tmp_path / "ragged.csv").write_text(f"a,b\n{rows}1,2,3\n")
    (tmp_path / "text.jsonl").write_text('{"a": 1}\n' * 2000 + '{"a": "x"}\n')
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    failing = [
        *((tmp_path / name, 2) for name in ("text.csv", "ragged.csv", "text.jsonl", "broken.parquet")),
        *((write(f"x.{kind}", np.eye(2)), 3) for kind in ("csv", "parquet", "npy")),
    ]
    statuses = Counter()
    for number in range(14):
        path, k = failing[number % len(failing)]
        statuses[loaded("fit", path, "-k", k, "-o", tmp_path / "m.safetensors").returncode] += 1
    assert statuses == {1: 14}


@pytest.mark.long
def test_warnings_are_one_line_on_stderr(loaded, write, X, tmp_path):
    options = ("-m", "gmm", "--max-iter", 1, "-o", tmp_path / "m.safetensors", "--json")
    result = loaded("fit", write("x.npy", X), "-k", 9, *options)
    assert result.returncode == 0
    assert json.loads(result.stdout)["converged"] is False
    note, warning = result.stderr.splitlines()
    assert note.startswith("note: ")
    assert warning.startswith("warning: ")
    assert "converge" in warning


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.long
def test_duplicate_points_are_warned_of_once(loaded, count, write, tmp_path):
    source = write("x.npy", np.repeat(np.eye(2), 10, axis=0))
    result = loaded("fit", source, "-k", 2 * count, "-o", tmp_path / "m.safetensors", "-q")
    assert result.returncode == 0
    assert result.stderr.count("warning: ") == count - 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("keep", [True, False])
def test_a_signal_keeps_the_model_so_far_where_that_is_asked_for(keep, number, cprime, monkeypatch, write, tmp_path):
    def interrupt(self, row):
        if row["iteration"] == 3:
            signal.raise_signal(number)

    monkeypatch.setattr(ProgressBar, "on_iteration", interrupt)
    monkeypatch.setattr("cprime.persistence.checkpoints._SHARE", float("inf"))  # a state is written after every pass
    source = write("x.npy", np.random.default_rng(0).standard_normal((600, 2)))
    options = ("--search", "full", "--tol", 0, "--max-iter", 8, "--checkpoint", tmp_path / "run")
    command = ("fit", source, "-k", 30, *options, "-q", "--json", "-o", tmp_path / "m.safetensors")
    usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    before = signal.signal(number, usual)  # libraries that other tests have loaded may have set another handler
    try:
        outcome = cprime(*command, *(["--keep-partial"] if keep else []))
        assert signal.getsignal(number) == usual
    finally:
        signal.signal(number, before)
    assert outcome.code == 128 + number
    if keep:
        assert outcome.json["interrupted"]
        assert outcome.err == "interrupted: the model is that of the 3 iterations so far; it has not converged\n"
        model = package.load(tmp_path / "m.safetensors")
        assert not model.converged_
        assert model.labels_.shape == (600,)
    else:
        assert outcome.out == ""
        assert outcome.err.startswith("interrupted: cprime resume ")
        assert not (tmp_path / "m.safetensors").exists()
        assert list(tmp_path.glob("run/state-*"))
    monkeypatch.undo()
    if not keep:
        assert cprime("resume", tmp_path / "run", "-q", "--json").json["n_iter"] == 8
