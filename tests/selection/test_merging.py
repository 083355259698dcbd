"""Merging of components agrees with brute force and SciPy's Ward linkage, and trees have the required properties."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, is_valid_linkage, linkage
from scipy.special import xlogy
from selection_data import apart
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture as SklearnMixture

from cprime import FuzzyKMeans, GaussianMixture, KMeans, KMedoids, SoftKMeans, StudentTMixture, open_data
from cprime.em.joins import children_of, ward_joins
from cprime.selection import MergeTree, merge
from cprime.selection.merging.entropy import SharedPoints, entropy_joins, excess, gain
from cprime.selection.merging.tree import drop


def entropy(T, w):
    return -float(w @ xlogy(T, T).sum(axis=1))


def greedy(T, w):
    """Merge dense shares (N, C) by trying all pairs; return, per merge, the components of both clusters and gain."""
    clusters, found = [{c} for c in range(T.shape[1])], []
    while len(clusters) > 1:
        before, best = entropy(T, w), (0.0, 0, 0)
        for i in range(len(clusters)):
            for j in range(i):
                both = np.column_stack([T[:, [i, j]].sum(axis=1)])
                gain = entropy(T[:, [i, j]], w) - entropy(both, w)
                best = max(best, (gain, i, j))
        gain, i, j = best
        if gain <= 0:
            break
        found.append((frozenset(clusters[i]), frozenset(clusters[j]), gain))
        T = np.column_stack([np.delete(T, [i, j], axis=1), T[:, i] + T[:, j]])
        clusters = [c for k, c in enumerate(clusters) if k not in (i, j)] + [clusters[i] | clusters[j]]
        assert entropy(T, w) == pytest.approx(before - gain, abs=1e-9)
    return found


def sparse_shares(N, C, H, seed, width):
    """Return shares of H components out of `width` neighboring ones, some of them zero, and weights."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, C - width + 1, N)
    ids = np.array([f + rng.permutation(width)[:H] for f in first], dtype=np.int32)
    shares = rng.dirichlet(np.full(H, 0.4), size=N)
    shares[shares < 1e-2] = 0.0
    shares /= shares.sum(axis=1, keepdims=True)
    return SharedPoints(ids, shares, rng.uniform(0.1, 2, N))


def dense(points, C):
    T = np.zeros((len(points.ids), C))
    np.put_along_axis(T, points.ids.astype(np.intp), points.shares, axis=1)
    return T


def members(children):
    """Return the set of components of each node of a tree."""
    C = len(children) + 1
    nodes = [frozenset([c]) for c in range(C)]
    for a, b in children:
        nodes.append(nodes[a] | nodes[b])
    return nodes


@pytest.mark.parametrize(("C", "H", "width"), [(2, 2, 2), (25, 4, 8), (18, 3, 3)])
def test_entropy_joins_are_those_of_dense_responsibilities(C, H, width):
    points = sparse_shares(300, C, H, 0, width)
    expected = greedy(dense(points, C), points.weights)
    found = entropy_joins(points, C)
    assert len(found.pairs) == len(expected)
    np.testing.assert_allclose(found.changes, [gain for *_, gain in expected], rtol=1e-9)
    clusters = {c: frozenset([c]) for c in range(C)}
    for (a, b), (one, other, _) in zip(found.pairs, expected, strict=True):
        assert {clusters[a], clusters[b]} == {one, other}
        clusters |= dict.fromkeys(one | other, one | other)
    assert points.entropy == pytest.approx(entropy(dense(points, C), points.weights))


def test_entropy_joins_of_points_in_one_component_are_none():
    nothing = SharedPoints(np.empty((0, 3), np.int32), np.empty((0, 3)), np.empty(0))
    assert len(entropy_joins(nothing, 7).pairs) == 0
    assert nothing.entropy == 0


def test_shares_as_small_as_they_come_have_finite_gains():
    points = SharedPoints(np.array([[0, 1, 2]], np.int32), np.array([[1.0, 1e-300, 1e-299]]), np.ones(1))
    found = entropy_joins(points, 3)
    assert np.isfinite(found.changes).all()
    assert (found.changes > 0).all()
    assert set(found.pairs[0]) == {0, 2}


def test_what_gains_have_too_much_is_found_without_their_difference():
    s, t, u = np.random.default_rng(0).dirichlet([0.3, 0.3, 0.3], 1000).T
    np.testing.assert_allclose(excess(s, t, u), gain(s, u) + gain(t, u) - gain(s + t, u), rtol=1e-8, atol=1e-15)
    tiny = np.array([1e-300, 0.5, 0.25])
    assert np.isfinite(excess(tiny, tiny[::-1], tiny[[1, 0, 2]])).all()


