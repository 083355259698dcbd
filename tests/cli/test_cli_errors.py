"""What can go wrong: one line that says what, exit code 1, and no file."""

import os
import sys

import numpy as np
import pytest

from cprime import storage
from cprime.cli import outputs
from cprime.cli.errors import describe


@pytest.fixture
def fit_fails(fails, tmp_path):
    """The error line of a fit of three clusters."""

    def run(source, *options):
        return fails("fit", source, "-k", 3, "--threads", 1, "-o", tmp_path / "m.safetensors", *options)

    return run


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.csv", "x.parquet", "x.feather"])
class TestEveryFormat:
    def test_missing_file(self, name, fit_fails, tmp_path):
        assert fit_fails(tmp_path / name) == f"{tmp_path / name} does not exist"

    def test_folder(self, name, fit_fails, tmp_path):
        (tmp_path / name).mkdir()
        assert "is a folder" in fit_fails(tmp_path / name)

    @pytest.mark.parametrize("content", [b"", b"\x00\x01garbage\xff\xfe" * 9])
    def test_corrupt_file(self, name, content, fit_fails, tmp_path):
        (tmp_path / name).write_bytes(content)
        line = fit_fails(tmp_path / name)
        assert name in line
        assert "cannot be read" in line or "not numeric" in line

    def test_truncated_file(self, name, fit_fails, write, X, tmp_path):
        path = write(name, {"X": X} if name == "x.npz" else X)
        path.write_bytes(path.read_bytes()[:200] + b"," * (name == "x.csv"))
        line = fit_fails(path)
        assert name in line

    def test_nan_and_infinity_with_their_rows(self, name, fit_fails, write, X):
        X = X.copy()
        X[[3, 17, 40], [0, 1, 1]] = np.nan, np.inf, -np.inf
        line = fit_fails(write(name, {"X": X} if name == "x.npz" else X))
        assert "NaN or infinity in 3 of 180 rows: 3, 17, 40 (the first is row 0)" in line
        X[50:60] = np.nan
        line = fit_fails(write(name, {"X": X} if name == "x.npz" else X))
        assert "in 13 of 180 rows: 3, 17, 40, 50, 51, …" in line

    def test_more_clusters_than_rows(self, name, fails, write, X, tmp_path):
        path = write(name, {"X": X} if name == "x.npz" else X)
        line = fails("fit", path, "-k", 181, "-o", tmp_path / "m.safetensors")
        assert line == f"-k 181 is more than the 180 rows of {path}"

    def test_no_rows(self, name, fit_fails, write, X):
        line = fit_fails(write(name, {"X": X[:0]} if name == "x.npz" else X[:0]))
        assert "at least one row" in line

    def test_unknown_column(self, name, fit_fails, write, X):
        path = write(name, {"X": X} if name == "x.npz" else X)
        assert "has no column 'z'; it has " in fit_fails(path, "--columns", "z")
        assert "has no column 'z'; it has " in fit_fails(path, "--drop", "z")


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.feather"])
class TestEveryTable:
    def test_column_that_is_not_numeric(self, name, fit_fails, write, X):
        text = ["1.5"] * 100 + ["Paris"] * 80
        line = fit_fails(write(name, {"a": X[:, 0], "city": text}))
        row, value = (100, "Paris") if name == "x.csv" else (0, "1.5")
        assert "column 'city' is not numeric" in line
        assert f"row {row} has '{value}' (the first is row 0)" in line

    def test_long_values_are_cut(self, name, fit_fails, write, X):
        line = fit_fails(write(name, {"a": X[:, 0], "b": ["x" * 200] * len(X)}))
        assert "x…" in line
        assert len(line) < 250

    def test_missing_value(self, name, fit_fails, write):
        line = fit_fails(write(name, {"a": [1.0, 2.0, None, 4.0], "b": [1, None, 3, 4]}))
        assert "a missing value, NaN or infinity in 2 of 4 rows: 1, 2" in line

    def test_bad_weights(self, name, fit_fails, write, X):
        columns = dict(zip("ab", X.T, strict=True))
        source = write(name, {**columns, "w": np.where(np.arange(180) == 7, -1.0, 1.0)})
        assert "finite and not negative, got -1.0 in row 7" in fit_fails(source, "--sample-weight", "w")
        assert "has no column 'v'" in fit_fails(source, "--sample-weight", "v")
        source = write(name, {**columns, "w": ["x"] * 180})
        assert "column 'w' is not numeric" in fit_fails(source, "--sample-weight", "w")

    def test_no_columns_left(self, name, fit_fails, write, X):
        assert "at least one row and one column" in fit_fails(write(name, X), "--drop", "a,b")

    def test_without_pyarrow(self, name, fit_fails, write, X, monkeypatch):
        path = write(name, X)
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        assert fit_fails(path) == 'tables need pyarrow, which is missing: pip install "cprime[tables]"'


