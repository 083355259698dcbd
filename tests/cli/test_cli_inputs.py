"""Inputs of `cprime fit` and `predict`: text formats, streams, columns, missing values, scaling, names of rows."""

import gzip
import json

import numpy as np
import pytest

import cprime as package
from cprime import GaussianMixture, KMeans, StudentTMixture, load

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def text(X, tmp_path):
    """Return a function that writes lines to a file and returns its path."""

    def write(name, lines):
        path = tmp_path / name
        content = "".join(f"{line}\n" for line in lines)
        if name.endswith(".gz"):
            with gzip.open(path, "wt") as file:
                file.write(content)
        elif name.endswith(".zst"):
            with pa.CompressedOutputStream(str(path), "zstd") as stream:
                stream.write(content.encode())
        else:
            path.write_text(content)
        return path

    return write


@pytest.fixture
def fitted(cprime, tmp_path):
    """Return a function that fits nine clusters by the command line and returns the loaded model."""

    def fit(source, *options, notes=(), stdin=None):
        rest = ("-k", 9, "--threads", 1, "-q", "-o", tmp_path / "m.safetensors", *options)
        outcome = cprime("fit", source, *rest, stdin=stdin)
        assert outcome.code == 0, outcome.err
        assert outcome.err.splitlines() == [f"note: {note}" for note in notes]
        return package.load(tmp_path / "m.safetensors")

    return fit


def lines_of(X, separator=",", decimal="."):
    rows = (separator.join(repr(float(value)).replace(".", decimal) for value in row) for row in X)
    return [separator.join("ab"[: X.shape[1]]), *rows]


@pytest.mark.parametrize(
    ("name", "separator", "decimal", "note"),
    [
        ("x.csv", ",", ".", None),
        ("x.csv", ";", ".", "is read with semicolons between its values"),
        ("x.csv", ";", ",", "is read with semicolons between its values and decimal commas"),
        ("x.csv", "|", ".", "is read with bars between its values"),
        ("x.csv", "|", ",", "is read with bars between its values and decimal commas"),
        ("x.csv", "\t", ".", "is read with tabs between its values"),
        ("x.tsv", "\t", ".", None),
        ("x.csv.gz", ",", ".", None),
        ("x.tsv.zst", "\t", ".", None),
    ],
)
def test_separators_and_decimal_commas_are_recognized(name, separator, decimal, note, text, fitted, X, tmp_path):
    path = text(name, lines_of(X, separator, decimal))
    model = fitted(path, notes=[] if note is None else [f"{path} {note}"])
    np.testing.assert_array_equal(model.cluster_centers_, KMeans(9, random_state=0).fit(X).cluster_centers_)
    assert model.feature_names_in_.tolist() == ["a", "b"]


def test_a_separator_that_is_given(text, fitted, X):
    path = text("x.csv", lines_of(X, "~"))
    model = fitted(path, "--separator", "~")
    np.testing.assert_array_equal(model.labels_, KMeans(9, random_state=0).fit(X).labels_)


@pytest.mark.parametrize("name", ["x.jsonl", "x.ndjson", "x.jsonl.gz"])
def test_json_lines_are_read_as_columns(name, text, fitted, X):
    rows = [json.dumps({"id": f"n{i}", "a": a, "b": b, "ok": True}) for i, (a, b) in enumerate(X.tolist())]
    model = fitted(text(name, rows), "--columns", "a,b")
    np.testing.assert_array_equal(model.labels_, KMeans(9, random_state=0).fit(X).labels_)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "jsonl", "npy", "npy.gz", "parquet"])
def test_standard_input_is_read_in_every_format(kind, text, write, fitted, X):
    if kind in ("npy", "parquet"):
        content = write(f"x.{kind}", X).read_bytes()
    elif kind == "npy.gz":
        content = gzip.compress(write("x.npy", X).read_bytes())
    elif kind == "jsonl":
        content = text("x.jsonl", [json.dumps({"a": a, "b": b}) for a, b in X.tolist()]).read_bytes()
    else:
        content = text(f"x.{kind}", lines_of(X, "\t" if kind == "tsv" else ",")).read_bytes()
    model = fitted("-", stdin=content)
    np.testing.assert_array_equal(model.labels_, KMeans(9, random_state=0).fit(X).labels_)


