"""Quality figures in benchmark reports equal recomputed ones."""

import numpy as np
import pytest
from benchmarks.peers import Fitted
from benchmarks.quality import inertia, judge, log_likelihood
from scipy.special import logsumexp
from scipy.stats import multivariate_normal


def squared_distances(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return ((X.astype(np.float64)[:, np.newaxis] - centers.astype(np.float64)) ** 2).sum(axis=2)


def test_inertia_is_the_sum_of_the_least_squares(points):
    centers = points[::60].copy()
    expected = squared_distances(points, centers).min(axis=1).sum()
    assert inertia(points, centers) == pytest.approx(expected, rel=1e-6)
    assert inertia(points + 1000, centers + 1000) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("offset", [0, 300])
def test_log_likelihood_is_that_of_the_definition(points, rng, alike, offset):
    C, D = 7, points.shape[1]
    means = points[:C] + np.float32(0.1)
    variances = np.full(C, 2.5) if alike else rng.uniform(0.5, 4, C)
    weights = np.full(C, 1 / C) if alike else rng.dirichlet(np.ones(C))
    squared = squared_distances(points, means)
    joint = np.log(weights) - 0.5 * D * np.log(2 * np.pi * variances) - squared / (2 * variances)
    found = log_likelihood(points + np.float32(offset), weights, means + np.float32(offset), variances)
    assert found == pytest.approx(logsumexp(joint, axis=1).mean(), rel=1e-3 if offset else 1e-6)


@pytest.mark.parametrize("full", [False, True])
def test_log_likelihood_of_general_covariances_is_scipys(points, rng, full):
    C, D = 5, points.shape[1]
    means, weights = points[:C].astype(np.float64), rng.dirichlet(np.ones(C))
    variances = rng.uniform(0.5, 4, (C, D))
    covariances = np.stack([np.diag(v) for v in variances])
    if full:
        turns = np.linalg.qr(rng.standard_normal((C, D, D)))[0]
        covariances = turns @ covariances @ turns.transpose(0, 2, 1)
    joint = [
        np.log(w) + multivariate_normal(m, c).logpdf(points)
        for w, m, c in zip(weights, means, covariances, strict=True)
    ]
    found = log_likelihood(points, weights, means, covariances if full else variances)
    assert found == pytest.approx(logsumexp(joint, axis=0).mean(), rel=1e-8)


def test_components_of_weight_zero_count_for_nothing(points):
    means, variances = points[:3], np.array([1.0, 2.0, 3.0])
    two = log_likelihood(points, np.array([0.4, 0.6]), means[:2], variances[:2])
    three = log_likelihood(points, np.array([0.4, 0.6, 0.0]), means, variances)
    assert three == pytest.approx(two, rel=1e-12)


def test_what_a_peer_says_of_itself_is_not_believed(points):
    centers = points[:5].copy()
    assert judge(points, 5, Fitted(centers, objective=1.0)) == pytest.approx(inertia(points, centers))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda centers: centers[:-1], "are the centers of 5 clusters"),
        (lambda centers: centers[:, :-1], "are the centers of 5 clusters"),
        (lambda centers: np.where(centers == centers[0, 0], np.nan, centers), "not finite"),
    ],
)
def test_a_result_that_is_not_what_was_asked_for_is_refused(points, change, message):
    with pytest.raises(AssertionError, match=message):
        judge(points, 5, Fitted(change(points[:5].copy())))


def test_a_mixture_that_is_none_is_refused(points):
    means, ones = points[:2].copy(), np.ones(2)
    with pytest.raises(AssertionError, match="weights that sum to"):
        judge(points, 2, Fitted(means, weights=ones, covariances=ones))
    with pytest.raises(AssertionError, match="not positive"):
        judge(points, 2, Fitted(means, weights=ones / 2, covariances=0 * ones))
