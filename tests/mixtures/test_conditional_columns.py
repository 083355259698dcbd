"""Conditionals accept columns by number, name or mask and rows of every type, and raise clear errors."""

import re

import numpy as np
import pandas as pd
import pytest
from conditional_data import MATRICES, MEANS, D, X, conditionals, mixture

from cprime import GaussianMixture, open_data

NAMES = ["a", "b", "c", "d"]


@pytest.mark.parametrize("columns", [[3, 1], [-1, 1], ["d", "b"], np.array([3, 1], dtype=np.int8), ("d", 1)])
def test_columns_have_names_and_numbers(columns):
    gm = mixture(names=NAMES)
    assert gm.marginal(columns).feature_names_in_.tolist() == ["d", "b"]
    assert np.array_equal(gm.marginal(columns).means_, MEANS[:, [3, 1]])
    given = gm.condition(columns, [0.5, 1.0])
    assert given.feature_names_in_.tolist() == ["a", "c"]
    np.testing.assert_allclose(given.means_, conditionals(MATRICES, np.array([[0.5, 1.0]]), [3, 1])[1][0])


def test_a_mask_or_a_single_column_chooses_columns():
    gm = mixture(names=NAMES)
    for columns in ([False, True, False, True], np.array([0, 1, 0, 1], dtype=bool)):
        assert np.array_equal(gm.marginal(columns).means_, MEANS[:, [1, 3]])
    for columns in ("c", 2, np.int64(-2)):
        assert np.array_equal(gm.marginal(columns).means_, MEANS[:, [2]])
        assert np.array_equal(gm.condition(columns, 0.5).means_, gm.condition([2], [0.5]).means_)


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ([4], ValueError, "columns must be from -4 to 3, got 4"),
        ([-5], ValueError, "columns must be from -4 to 3, got -5"),
        ([0, -4], ValueError, "columns must be distinct, got [0, -4]"),
        ([], ValueError, "columns must name at least one, got none"),
        ([False] * 4, ValueError, "columns must name at least one, got none"),
        ([True, False], ValueError, "columns as a mask must have 4 entries, one a feature, got 2"),
        (["e"], ValueError, "columns must be among 'a', 'b', 'c', 'd', got 'e'"),
        ([1.0], TypeError, "columns must be numbers, names or a mask, got 1.0"),
        ([0, True], TypeError, "columns must be numbers, names or a mask, got True"),
        (None, TypeError, "columns must be numbers, names or a mask, got None"),
        ([0, 1, 2, 3], ValueError, "columns must leave at least one of the 4 features, got all"),
    ],
)
def test_invalid_columns_are_refused(columns, error, message):
    gm = mixture(names=NAMES)
    with pytest.raises(error, match="^" + re.escape(message)):
        gm.regress(X, columns)
    if "all" not in message:
        with pytest.raises(error, match="^" + re.escape(message)):
            gm.marginal(columns)


def test_unfitted_mixtures_have_none():
    gm = GaussianMixture(2)
    for ask in (lambda: gm.marginal([0]), lambda: gm.condition([0], [0.0]), lambda: gm.regress(X, [0])):
        with pytest.raises(ValueError, match="not fitted yet"):
            ask()


WIDTH = r"(X|values) must have the given columns alone \(2: .*\) or all 4 features of the fit, got 3 columns"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda gm: gm.marginal("a"), "columns must be numbers where the data of the fit had no names, got 'a'"),
        (lambda gm: gm.condition([0, 1], [0.0]), "values must be 2, one for each of the columns, or rows of them"),
        (lambda gm: gm.condition([0], [np.nan]), "Input values contains NaN"),
        (lambda gm: gm.condition([0, 1], X[:, :3]), WIDTH),
        (lambda gm: gm.regress(X[:, :3], [0, 1]), WIDTH),
        (lambda gm: gm.regress(X[:0], [0, 1]), "X must have at least one row"),
        (lambda gm: gm.condition([0], X[:, :1]).quantile(0.5), "quantiles are of one column, and 3 are left"),
        (lambda gm: gm.condition([0, 1, 2], X[:, :3]).quantile([0.5, 1.5]), "q must be from 0 to 1"),
        (lambda gm: gm.condition([0], X[:, :1]).sample(0), "n_samples == 0, must be >= 1"),
    ],
)
def test_other_arguments_that_are_none_are_refused(ask, message):
    with pytest.raises(ValueError, match=message):
        ask(mixture())