def test_columns_by_name_with_commas_and_true_and_false(text, fitted, X):
    flags = np.arange(len(X)) % 2
    rows = [f"{a},{b},{bool(flag)}".lower() for (a, b), flag in zip(X.tolist(), flags, strict=True)]
    path = text("x.csv", ['"a, b",b,flag', *rows])
    expected = KMeans(9, random_state=0).fit(np.column_stack([X, flags]))
    np.testing.assert_array_equal(fitted(path).cluster_centers_, expected.cluster_centers_)
    model = fitted(path, "--column", "flag", "--column", "a, b", "--columns", "b")
    assert model.feature_names_in_.tolist() == ["b", "flag", "a, b"]


def test_columns_that_are_no_numbers_are_named_together(text, fails, fitted, X, tmp_path):
    rows = [f"star {i},{a},{b},2020-01-01" for i, (a, b) in enumerate(X.tolist())]
    path = text("x.csv", ["name,a,b,day", *rows])
    line = fails("fit", path, "-k", 9, "-o", tmp_path / "m.safetensors")
    what = "columns 'name' ('star 0' in row 0), 'day' ('2020-01-01' in row 0) are not numeric"
    assert line == f"{path}: {what}; --numeric takes the columns that are, --drop leaves some out"
    model = fitted(path, "--numeric", notes=["left out, as they are not numeric: 'name', 'day'"])
    assert model.feature_names_in_.tolist() == ["a", "b"]


def test_an_index_is_noticed(text, fitted, X):
    rows = [f"{i},{a},{b}" for i, (a, b) in enumerate(X.tolist())]
    path = text("x.csv", ["i,a,b", *rows])
    fitted(
        path,
        notes=[
            f"the first column of {path} 'i' counts the rows (an index?) and is taken as data; --drop i leaves it out"
        ],
    )


def test_a_first_column_without_a_name_is_the_index(text, fitted, cprime, X, tmp_path):
    path = text("x.csv.gz", [",a,b", *(f"star {i},{a},{b}" for i, (a, b) in enumerate(X.tolist()))])
    model = fitted(
        path, notes=[f"{path}: column 'Unnamed: 0' is the index and is left out of the data, unless chosen by name"]
    )
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert fitted(path, "--id", "Unnamed: 0").feature_names_in_.tolist() == ["a", "b"]
    twice = cprime("fit", path, "-k", 3, "--id", "Unnamed: 0", "--id", "a", "-o", model_of(tmp_path))
    assert twice.code == 2
    assert "'--id': needs one column, got 2: Unnamed: 0, a." in twice.err
    outcome = cprime("predict", model_of(tmp_path), path, "--id", "Unnamed: 0", "-o", "-", "-q")
    assert [line.split(",")[0] for line in outcome.out.splitlines()] == [
        "Unnamed: 0",
        *(f"star {i}" for i in range(180)),
    ]


def test_a_first_line_that_may_be_names_is_refused_and_the_options_are_named(text, fails, fitted, tmp_path):
    rows = [f"{i % 7},{2 * i % 5}" for i in range(60)]
    path = text("x.csv", ["0,1", *rows])
    line = fails("fit", path, "-k", 9, "-o", tmp_path / "m.safetensors")
    assert line == (
        f"{path}: the first line may be names of columns or a row of numbers, got '0,1': say which with --header or "
        "--no-header"
    )
    assert fitted(path, "--header").labels_.shape == (60,)
    note = f"{path} has no header: its columns are called 0 to 1"
    assert fitted(path, "--no-header", notes=[note]).labels_.shape == (61,)


@pytest.fixture
def gaps(X, text):
    """Return the path of a table with names and weights of rows and two columns; three values are missing."""
    rows = [f"r{i},{a},{b},{1 + i % 3}" for i, (a, b) in enumerate(X.tolist())]
    for i in (0, 7, 179):
        name, a, _, weight = rows[i].split(",")
        rows[i] = f"{name},{a},,{weight}"
    return text("x.csv", ["name,a,b,w", *rows])


def test_missing_values_are_an_error_that_names_the_options(gaps, fails, tmp_path):
    line = fails("fit", gaps, "-k", 9, "--id", "name", "-o", tmp_path / "m.safetensors")
    assert f"{gaps}: row 0, column 'b': nan; values must be finite, and 3 of the 180 rows" in line
    assert line.endswith("column's mean, --missing marginal fits what is there")


