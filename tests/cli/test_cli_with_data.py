"""`cprime predict --with-data` writes all columns of the input beside the results, in the order of the rows."""

import csv
import io
import json

import numpy as np
import pytest

import cprime as package
from cprime.execution import results

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

TEXT = 'zip,name,a,b,"note, long"\n'


@pytest.fixture
def lines(X):
    """Return the text of a table with leading zeros, NA, quotes, umlauts, empty cells and trailing zeros."""
    rows = [
        f'0{n % 7},{"NA" if n % 5 == 0 else f"Jörg {n}"},{a:.8f},{b:.8f},"{"" if n % 3 else "x, y"}"'
        for n, (a, b) in enumerate(X.tolist())
    ]
    return TEXT + "\n".join(rows) + "\n"


@pytest.fixture(params=[180, 50])
def chunked(request, monkeypatch):
    """Return options with which data are read whole, or in chunks whose pieces are small."""
    monkeypatch.setattr(results, "CHUNK_BYTES", 1)
    monkeypatch.setattr(results, "_LEAST_ROWS", 33)
    return "--chunk-rows", request.param


def labels_of(model, X):
    estimator = package.load(model)
    vars(estimator).pop("feature_names_in_", None)
    return estimator.predict(X)


@pytest.mark.parametrize("to", ["out.csv", "out.tsv", "-"])
def test_text_is_written_as_it_is_in_the_file(to, chunked, lines, cprime, model, X, tmp_path):
    (tmp_path / "x.csv").write_text(lines)
    output = to if to == "-" else tmp_path / to
    outcome = cprime("predict", model, tmp_path / "x.csv", "--with-data", "-o", output, "-q", *chunked)
    assert outcome.code == 0, outcome.err
    text = outcome.out if to == "-" else output.read_text()
    found = list(csv.reader(io.StringIO(text), delimiter="\t" if to == "out.tsv" else ","))
    given = list(csv.reader(io.StringIO(lines)))
    assert [row[:-1] for row in found] == given
    assert [row[-1] for row in found] == ["label", *map(str, labels_of(model, X))]


def test_values_of_text_have_types_in_parquet(chunked, lines, cprime, model, X, tmp_path):
    (tmp_path / "x.csv").write_text(lines)
    out = tmp_path / "out.parquet"
    assert cprime("predict", model, tmp_path / "x.csv", "--with-data", "-o", out, "-q", *chunked).code == 0
    found = parquet.read_table(out)
    assert found.schema.names == ["zip", "name", "a", "b", "note, long", "label"]
    assert [str(kind) for kind in found.schema.types] == ["int64", "string", "double", "double", "string", "int32"]
    np.testing.assert_array_equal(np.column_stack([found["a"], found["b"]]), X)
    np.testing.assert_array_equal(found["label"], labels_of(model, X))


@pytest.fixture
def typed(X):
    """Return a table with columns of many types, of which some values are missing."""
    days = pa.array(np.arange(180), pa.int32()).cast(pa.date32())
    lists = pa.array([None if n % 9 == 0 else list(range(n % 4)) for n in range(180)])
    return pa.table(
        {
            "id": pa.array(2**60 + np.arange(180)),
            "a": X[:, 0].astype(np.float32),
            "kind": pa.array([None if n % 11 == 0 else f"k{n // 60}" for n in range(180)]).dictionary_encode(),
            "b": X[:, 1],
            "day": days,
            "at": days.cast(pa.timestamp("us", "UTC")),
            "tags": lists,
            "ok": pa.array([n % 2 == 0 for n in range(180)]),
            "price": pa.array(np.arange(180)).cast(pa.decimal128(25, 2)),
            "place": pa.array([{"lat": n, "city": {"name": f"c{n}"}} for n in range(180)]),
            "empty": pa.nulls(180),
        }
    )


STORED = {"place": ["place.lat", "place.city.name"]}  # fields of structures are columns


@pytest.mark.parametrize("source", ["x.parquet", "x.feather", "x.jsonl", "folder", "x.lance"])
@pytest.mark.parametrize("to", ["out.parquet", "out.feather"])
def test_tables_keep_every_value_of_every_type(source, to, chunked, typed, cprime, model, X, tmp_path):
    path = tmp_path / source
    if source == "folder":
        path.mkdir()
        parquet.write_table(typed.slice(0, 70), path / "0.parquet")
        parquet.write_table(typed.slice(70), path / "1.parquet")
    elif source == "x.parquet":
        parquet.write_table(typed, path, row_group_size=64)
    elif source == "x.feather":
        feather.write_feather(typed, str(path))
    elif source == "x.lance":
        typed = typed.drop_columns(["empty", "price"])
        pytest.importorskip("lance").write_dataset(typed, path)
    else:
        typed = typed.drop_columns(["day", "at", "place", "price"])
        path.write_text("".join(json.dumps(row) + "\n" for row in typed.to_pylist()))
    out = tmp_path / to
    outcome = cprime("predict", model, path, "--with-data", "--distance", "-o", out, "-q", *chunked)
    assert outcome.code == 0, outcome.err
    table = parquet.read_table(out) if to == "out.parquet" else feather.read_table(out)
    columns = [name for given in typed.schema.names for name in STORED.get(given, [given])]
    assert table.schema.names == [*columns, "label", "distance"]
    stored = [leaf for name in typed.schema.names for leaf in leaves(typed[name])]
    for name, values in zip(columns, stored, strict=True):
        assert name == "a" or table[name].to_pylist() == values.to_pylist(), name
    np.testing.assert_array_equal(np.array(table["a"]), X[:, 0])
    np.testing.assert_array_equal(np.array(table["label"]), labels_of(model, X))


