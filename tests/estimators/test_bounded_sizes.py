"""k-means with bounded sizes: bounds are hard, the assignment is the cheapest, J falls, and bad bounds are named."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.base import clone

import cprime
from cprime import KMeans, open_data


def groups(n, D=3, C=6, seed=0):
    """Return groups of very different sizes, (n, D)."""
    rng = np.random.default_rng(seed)
    return 5 * rng.normal(size=(C, D))[rng.choice(C, n, p=rng.dirichlet(np.full(C, 0.7)))] + rng.normal(size=(n, D))


def sizes(labels, C):
    return np.bincount(labels, minlength=C)


BOTH = {"size_max": "1.5x", "size_min": "0.5x"}


@pytest.mark.parametrize(("n", "C"), [(60, 5), (12, 3)])
def test_tiny_fits_agree_with_the_assignment_problem(n, C):
    """Labels of equal sizes are those of `linear_sum_assignment` for the final centers, within 0.1 % of J."""
    X = groups(n)
    km = KMeans(C, size_min=n // C, size_max=n // C, random_state=0).fit(X)
    slots = np.repeat(cdist(X, km.cluster_centers_, "sqeuclidean"), n // C, axis=1)
    rows, columns = linear_sum_assignment(slots)
    assert (sizes(km.labels_, C) == n // C).all()
    assert km.inertia_ <= 1.001 * slots[rows, columns].sum()


@pytest.mark.parametrize(("search", "metric"), [("full", "euclidean"), ("full", "cosine"), ("graph", "euclidean")])
@pytest.mark.parametrize(("n", "C"), [(200, 7), (1800, 40)])
@pytest.mark.parametrize("bounds", [{"size_max": "1.2x"}, {"size_min": "0.8x"}, BOTH], ids=str)
def test_bounds_are_hard(search, metric, n, C, bounds):
    X = groups(n, D=5).astype(np.float32)
    free = KMeans(C, search=search, metric=metric, random_state=0).fit(X)
    km = clone(free).set_params(**bounds).fit(X)
    found = sizes(km.labels_, C)
    high = int(np.ceil(float(bounds.get("size_max", "inf x")[:-1]) * n / C)) if "size_max" in bounds else n
    low = int(float(bounds["size_min"][:-1]) * n / C) if "size_min" in bounds else 0
    assert low <= found.min()
    assert found.max() <= high
    rows = X / np.linalg.norm(X, axis=1, keepdims=True) if metric == "cosine" else X
    squared = np.square(rows.astype(float) - km.cluster_centers_[km.labels_]).sum()
    assert km.inertia_ == pytest.approx(squared, rel=1e-4)
    assert km.n_displaced_ == np.count_nonzero(km.predict(X) != km.labels_)
    assert km.size_cost_ == pytest.approx(km.inertia_ / -km.score(X) - 1, abs=1e-4)
    assert km.counts_.tolist() == found.tolist()
    assert not hasattr(free.fit(X), "n_displaced_")


def test_bounds_hold_for_chunks_weights_and_sparse_rows(tmp_path):
    X, w = groups(900).astype(np.float32), np.random.default_rng(1).integers(0, 3, 900)
    np.save(tmp_path / "X.npy", X)
    given = {"size_max": "1.1x", "random_state": 0, "init": X[:9], "tol": 0}
    whole = KMeans(9, **given).fit(X, sample_weight=w)
    most = 1.1 * w.sum() / 9
    assert whole.counts_.max() <= most
    assert (whole.labels_[w == 0] == whole.predict(X[w == 0])).all()
    assert whole.counts_.sum() == w.sum()
    chunked = KMeans(9, **given).fit(open_data(tmp_path / "X.npy", chunk_rows=100), sample_weight=w)
    assert chunked.counts_.max() <= most
    assert chunked.inertia_ == pytest.approx(whole.inertia_, rel=0.02)
    sparse = KMeans(9, **given).fit(csr_array(np.where(np.abs(X) > 1, X, 0)))
    assert sizes(sparse.labels_, 9).max() <= 110
    threads = [KMeans(9, n_threads=n, **given).fit(X).cluster_centers_.tobytes() for n in (1, 4)]
    assert threads[0] == threads[1]


@pytest.mark.parametrize("n", [900, pytest.param(15_000, marks=pytest.mark.long)])
def test_bounds_hold_for_chunks_without_given_centers(n):
    """Data in chunks have no other starts than the fit without bounds, for small and for larger problems."""
    X = groups(n).astype(np.float32)
    whole, chunked = (
        KMeans(5, size_max="1.1x", random_state=0).fit(data) for data in (X, open_data(X, chunk_rows=n // 4))
    )
    assert sizes(chunked.labels_, 5).max() <= np.ceil(1.1 * n / 5)
    assert chunked.inertia_ == pytest.approx(whole.inertia_, rel=0.1)


@pytest.mark.long
def test_runs_from_given_centers_are_neither_shortened_nor_continued(monkeypatch):
    X = groups(8000)
    given = {"size_max": "1.1x", "random_state": 0, "init": X[:10]}
    whole = KMeans(10, **given).fit(X)
    monkeypatch.setattr("cprime.em.sizes._SHORT", 1)
    monkeypatch.setattr("cprime.em.sizes._CONTINUED", 0)
    np.testing.assert_array_equal(KMeans(10, **given).fit(X).cluster_centers_, whole.cluster_centers_)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize(
    "X", [np.zeros((40, 2)), np.repeat([[0.0], [1.0], [1e6]], [36, 3, 1], axis=0)], ids=["equal", "far"]
)
def test_sizes_of_degenerate_data_are_within_the_bounds(X):
    for bounds in [{"size_max": "1x"}, {"size_min": "1x"}, {"size_max": 10, "size_min": 6}]:
        found = sizes(KMeans(4, random_state=0, **bounds).fit(X).labels_, 4)
        assert found.min() >= (10 if bounds != {"size_max": 10, "size_min": 6} else 6)
        assert found.max() <= 10 or "size_max" not in bounds


def test_a_model_is_saved_with_its_sizes(tmp_path):
    X = groups(300)
    km = KMeans(6, size_max="1.2x", random_state=0, checkpoint=str(tmp_path / "c")).fit(X)
    km.save(tmp_path / "m")
    loaded = cprime.load(tmp_path / "m")
    assert (loaded.size_max, loaded.n_displaced_, loaded.size_cost_) == ("1.2x", km.n_displaced_, km.size_cost_)
    assert "1.2x" in repr(loaded)


@pytest.mark.parametrize(
    ("bounds", "error", "message"),
    [
        ({"size_max": 3}, ValueError, "size_max=3 allows 15 points in 5 clusters, got 40"),
        ({"size_min": 9}, ValueError, "size_min=9 needs 45 points in 5 clusters, got 40"),
        ({"size_min": "1.3x"}, ValueError, "size_min='1.3x' needs"),
        ({"size_min": 8, "size_max": "1x"}, None, ""),
        (
            {"size_max": "twice"},
            ValueError,
            "size_max must be an integer, an array of n_clusters=5 or a text such as \"1.2x\", got 'twice'",
        ),
        ({"size_max": 1.5}, ValueError, "size_max must be an integer, an array .* with sample_weight, got 1.5"),
        ({"size_max": [9] * 4}, ValueError, r"size_max must be an integer, an array .*, got an array of shape \(4,\)"),
        ({"size_max": [30, 30, 30, 30, 1], "size_min": [0, 0, 0, 0, 2]}, ValueError, r"\(2 in cluster 4\) must"),
        ({"size_max": 2**62}, None, ""),
        ({"size_max": 10**30, "size_min": [8] * 5}, None, ""),
        ({"size_min": -1}, ValueError, "size_min == -1, must be >= 0"),
    ],
)
def test_bad_bounds_are_named(bounds, error, message):
    fit = KMeans(5, random_state=0, **bounds).fit
    if error is None:
        assert sizes(fit(groups(40)).labels_, 5).min() >= (8 if "size_min" in bounds else 0)
        return
    with pytest.raises(error, match=message):
        fit(groups(40))


@pytest.mark.parametrize(("n", "C", "search"), [(60, 5, "auto"), (1800, 40, "graph")])
@pytest.mark.parametrize("given", [False, True])
def test_every_cluster_has_bounds_of_its_own(n, C, search, given):
    X, rng = groups(n, D=5), np.random.default_rng(0)
    upper = 1 + rng.multinomial(2 * n, np.full(C, 1 / C))
    lower = rng.permutation(upper // 3)
    lower = np.minimum(lower, upper)
    options = {"init": X[:C], "jumps": False} if given else {}
    km = KMeans(C, search=search, size_max=upper, size_min=lower.tolist(), random_state=0, **options).fit(X)
    found = sizes(km.labels_, C)
    assert (lower <= found).all()
    assert (found <= upper).all()
    assert km.final_assignment_ == "bounded"
    assert km.inertia_ == pytest.approx(np.square(X - km.cluster_centers_[km.labels_]).sum())
    assert given or km.inertia_ <= 2 * KMeans(C, random_state=0).fit(X).inertia_


def test_missing_values_are_refused():
    X = groups(40)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="size_max and size_min need complete rows"):
        KMeans(5, missing="marginal", size_max="2x").fit(X)


@pytest.mark.parametrize("n", [60, 240])
def test_given_centers_lead_to_no_greater_error_than_alternation(n):
    """J is at most that of exact assignment and means from the given centers, by squared distances or by distances."""
    X, C = groups(n, C=9), 6
    start, size = X[:C].copy(), n // C
    km = KMeans(C, init=start, size_min=size, size_max=size, random_state=0).fit(X)
    for power in (1, 2):
        centers = start
        for _ in range(30):
            slots = np.repeat(cdist(X, centers) ** power, size, axis=1)
            labels = linear_sum_assignment(slots)[1] // size
            centers = np.array([X[labels == c].mean(axis=0) for c in range(C)])
        assert km.inertia_ <= 1.0001 * np.square(X - centers[labels]).sum()


@pytest.mark.parametrize(("n", "C"), [(60, 5), (900, 20)])
@pytest.mark.parametrize("kind", ["integers", "uniform", "heavy"])
def test_weights_are_bounded(n, C, kind):
    """Sums of weights are within the bounds, up to the weight of a point."""
    X, rng = groups(n, D=5), np.random.default_rng(0)
    w = {"integers": rng.integers(0, 4, n), "uniform": rng.random(n), "heavy": np.exp(3 * rng.normal(size=n))}[kind]
    bounds = {"size_max": 1.3 * w.sum() / C, "size_min": 0.7 * w.sum() / C}
    km = KMeans(C, random_state=0, **bounds).fit(X, sample_weight=w)
    found = np.bincount(km.labels_, w, C)
    np.testing.assert_allclose(km.counts_, found)
    outside = np.maximum(found - bounds["size_max"], bounds["size_min"] - found)
    assert outside.max() < (1e-9 * w.sum() if kind != "heavy" and n > 60 else w.max())
    texts = KMeans(C, random_state=0, size_max="1.3x", size_min="0.7x").fit(X, sample_weight=w)
    np.testing.assert_allclose(texts.counts_, found, rtol=1e-6)
    free = KMeans(C, random_state=0).fit(X, sample_weight=w)
    assert km.inertia_ <= 4 * free.inertia_


def test_equal_weights_bound_as_numbers_of_points_do():
    X = groups(300)
    plain = KMeans(6, size_max=60, size_min=40, random_state=0).fit(X)
    weighted = KMeans(6, size_max=30, size_min=20, random_state=0).fit(X, sample_weight=np.full(300, 0.5))
    assert weighted.counts_.max() <= 30
    assert weighted.counts_.min() >= 20
    assert weighted.inertia_ == pytest.approx(plain.inertia_ / 2, rel=0.02)
    with pytest.raises(ValueError, match=r"size_max=24\.5 allows a weight of 147 in 6 clusters, got 150"):
        KMeans(6, size_max=24.5).fit(X, sample_weight=np.full(300, 0.5))


def test_a_point_heavier_than_the_bound_is_in_a_cluster():
    X = groups(50)
    w = np.where(np.arange(50) == 3, 1000.0, 1.0)
    km = KMeans(4, size_max="1x", random_state=0).fit(X, sample_weight=w)
    assert km.counts_.max() < w.sum() / 4 + 1000
    assert (km.counts_ > 0).all()


def test_larger_clusters_get_larger_bounds_if_centers_jump_away_from_given_ones():
    rng = np.random.default_rng(0)
    numbers = [10, 100, 30, 20]
    X = np.concatenate([rng.normal(30 * c, 1, (n, 2)) for c, n in enumerate(numbers)])
    near = X[:10].mean(axis=0) + rng.normal(0, 0.1, (4, 2))
    km = KMeans(4, init=near, jumps=True, size_max=[10, 20, 30, 100], random_state=0).fit(X)
    assert sizes(km.labels_, 4).tolist() == [10, 20, 30, 100]
    assert km.n_displaced_ == 0