@pytest.fixture(scope="module")
def overlapping():
    """Return points of three clusters, their labels, a mixture of 30 components, and its tree by exact
    responsibilities.
    """
    X, labels = apart(3, 2, 300, seed=1)
    mixture = GaussianMixture(30, n_active=None, random_state=0).fit(X)
    return X, labels, mixture, merge(mixture, X, n_active=30)


@pytest.mark.long
def test_a_tree_of_a_mixture_is_brute_force_on_its_posterior(overlapping):
    X, _, mixture, tree = overlapping
    T = mixture.predict_proba(X)
    nodes = members(tree.children)
    expected = greedy(T, np.ones(len(X)))
    assert len(expected) > 25
    for (one, other, lowered), (a, b), change in zip(expected, tree.children, tree.changes, strict=False):
        assert change == pytest.approx(lowered, rel=1e-6)
        assert {nodes[a], nodes[b]} == {one, other}
    for n in (30, 7, 1):
        clusters = np.column_stack([T[:, tree.cut(n) == k].sum(axis=1) for k in range(n)])
        assert tree.entropy_[n - 1] == pytest.approx(entropy(clusters, np.ones(len(X))), abs=1e-6)
    np.testing.assert_array_equal(tree.components, mixture.predict(X))
    np.testing.assert_allclose(tree.weights, T.sum(axis=0), rtol=1e-6)


def test_cuts_are_nested_and_numbered_by_their_least_component(overlapping):
    tree = overlapping[3]
    finer = tree.cut(30)
    assert finer.tolist() == list(range(30))
    for n in range(29, 0, -1):
        cut = tree.cut(n)
        firsts = np.unique(cut, return_index=True)[1]
        assert len(firsts) == n
        assert (np.diff(firsts) > 0).all()
        assert len(set(zip(finer, cut, strict=True))) == n + 1  # each finer cluster is part of one coarser cluster
        finer = cut
    np.testing.assert_array_equal(tree.labels(4), tree.cut(4)[overlapping[2].predict(overlapping[0])])


def test_clusters_that_are_apart_are_found_and_suggested(overlapping):
    _, labels, _, tree = overlapping
    assert adjusted_rand_score(labels, tree.labels(3)) > 0.98
    assert tree.elbow() == 3


def test_the_order_of_components_permutes_the_tree(overlapping):
    X, _, mixture, tree = overlapping
    order = np.random.default_rng(0).permutation(30)
    other = GaussianMixture(30, n_active=None)
    for name in ("means_", "covariances_", "precisions_cholesky_", "weights_"):
        setattr(other, name, getattr(mixture, name)[order])
    other.n_features_in_ = 2
    again = merge(other, X, n_active=30)
    np.testing.assert_allclose(again.changes, tree.changes, rtol=1e-6, atol=1e-12)
    for n in (3, 11):
        assert adjusted_rand_score(again.cut(n), tree.cut(n)[order]) == 1.0


def test_weights_are_repetitions_and_rows_come_in_any_pieces(overlapping, tmp_path):
    X, _, mixture, _ = overlapping
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = merge(mixture, X, sample_weight=weights)
    repeated = merge(mixture, np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.changes, repeated.changes, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(weighted.children, repeated.children)
    np.save(tmp_path / "x.npy", X)
    streamed = merge(mixture, open_data(tmp_path / "x.npy", chunk_rows=97))
    whole = merge(mixture, X)
    np.testing.assert_array_equal(streamed.labels(5), whole.labels(5))
    np.testing.assert_allclose(streamed.changes, whole.changes, rtol=1e-8, atol=1e-10)


def test_what_shares_no_point_is_joined_last_by_means():
    X = np.repeat([[0.0, 0.0], [0.0, 50.0], [300.0, 0.0], [340.0, 0.0]], 30, axis=0)
    X += np.random.default_rng(0).standard_normal(X.shape) * 0.1
    mixture = GaussianMixture(4, covariance_type="spherical", means_init=X[::30], random_state=0).fit(X)
    tree = merge(mixture, X)
    assert tree.changes.tolist() == [0, 0, 0]
    assert tree.entropy_.tolist() == [0, 0, 0, 0]
    assert tree.cut(3).tolist() == [0, 1, 2, 2]
    assert tree.cut(2).tolist() == [0, 0, 1, 1]
    assert tree.heights.tolist() == [1, 2, 3]
    assert tree.elbow() is None


def test_ward_is_that_of_scipy_where_weights_are_one():
    centers = np.random.default_rng(0).normal(size=(150, 3))
    found = ward_joins(centers, np.ones(150))
    expected = linkage(centers, "ward")
    tree = MergeTree("ward", children_of(found.pairs, 150), found.changes, np.ones(150))
    np.testing.assert_allclose(tree.to_linkage(), expected, atol=1e-12)


def test_ward_of_weights_is_that_of_repetitions_and_adds_up_to_the_scatter():
    rng = np.random.default_rng(1)
    centers, weights = rng.normal(size=(40, 2)), rng.integers(1, 5, 40)
    found = ward_joins(centers, weights.astype(float))
    repeated = linkage(np.repeat(centers, weights, axis=0), "ward")[weights.sum() - 40 :, 2]
    np.testing.assert_allclose(np.sqrt(2 * found.changes), repeated, rtol=1e-7)
    mean = weights @ centers / weights.sum()
    assert found.changes.sum() == pytest.approx(weights @ np.square(centers - mean).sum(axis=1))


def test_ward_of_equal_distances_joins_everything_once():
    grid = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0) / 3), axis=-1).reshape(-1, 2)
    weights = np.random.default_rng(0).integers(1, 3, len(grid)).astype(float)
    for X, w in (
        (grid, weights),
        (np.zeros((30, 2)), np.ones(30)),
        (np.repeat(grid, 2, axis=0), np.repeat(weights, 2)),
    ):
        found = ward_joins(X, w)
        assert len(members(children_of(found.pairs, len(X)))[-1]) == len(X)
        assert (np.diff(found.changes) >= 0).all()
        assert found.changes.sum() == pytest.approx(w @ np.square(X - w @ X / w.sum()).sum(axis=1))


