"""Data in chunks: many clusters and all types, chunks of any size, and the active sets stored with chunks."""

from contextlib import nullcontext

import numpy as np
import pytest
from execution_data import C, clustered, kmeans

from cprime.execution import Local
from cprime.execution.block import ActiveSet, Chunk
from cprime.search import Bounded, Full, Graph
from cprime.sources import open_data
from fits import random_weights as random_weights_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:The fit did not converge"),
    pytest.mark.filterwarnings("ignore:Number of distinct clusters"),
    pytest.mark.filterwarnings("ignore::cprime.SearchQualityWarning"),
]

N, D, ROWS = 550, 3, 200
weighted_or_not = pytest.mark.parametrize("weighted", [False, True])


def weights_of(weighted, n=N):
    return random_weights_of(n) if weighted else None


def start_of(X, estimator):
    """Return the same estimator with the first C rows as initialization."""
    name = "init" if hasattr(estimator, "init") else "init_params"
    return estimator.set_params(**{name: X[:C].copy()})


@pytest.mark.parametrize("rows", [1, 7, 199, 549, 550, 5000])
@pytest.mark.parametrize("search", [Full(), Bounded(), Graph(6)], ids=repr)
def test_whole_fits_agree_however_the_rows_are_cut(search, rows):
    """Whole fits agree for every chunk size if clusters are well separated, so that rounding changes no assignment."""
    X = clustered(N, D, n_clusters=C, spread=40.0)
    whole = start_of(X, kmeans(search)).fit(X)
    parts = start_of(X, kmeans(search)).fit(open_data(X, chunk_rows=rows))
    np.testing.assert_array_equal(parts.labels_, whole.labels_)
    np.testing.assert_allclose(parts.cluster_centers_, whole.cluster_centers_, rtol=0, atol=1e-9)
    assert parts.n_iter_ == whole.n_iter_


@weighted_or_not
def test_empty_clusters_are_put_on_points_of_any_chunk(weighted):
    X, weight = clustered(N, D), weights_of(weighted)
    start = np.concatenate([X[: C - 5], 1e4 + X[:5]])
    whole, parts = (
        kmeans(Full(), init=start).fit(data, sample_weight=weight) for data in (X, open_data(X, chunk_rows=ROWS))
    )
    assert parts.n_relocated_ == whole.n_relocated_ >= 5
    np.testing.assert_allclose(parts.cluster_centers_, whole.cluster_centers_, rtol=0, atol=1e-9)


def placed(rows, weight=None):
    """Return X, and data whose points have the active set {row modulo 5} with the row number as cost."""
    X = np.arange(2.0 * N).reshape(N, 2)
    data = Local(open_data(X, chunk_rows=rows).with_weights(weight))
    data.each(Modulo())
    data.commit()
    return X, data


class Modulo:
    """Pass in which the active set of every point is its row number modulo n."""

    reads = keeps = True

    def __init__(self, n=5):
        self.n = n

    def __call__(self, block, kept):
        rows = block.rows(np.arange(len(block)))
        np.testing.assert_array_equal(block.X.given()[:, 0], 2.0 * rows)
        return ActiveSet((rows % self.n).astype(np.int32)[:, np.newaxis], rows.astype(float)[:, np.newaxis]), len(block)


@pytest.mark.parametrize("rows", [300, N])
@pytest.mark.parametrize("spilled", [False, True])
def test_what_points_keep_stays_with_them(rows, spilled, tmp_path):
    weight = random_weights_of(N)
    X, data = placed(rows, weight)
    with data.spilled(tmp_path) if spilled else nullcontext():
        check_what_points_keep(X, weight, data)
    assert data.placed is False


def check_what_points_keep(X, weight, data):
    expected = np.arange(N) % 5
    asked = np.random.default_rng(0).permutation(N)[:50]
    for regrouped in (False, True):
        if regrouped:
            data.regroup(5)
        np.testing.assert_array_equal(data.labels(), expected)
        taken = data.take(asked)
        np.testing.assert_array_equal(taken.X.given(), X[asked])
        np.testing.assert_array_equal(taken.sample_weight, weight[asked])
        np.testing.assert_array_equal(taken.kept.winners, asked % 5)
        np.testing.assert_array_equal(taken.kept.costs[:, 0], asked)
    data.each(Modulo(3))
    np.testing.assert_array_equal(data.labels(), np.arange(N) % 3)
    data.rollback()
    np.testing.assert_array_equal(data.labels(), expected)
    data.edit(asked, np.full(50, 7, dtype=np.int32))
    expected[asked] = 7
    np.testing.assert_array_equal(data.labels(), expected)
    np.testing.assert_array_equal(data.take(asked).kept.costs, np.zeros((50, 1)))
    data.begin(keep=True)
    np.testing.assert_array_equal(data.labels(), expected)
    assert data.take(asked).kept.costs is None
    data.begin(keep=False)
    assert data.labels() is None
    assert not data.placed
    assert data.take(asked).kept is None


def test_points_that_are_regrouped_again_keep_what_they_kept():
    ids = np.random.default_rng(0).integers(9, size=(50, 1)).astype(np.int32)
    once, _ = Chunk(ActiveSet(ids, np.arange(50.0)[:, np.newaxis])).regrouped(9)
    turned = Chunk(ActiveSet(8 - once.kept.ids, once.kept.costs), once.order)  # best components in another order
    twice, _ = turned.regrouped(9)
    np.testing.assert_array_equal(twice.labels(), 8 - ids[:, 0])
    np.testing.assert_array_equal(twice.kept.costs[:, 0], twice.order)
    assert (np.diff(twice.kept.winners) >= 0).all()


@pytest.mark.parametrize("rows", [200, N])
def test_files_are_looked_at_again_after_predictions(rows, tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", clustered(N, D))
    source = open_data(tmp_path / "X.npy", chunk_rows=rows)
    looked = []
    monkeypatch.setattr(source, "verify", lambda: looked.append(1))
    Local(source).map(lambda X: X.normalized()[1], None, np.float64)
    assert len(looked) == 2
