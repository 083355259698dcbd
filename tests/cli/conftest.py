"""Fixtures that write files of every format and call the command line as a function."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from click.testing import CliRunner

import cprime as package
from cprime.datasets import birch


@dataclass
class Outcome:
    """Result of a command: exit code, stdout and stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """Return the one JSON object on stdout."""
        assert self.out.count("\n") == 1
        return json.loads(self.out)


@pytest.fixture
def cprime():
    """Return a function that runs the command line in this process."""
    from cprime.cli.app import app

    def run(*args, stdin=None):
        result = CliRunner().invoke(app, [str(arg) for arg in args], input=stdin, prog_name="cprime")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def fails(cprime, tmp_path):
    """Return a function that checks that a command fails and returns its error line.

    The command must write one line on stderr, exit with code 1 and create no file.
    """

    def run(*args, code=1, stdin=None):
        before = sorted(tmp_path.rglob("*"))
        outcome = cprime(*args, stdin=stdin)
        assert outcome.code == code
        assert outcome.out == ""
        *notes, line = outcome.err.splitlines()
        assert all(note.startswith("note: ") for note in notes)
        assert line.startswith("error: ")
        assert sorted(tmp_path.rglob("*")) == before
        return line.removeprefix("error: ")

    return run


@pytest.fixture(scope="session")
def X():
    """Return 180 points of nine clusters in the plane, whose values are exact in float32 and in decimal text."""
    return np.round(birch(3, 20, random_state=0).data * 64) / 64


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a matrix, or named columns, in the format of the file's extension."""

    def write(name, columns):
        path = tmp_path / name
        if isinstance(columns, np.ndarray) and path.suffix != ".npy":
            columns = dict(zip("ab", columns.T, strict=True))
        if path.suffix == ".npy":
            np.save(path, columns)
        elif path.suffix == ".npz":
            np.savez(path, **columns)
        else:
            pa = pytest.importorskip("pyarrow")
            from pyarrow import csv, feather, parquet

            table = pa.table(columns)
            if path.suffix == ".csv":
                csv.write_csv(table, path)
            elif path.suffix == ".parquet":
                parquet.write_table(table, path)
            else:
                feather.write_feather(table, str(path))
        return path

    return write


@pytest.fixture
def fit(cprime, tmp_path):
    """Return a function that fits nine clusters by the command line, and returns its JSON and the loaded model."""

    def run(source, *options):
        path = tmp_path / "m.safetensors"
        outcome = cprime("fit", source, "-k", 9, "--threads", 1, "--json", "-o", path, *options)
        assert outcome.code == 0, outcome.err
        return outcome.json, package.load(path)

    return run


@pytest.fixture
def model(cprime, write, X, tmp_path):
    """Return the path of a k-means model of nine clusters, fitted on columns a and b."""
    path = tmp_path / "model.safetensors"
    assert cprime("fit", write("train.csv", X), "-k", 9, "-o", path, "--threads", 1, "-q").code == 0
    return path