def test_columns_without_any_value(fit_fails, write, tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = write("x.parquet", {"a": [1.0, 2.0], "b": pa.nulls(2)})
    assert "column 'b' is not numeric (it has the type null)" in fit_fails(path)
    (tmp_path / "x.csv").write_text("a,b\n1,\n2,\n")
    assert "missing value, NaN or infinity in 2 of 2 rows" in fit_fails(tmp_path / "x.csv")


def test_csv_with_ragged_rows_or_a_column_twice(fit_fails, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n1,2,3\n")
    assert "Expected 2 columns, got 3" in fit_fails(tmp_path / "x.csv")
    (tmp_path / "x.csv").write_text("a,a\n1,2\n1,2\n")
    assert "more than one column 'a'" in fit_fails(tmp_path / "x.csv")


def test_csv_text_beyond_the_first_block(fit_fails, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n" + "1, 2.5\n" * 300_000 + "1,n.a.\n" + "1,2\n")
    assert "column 'b' is not numeric: row 300000 has 'n.a.'" in fit_fails(tmp_path / "x.csv")


@pytest.mark.parametrize("name", ["x.txt", "x", "x.npy.gz", "x.safetensors"])
def test_unknown_ending(name, fit_fails, tmp_path):
    (tmp_path / name).write_text("1,2\n")
    line = fit_fails(tmp_path / name)
    assert "unknown ending" in line
    assert ".npy, .npz, .csv, .parquet, .feather" in line


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(5), "must hold a matrix (rows, columns), got an array of shape (5,)"),
        (np.zeros((5, 2, 2)), "got an array of shape (5, 2, 2)"),
        (np.zeros((5, 0)), "at least one row and one column of data, got shape (5, 0)"),
        (np.array([["a", "b"]]), "is not numeric: it holds values of type <U1"),
        (np.zeros((4, 2), dtype=complex), "is not numeric: it holds values of type complex128"),
        (
            np.array([[object()]]),
            "cannot be read as a .npy file: Array can't be memory-mapped: Python objects",
        ),
    ],
)
def test_arrays_that_are_no_matrix_of_numbers(array, message, fit_fails, write):
    assert message in fit_fails(write("x.npy", array))


def test_arrays_of_an_npz_file(fit_fails, write, X):
    path = write("x.npz", {"train": X, "test": X, "w": -np.ones(180), "v": np.ones(3), "t": np.array(["a"] * 180)})
    assert "none is called X: choose with --key from 'train', 'test', 'w', 'v', 't'" in fit_fails(path)
    assert "has no array 'x'" in fit_fails(path, "--key", "x")
    assert "got -1.0 in row 0" in fit_fails(path, "--key", "train", "--sample-weight", "w")
    assert "one value per row, got shape (3,)" in fit_fails(path, "--key", "train", "--sample-weight", "v")
    assert "weights are not numeric" in fit_fails(path, "--key", "train", "--sample-weight", "t")
    path = write("x.npy", X)
    assert "--key names an array of an .npz file" in fit_fails(path, "--key", "X")
    assert "--sample-weight needs a table or an .npz file" in fit_fails(path, "--sample-weight", "w")


def test_outputs_that_cannot_be_written_are_known_before_the_data_are_read(fails, write, X, tmp_path):
    absent = tmp_path / "absent.npy"
    (tmp_path / "folder.safetensors").mkdir()
    (tmp_path / "file").touch()
    for output, message in [
        (tmp_path / "nowhere" / "m.safetensors", "the folder of"),
        (tmp_path / "file" / "m.safetensors", "the folder of"),
        (tmp_path / "folder.safetensors", "is not a regular file"),
        ("/proc/m.safetensors", "no file can be created"),
        (tmp_path / "m.pkl", "must end with .safetensors"),
    ]:
        assert message in fails("fit", absent, "-k", 3, "-o", output)


def test_values_that_the_estimators_refuse(fit_fails, write, X):
    path = write("x.npy", X)
    assert "init" in fit_fails(path, "--init", "nonsense")
    assert "search" in fit_fails(path, "--search", "nonsense")
    assert "covariance_type" in fit_fails(path, "-m", "gmm", "--covariance-type", "nonsense")
    assert "weights" in fit_fails(path, "-m", "gmm", "--weights", "nonsense")
    for text in ("0", "4", "two", "-1"):
        assert "--n-active must be a number from 1 to 3" in fit_fails(path, "-m", "gmm", "--n-active", text)
    start = write("start.npy", np.zeros((3, 5)))
    assert "have 5 columns, the data have 2" in fit_fails(path, "--init", start)