def test_all_columns_are_a_marginal_in_another_order():
    gm, order = mixture(), [2, 0, 3, 1]
    np.testing.assert_allclose(gm.marginal(order).score_samples(X[:, order]), gm.score_samples(X))


def test_what_other_columns_hold_is_not_looked_at():
    gm, rows = mixture(), X.copy()
    rows[:, [1, 2]] = np.nan
    assert np.array_equal(gm.regress(rows, [3, 0]), gm.regress(X[:, [3, 0]], [3, 0]))


def test_arrays_files_and_sources_are_served(tmp_path):
    gm, known = mixture(), [3, 0]
    wanted, deviations = gm.regress(X, known, return_std=True)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for data in (X.tolist(), np.asfortranarray(X), tmp_path / "x.npy", str(tmp_path / "x.npy"), mapped):
        np.testing.assert_allclose(gm.regress(data, known), wanted, atol=1e-12)
        np.testing.assert_allclose(gm.condition(known, data).mean(), wanted, atol=1e-12)
    for data in (open_data(X, chunk_rows=7), open_data(X[:, known], chunk_rows=7)):
        for found, right in zip(gm.regress(data, known, return_std=True), (wanted, deviations), strict=True):
            np.testing.assert_allclose(found, right, atol=1e-12)
    np.testing.assert_allclose(gm.regress(X.astype(np.float32), known), wanted, atol=1e-5)
    chosen = open_data(np.column_stack([X[:, 2:], X]), columns=[2, 3, 0, 1])
    np.testing.assert_allclose(gm.regress(chosen, known), wanted, atol=1e-12)


def test_tables_are_taken_by_their_names():
    pandas = pytest.importorskip("pandas")
    named, nameless = mixture(names=NAMES), mixture()
    table = pandas.DataFrame(X, columns=NAMES)
    wanted = nameless.regress(X, [3, 0])
    for data in (table, table[["c", "d", "a", "b"]], table[["a", "d"]], table.assign(b=np.nan), table.assign(e=0), X):
        np.testing.assert_allclose(named.regress(data, ["d", "a"]), wanted, atol=1e-12)
    np.testing.assert_allclose(nameless.regress(table, [3, 0]), wanted, atol=1e-12)
    with pytest.raises(ValueError, match=r"^X must have the columns 'd', 'a', it lacks 'd'\."):
        named.regress(table[["a", "b"]], ["d", "a"])
    one = named.condition(["d", "a"], table.loc[3, ["d", "a"]])
    np.testing.assert_allclose(one.weights_ @ one.means_, wanted[3])


def test_columns_of_lists_are_whole_rows():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"rows": pa.array(X.tolist(), type=pa.list_(pa.float64()))})
    gm = mixture()
    for data in (table, open_data(table)):
        np.testing.assert_allclose(gm.regress(data, [3, 0]), gm.regress(X, [3, 0]), atol=1e-12)


def test_dask_collections_are_taken_by_chunks():
    da = pytest.importorskip("dask.array")
    dd, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    named, nameless, known = mixture(names=NAMES), mixture(), [3, 0]
    wanted = nameless.regress(X, known)
    rows = da.from_array(X, chunks=(13, D))
    table = dd.from_pandas(pandas.DataFrame(X, columns=NAMES), npartitions=2)
    for gm, data in ((nameless, rows), (nameless, rows[:, known]), (named, table), (named, table[["d", "a"]])):
        np.testing.assert_allclose(np.asarray(gm.regress(data, known)), wanted, atol=1e-12)
    np.testing.assert_allclose(nameless.condition(known, rows).mean(), wanted, atol=1e-12)


def test_a_dict_names_columns_and_their_values():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=["a", "b", "c"])
    gm = GaussianMixture(2, random_state=0).fit(frame)
    expected = gm.condition(["c", "a"], [0.5, -1.0])
    for given in ({"c": 0.5, "a": -1.0}, {2: 0.5, 0: -1.0}):
        found = gm.condition(given)
        np.testing.assert_array_equal(found.means_, expected.means_)
        np.testing.assert_array_equal(found.weights_, expected.weights_)
    with pytest.raises(ValueError, match="values must be left out if columns is a dict"):
        gm.condition({"a": 1.0}, [1.0])
    with pytest.raises(ValueError, match="values must be given, unless columns is a dict"):
        gm.condition(["a"])
    with pytest.raises(ValueError, match=r"given columns alone \(2: 'c', 'a'\) or all 3 features"):
        gm.regress(np.zeros((5, 1)), ["c", "a"])
