"""The first line of a .csv file holds names (possibly numbers) or data; also columns before the first name."""

import logging

import numpy as np
import pytest

from cprime.sources import open_data
from cprime.sources.header import is_header

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

YEARS = [2019, 2020, 2021]
NAMES = {  # numbers as names of columns, above floats and above integers from 0 to 999
    "years": YEARS,
    "two years": [2019, 2020],
    "years with gaps": [1990, 2000, 2010, 2015],
    "counted": range(5),
    "two counted": range(2),
    "from one on": range(1, 7),
    "wavelengths": np.arange(400, 420, 2.5),
}


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a frame and returns its path."""

    def write(values, names=None, **options):
        frame = pd.DataFrame(values, columns=None if names is None else list(names))
        frame.to_csv(tmp_path / "x.csv", **{"index": False, **options})
        return tmp_path / "x.csv"

    return write


def values_of(kind, n, D, rng):
    return rng.normal(size=(n, D)) if kind == "floats" else rng.integers(0, 1000, size=(n, D))


@pytest.mark.parametrize("kind", ["floats", "whole"])
@pytest.mark.parametrize("names", NAMES)
def test_numbers_that_are_names_are_no_row(names, kind, written, rng, caplog):
    names = NAMES[names]
    X = values_of(kind, 150, len(names), rng)
    with caplog.at_level(logging.INFO, logger="cprime"):
        source = open_data(written(X, names))
    assert source.columns == [str(name) for name in names]
    np.testing.assert_allclose(source.read(0, source.n_rows), X, rtol=1e-12)
    assert ("the first line has the names of its columns" in caplog.text) == (names[0] != 0)


@pytest.mark.parametrize("n", [2, 9, 150])
def test_years_above_small_numbers_are_names(n, written, rng):
    X = np.vstack([np.arange(6).reshape(2, 3)[:, ::-1], rng.integers(0, 10, size=(n - 2, 3))])
    assert open_data(written(X, YEARS)).columns == ["2019", "2020", "2021"]


@pytest.mark.parametrize("D", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("kind", ["floats", "whole", "rounded", "rising rows", "rising columns", "years"])
def test_a_row_of_numbers_is_no_header(kind, D, written, rng, caplog):
    X = values_of("whole" if kind == "whole" else "floats", 150, D, rng)
    if kind == "rounded":
        X = X.round(1)
    elif kind.startswith("rising"):
        X = np.sort(X, axis=1 if kind == "rising rows" else 0)
    elif kind == "years":
        X = 1950 + np.sort(rng.integers(0, 70, size=(150, D)), axis=1)
    with caplog.at_level(logging.INFO, logger="cprime"):
        source = open_data(written(X, header=False))
    np.testing.assert_allclose(source.read(0, source.n_rows), X, rtol=1e-12)
    assert "has no header: its columns are called" in caplog.text


@pytest.mark.parametrize("D", [1, 2, 3, 5])
@pytest.mark.parametrize("values", ["0.25", "whole"])
def test_rows_of_numbers_are_rarely_taken_for_names(values, D, rng):
    found = []
    for _ in range(300):
        rows = (rng.integers(0, 40, size=(60, D)) * (0.25 if values == "0.25" else 1)).astype(str).tolist()
        found.append(is_header(rows[0], rows[1:]))
    assert found.count(True) <= 1
    assert found.count(None) <= (6 if D > 1 or values == "0.25" else 15)  # 1 of 40 single columns begins with a 0


@pytest.mark.parametrize(
    "lines",
    [
        ["0,1", "1,0", "0,1", "1,1"],  # a row of data or names
        ["0,1,2", "3,4,5", "6,7,8"],
        ["0", "1", "0", "2"],
        ["2019,2020", "2500,1", "700,5000", "3,8"],
    ],
)
def test_what_cannot_be_told_is_refused(lines, tmp_path):
    (tmp_path / "x.csv").write_text("\n".join(lines))
    message = (
        rf"x\.csv: the first line may be names of columns or a row of numbers, got '{lines[0]}': say which with he"
    )
    with pytest.raises(ValueError, match=message):
        open_data(tmp_path / "x.csv")
    assert open_data(tmp_path / "x.csv", header=True).n_rows == len(lines) - 1
    assert open_data(tmp_path / "x.csv", header=False).n_rows == len(lines)


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        (["1,,3", "4,5,6"], ["0", "1", "2"]),  # a missing value cannot be a name
        (["1.5,NA,3", "4,5,6"], ["0", "1", "2"]),
        ([",2.5,3", "4,5.5,6"], ["0", "1", "2"]),
        ([",7,3", "0,5,6", "1,8,9", "2,8,9"], ["7", "3"]),  # a counting index
        ([",7,3", "north,5,6", "south,8,9"], ["7", "3"]),
        (['"7","3"', "5,6", "8,9"], ["7", "3"]),  # written by R
        (["2019;2020", "1,5;2,5", "0,5;3,5"], ["2019", "2020"]),
    ],
)
def test_other_signs_of_names_and_rows(lines, columns, tmp_path):
    (tmp_path / "x.csv").write_text("\n".join(lines))
    source = open_data(tmp_path / "x.csv")
    assert source.columns == columns
    assert source.n_rows == len(lines) - (columns[0] != "0")


def test_columns_before_the_first_name_are_the_index(written, rng, caplog):
    X = rng.normal(size=(20, 2))
    frame = pd.DataFrame(X, columns=["a", "b"], index=[f"star {i}" for i in range(20)])
    path = written(frame, index=True)
    with caplog.at_level(logging.INFO, logger="cprime"):
        source = open_data(path)
    assert source.columns == ["a", "b"]
    np.testing.assert_allclose(source.read(0, 20), X, rtol=1e-12)
    assert "column 'Unnamed: 0' is the index and is left out of the data" in caplog.text
    assert source.as_stored(["Unnamed: 0"]).read_stored(3, 5)["Unnamed: 0"].to_pylist() == ["star 3", "star 4"]
    frame.index = pd.MultiIndex.from_product([range(5), range(4)])
    path = written(frame, index=True)
    assert open_data(path).columns == ["a", "b"]
    chosen = open_data(path, columns=["Unnamed: 1", "a"])
    np.testing.assert_array_equal(chosen.read(0, 20)[:, 0], np.tile(np.arange(4), 5))
    again = pd.read_csv(written(frame.reset_index(drop=True), index=True))
    again.to_csv(path)  # writes its own index beside the old one
    assert open_data(path).columns == ["Unnamed: 0", "a", "b"]
    assert open_data(path)._names == ("Unnamed: 0.1", "Unnamed: 0", "a", "b")


def test_years_are_names_beside_an_index(written, rng):
    X = rng.integers(0, 9, size=(20, 3))
    assert open_data(written(X, YEARS, index=True)).columns == ["2019", "2020", "2021"]