def test_centers_without_weight_are_joined_to_the_nearest_for_nothing():
    centers = np.array([[0.0], [1.0], [10.0], [0.9], [12.0]])
    found = ward_joins(centers, np.array([5.0, 5.0, 5.0, 0.0, 0.0]))
    assert sorted(map(sorted, found.pairs[:2].tolist())) == [[1, 3], [2, 4]]
    assert found.changes[:2].tolist() == [0, 0]
    np.testing.assert_allclose(found.changes[2:], [2.5, 5 * 10 / 15 * 9.5**2])
    assert ward_joins(centers, np.zeros(5)).changes.sum() > 0


@pytest.mark.parametrize("kind", [KMeans, SklearnKMeans])
def test_a_k_means_is_joined_by_its_counts_or_those_of_X(kind):
    X, labels = apart(4, 2, 100, seed=2)
    km = kind(30, random_state=0, n_init=1).fit(X)
    tree, seen = merge(km), merge(km, X)
    assert tree.criterion == "ward"
    assert adjusted_rand_score(labels, tree.labels(4)) > 0.98
    assert tree.elbow() == 4
    np.testing.assert_array_equal(tree.children, seen.children)
    np.testing.assert_allclose(tree.weights, np.bincount(km.labels_, minlength=30))
    assert tree.increase_[-1] == 0
    union = X - np.array([X[tree.labels(4) == k].mean(axis=0) for k in range(4)])[tree.labels(4)]
    within = X - np.array([X[km.labels_ == c].mean(axis=0) for c in range(30)])[km.labels_]
    assert tree.increase_[3] == pytest.approx(np.square(union).sum() - np.square(within).sum(), rel=1e-3)
    light = merge(km, X, sample_weight=np.where(km.labels_ == 3, 0.0, 2.0))
    assert light.weights[3] == 0
    assert light.changes[0] == 0


def test_the_entropy_of_a_k_means_follows_shapes_that_ward_cuts():
    rng = np.random.default_rng(0)
    angles, rings = rng.uniform(0, 2 * np.pi, 2000), np.repeat([1.0, 3.0], 1000)
    X = np.column_stack([rings * np.cos(angles), rings * np.sin(angles)]) + rng.normal(scale=0.1, size=(2000, 2))
    X = X.astype(np.float32)
    km = KMeans(40, random_state=0).fit(X)
    followed = merge(km, X, criterion="entropy")
    assert adjusted_rand_score(rings, followed.labels(2)) == 1.0
    assert followed.elbow() == 2
    assert followed.n_active == 5
    assert adjusted_rand_score(rings, merge(km).labels(2)) < 0.5


@pytest.mark.parametrize("estimator", [SklearnMixture(9, random_state=0), FuzzyKMeans(9, m=1.3, random_state=0)])
def test_whatever_has_probabilities_is_joined_by_them(estimator):
    X, labels = apart(3, 2, 60, seed=3)
    tree = merge(estimator.fit(X), X, criterion="entropy", n_active=9)
    assert tree.criterion == "entropy"
    assert adjusted_rand_score(labels, tree.labels(3)) > 0.95
    assert tree.entropy_[0] == pytest.approx(0, abs=1e-6)


def test_points_without_clusters_suggest_none():
    X = np.random.default_rng(0).standard_normal((2000, 2))
    km = KMeans(50, random_state=0).fit(X)
    assert merge(km).elbow() is None
    assert merge(km, X, criterion="entropy").elbow() is None


