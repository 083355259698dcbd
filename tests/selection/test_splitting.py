"""X-means and G-means: the number of clusters found, weights, precision, and limits."""

import numpy as np
import pytest
from selection_data import apart
from sklearn.metrics import adjusted_rand_score

from cprime import GaussianMixture, KMeans
from cprime.datasets import birch
from cprime.kernels import as_rows
from cprime.selection import GMeans, XMeans
from cprime.selection.bisection import Cell, bisect, cells, join_cost, principal, principal_halves, union
from cprime.selection.criteria import share_gain
from cprime.selection.gmeans import in_halves
from marks import long_but

BOTH = pytest.mark.parametrize("make", [XMeans, GMeans])


@BOTH
@pytest.mark.parametrize(("C", "D"), long_but([6], [(6, 2), (11, 4), (16, 12)]))
@pytest.mark.parametrize("equal", [True, False])
def test_the_number_of_well_separated_clusters_is_found(make, C, D, equal):
    X, labels = apart(C, D, 60, seed=C + D, equal=equal)
    fit = make().fit(X)
    assert abs(fit.n_clusters_ - C) <= 0.1 * C
    assert adjusted_rand_score(labels, fit.labels_) > 0.97
    assert fit.converged_


@pytest.mark.long
@BOTH
def test_the_grid_of_25_is_found_from_one_cluster(make):
    """A first split does not improve BIC for a square grid of clusters, so X-means must split on to find all 25."""
    assert make().fit(birch(5, random_state=21).data).n_clusters_ == 25


@BOTH
@pytest.mark.parametrize(("n", "D"), [(300, 1), (200, 3), (200, 20), (60, 60)])
def test_one_gaussian_stays_whole(make, n, D):
    """One Gaussian is not split, even in many dimensions, where two-means finds a direction that looks bimodal."""
    for seed in range(5):
        assert make().fit(np.random.default_rng(seed).standard_normal((n, D))).n_clusters_ == 1


@pytest.mark.long
@BOTH
def test_clusters_that_were_cut_are_merged(make):
    X, labels = apart(5, 2, seed=5)
    fit = make(min_clusters=1).fit(X)
    many = KMeans(25, random_state=0).fit(X).cluster_centers_
    data = Cell(as_rows(X), np.ones(len(X)))
    for _ in range(10):
        joined = fit._join(data, many)
        if joined is None:
            break
        many = KMeans(len(joined), init=joined).fit(X).cluster_centers_
    assert len(many) == 5
    assert adjusted_rand_score(KMeans(5, init=many).fit(X).labels_, labels) > 0.97


@BOTH
@pytest.mark.parametrize("n_active", [2, pytest.param(4, marks=pytest.mark.long)])
def test_fits_with_active_sets_are_k_means_c_prime(make, n_active):
    X = birch(4, spacing=5.0, random_state=3).data
    fit = make(n_active=n_active).fit(X)
    assert abs(fit.n_clusters_ - 16) <= 1
    assert fit.n_active_ == n_active
    same = GaussianMixture(
        fit.n_clusters_,
        covariance_type="tied_spherical",
        weights="equal",
        n_active=n_active,
        means_init=fit.cluster_centers_,
        precisions_init=1 / fit.variance_,
        tol=1e-4,
    ).fit(X)
    assert fit.lower_bound_ == pytest.approx(same.lower_bound_, abs=1e-3)
    assert fit.bounds(X).free_energy == pytest.approx(fit.lower_bound_, abs=1e-9)


@BOTH
def test_what_is_found_belongs_together(make):
    X = apart(6, 3, dtype=np.float32)[0]
    fit = make().fit(X)
    assert fit.cluster_centers_.dtype == np.float32
    assert fit.transform(X).dtype == np.float32
    assert np.array_equal(fit.labels_, fit.predict(X))
    assert np.array_equal(fit.labels_, fit.transform(X).argmin(axis=1))
    assert (
        fit.inertia_
        == pytest.approx(-fit.score(X))
        == pytest.approx((fit.transform(X).min(axis=1) ** 2).sum(), rel=1e-4)
    )
    assert fit.bounds(X).free_energy == pytest.approx(fit.lower_bound_)
    assert fit.variance_ == pytest.approx(fit.inertia_ / X.size)
    assert fit.history_["n_clusters"][0] == 1
    assert len(fit.history_) == fit.n_rounds_ + 1
    assert len(fit.get_feature_names_out()) == fit.n_clusters_ == len(fit.cluster_centers_)


@BOTH
def test_a_weight_is_a_repetition(make, rng):
    X = apart(4, 2, 60)[0]
    w = rng.integers(0, 4, len(X))
    weighted, repeated = make().fit(X, sample_weight=w), make().fit(np.repeat(X, w, axis=0))
    assert weighted.n_clusters_ == repeated.n_clusters_ == 4
    order, other = (np.lexsort(fit.cluster_centers_.T) for fit in (weighted, repeated))
    assert np.allclose(weighted.cluster_centers_[order], repeated.cluster_centers_[other])
    assert weighted.inertia_ == pytest.approx(repeated.inertia_)


