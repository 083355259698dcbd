"""The rule that compares results with published values, the list of entries, and data read from files."""

import numpy as np
import pytest
from reproduction.base import TOO_FEW, compare, margins, standard_error

from reproduction import ENTRIES, Missing, data, entry


@pytest.mark.parametrize("name", ENTRIES)
def test_every_name_has_an_entry_that_bears_it(name):
    item = entry(name)
    assert item.name == name
    assert item.runs >= 1
    assert item.title
    assert item.source
    assert callable(item.compute)
    assert callable(item.draw)


def test_an_unknown_name_is_an_error_that_lists_the_known():
    with pytest.raises(ValueError, match=r"no table or figure 'table-9'.*sublinear-table-2"):
        entry("table-9")


def test_a_result_bears_the_name_and_source_of_its_entry():
    item = entry("sublinear-figure-3")
    result = item.result(3, [], {"a": 1}, ["b: missing"])
    assert (result.name, result.title, result.source) == (item.name, item.title, item.source)
    assert (result.runs, result.rows, result.data, result.skipped) == (3, [], {"a": 1}, ["b: missing"])


def test_standard_error_of_the_mean(rng):
    values = rng.standard_normal(50)
    assert standard_error(values) == pytest.approx(np.std(values, ddof=1) / 50**0.5)
    assert standard_error([3.0]) is None


def test_two_means_of_the_same_distribution_differ_in_1_of_20_cases(rng):
    met = [compare("", rng.standard_normal(5).mean(), rng.standard_normal(8).tolist(), 5).met for _ in range(2000)]
    assert 0.03 < np.mean([value is False for value in met]) < 0.07
    assert np.mean([value is True for value in met]) > 0.87


def test_means_far_apart_do_not_agree():
    row = compare("x", 19.0, [1.0, 2.0, 3.0], 5, note="a note", why="a reason")
    assert row == ("x", 19.0, 2.0, pytest.approx(3**-0.5), False, "a note", "a reason", False)
    row = compare("x", 3.0, [1.0, 2.0, 3.0], 5, note="a note", why="a reason")
    assert (row.met, row.note, row.why) == (True, "a note", "")


def test_between_agreeing_and_differing_more_runs_are_needed():
    row = compare("x", 4.0, [1.0, 2.0, 3.0], 5, note="a note")
    assert (row.met, row.note) == (None, f"{TOO_FEW}; a note")


@pytest.mark.parametrize("source", [1, 5, 100])
def test_fewer_runs_never_make_agreement_easier(source, rng):
    values = rng.standard_normal(2000)
    values = (values - values.mean()) / values.std()
    limit = 1.96 * np.sqrt(2 / source)
    for n in (1, 2, 3, 5, 20, 2000):
        some = values[:n] / (np.std(values[:n], ddof=1) if n > 1 else 1.0)
        agreeing, differing = margins(some.tolist(), source)
        assert agreeing <= min(limit + 1e-3, differing)
        if n < 3:
            assert (agreeing, differing) == (0, np.inf)


def test_one_or_two_runs_are_judged_by_the_tolerance_alone():
    for values in ([1.4], [0.4, 2.4]):
        assert compare("x", 1.0, values, 5).met is None
        assert compare("x", 1.0, values, 5, tolerance=0.5).met is True
        assert compare("x", 1.0, values, 5, tolerance=0.3).met is None
    assert compare("error of two runs", 101.8, [116.55, 120.54], 5, tolerance=0.5).met is None


def test_nothing_published_is_not_judged():
    assert compare("x", None, [1.0, 2.0], 5) == ("x", None, 1.5, 0.5, None, "", "", False)


def test_data_are_read_from_the_folder_that_is_named(tmp_path, monkeypatch):
    X = np.arange(6).reshape(3, 2)
    np.savez(tmp_path / "kddcup04_protein.npz", X=X)
    monkeypatch.setenv("CPRIME_DATA", str(tmp_path))
    data.load.cache_clear()
    loaded = data.load("KDD")
    data.load.cache_clear()
    assert loaded.dtype == np.float32
    np.testing.assert_array_equal(loaded, X)


def test_kdd_is_read_from_the_file_of_the_cup_if_the_folder_has_it(tmp_path, monkeypatch, rng):
    rows = np.column_stack([[261532, 279, 5], [7, 8, 9], [0, 1, 0], rng.standard_normal((3, 74)).round(2)])
    (tmp_path / "bio_train.dat").write_text("\n".join("\t".join(f"{value:g}" for value in row) for row in rows))
    np.savez(tmp_path / "kddcup04_protein.npz", X=np.zeros((2, 74)))
    monkeypatch.setenv("CPRIME_DATA", str(tmp_path))
    data.load.cache_clear()
    loaded = data.load("KDD")
    data.load.cache_clear()
    assert loaded.dtype == np.float32
    np.testing.assert_allclose(loaded, rows[:, 3:], rtol=1e-6)


def test_missing_data_say_which_file_is_needed(tmp_path, monkeypatch):
    monkeypatch.setenv("CPRIME_DATA", str(tmp_path))
    data.load.cache_clear()
    with pytest.raises(Missing, match=r"MSD needs the file .*msd_sample\.npz or YearPredictionMSD\.txt.*CPRIME_DATA"):
        data.load("MSD")
