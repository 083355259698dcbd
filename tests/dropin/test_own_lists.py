"""The drop-in classes accept series and data frames whose values are lists of numbers, one list per row."""

import numpy as np
import pytest

import cprime.sklearn as dropin

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

X = (np.random.default_rng(0).normal(size=(120, 3)) + np.arange(120)[:, np.newaxis] % 4).astype(np.float32)
FIXED = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 3)
LISTS = {
    "pandas series": pd.Series(list(X)),
    "pandas table with text": pd.DataFrame({"id": [f"d{n}" for n in range(120)], "embedding": list(X)}),
    "polars series": pl.Series("embedding", X),
    "polars table": pl.DataFrame({"embedding": X}),
    "pyarrow array": FIXED,
    "pyarrow table": pa.table({"embedding": FIXED}),
}
any_lists = pytest.mark.parametrize("lists", LISTS.values(), ids=LISTS)


@any_lists
def test_lists_are_rows(lists):
    km = dropin.KMeans(4, random_state=0)
    expected = dropin.KMeans(4, random_state=0).fit(X)
    np.testing.assert_array_equal(km.fit(lists).labels_, expected.labels_)
    np.testing.assert_array_equal(km.predict(lists), expected.labels_)
    np.testing.assert_array_equal(km.transform(lists), expected.transform(X))
    assert km.score(lists) == expected.score(X)
    assert (km.n_features_in_, hasattr(km, "feature_names_in_")) == (3, False)


@pytest.mark.parametrize(
    "estimator",
    [
        dropin.MiniBatchKMeans(4, random_state=0),
        dropin.BisectingKMeans(4, random_state=0),
        dropin.GaussianMixture(2, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_every_class_takes_columns_of_lists(estimator):
    lists = LISTS["pandas series"]
    expected = estimator.fit(X).predict(X)
    np.testing.assert_array_equal(estimator.fit_predict(lists), expected)
    np.testing.assert_array_equal(estimator.predict(lists), expected)


def test_functions_take_columns_of_lists():
    lists = LISTS["pandas series"]
    np.testing.assert_array_equal(
        dropin.kmeans_plusplus(lists, 4, random_state=0)[1], dropin.kmeans_plusplus(X, 4, random_state=0)[1]
    )
    assert dropin.k_means(lists, 4, random_state=0)[2] == dropin.k_means(X, 4, random_state=0)[2]


def test_errors_name_what_is_wrong():
    with pytest.raises(ValueError, match="row 1"):
        dropin.KMeans(2).fit(pd.Series([[1.0, 2.0], [1.0], [3.0, 4.0]]))
    with pytest.raises(ValueError, match="choose it alone"):
        dropin.KMeans(2).fit(pd.DataFrame({"n": np.arange(120), "embedding": list(X)}))