@pytest.mark.parametrize("chunked", [(), ("--chunk-rows", 50)])
def test_rows_with_missing_values_are_left_out(chunked, gaps, fitted, cprime, X, tmp_path):
    kept = np.setdiff1d(np.arange(180), [0, 7, 179])
    options = ("--id", "name", "--missing", "drop", "--sample-weight", "w", "--init", "k-means||", *chunked)
    model = fitted(gaps, *options, notes=[f"3 of the 180 rows of {gaps} have missing values and are left out"])
    assert model.labels_.shape == (177,)
    assert model.counts_.sum() == (1 + kept % 3).sum()
    outcome = cprime("predict", model_of(tmp_path), gaps, "--id", "name", "--missing", "drop", "-o", "-", *chunked)
    names, labels = zip(*(line.split(",") for line in outcome.out.splitlines()), strict=True)
    assert names == ("name", *(f"r{i}" for i in kept))
    np.testing.assert_array_equal(np.array(labels[1:], dtype=int), model.labels_)
    assert "177" in outcome.err


def test_rows_to_predict_with_missing_values_are_an_error_that_names_the_option(gaps, fitted, fails, tmp_path):
    fitted(
        gaps,
        "--id",
        "name",
        "--drop",
        "w",
        "--missing",
        "drop",
        notes=[f"3 of the 180 rows of {gaps} have missing values and are left out"],
    )
    line = fails("predict", model_of(tmp_path), gaps, "-o", tmp_path / "l.npy")
    assert "row 0, column 'b': nan" in line
    assert line.endswith("; --missing drop leaves such rows out")


def model_of(tmp_path):
    return tmp_path / "m.safetensors"


def test_missing_values_become_means_and_columns_are_scaled_in_the_model_too(gaps, fitted, cprime, X, tmp_path):
    model = fitted(gaps, "--id", "name", "--drop", "w", "--missing", "mean", "--scale")
    holes = X.copy()
    holes[[0, 7, 179], 1] = np.nan
    filled = np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)
    scaled = (filled - filled.mean(axis=0)) / filled.std(axis=0)
    np.testing.assert_allclose(
        model.cluster_centers_, KMeans(9, random_state=0).fit(scaled).cluster_centers_, atol=1e-12
    )
    np.testing.assert_array_equal(model.predict(holes), model.labels_)  # also untransformed rows in Python
    assert "scaled" in repr(model)
    assert cprime("predict", model_of(tmp_path), gaps, "-o", tmp_path / "l.npy", "-q").code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "l.npy"), model.labels_)
    assert (
        cprime("info", model_of(tmp_path), "--json").json["prepared"]
        == "missing values filled with means, scaled to variance 1"
    )
    again = model.fit(X)
    assert not hasattr(again, "preparation_")


