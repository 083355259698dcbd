"""Every error of a command: one line that names the cause, exit code 1, and no new file."""

import os
import re
import sys

import numpy as np
import pytest

from cprime import MixtureClassifier
from cprime.cli import outputs
from cprime.cli.errors import describe
from cprime.persistence import model_files


@pytest.fixture
def fit_fails(fails, tmp_path):
    """Return a function that runs a fit of three clusters that must fail, and returns its error line."""

    def run(source, *options):
        return fails("fit", source, "-k", 3, "--threads", 1, "-o", tmp_path / "m.safetensors", *options)

    return run


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.csv", "x.parquet", "x.feather"])
class TestEveryFormat:
    def test_a_missing_file_is_named(self, name, fit_fails, tmp_path):
        assert fit_fails(tmp_path / name) == f"{tmp_path / name} does not exist"

    def test_an_empty_folder_is_refused(self, name, fit_fails, tmp_path):
        (tmp_path / name).mkdir()
        assert f"{name} has no files: expected files that end in one of .npy, .parquet" in fit_fails(tmp_path / name)

    @pytest.mark.parametrize("content", [b"", b"\x00\x01garbage\xff\xfe" * 9])
    def test_a_corrupt_file_is_refused(self, name, content, fit_fails, tmp_path):
        (tmp_path / name).write_bytes(content)
        line = fit_fails(tmp_path / name)
        assert name in line
        assert "cannot be read" in line or "not numeric" in line

    def test_a_truncated_file_is_refused(self, name, fit_fails, write, X, tmp_path):
        path = write(name, {"X": X} if name == "x.npz" else X)
        path.write_bytes(path.read_bytes()[:200] + b"," * (name == "x.csv"))
        line = fit_fails(path)
        assert name in line

    def test_nan_and_infinity_are_named_with_their_rows(self, name, fit_fails, write, X):
        X = X.copy()
        X[[3, 17, 40], [0, 1, 1]] = np.nan, np.inf, -np.inf
        path = write(name, {"X": X} if name == "x.npz" else X)
        column = "'a'" if path.suffix in (".csv", ".parquet", ".feather") else "0"
        line = fit_fails(path)
        values = "values must be finite, and 3 of the 180 rows from row 0 on hold others"
        hint = "--missing drop leaves such rows out, --missing mean puts the column's mean, "
        hint += "--missing marginal fits what is there"
        assert line == f"{path}: row 3, column {column}: nan; {values}; {hint}"
        line = fit_fails(path, "--chunk-rows", 10)
        assert "row 3, column " in line
        assert "1 of the 10 rows from row 0 on hold others" in line

    def test_more_clusters_than_rows_are_refused(self, name, fails, write, X, tmp_path):
        path = write(name, {"X": X} if name == "x.npz" else X)
        line = fails("fit", path, "-k", 181, "-o", tmp_path / "m.safetensors")
        assert line == f"-k 181 is more than the 180 rows of {path}"

    def test_files_without_rows_are_refused(self, name, fit_fails, write, X):
        line = fit_fails(write(name, {"X": X[:0]} if name == "x.npz" else X[:0]))
        assert "at least one row" in line

    def test_an_unknown_column_is_refused(self, name, fit_fails, write, X):
        path = write(name, {"X": X} if name == "x.npz" else X)
        assert "has no column 'z'; it has " in fit_fails(path, "--columns", "z")
        assert "has no column 'z'; it has " in fit_fails(path, "--drop", "z")


