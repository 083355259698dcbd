"""Fits of Dask series and data frames whose values are lists: each list is a row."""

import numpy as np
import pytest

from cprime import KMeans, open_data
from cprime.execution.dask_collections import rows_of_lists

pd = pytest.importorskip("pandas")
dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
pa = pytest.importorskip("pyarrow")

X = (np.random.default_rng(0).normal(size=(120, 3)) + np.arange(120)[:, np.newaxis] % 4).astype(np.float32)
TABLE = pd.DataFrame({"id": [f"d{n}" for n in range(len(X))], "embedding": list(X)})


@pytest.fixture
def frame(tmp_path):
    """Return a Dask data frame of three Parquet files with a text column and a column of lists."""
    for part in range(3):
        TABLE[part * 40 : part * 40 + 40].to_parquet(tmp_path / f"{part}.parquet")
    return dd.read_parquet(tmp_path)


def on_partitions(table, n=3):
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_pandas(table, npartitions=n)


def fitted(rows, **more):
    return KMeans(4, random_state=0, search="full").fit(rows, **more)


@pytest.mark.parametrize("pick", ["embedding", ["embedding"], ["id", "embedding"]], ids=["series", "one column", "all"])
def test_lists_are_rows(pick, frame):
    km, expected = fitted(frame[pick]), fitted(open_data(X, chunk_rows=40))
    np.testing.assert_array_equal(km.cluster_centers_, expected.cluster_centers_)
    np.testing.assert_array_equal(km.predict(frame[pick]), km.predict(X))
    assert km.cluster_centers_.dtype == np.float32
    assert not hasattr(km, "feature_names_in_")


def test_lists_on_a_cluster_are_rows(frame, client):
    labels = fitted(frame["embedding"], sample_weight=np.ones(len(X))).labels_
    assert labels.shape == (120,)
    assert len(np.unique(labels.compute())) == 4


def test_empty_partitions_have_no_rows():
    frame = on_partitions(TABLE)
    some = frame[frame["id"] != "d0"]
    assert fitted(some).labels_.shape == (119,)
    none_in_the_first = frame[frame["id"].isin(TABLE["id"][50:])]
    assert fitted(none_in_the_first).labels_.shape == (70,)


def test_partitions_of_other_lists_are_refused():
    for other in (X[80:, :2], X[80:].astype(np.float64)):
        frame = on_partitions(pd.DataFrame({"e": [*X[:80], *other]}))
        with pytest.raises(ValueError, match=r"lists of 3 numbers of float32, as in its first row, got .* lists of"):
            fitted(frame)


def test_lists_of_bytes_stay_so():
    stored = np.clip(30 * X + 100, 0, 255).astype(np.uint8)
    frame = on_partitions(pd.DataFrame({"e": list(stored)}))
    assert rows_of_lists(frame).dtype == np.uint8
    found, expected = fitted(frame), fitted(open_data(stored.astype(np.float32), chunk_rows=40))
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_, strict=True)


def test_text_that_was_lists_is_named():
    with dask.config.set({"dataframe.convert-string": True}):
        frame = dd.from_pandas(TABLE, npartitions=2)
    with pytest.raises(ValueError, match=r"column 'embedding' is text .*convert-string"):
        fitted(frame)
    with pytest.raises(ValueError, match="column 'embedding' is text"):
        fitted(frame["embedding"])


def test_other_text_is_no_data():
    with pytest.raises(ValueError, match=r"X: column .id. is not numeric.*choose numeric columns with X\[\[...\]\]"):
        fitted(on_partitions(TABLE[["id"]]))
