"""Commands take several paths of data, and read the columns to which the model was fitted."""

import numpy as np
import pytest

import cprime as package
from cprime import KMeans, open_data

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def parts(X, tmp_path):
    """Return the paths of two Parquet files with two columns of lists and two of text, 100 and 80 rows."""
    paths = []
    for rows in (X[:100], X[100:]):
        paths.append(tmp_path / f"part-{len(paths)}.parquet")
        columns = {
            name: pa.FixedSizeListArray.from_arrays(pa.array(values.astype(np.float32).ravel()), 2)
            for name, values in {"embedding": rows, "image": rows[:, ::-1] * 2}.items()
        }
        names = [f"{len(paths)}-{n}" for n in range(len(rows))]
        parquet.write_table(pa.table({"doc": names, **columns, "title": ["t"] * len(rows)}), paths[-1])
    return paths


@pytest.fixture
def of_parts(cprime, parts, tmp_path):
    path = tmp_path / "m.safetensors"
    assert cprime("fit", *parts, "--column", "image", "-k", 9, "--threads", 1, "-o", path, "-q").code == 0
    return path


@pytest.mark.parametrize("chunked", [(), ("--chunk-rows", 70)])
def test_several_paths_are_one_data_set_in_their_order(chunked, cprime, parts, tmp_path):
    path = tmp_path / "m.safetensors"
    args = ("fit", *reversed(parts), "--column", "embedding", "-k", 9, "--threads", 1, *chunked, "-o", path)
    outcome = cprime(*args, "--json")
    assert outcome.json["n_samples"] == 180
    assert outcome.err.startswith(f"note: {parts[1]} and 1 more: 180 rows of 2 columns")
    data = open_data(list(reversed(parts)), columns="embedding", chunk_rows=70 if chunked else None)
    expected = KMeans(9, random_state=0).fit(data if chunked else data.read(0, 180))
    np.testing.assert_array_equal(package.load(path).cluster_centers_, expected.cluster_centers_)
    assert package.load(path).list_column_ == "embedding"


def test_every_command_reads_the_column_of_the_model_in_several_files(cprime, of_parts, parts, X, tmp_path):
    labels, expected = tmp_path / "l.csv", package.load(of_parts)
    assert cprime("predict", of_parts, *parts, "--id", "doc", "-o", labels, "-q").code == 0
    names, found = zip(*(line.split(",") for line in labels.read_text().splitlines()[1:]), strict=True)
    assert (names[0], names[-1]) == ("1-0", "2-79")
    np.testing.assert_array_equal(np.array(found, dtype=int), expected.labels_)
    page = tmp_path / "page.html"
    assert cprime("report", of_parts, *parts, "-o", page, "-q").code == 0
    assert "part-0.parquet and 1 more" in page.read_text()
    assert cprime("merge", of_parts, *parts, "-n", 3, "-o", labels, "-q").code == 0
    assert cprime("bound", of_parts, *parts, "--time-limit", 1, "--json").json["n_samples"] == 180
    assert cprime("info", of_parts, "--json").json["columns"] == ["image"]
    figures = cprime("info", *parts, "--column", "embedding", "--json").json
    assert (figures["n_samples"], figures["n_features"]) == (180, 2)
    assert cprime("plan", *parts, "--column", "embedding", "-k", 9).code == 0
    assert cprime("sweep", *parts, "--column", "embedding", "-k", "2,3", "--n-init", 1, "--json").json["best"] == 3


def test_a_fit_of_several_files_is_resumed(cprime, parts, tmp_path):
    path = tmp_path / "m.safetensors"
    args = ("fit", *parts, "--column", "embedding", "-k", 9, "--chunk-rows", 70, "--checkpoint", tmp_path / "run", "-q")
    assert cprime(*args, "-o", path).code == 0
    (tmp_path / "run" / "model.safetensors").unlink()
    assert cprime("resume", tmp_path / "run", "-o", tmp_path / "again.safetensors", "-q").code == 0
    found = package.load(tmp_path / "again.safetensors")
    np.testing.assert_array_equal(found.cluster_centers_, package.load(path).cluster_centers_)


def test_lists_under_another_name_are_refused_and_numbers_in_columns_are_read(cprime, fails, of_parts, X, tmp_path):
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 2)
    parquet.write_table(pa.table({"vector": lists}), tmp_path / "other.parquet")
    line = fails("predict", of_parts, tmp_path / "other.parquet", "-o", tmp_path / "l.npy")
    assert line == f"{tmp_path / 'other.parquet'} has no column 'image': choose another one with --column"
    args = ("predict", of_parts, tmp_path / "other.parquet", "--column", "vector", "-o", tmp_path / "l.npy", "-q")
    assert cprime(*args).code == 0
    np.savetxt(tmp_path / "x.csv", X, delimiter=",", header="a,b", comments="", fmt="%.10f")
    assert cprime("predict", of_parts, tmp_path / "x.csv", "-o", tmp_path / "n.npy", "-q").code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "n.npy"), np.load(tmp_path / "l.npy"))


def test_a_model_of_scaled_lists_knows_its_column(cprime, parts, tmp_path):
    path = tmp_path / "m.safetensors"
    for options in ((), ("--scale",), ("--missing", "drop"), ("--scale", "--chunk-rows", 70)):
        args = ("fit", *parts, "--column", "image", *options, "-k", 9, "-o", path, "-q")
        assert cprime(*args).code == 0
        assert package.load(path).list_column_ == "image"


def test_standard_input_is_the_only_data(fails, parts, tmp_path):
    line = fails("fit", "-", parts[0], "-k", 3, "-o", tmp_path / "m.safetensors", stdin=b"a,b\n1,2\n")
    assert line == f"- (standard input) must be the only DATA, got - {parts[0]}"


def test_an_output_must_not_replace_any_of_several_inputs(fails, write, model, X):
    one, two = write("one.npy", X), write("two.npy", X)
    assert "would replace the input" in fails("predict", model, one, two, "-o", two)