def test_fits_of_what_is_there(gaps, cprime, X, tmp_path):
    options = ("--id", "name", "--drop", "w", "--missing", "marginal", "-k", 3)
    assert cprime("fit", gaps, "-m", "gmm", *options, "-o", model_of(tmp_path), "-q").code == 0
    holes = X.copy()
    holes[[0, 7, 179], 1] = np.nan
    expected = GaussianMixture(3, missing="marginal", random_state=0).fit(holes)
    np.testing.assert_allclose(load(model_of(tmp_path)).means_, expected.means_, rtol=1e-6)
    assert cprime("predict", model_of(tmp_path), gaps, "--distance", "-o", tmp_path / "d.csv", "-q").code == 0
    found = np.loadtxt(tmp_path / "d.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(found[:, 1], expected.nearest(holes)[1], rtol=1e-5)
    assert cprime("fit", gaps, *options, "-o", model_of(tmp_path), "-q").code == 0
    centers = KMeans(3, missing="marginal", random_state=0).fit(holes).cluster_centers_
    np.testing.assert_allclose(load(model_of(tmp_path)).cluster_centers_, centers, rtol=1e-6)
    assert cprime("fit", gaps, "-m", "student-t", *options, "-o", model_of(tmp_path), "-q").code == 0
    means = StudentTMixture(3, missing="marginal", random_state=0).fit(holes).means_
    np.testing.assert_allclose(load(model_of(tmp_path)).means_, means, rtol=1e-6)


def test_distances_to_the_means_of_a_mixture_are_mahalanobis(text, cprime, X, tmp_path):
    path = text("x.csv", ["a,b", *(f"{a},{b}" for a, b in X.tolist())])
    assert cprime("fit", path, "-m", "gmm", "-k", 9, "-o", model_of(tmp_path), "-q").code == 0
    out = tmp_path / "d.csv"
    assert cprime("predict", model_of(tmp_path), path, "--distance", "-o", out, "-q").code == 0
    assert out.read_text().startswith("label,distance\n")
    labels, distances = package.load(model_of(tmp_path)).nearest(path)
    np.testing.assert_allclose(np.loadtxt(out, delimiter=",", skiprows=1), np.column_stack([labels, distances]))


def test_scaling_keeps_a_checkpoint_and_its_resumption(gaps, fitted, cprime, tmp_path):
    options = ("--id", "name", "--drop", "w", "--missing", "mean", "--scale")
    model = fitted(gaps, *options, "--checkpoint", tmp_path / "run")
    outcome = cprime("resume", tmp_path / "run", "-o", tmp_path / "again.safetensors", "-q")
    assert outcome.code == 0, outcome.err
    again = package.load(tmp_path / "again.safetensors")
    np.testing.assert_array_equal(again.cluster_centers_, model.cluster_centers_)
    np.testing.assert_array_equal(again.preparation_["shift"], model.preparation_["shift"])


@pytest.mark.parametrize("options", [(), ("--drop", "w"), ("--numeric",), ("--id", "who")])
def test_the_index_of_pandas_is_no_feature_and_can_name_rows(options, fitted, cprime, X, tmp_path):
    pd = pytest.importorskip("pandas")
    path, names = tmp_path / "x.parquet", [f"star {i}" for i in range(180)]
    frame = pd.DataFrame(X, columns=["a", "b"], index=pd.Index(names, name="who"))
    (frame.assign(w=1.0) if "--drop" in options else frame).to_parquet(path)
    note = f"{path}: column 'who' is the index and is left out of the data, unless chosen by name"
    model = fitted(path, *options, notes=[] if "--id" in options else [note])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(model.labels_, KMeans(9, random_state=0).fit(X).labels_)
    outcome = cprime("predict", tmp_path / "m.safetensors", path, "--id", "who", "-o", "-", "-q")
    assert [line.split(",")[0] for line in outcome.out.splitlines()] == ["who", *names]


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.feather", "x.jsonl", "x.npz"])
def test_names_of_rows_are_kept_for_every_format(name, write, text, cprime, fitted, X, tmp_path):
    names = [f"star {i}" for i in range(180)]
    if name == "x.jsonl":
        path = text(name, [json.dumps({"who": n, "a": a, "b": b}) for n, (a, b) in zip(names, X.tolist(), strict=True)])
    elif name == "x.npz":
        path = write("x.npy", np.column_stack([np.arange(180) + 7, X]))
        names = [str(float(i + 7)) for i in range(180)]
    else:
        path = write(name, {"who": names, "a": X[:, 0], "b": X[:, 1]})
    column = "0" if name == "x.npz" else "who"
    model = fitted(path, "--id", column)
    for chunked in ((), ("--chunk-rows", 7)):
        outcome = cprime("predict", tmp_path / "m.safetensors", path, "--id", column, "-o", "-", *chunked)
        rows = [line.split(",") for line in outcome.out.splitlines()]
        assert rows[0] == [column, "label"]
        assert [row[0] for row in rows[1:]] == names
        np.testing.assert_array_equal([int(row[1]) for row in rows[1:]], model.labels_)


def test_names_of_rows_of_a_folder(write, cprime, fitted, X, tmp_path):
    (tmp_path / "parts").mkdir()
    for part, rows in (("0.parquet", slice(0, 100)), ("1.parquet", slice(100, 180))):
        names = [f"star {i}" for i in range(180)][rows]
        write(f"parts/{part}", {"who": names, "a": X[rows, 0], "b": X[rows, 1]})
    fitted(tmp_path / "parts", "--id", "who")
    outcome = cprime(
        "predict", tmp_path / "m.safetensors", tmp_path / "parts", "--id", "who", "-o", "-", "--chunk-rows", 33
    )
    assert [line.split(",")[0] for line in outcome.out.splitlines()[1:]] == [f"star {i}" for i in range(180)]


def test_a_broken_stream_or_archive_is_named(fails, tmp_path):
    output = ("-k", 2, "-o", tmp_path / "m.safetensors")
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n" * 1000)[:-9])
    assert "x.csv.gz cannot be read as a .gz file: " in fails("fit", tmp_path / "x.csv.gz", *output)
    assert fails("fit", "-", *output, stdin=b"") == "standard input has no data: it is empty"
    line = fails("fit", "-", *output, stdin=b"a,b\n1,2\n3,x\n")
    assert line.startswith("standard input: row 1, column 'b' is not numeric: 'x'")