def test_a_drop_is_where_joins_first_remove_less_by_a_factor():
    removed = 10.0 * np.linspace(2, 1, 40)
    assert drop(removed, removed.sum(), 0.01) is None
    removed[-6:] = [1e-3, 1e-4, 1e-4, 1e-9, 0, 0]
    assert drop(removed, removed.sum(), 0.01) == 7
    assert drop(removed[-8:], removed.sum(), 0.01) is None  # too few merges before the drop
    assert drop(np.zeros(40), 0.0, 0.01) is None


def test_a_tree_as_scipy_has_it(overlapping):
    Z = overlapping[3].to_linkage()
    assert is_valid_linkage(Z)
    assert (np.diff(Z[:, 2]) >= 0).all()
    assert Z[-1, 3] == 30
    assert adjusted_rand_score(fcluster(Z, 3, "maxclust"), overlapping[3].cut(3)) == 1.0


def test_one_component_and_one_row_have_a_tree():
    tree = merge(KMeans(1).fit([[0.0], [1.0]]))
    assert tree.cut(1).tolist() == [0]
    assert tree.increase_.tolist() == [0]
    assert tree.to_linkage().shape == (0, 4)
    assert tree.elbow() is None
    mixture = GaussianMixture(3, covariance_type="spherical", random_state=0).fit(np.arange(9.0)[:, np.newaxis])
    assert merge(mixture, [[4.0]]).labels(2).shape == (1,)


def test_errors_name_what_came_and_what_was_expected(overlapping):
    X, _, mixture, tree = overlapping
    km = KMeans(3, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"X must be given for criterion='entropy', got None"):
        merge(mixture)
    with pytest.raises(ValueError, match=r"sample_weight is of the rows of X"):
        merge(km, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match=r"The 'criterion' parameter|criterion must be"):
        merge(km, criterion="single")
    with pytest.raises(ValueError, match=r"n_active=31 should be <= n_components=30"):
        merge(mixture, X, n_active=31)
    with pytest.raises(ValueError, match=r"needs probabilities, which KMeans does not say"):
        merge(SklearnKMeans(3).fit(X), X, criterion="entropy")
    with pytest.raises(TypeError, match=r"estimator must have cluster_centers_ or means_"):
        merge(KMedoids(3, metric="precomputed").fit(np.ones((5, 5)) - np.eye(5)))
    bare = SklearnKMeans(3).fit(X)
    del bare.labels_
    with pytest.raises(ValueError, match=r"neither counts_ nor labels_: give X"):
        merge(bare)
    with pytest.raises(ValueError, match=r"n_clusters=31 should be <= n_components=30"):
        tree.cut(31)
    with pytest.raises(ValueError, match=r"n_clusters == 0, must be >= 1"):
        tree.cut(0)
    with pytest.raises(ValueError, match=r"alpha must be between 0 and 1"):
        tree.elbow(1.0)
    with pytest.raises(AttributeError, match=r"no increase_, but entropy_"):
        _ = tree.increase_
    with pytest.raises(AttributeError, match=r"no entropy_, but increase_"):
        _ = merge(km).entropy_
    with pytest.raises(ValueError, match=r"The tree knows no rows"):
        MergeTree("ward", tree.children, tree.changes, tree.weights).labels(2)


def fits_of_every_family(n_active):
    """Yield an estimator of every family that has responsibilities."""
    given = {"n_active": n_active, "random_state": 0, "max_iter": 5}
    for kind in ("full", "tied", "diag", "spherical", "tied_spherical", "factors", "ppca"):
        yield pytest.param(GaussianMixture(8, covariance_type=kind, **given), id=f"gaussian-{kind}-{n_active}")
    for kind in ("full", "tied", "diag", "spherical", "tied_spherical"):
        yield pytest.param(StudentTMixture(8, covariance_type=kind, **given), id=f"student-{kind}-{n_active}")
    yield pytest.param(SoftKMeans(8, **given), id=f"soft-{n_active}")
    yield pytest.param(FuzzyKMeans(8, **given), id=f"fuzzy-{n_active}")


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.filterwarnings("ignore:predict_proba")
@pytest.mark.parametrize("fitted", [*fits_of_every_family(8), *fits_of_every_family(3)])
def test_entropies_are_those_of_the_truncated_responsibilities_of_every_family(fitted):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3)) * [1, 2, 0.5] + 2 * rng.integers(0, 3, (200, 1))
    P = fitted.fit(X).predict_proba(X).astype(float)  # truncated to C' components and normalized
    n_active = fitted.n_active_
    assert (np.count_nonzero(P, axis=1) <= n_active).all()
    tree = merge(fitted, X, criterion="entropy", n_active=n_active)
    assert tree.n_active == n_active
    for n_clusters in range(1, 9):
        T = P @ np.eye(n_clusters)[tree.cut(n_clusters)]
        assert tree.entropy_[n_clusters - 1] == pytest.approx(entropy(T, np.ones(len(X))), rel=1e-12, abs=1e-11)
