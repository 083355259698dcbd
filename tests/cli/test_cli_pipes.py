"""Models and labels on standard output, and models from standard input."""

import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

import cprime as package
from cprime.cli.app import app

pytest.importorskip("pyarrow")


@pytest.fixture
def piped():
    """Return a function that runs a command whose standard output is bytes, and returns these and its stderr."""

    def run(*args, stdin=None):
        result = CliRunner().invoke(app, [str(arg) for arg in args], input=stdin, prog_name="cprime")
        assert result.exit_code == 0, result.stderr
        return result.stdout_bytes, result.stderr

    return run


@pytest.fixture
def writers(write, model, X, tmp_path):
    """Return the arguments of all commands that write a model, without the output, by name."""
    source = write("x.csv", X)
    package.KMeans(3, checkpoint=tmp_path / "run", random_state=0).fit(X)
    return {
        "fit": ("fit", source, "-k", 9),
        "sweep": ("sweep", source, "-k", "2,3", "--n-init", 1),
        "update": ("update", model, source),
        "combine": ("combine", model, model, "-n", 4),
        "bound": ("bound", model, source, "--time-limit", 1),
        "resume": ("resume", tmp_path / "run"),
    }


COMMANDS = ("fit", "sweep", "update", "combine", "bound", "resume")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_writes_a_model_can_write_it_to_standard_output(command, writers, piped, tmp_path):
    content, err = piped(*writers[command], "-o", "-")
    (tmp_path / "piped.safetensors").write_bytes(content)
    found = package.load(tmp_path / "piped.safetensors")
    assert err.count("\n") > 3  # the table is on standard error
    piped(*writers[command], "-o", tmp_path / "file.safetensors")
    expected = package.load(tmp_path / "file.safetensors")
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
    assert piped(*writers[command], "-o", "-", "-q")[1] == ""


def test_commands_read_a_model_from_standard_input(piped, cprime, model, write, X, tmp_path):
    source, content = write("x.csv", X), model.read_bytes()
    labels, _ = piped("predict", "-", source, "-o", "-", "-q", stdin=content)
    assert labels == piped("predict", model, source, "-o", "-", "-q")[0]
    for args in (
        ("report", "-", source, "-o", tmp_path / "r.html"),
        ("merge", "-", source, "-n", 3, "-o", tmp_path / "l.npy"),
        ("bound", "-", source, "--time-limit", 1),
        ("update", "-", source, "-o", tmp_path / "u.safetensors"),
    ):
        piped(*args, stdin=content)


def test_standard_streams_have_one_purpose(cprime, fails, model, write, X, tmp_path):
    source = write("x.npy", X)
    outcome = cprime("predict", "-", "-", "-o", tmp_path / "l.npy", stdin=b"")
    assert (outcome.code, outcome.out) == (2, "")
    assert "MODEL and DATA are both - (standard input): give one of them a file." in outcome.err
    for args in (("fit", source, "-k", 3), ("sweep", source, "-k", "2,3"), ("update", model, source)):
        outcome = cprime(*args, "-o", "-", "--json")
        assert (outcome.code, outcome.out) == (2, "")
        assert "--json and -o - both want standard output" in outcome.err
    assert "is not a cprime model" in fails("predict", "-", source, "-o", tmp_path / "l.npy", stdin=b"nonsense")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_model_is_not_written_to_a_terminal(command, writers, fails, monkeypatch):
    monkeypatch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda self: True, raising=False)
    line = fails(*writers[command], "-o", "-")
    assert line == "the output - is a terminal, which cannot show a model: expected a file or a pipe"


def test_a_model_is_not_read_from_a_terminal(fails, write, X, tmp_path, monkeypatch):
    monkeypatch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda self: True, raising=False)
    line = fails("predict", "-", write("x.npy", X), "-o", tmp_path / "l.npy")
    assert line == "MODEL is - (standard input), which is a terminal: expected a model from a pipe or a file"


def test_a_checkpoint_of_a_fit_to_standard_output_has_no_output(piped, fails, write, X, tmp_path):
    piped("fit", write("x.npy", X), "-k", 9, "--checkpoint", tmp_path / "run", "-o", "-", "-q")
    line = fails("resume", tmp_path / "run")
    assert line.endswith("names no output: say with -o FILE where to write the model")


@pytest.mark.long
def test_pipelines_of_processes_have_the_labels_of_the_fit(write, X, tmp_path):
    source, command = write("x.csv", X), Path(sys.executable).with_name("cprime")
    line = f"{command} fit {source} -k 9 -o - | {command} predict - {source} -o - > {tmp_path / 'labels.csv'}"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = np.loadtxt(tmp_path / "labels.csv", skiprows=1, dtype=int)
    np.testing.assert_array_equal(found, package.KMeans(9, random_state=0).fit(X).labels_)
