"""Mixtures of Laplace columns: densities, EM with exact medians, k-medians as a limit, missing values, batches."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import laplace

from cprime import KMedians, LaplaceMixture
from cprime.model import LAPLACE
from cprime.search import Full, Graph, Papers

pytestmark = [
    pytest.mark.filterwarnings("ignore:The fit did not converge"),
    pytest.mark.filterwarnings("ignore::cprime.SearchQualityWarning"),
]
SHARED = {"diag": (), "tied_diag": (0,), "spherical": (1,), "tied_spherical": (0, 1)}
HARD = {"covariance_type": "tied_spherical", "weights": "equal", "assignment": "hard", "max_iter": 300, "tol": 0}


def points(n=400, C=7, D=3, missing=False):
    rng = np.random.default_rng(0)
    X = 5 * rng.normal(size=(C, D))[rng.integers(C, size=n)] + rng.laplace(size=(n, D))
    if missing:
        X[::7, 1] = X[3::11, 2] = np.nan
    return X


def wide(lm, C, D):
    """Return the scales of a fitted mixture, one for each component and column."""
    shape = [1 if axis in SHARED[lm.covariance_type] else n for axis, n in enumerate((C, D))]
    return np.broadcast_to(np.reshape(lm.scales_, shape), (C, D))


def median(x, w):
    """Return the least value with at least half of the weight at or below it, or the mean with the next if exactly."""
    order = np.argsort(x)
    x, mass = x[order], np.cumsum(w[order])
    i = int(np.flatnonzero(mass >= mass[-1] / 2 * (1 - 1e-12))[0])
    return (x[i] + x[i + 1]) / 2 if abs(mass[i] - mass[-1] / 2) < 1e-12 * mass[-1] else x[i]


def log_joint(X, weights, means, scales):
    """Return log π_c p(x | c) of the observed values of each row, (n, C)."""
    logs = laplace.logpdf(X[:, np.newaxis], means, scales)
    return np.log(weights) + np.where(np.isnan(X)[:, np.newaxis], 0, logs).sum(axis=2)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("n_active", [None, 2])
@pytest.mark.parametrize("family", LAPLACE)
def test_every_iteration_is_truncated_em_with_weighted_medians(family, n_active, missing):
    X, C, D = points(150, missing=missing), 4, 3
    rng = np.random.default_rng(1)
    w, weights = rng.integers(0, 4, len(X)).astype(float), rng.dirichlet(np.full(C, 9.0))
    steps = []
    given = {"missing": "marginal"} if missing else {}
    lm = LaplaceMixture(C, covariance_type=family, n_active=n_active, max_iter=5, tol=0, search="full", **given)
    lm.set_params(
        means_init=np.array([[-4.0, 1, 2], [5, 0, -3], [0, 6, 0], [-1, -5, 1]]), weights_init=weights, reg_covar=0
    )
    lm.set_params(callbacks=lambda row, now: steps.append((now.weights_, now.means_, wide(now, C, D), row)))
    lm.fit(X, sample_weight=w)
    (weights, means, scales, _), *later = steps
    observed = ~np.isnan(X)
    for found_weights, found_means, found_scales, row in later:
        logs = log_joint(X, weights, means, scales)
        rank = (-logs).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        logs = np.where(rank < (n_active or C), logs, -np.inf)
        total = logsumexp(logs, axis=1, keepdims=True)
        assert row["lower_bound"] == pytest.approx((w @ total)[0] / w.sum(), rel=1e-12)
        q = w[:, np.newaxis] * np.exp(logs - total)
        means = np.array([[median(*_there(X[:, d], q[:, c])) for d in range(D)] for c in range(C)])
        sums = np.einsum("nc,ncd->cd", q, np.where(observed[:, np.newaxis], np.abs(X[:, np.newaxis] - means), 0))
        axes = SHARED[family]
        scales = sums.sum(axis=axes, keepdims=True) / (q.T @ observed).sum(axis=axes, keepdims=True)
        weights, scales = q.sum(axis=0) / w.sum(), np.broadcast_to(scales, (C, D))
        np.testing.assert_allclose(found_means, means, rtol=1e-12)
        np.testing.assert_allclose(found_scales, scales, rtol=1e-10)
        np.testing.assert_allclose(found_weights, weights, rtol=1e-10)
    assert len(later) == 4
    np.testing.assert_allclose(lm.score_samples(X), logsumexp(log_joint(X, weights, means, scales), axis=1), rtol=1e-9)
    sizes = C - 1 + C * D + {"diag": C * D, "tied_diag": D, "spherical": C, "tied_spherical": 1}[family]
    assert lm.bic(X) == pytest.approx(-2 * lm.score_samples(X).sum() + sizes * np.log(len(X)))


def _there(x, q):
    there = ~np.isnan(x) & (q > 0)
    return x[there], q[there]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "C", "search"), [(300, 7, Full()), (2000, 30, Full()), (2000, 30, Papers("exact"))])
def test_hard_assignment_with_one_scale_is_k_medians(n, C, search, weighted):
    X = points(n, C)
    w = np.random.default_rng(3).integers(0, 4, n).astype(float) if weighted else None
    ours = LaplaceMixture(C, means_init=X[:C], search=search, **HARD).fit(X, sample_weight=w)
    theirs = KMedians(C, init=X[:C]).fit(X, sample_weight=w)
    np.testing.assert_array_equal(ours.means_, theirs.cluster_centers_)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    assert ours.scales_ == pytest.approx(theirs.inertia_ / (3 * (n if w is None else w.sum())), rel=1e-12)


def test_a_graph_search_finds_medians_of_nearly_the_same_cost():
    X = points(3000, 60)
    costs = [
        -KMedians(60, init=LaplaceMixture(60, search=search, random_state=0, **HARD).fit(X).means_).fit(X).inertia_
        for search in (Full(), Graph())
    ]
    assert costs[1] == pytest.approx(costs[0], rel=0.02)


@pytest.mark.parametrize("family", LAPLACE)
def test_draws_have_the_scales_and_are_found_again(family):
    truth = LaplaceMixture(3, covariance_type=family, random_state=0).fit(points(900, 3))
    X, labels = truth.sample(20_000, random_state=1)
    off = [np.abs(X[labels == c] - truth.means_[c]).mean(axis=0) for c in range(3)]
    np.testing.assert_allclose(off, wide(truth, 3, 3), rtol=0.1)
    again = LaplaceMixture(3, covariance_type=family, random_state=0, tol=1e-7, max_iter=500).fit(X)
    assert again.score(X) >= truth.score(X) - 1e-6


def test_batches_reach_nearly_the_likelihood_of_a_fit():
    X = points(8000, 5)
    whole, batches = (LaplaceMixture(5, means_init=X[:5], random_state=0) for _ in range(2))
    whole.fit(X)
    for batch in np.split(X, 16):
        batches.partial_fit(batch)
    assert batches.score(X) > whole.score(X) - 0.05


def test_points_at_the_centers_leave_the_least_scale():
    lm = LaplaceMixture(2, means_init=[[0.0], [9.0]], reg_covar=0.02).fit([[0.0], [0.0], [9.0], [9.0], [9.0]])
    np.testing.assert_allclose(lm.scales_, 0.1)
    assert lm.score([[0.0]]) == pytest.approx(np.log(0.4 * 5))
