"""Fits of the same chunks are bit-identical in memory, from a file, and on the workers of a Dask cluster."""

import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest
from dask_data import CHUNK, FITS, in_memory, k_means, mixture, on_dask
from sklearn.base import clone

from cprime import KMeans, Memory, ResidualKMeans, open_data
from cprime.execution import dask_tasks as tasks
from cprime.execution.dask_collections import collected
from fits import assert_same, clustered, random_weights
from marks import long_but

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
USUAL = ("k-means, graph", "k-means, bounded", "mixture, full covariances", "mixture, drawn", "soft k-means")


@pytest.mark.parametrize(
    ("name", "weighted"),
    long_but(USUAL, [(name, i % 2 == 0) for i, name in enumerate(FITS)], mark=pytest.mark.rare),
)
def test_chunks_give_the_same_bits_wherever_they_are(name, weighted, client, tmp_path):
    X, estimator = clustered(), FITS[name]
    weights = random_weights(len(X)) if weighted else None
    np.save(tmp_path / "X.npy", X)
    expected = clone(estimator).fit(in_memory(X), sample_weight=weights)
    streamed = clone(estimator).fit(open_data(tmp_path / "X.npy", chunk_rows=CHUNK), sample_weight=weights)
    found = clone(estimator).fit(on_dask(X), sample_weight=weights)
    assert isinstance(found.labels_, da.Array)
    assert found.labels_.dtype == np.int32
    assert_same(streamed, expected)
    assert_same(found, expected)


@pytest.mark.parametrize("name", ["k-means, bounded", "mixture, full covariances"])
@pytest.mark.long
def test_many_chunks_in_single_precision_are_the_fit_in_memory(name, client):
    X = clustered(1000, dtype=np.float32)
    expected, found = clone(FITS[name]).fit(in_memory(X, 25)), clone(FITS[name]).fit(on_dask(X, 25))
    assert_same(found, expected)


@pytest.mark.parametrize("workers", [False, pytest.param(True, marks=pytest.mark.long)], ids=["here", "on workers"])
@pytest.mark.parametrize("dtype", [np.uint8, np.float16], ids=["uint8", "float16"])
def test_narrow_rows_have_the_bits_of_the_wider_type(dtype, workers, request):
    X = np.clip(40 + 20 * clustered(), 1, 255).astype(dtype)
    if workers:
        request.getfixturevalue("client")
    for name in ("k-means, graph", "k-means, cosine"):
        expected, found = clone(FITS[name]).fit(in_memory(X.astype(np.float32))), clone(FITS[name]).fit(on_dask(X))
        assert_same(found, expected)
        labels = expected.predict(X.astype(np.float32))
        np.testing.assert_array_equal(found.predict(on_dask(X)), labels)


def test_narrow_rows_stay_so():
    """Rows keep their narrow type on workers and in data collected from them."""
    X = np.clip(40 + 20 * clustered(), 0, 255).astype(np.uint8)
    (block,) = tasks.made([X], None, 0, tasks.Reading(np.dtype(np.float32)))
    assert block.X.array is X
    assert block.X.dtype == np.float32
    source = collected(on_dask(X), None, None, None).source
    assert source.stored == np.uint8
    assert source.dtype == np.float32


@pytest.mark.parametrize("light", [0, 2**20])
@pytest.mark.parametrize("n_chunks", long_but([3], [1, 3, 7, 21]))
def test_groups_of_chunks_are_merged_in_the_same_pairs(n_chunks, light, client, monkeypatch):
    monkeypatch.setattr("cprime.execution.distributed._LIGHT", light)
    X = clustered(n_chunks * 20)
    estimator = k_means(search="full", init=X[:6], max_iter=3)
    assert_same(clone(estimator).fit(on_dask(X, 20)), clone(estimator).fit(in_memory(X, 20)))


@pytest.mark.parametrize("name", ["k-means, graph", "mixture, drawn"])
@pytest.mark.long
def test_parts_are_merged_by_tasks_and_jobs_are_tasks(name, client, monkeypatch):
    for option, value in (("_LIGHT", 0), ("_FAN_IN", 2), ("_SENT", 0), ("_GROUPS_A_THREAD", 32)):
        monkeypatch.setattr(f"cprime.execution.distributed.{option}", value)
    X = clustered(220)
    few = {"max_iter": 2}
    assert_same(
        clone(FITS[name]).set_params(**few).fit(on_dask(X, 20)),
        clone(FITS[name]).set_params(**few).fit(in_memory(X, 20)),
    )