def test_what_terminals_obey_is_not_printed(fit_fails, tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,b\n1,2\n\x1b[31m3,4,\x075\n")
    line = fit_fails(path)
    assert "\\x1b[31m3,4,\\x075" in line
    assert line.isprintable()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_text_in_another_encoding_is_refused(encoding, fit_fails, tmp_path):
    path = tmp_path / "x.csv"
    mark = "" if encoding == "utf-16" else "\ufeff"
    path.write_bytes((mark + "a,b\n" + "1,2\n3,4\n" * 20).encode(encoding))
    assert fit_fails(path) == f"{path} must be text in UTF-8, it is in UTF-16"


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.feather"])
class TestEveryTable:
    def test_a_column_that_is_not_numeric_is_named(self, name, fit_fails, write, X):
        text = ["1.5"] * 100 + ["Paris"] * 80
        path = write(name, {"a": X[:, 0], "city": text})
        line = fit_fails(path)
        if name == "x.csv":
            assert line.startswith(f"{path}: row 100, column 'city' is not numeric: 'Paris'; ")
        else:
            assert line.startswith(f"{path}: column 'city' is not numeric, it has the type string; ")
        assert line.endswith("--numeric takes the columns that are, --drop leaves some out")

    def test_a_missing_value_is_named(self, name, fit_fails, write):
        line = fit_fails(write(name, {"a": [1.0, 2.0, None, 4.0], "b": [1, None, 3, 4]}))
        assert "row 1, column 'b': nan; values must be finite, and 2 of the 4 rows" in line

    def test_bad_weights_are_refused(self, name, fit_fails, write, X):
        columns = dict(zip("ab", X.T, strict=True))
        source = write(name, {**columns, "w": np.where(np.arange(180) == 7, -1.0, 1.0)})
        assert f"{source}: row 7 is -1.0, weights must be finite and not negative" in fit_fails(
            source, "--sample-weight", "w"
        )
        assert "has no column 'v'" in fit_fails(source, "--sample-weight", "v")
        source = write(name, {**columns, "w": ["x"] * 180})
        assert "column 'w' is not numeric" in fit_fails(source, "--sample-weight", "w")

    def test_at_least_one_column_must_be_left(self, name, fit_fails, write, X):
        assert "at least one column of data" in fit_fails(write(name, X), "--drop", "a,b")

    def test_tables_without_pyarrow_say_what_to_install(self, name, fit_fails, write, X, monkeypatch):
        path = write(name, X)
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        assert fit_fails(path) == f"{path} needs pyarrow, which is missing: pip install pyarrow"


def test_columns_without_any_value_are_refused(fit_fails, write, tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = write("x.parquet", {"a": [1.0, 2.0], "b": pa.nulls(2)})
    assert "column 'b' is not numeric, it has the type null" in fit_fails(path)
    (tmp_path / "x.csv").write_text("a,b\n1,\n2,\n3,\n")
    assert "row 0, column 'b': nan; values must be finite, and 3 of the 3 rows" in fit_fails(tmp_path / "x.csv")


@pytest.mark.parametrize("options", [(), ("--chunk-rows", 20)], ids=["one chunk", "chunks"])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("missing", ["list", "number"])
def test_missing_values_in_a_column_of_lists_are_named(missing, dtype, options, fit_fails, tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [[n, n % 7] for n in range(50)]
    kind = pa.list_(pa.type_for_alias(dtype))
    folder = tmp_path / "parts"
    folder.mkdir()
    parquet.write_table(pa.table({"embedding": pa.array(rows, kind)}), folder / "0.parquet")
    rows[7] = None if missing == "list" else [7, None]
    parquet.write_table(pa.table({"embedding": pa.array(rows, kind)}), folder / "1.parquet")
    line = fit_fails(folder, *options)
    number = 0 if missing == "list" else 1
    where = rf"row 7( \(row 57 of all\))?, column 'embedding', number {number} of its list: "
    assert re.match(rf"{folder / '1.parquet'}: {where}", line)
    assert "--missing drop leaves such rows out" in line


def test_csv_with_ragged_rows_or_a_column_twice_is_refused(fit_fails, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n1,2,3\n")
    assert "Expected 2 columns, got 3" in fit_fails(tmp_path / "x.csv")
    (tmp_path / "x.csv").write_text("a,a\n1,2\n1,2\n")
    assert "more than one column 'a'" in fit_fails(tmp_path / "x.csv")


def test_csv_text_beyond_the_first_block_is_named_by_its_row(fit_fails, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n" + "1, 2.5\n" * 300_000 + "1,n.a.\n" + "1,2\n")
    assert "row 300000, column 'b' is not numeric: 'n.a.'" in fit_fails(tmp_path / "x.csv")


@pytest.mark.parametrize("name", ["x.txt", "x", "x.txt.gz", "x.safetensors"])
def test_an_unknown_ending_is_refused_with_those_that_are_known(name, fit_fails, tmp_path):
    (tmp_path / name).write_text("1,2\n")
    line = fit_fails(tmp_path / name)
    assert "unknown ending" in line
    assert ".npy, .npz, .parquet, .feather, " in line or "expected .csv.gz" in line


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(5), "must hold a matrix (rows, columns), got an array of shape (5,)"),
        (np.zeros((5, 2, 2)), "got an array of shape (5, 2, 2)"),
        (np.zeros((5, 0)), "at least one column of data"),
        (np.array([["a", "b"]]), "must hold numbers, got values of type <U1"),
        (np.zeros((4, 2), dtype=complex), "must hold numbers, got values of type complex128"),
        (
            np.array([[object()]]),
            "cannot be read as a .npy file: Array can't be memory-mapped: Python objects",
        ),
    ],
)
def test_arrays_that_are_no_matrix_of_numbers_are_refused(array, message, fit_fails, write):
    assert message in fit_fails(write("x.npy", array))


def test_wrong_names_of_arrays_in_an_npz_file_are_refused(fit_fails, write, X):
    path = write("x.npz", {"train": X, "test": X, "w": -np.ones(180), "v": np.ones(3), "t": np.array(["a"] * 180)})
    assert "has 2 matrices: choose with --key from 'train', 'test'" in fit_fails(path)
    assert "has no array 'x'" in fit_fails(path, "--key", "x")
    key = ("--key", "train", "--sample-weight")
    assert "row 0 is -1.0, weights must be finite and not negative" in fit_fails(path, *key, "w")
    assert "sample_weight must have the shape (180,), got (3,)" in fit_fails(path, *key, "v")
    assert "must hold numbers, got values of type <U1" in fit_fails(path, *key, "t")
    assert "must be one value per row, 'test' of" in fit_fails(path, *key, "test")
    assert "must name an array of" in fit_fails(path, *key, "u")
    path = write("x.npy", X)
    assert "key names an array of a file that holds several" in fit_fails(path, "--key", "X")
    assert "--sample-weight must name an array of" in fit_fails(path, "--sample-weight", "w")


def test_weights_of_another_file_must_fit(fit_fails, write, X):
    path = write("x.npy", X)
    assert "w.npy has 3 rows" in fit_fails(path, "--sample-weight", write("w.npy", np.ones(3)))
    assert "w.npy has 2" in fit_fails(path, "--sample-weight", write("w.npy", X))
    assert "w.npy: row 179 is nan" in fit_fails(
        path, "--sample-weight", write("w.npy", np.append(np.ones(179), np.nan))
    )


def test_a_header_is_for_csv_files(fit_fails, write, X):
    assert "--header is for .csv and .tsv files, got" in fit_fails(write("x.npy", X), "--no-header")


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


def test_a_start_of_other_columns_is_refused(fit_fails, write, X):
    start = write("start.npy", np.zeros((3, 5)))
    assert "have 5 columns, the data have 2" in fit_fails(write("x.npy", X), "--init", start)


def test_files_that_are_no_model_are_refused(fails, write, X, tmp_path):
    rest = (write("x.npy", X), "-o", tmp_path / "labels.npy")
    assert "does not exist" in fails("predict", tmp_path / "absent.safetensors", *rest)
    assert "is a folder" in fails("predict", tmp_path, *rest)
    assert "is not a cprime model" in fails("predict", write("y.npy", X), *rest)


def test_a_classifier_is_refused(fails, write, X, tmp_path):
    model, data = tmp_path / "m.safetensors", write("x.npy", X)
    MixtureClassifier(n_components=1).fit(X, np.arange(len(X)) % 2).save(model)
    for arguments in (("info", model), ("predict", model, data, "-o", tmp_path / "y.npy")):
        assert "m.safetensors has a MixtureClassifier, which no command takes" in fails(*arguments)


def test_info_refuses_what_is_neither_a_model_nor_data(fails, tmp_path):
    assert "does not exist" in fails("info", tmp_path / "absent.safetensors")
    assert "does not exist" in fails("info", tmp_path / "absent.npy")
    (tmp_path / "x.txt").write_text("1,2\n")
    assert "is not a cprime model" in fails("info", tmp_path / "x.txt")
    assert "unknown ending '.txt'" in fails("info", tmp_path)


def test_a_damaged_model_file_is_refused(fails, model):
    model.write_bytes(model.read_bytes()[:-1])
    assert "is damaged" in fails("info", model)


def test_predict_refuses_other_dimensions_or_columns(fails, model, write, X, tmp_path):
    output = ("-o", tmp_path / "labels.npy")
    line = fails("predict", model, write("x.npy", X[:, :1]), *output)
    assert f"has 1 columns of data, but the model {model} expects 2" in line
    line = fails("predict", model, write("x.csv", {"a": X[:, 0], "c": X[:, 1]}), *output)
    assert "has no column 'b'; it has 'a', 'c'" in line


def test_predict_refuses_outputs_it_cannot_write(fails, model, write, X, tmp_path):
    source = write("x.npy", X)
    assert "must end with .npy or .csv or .tsv or .parquet or .feather" in fails(
        "predict", model, source, "-o", "l.txt"
    )
    assert "would replace the input" in fails("predict", model, source, "-o", source)
    assert "the folder of" in fails("predict", model, source, "-o", tmp_path / "nowhere" / "l.npy")


def test_predict_to_a_table_needs_pyarrow(fails, model, write, X, tmp_path, monkeypatch):
    source = write("x.npy", X)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install pyarrow" in fails("predict", model, source, "-o", tmp_path / "l.parquet")


def test_a_failing_disk_leaves_no_file(fails, model, write, X, tmp_path, monkeypatch):
    source = write("x.npy", X)

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    output = tmp_path / "m.safetensors"
    assert fails("fit", source, "-k", 3, "-o", output) == f"{output}: No space left on device"
    for name in ("l.npy", "l.csv", "l.parquet", "l.feather"):
        line = fails("predict", model, source, "-o", tmp_path / name)
        assert line == f"{tmp_path / name}: No space left on device"


def test_labels_that_cannot_be_finished_keep_the_old_file(fails, model, write, X, tmp_path, monkeypatch):
    output = tmp_path / "l.npy"
    output.write_bytes(b"old")

    def fail(writer, rows):
        writer._file.write(b"half")
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(outputs.NpyWriter, "write", fail)
    assert fails("predict", model, tmp_path / "train.csv", "-o", output) == f"{output}: Input/output error"
    assert output.read_bytes() == b"old"


@pytest.mark.parametrize("name", ["l.npy", "l.csv", "l.parquet", "l.feather"])
def test_data_that_turn_out_bad_half_way_leave_no_labels(name, fails, model, write, X, tmp_path):
    source = write("x.npy", np.vstack([X, [[np.nan, 0.0]]]))
    line = fails("predict", model, source, "-o", tmp_path / name, "--chunk-rows", 50)
    assert "row 180, column 0: nan" in line


def test_too_little_memory_is_said_in_one_line(fails, model, monkeypatch):
    def fail(*args, **kwargs):
        raise MemoryError("Unable to allocate 1 TiB")

    monkeypatch.setattr(model_files, "load_tensors", fail)
    assert fails("info", model) == "not enough memory: Unable to allocate 1 TiB"


def test_a_defect_keeps_its_traceback(cprime, model, monkeypatch):
    def fail(*args, **kwargs):
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(model_files, "load_tensors", fail)
    with pytest.raises(ZeroDivisionError, match="a defect"):
        cprime("info", model)


def test_errors_without_text_are_described_by_their_type():
    assert describe(FileNotFoundError(2, "No such file or directory", "x.npy")) == "x.npy: No such file or directory"
    assert describe(ValueError()) == "ValueError"
    assert describe(MemoryError()) == "not enough memory"


def test_urls_are_data_and_no_outputs(cprime, X, write):
    data = write("x.npy", X)
    outcome = cprime("fit", f"file://{data}", "-k", 3, "-o", "s3://bucket/m.safetensors")
    assert outcome.code != 0
    assert "s3://bucket/m.safetensors is a URL, where nothing can be written: expected a local path" in outcome.err
    assert cprime("fit", f"file://{data}", "-k", 3, "-o", data.parent / "m.safetensors", "-q").code == 0


def test_reproduce_says_where_it_has_gone(fails, cprime):
    assert "python -m reproduction list" in fails("reproduce", "truncated-table-s1", "--runs", 3)
    assert "reproduce" not in cprime("--help").out
