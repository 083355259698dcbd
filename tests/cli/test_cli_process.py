"""The command line in a process of its own: entry points, streams, exit codes, start-up time.

Other tests cover what commands do to data, in a process that has already loaded the libraries.
"""

import json
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest

import cprime as package


def run(*args, module="cprime"):
    command = [sys.executable, "-m", module, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def loaded(forked):
    """Return a function that runs the command line in a forked process, which need not load the libraries."""
    return lambda *args: forked("from cprime.cli import main; main()", *args)


def test_version_and_help():
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
def test_fit_and_predict(loaded, write, X, tmp_path):
    source, model, labels = write("x.npy", X), tmp_path / "m.safetensors", tmp_path / "labels.npy"
    result = loaded("fit", source, "-k", 9, "-o", model, "--json")
    assert (result.returncode, result.stderr.count("\n")) == (0, 1)
    assert json.loads(result.stdout)["n_components"] == 9
    assert loaded("predict", model, source, "-o", labels).returncode == 0
    np.testing.assert_array_equal(np.load(labels), package.load(model).labels_)


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
    for number in range(500):
        path, k = failing[number % len(failing)]
        statuses[loaded("fit", path, "-k", k, "-o", tmp_path / "m.safetensors").returncode] += 1
    assert statuses == {1: 500}


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


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")
@pytest.mark.parametrize("keep", [True, False])
def test_ctrl_c_keeps_the_model_so_far_where_that_is_asked_for(keep, write, tmp_path):
    source = write("x.npy", np.random.default_rng(0).normal(size=(40_000, 16)).astype(np.float32))
    options = [
        "--search",
        "full",
        "--tol",
        "0",
        "--checkpoint",
        tmp_path / "run",
        *(["--keep-partial"] if keep else []),
    ]
    command = ["fit", source, "-k", "200", "-q", "-o", tmp_path / "m.safetensors", *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "cprime", *map(str, command)],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell may ignore it in its jobs
    )
    while not list(tmp_path.glob("run/state-*/head.safetensors")) and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    if keep:
        assert process.returncode == 0
        assert "interrupted: the model is that of the" in said
        model = package.load(tmp_path / "m.safetensors")
        assert not model.converged_
        assert model.labels_.shape == (40_000,)
    else:
        assert process.returncode == 130
        assert said.startswith("interrupted")
        assert not (tmp_path / "m.safetensors").exists()