@pytest.mark.parametrize("cut", [1, 3])
@pytest.mark.parametrize("name", long_but(["k-means, bounded"], ["k-means, bounded", "mixture, graph"]))
def test_what_points_keep_may_come_from_files(name, cut, client, monkeypatch):
    monkeypatch.setattr("cprime.execution.distributed._CUT", cut)
    X = clustered()
    assert_same(clone(FITS[name]).fit(on_dask(X)), clone(FITS[name]).fit(in_memory(X)))


def test_a_full_disk_on_the_workers_costs_no_fit(client, monkeypatch):
    warned = []
    monkeypatch.setattr("cprime.execution.distributed._CUT", 2)
    monkeypatch.setattr("cprime.execution.dask_tasks.written", _no_space)
    monkeypatch.setattr("cprime.execution.distributed.logger.warning", lambda *args: warned.append(args[0] % args[1:]))
    X = clustered()
    assert_same(k_means().fit(on_dask(X)), k_means().fit(in_memory(X)))
    assert len(warned) == 1
    assert "No space left" in warned[0]


def test_no_folder_of_this_machine_has_what_workers_keep(client, tmp_path):
    with pytest.raises(ValueError, match=f"spill='{tmp_path}' must be None for Dask collections on a cluster"):
        k_means(max_memory=Memory(spill=tmp_path)).fit(on_dask(clustered()))
    found = k_means(checkpoint=tmp_path / "run").fit(on_dask(clustered()))
    assert found.max_memory is None


def _no_space(held, path):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("regroup", [None, True])
@pytest.mark.long
def test_exchange_and_regrouping_are_the_fit_in_memory(regroup, client):
    from cprime.search import Graph

    X = clustered(900, 8, n_clusters=30)
    estimator = KMeans(30, search=Graph(5, regroup=regroup), jumps=True, random_state=0, init="two-level", max_iter=8)
    assert_same(clone(estimator).fit(on_dask(X)), clone(estimator).fit(in_memory(X)))


def test_empty_clusters_are_relocated(client):
    X = clustered()
    estimator = k_means(init=np.vstack([X[:4], np.full((2, 3), 1e3)]))
    found, expected = clone(estimator).fit(on_dask(X)), clone(estimator).fit(in_memory(X))
    assert expected.n_relocated_ > 0
    assert_same(found, expected)


@pytest.mark.long
def test_several_starts_are_the_fit_in_memory(client):
    X = clustered()
    for estimator in (k_means(n_init=3, init="random"), mixture(n_init=2)):
        assert_same(clone(estimator).fit(on_dask(X)), clone(estimator).fit(in_memory(X)))