@BOTH
def test_limits_are_kept(make):
    X = apart(8, 2)[0]
    assert make(max_clusters=5).fit(X).n_clusters_ <= 5
    assert make(min_clusters=12, random_state=0).fit(X).n_clusters_ >= 12
    assert make(min_clusters=3, max_clusters=3, random_state=0).fit(X).n_clusters_ == 3


@BOTH
def test_equal_points_are_one_cluster(make):
    assert make().fit(np.ones((30, 2))).n_clusters_ == 1
    assert make().fit([[1.0, 2.0]]).n_clusters_ == 1


def test_distinct_points_that_are_repeated_are_clusters_to_x_means():
    X = np.repeat([[0.0], [1.0], [10.0]], 20, axis=0)
    fit = XMeans().fit(X)
    assert fit.n_clusters_ == 3
    assert fit.inertia_ == 0


@BOTH
def test_rounds_are_logged(make, caplog):
    with caplog.at_level("INFO", logger="cprime.selection"):
        fit = make().fit(apart(3, 2)[0])
    assert sum("clusters, criterion" in line for line in caplog.messages) == fit.n_rounds_


@pytest.mark.long
def test_x_means_lowers_its_criterion():
    fit = XMeans().fit(apart(15, 2, seed=2)[0])
    values = fit.history_["criterion"]
    assert (np.diff(values[:-1]) < 0).all()
    assert values[-1] >= values[-2]


def test_too_few_rounds_are_reported():
    assert not XMeans(max_rounds=1).fit(apart(15, 2, seed=2)[0]).converged_


@BOTH
def test_wrong_arguments_are_refused(make):
    X = apart(3, 2)[0]
    for arguments, message in (
        ({"min_clusters": 0}, "min_clusters == 0, must be >= 1"),
        ({"min_clusters": 5, "max_clusters": 4}, "max_clusters == 4, must be >= min_clusters=5"),
        ({"n_active": 0}, "n_active == 0, must be >= 1"),
        ({"tol": -1.0}, "tol == -1.0, must be >= 0.0"),
        ({"min_clusters": 1000, "max_clusters": 2000}, "n_samples=300 should be >= min_clusters=1000"),
    ):
        with pytest.raises(ValueError, match=message):
            make(**arguments).fit(X)
    with pytest.raises(ValueError, match=r"alpha must be between 0 and 1, got 1\.5"):
        GMeans(alpha=1.5).fit(X)


@pytest.mark.long
def test_a_higher_level_cuts_more():
    X = np.random.default_rng(0).exponential(size=(400, 2))
    assert GMeans(alpha=1e-30).fit(X).n_clusters_ < GMeans(alpha=1e-2).fit(X).n_clusters_


def test_bisection_cuts_across_the_principal_direction(rng):
    X = rng.standard_normal((400, 3)) * [1.0, 6.0, 2.0] + 5
    cell = Cell(as_rows(X), np.ones(400))
    mean, variance, direction = principal(cell)
    assert np.allclose(mean, X.mean(axis=0))
    assert variance == pytest.approx(np.linalg.eigvalsh(np.cov(X.T, bias=True))[-1])
    assert abs(direction[1]) > 0.98
    for first, second in (bisect(cell, None), principal_halves(cell)):
        assert len(first.points) + len(second.points) == 400
        assert abs((first.mean - second.mean)[1]) > 7
    assert union(bisect(cell, None)).weight == 400


def test_cells_hold_the_points_of_their_labels():
    X, w = np.arange(10.0).reshape(5, 2), np.arange(1.0, 6.0)
    first, second, third = cells(as_rows(X), w, np.array([2, 0, 2, 0, 0]), 3)
    assert first.points.given().tolist() == X[[1, 3, 4]].tolist()
    assert len(second.points) == 0
    assert third.weights.tolist() == [1.0, 3.0]
    assert np.allclose(first.mean, (2 * X[1] + 4 * X[3] + 5 * X[4]) / 11)


def test_join_cost_is_what_j_gains(rng):
    parts = [Cell(as_rows(rng.standard_normal((n, 2))), rng.random(n)) for n in (5, 9)]

    def scatter(cell):
        return float((cell.weights * ((cell.points.given() - cell.mean) ** 2).sum(axis=1)).sum())

    expected = scatter(union(parts)) - sum(map(scatter, parts))
    assert join_cost(parts)[0, 1] == pytest.approx(expected)


def test_shares_gain_what_free_weights_give():
    assert share_gain(np.array([10.0, 10.0])) == pytest.approx(0)
    counts = np.array([30.0, 10.0, 0.0])
    expected = (30 * np.log(0.75) + 10 * np.log(0.25)) / 40 - np.log(1 / 3)
    assert share_gain(counts) == pytest.approx(expected)


def test_halves_do_not_tear_equal_points(rng):
    X = np.repeat(rng.standard_normal((30, 2)), rng.integers(1, 5, 30), axis=0)
    first, second = in_halves(Cell(as_rows(X), np.ones(len(X))))
    assert {tuple(x) for x in first.points.given()}.isdisjoint({tuple(x) for x in second.points.given()})
    assert len(first.points) + len(second.points) == len(X)