@pytest.mark.parametrize(
    "args",
    [
        ("fit", "x.npy", "-o", "m.safetensors"),
        ("fit", "x.npy", "-k", "0", "-o", "m.safetensors"),
        ("fit", "x.npy", "-k", "3", "-m", "dbscan", "-o", "m.safetensors"),
        ("fit", "x.npy", "-k", "3", "--n-active", "2", "-o", "m.safetensors"),
        ("fit", "x.npy", "-k", "3", "--weights", "equal", "-o", "m.safetensors"),
        ("fit", "x.npy", "-k", "3", "--dtype", "float16", "-o", "m.safetensors"),
        ("predict", "m.safetensors"),
        ("nonsense",),
    ],
)
def test_wrong_usage_has_exit_code_2(args, cprime):
    outcome = cprime(*args)
    assert outcome.code == 2
    assert outcome.out == ""
    assert "Usage: cprime" in outcome.err


@pytest.mark.parametrize("command", ["predict", "info"])
def test_files_that_are_no_model(command, fails, write, X, tmp_path):
    rest = (write("x.npy", X), "-o", tmp_path / "labels.npy") if command == "predict" else ()
    assert "does not exist" in fails(command, tmp_path / "absent.safetensors", *rest)
    assert "is a folder" in fails(command, tmp_path, *rest)
    assert "is not a cprime model" in fails(command, write("y.npy", X), *rest)


def test_damaged_model(fails, model):
    model.write_bytes(model.read_bytes()[:-1])
    assert "is damaged" in fails("info", model)


def test_predict_with_other_dimensions_or_columns(fails, model, write, X, tmp_path):
    output = ("-o", tmp_path / "labels.npy")
    line = fails("predict", model, write("x.npy", X[:, :1]), *output)
    assert f"has 1 columns of data, but the model {model} expects 2" in line
    line = fails("predict", model, write("x.csv", {"a": X[:, 0], "c": X[:, 1]}), *output)
    assert "has no column 'b'; it has 'a', 'c'" in line


def test_predict_refuses_outputs_it_cannot_write(fails, model, write, X, tmp_path):
    source = write("x.npy", X)
    assert "must end with .npy or .csv or .parquet or .feather" in fails("predict", model, source, "-o", "l.txt")
    assert "would replace the input" in fails("predict", model, source, "-o", source)
    assert "the folder of" in fails("predict", model, source, "-o", tmp_path / "nowhere" / "l.npy")


def test_predict_to_a_table_without_pyarrow(fails, model, write, X, tmp_path, monkeypatch):
    source = write("x.npy", X)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "cprime[tables]" in fails("predict", model, source, "-o", tmp_path / "l.parquet")


def test_a_failing_disk_leaves_no_file(fails, model, write, X, tmp_path, monkeypatch):
    source = write("x.npy", X)

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    output = tmp_path / "m.safetensors"
    assert fails("fit", source, "-k", 3, "-o", output) == "No space left on device"
    for name in ("l.npy", "l.csv", "l.parquet", "l.feather"):
        assert fails("predict", model, source, "-o", tmp_path / name) == "No space left on device"


def test_labels_that_cannot_be_finished_keep_the_old_file(fails, model, write, X, tmp_path, monkeypatch):
    output = tmp_path / "l.npy"
    output.write_bytes(b"old")

    def fail(file, labels, allow_pickle):
        file.write(b"half")
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(outputs.np, "save", fail)
    assert fails("predict", model, tmp_path / "train.csv", "-o", output) == "Input/output error"
    assert output.read_bytes() == b"old"


def test_too_little_memory_is_said_in_one_line(fails, model, monkeypatch):
    def fail(*args, **kwargs):
        raise MemoryError("Unable to allocate 1 TiB")

    monkeypatch.setattr(storage, "safe_open", fail)
    assert fails("info", model) == "not enough memory: Unable to allocate 1 TiB"


def test_a_defect_keeps_its_traceback(cprime, model, monkeypatch):
    def fail(*args, **kwargs):
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(storage, "safe_open", fail)
    with pytest.raises(ZeroDivisionError, match="a defect"):
        cprime("info", model)


def test_descriptions_of_errors():
    assert describe(FileNotFoundError(2, "No such file or directory", "x.npy")) == "x.npy: No such file or directory"
    assert describe(ValueError()) == "ValueError"
    assert describe(MemoryError()) == "not enough memory"