SHAPES = {
    "uneven": (7, 200, 1, 150, 142),
    "one huge": (3, 490, 7),
    "empty": (0, 90, 0, 0, 300, 110, 0),
    "one": (500,),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("chunks", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.long
def test_chunks_of_any_sizes_are_the_same_with_and_without_a_cluster(chunks, weighted, cluster):
    X = clustered()
    given, weights = on_dask(X, chunks), random_weights(len(X)) if weighted else None
    expected = k_means(search="graph").fit(given, sample_weight=weights)
    with distributed.Client(cluster):
        assert_same(k_means(search="graph").fit(given, sample_weight=weights), expected)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.long
def test_chunks_of_unknown_sizes_are_measured(weighted, client):
    X, weights = clustered(), random_weights(500)
    mask = X[:, 0] > 0
    given = on_dask(X)
    sizes = tuple(int(mask[begin : begin + CHUNK].sum()) for begin in range(0, len(X), CHUNK))
    arguments = {"sample_weight": da.from_array(weights, chunks=CHUNK)[given[:, 0] > 0]} if weighted else {}
    found = k_means().fit(given[given[:, 0] > 0], **arguments)
    expected = k_means().fit(on_dask(X[mask], sizes), sample_weight=weights[mask] if weighted else None)
    assert_same(found, expected)


@pytest.mark.long
def test_chunks_of_columns_are_joined(client):
    X = clustered(D=5)
    assert_same(k_means().fit(da.from_array(X, chunks=(CHUNK, 2))), k_means().fit(in_memory(X)))


@pytest.mark.parametrize("dtype", [np.int32, ">f8"])
def test_other_numbers_become_doubles(dtype, client):
    X = clustered().astype(dtype)
    expected = k_means().fit(in_memory(X.astype(np.float64)))
    assert_same(k_means().fit(on_dask(X)), expected)


@pytest.mark.parametrize("kind", ["NumPy", "other chunks", "series"])
@pytest.mark.long
def test_weights_of_every_kind_are_taken(kind, client):
    X, weights = clustered(), random_weights(500)
    given = {
        "NumPy": lambda: weights,
        "Dask": lambda: da.from_array(weights, chunks=CHUNK),
        "other chunks": lambda: da.from_array(weights, chunks=77),
        "series": lambda: dd.from_pandas(pd.Series(weights), npartitions=3),
    }[kind]()
    assert_same(k_means().fit(on_dask(X), sample_weight=given), k_means().fit(in_memory(X), sample_weight=weights))


@pytest.mark.parametrize("weights", ["negative", "nan", "zeros", "short"])
def test_weights_that_are_none_are_refused(weights, client):
    X = clustered()
    given = {"negative": -np.ones(500), "nan": np.full(500, np.nan), "zeros": np.zeros(500), "short": np.ones(499)}
    with pytest.raises(ValueError, match="sample_weight"):
        k_means().fit(on_dask(X), sample_weight=given[weights])
    bad = np.ones(500)
    bad[123] = -1
    with pytest.raises(ValueError, match="sample_weight"):
        k_means().fit(on_dask(X), sample_weight=bad)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_row_that_is_not_finite_is_named(value, client):
    X = clustered()
    X[321, 1] = value
    with pytest.raises(ValueError, match=f"X: row 321, column 1: {value}; "):
        k_means().fit(on_dask(X))
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b", "c"]), npartitions=4)
    with pytest.raises(ValueError, match=f"X: row 321, column 'b': {value}; "):
        k_means().fit(frame)


def test_a_dataframe_has_names(client):
    X = clustered()
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    found = k_means().fit(dd.from_pandas(table, npartitions=4))
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]
    mixed = dd.from_pandas(table[["c", "a", "b"]], npartitions=2)
    np.testing.assert_array_equal(found.predict(mixed).compute(), found.predict(table))
    del found.feature_names_in_
    chunks = tuple(int(n) for n in dd.from_pandas(table, npartitions=4).map_partitions(len).compute())
    assert_same(found, k_means().fit(on_dask(X, chunks)))


def test_text_and_wrong_shapes_are_refused(client):
    with pytest.raises(ValueError, match="must hold numbers"):
        k_means().fit(da.from_array(np.array([["a", "b"]] * 9), chunks=3))
    for given in (da.zeros(9), da.zeros((3, 3, 3)), da.zeros((0, 3)), da.zeros((3, 0))):
        with pytest.raises(ValueError, match="rows and columns"):
            k_means().fit(given)
    with pytest.raises(ValueError, match="n_samples=5 should be >= n_clusters=6"):
        k_means().fit(da.zeros((5, 2)))


def test_starts_that_need_all_rows_at_once_say_so(client):
    with pytest.raises(ValueError, match="one chunk in memory"):
        k_means(init="k-means++").fit(on_dask(clustered()))


@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.long), True])
def test_residuals_are_computed_on_the_workers(weighted, client):
    X, weights = clustered(), random_weights(500) if weighted else None
    estimator = ResidualKMeans(6, 3, init="two-level", random_state=2, n_threads=1)
    expected, found = (clone(estimator).fit(rows, sample_weight=weights) for rows in (in_memory(X), on_dask(X)))
    np.testing.assert_array_equal(found.codebooks_, expected.codebooks_)
    assert found.errors_.tolist() == expected.errors_.tolist()
    assert isinstance(found.codes_, da.Array)
    assert found.codes_.dtype == np.uint8
    np.testing.assert_array_equal(found.codes_, expected.codes_)
    np.testing.assert_array_equal(found.encode(on_dask(X)), expected.encode(X))
    assert found.score(on_dask(X)) == expected.score(in_memory(X))
    with pytest.raises(ValueError, match="they are not bounded for Dask collections"):
        clone(estimator).set_params(size_max="1.5x").fit(on_dask(X))