def leaves(column):
    if not pa.types.is_struct(column.type):
        return [column]
    return [leaf for values in column.flatten() for leaf in leaves(values)]


def test_lists_and_structures_are_json_in_csv(typed, cprime, model, tmp_path):
    parquet.write_table(typed.drop_columns(["empty"]), tmp_path / "x.parquet")
    out = tmp_path / "out.csv"
    assert cprime("predict", model, tmp_path / "x.parquet", "--with-data", "-o", out, "-q").code == 0
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [row["id"] for row in rows] == [str(2**60 + n) for n in range(180)]
    assert (rows[0]["tags"], json.loads(rows[3]["tags"])) == ("", [0, 1, 2])
    assert (rows[3]["day"], rows[3]["price"], rows[3]["ok"]) == ("1970-01-04", "3.00", "false")
    assert rows[3]["place.city.name"] == "c3"


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.fvecs"])
def test_matrices_are_columns_of_text_and_lists_of_tables(name, chunked, cprime, model, X, tmp_path):
    rows, path = np.round(X).astype(np.float32), tmp_path / name
    if name == "x.fvecs":
        path.write_bytes(b"".join(np.int32(2).tobytes() + row.tobytes() for row in rows))
    else:
        np.save(path, rows) if name == "x.npy" else np.savez(path, X=rows)
    found = {}
    for to in ("out.csv", "out.parquet", "out.npy"):
        found[to] = tmp_path / to
        assert cprime("predict", model, path, "--with-data", "-o", found[to], "-q", *chunked).code == 0
    text = pd.read_csv(found["out.csv"])
    assert list(text) == ["0", "1", "label"]
    np.testing.assert_array_equal(text[["0", "1"]], rows)
    table, array = parquet.read_table(found["out.parquet"]), np.load(found["out.npy"])
    np.testing.assert_array_equal(np.stack(table["values"].to_numpy()), rows)
    np.testing.assert_array_equal(array["values"], rows)
    for labels in (text["label"], table["label"].to_numpy(), array["label"]):
        np.testing.assert_array_equal(labels, labels_of(model, rows))


def test_files_whose_types_differ_have_a_common_type(cprime, model, X, tmp_path):
    for part, values in enumerate((np.arange(90, dtype=np.int32), np.arange(90) / 2)):
        rows = X[part * 90 : part * 90 + 90]
        table = pa.table(
            {"n": values, "t": pa.nulls(90) if part == 0 else ["x"] * 90, "a": rows[:, 0], "b": rows[:, 1]}
        )
        parquet.write_table(table, tmp_path / f"{part}.parquet")
    out = tmp_path / "out.parquet"
    paths = tmp_path / "0.parquet", tmp_path / "1.parquet"
    assert cprime("predict", model, *paths, "--with-data", "-o", out, "-q", "--chunk-rows", 40).code == 0
    found = parquet.read_table(out)
    assert found["n"].to_pylist() == [*range(90), *(n / 2 for n in range(90))]
    assert found["t"].to_pylist() == [None] * 90 + ["x"] * 90


def test_rows_that_are_dropped_are_in_no_output(cprime, model, X, tmp_path):
    gaps = X.copy()
    gaps[[5, 100], 0] = np.nan
    table = pa.table({"who": [f"w{n}" for n in range(180)], "a": pa.array(gaps[:, 0], from_pandas=True), "b": X[:, 1]})
    parquet.write_table(table, tmp_path / "x.parquet")
    args = ("predict", model, tmp_path / "x.parquet", "--with-data", "--missing", "drop", "--chunk-rows", 40, "-q")
    assert cprime(*args, "-o", tmp_path / "o.csv", "--partition-by-cluster", tmp_path / "c").code == 0
    kept = np.delete(np.arange(180), [5, 100])
    assert pd.read_csv(tmp_path / "o.csv")["who"].tolist() == [f"w{n}" for n in kept]
    rows = pd.read_parquet(tmp_path / "c").sort_values("row")
    assert rows["row"].tolist() == kept.tolist()
    assert rows["who"].tolist() == [f"w{n}" for n in kept]


def test_a_column_with_the_name_of_a_result_can_be_left_out(cprime, fails, model, write, X, tmp_path):
    table = {"a": X[:, 0], "label": np.arange(180), "b": X[:, 1], "id": np.arange(180) + 7}
    source, out = write("x.csv", table), tmp_path / "o.csv"
    line = fails("predict", model, source, "--with-data", "-o", out)
    assert line.endswith("are both called 'label': rename that of the data, or leave it out of --with-data by --drop")
    assert cprime("predict", model, source, "--with-data", "--drop", "label", "--id", "id", "-o", out, "-q").code == 0
    found = pd.read_csv(out)
    assert list(found) == ["a", "b", "id", "label"]
    np.testing.assert_array_equal(found["label"], labels_of(model, X))


def test_columns_that_are_no_numbers_do_not_fit_in_npy(fails, model, write, X, tmp_path):
    source = write("x.csv", {"a": X[:, 0], "b": X[:, 1], "who": ["x"] * 180})
    line = fails("predict", model, source, "--with-data", "-o", tmp_path / "o.npy")
    assert "cannot hold the column 'who', which is no numbers" in line
