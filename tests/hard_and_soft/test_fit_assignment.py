"""Fits by k-means with any Gaussians, by EM and by posterior assignment: the loss each lowers, its optimum, peers."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, check_grad
from sklearn.mixture import GaussianMixture as ScikitLearn

from cprime import GaussianMixture, KMeans
from cprime.theory import Gaussians, fit_assignment, partition, partition_loss, posterior_loss

ALGORITHMS = [(a, w) for a in ("hard", "soft", "posterior") for w in ("equal", "free")]
START = Gaussians.spherical([[0, 0], [3, 0], [0, 4]], 1.0, [0.3, 0.3, 0.4])


def data(seed=0, n=600):
    rng = np.random.default_rng(seed)
    parts = rng.integers(3, size=n)
    places = np.array([[0.0, 0], [3, 0.5], [0, 3.5]])
    return places[parts] + rng.standard_normal((n, 2)) * np.array([[1, 0.5], [0.7, 1.2], [1, 1]])[parts]


@pytest.mark.parametrize("covariance_type", ["full", "spherical"])
@pytest.mark.parametrize(("assignment", "weights"), ALGORITHMS)
def test_no_step_raises_the_loss(assignment, weights, covariance_type):
    options = {"assignment": assignment, "weights": weights, "covariance_type": covariance_type}
    fit = fit_assignment(data(), START, **options)
    assert fit.converged
    assert fit.n_iter == len(fit.path) - 1 == len(fit.losses) - 1 > 1
    assert (np.diff(fit.losses) <= 1e-12).all()
    assert fit.components is fit.path[-1]


@pytest.mark.parametrize("weights", ["equal", "free"])
def test_losses_of_hard_assignment_are_the_partition_losses(weights):
    X = data()
    fit = fit_assignment(X, START, weights=weights)
    for components, loss in zip(fit.path, fit.losses, strict=True):
        found = partition_loss(components, X, weights=weights, unit="nats")
        assert loss == pytest.approx(found.loss if weights == "equal" else found.weighted_loss)


def test_losses_of_posterior_assignment_are_the_partition_losses():
    X = data()
    fit = fit_assignment(X, START, assignment="posterior")
    for components, loss in zip(fit.path, fit.losses, strict=True):
        assert loss == pytest.approx(partition_loss(components, X, assignment="posterior", unit="nats").loss)


@pytest.mark.parametrize("weights", ["equal", "free"])
def test_hard_assignment_ends_at_its_own_best_fits(weights):
    X = data()
    found = fit_assignment(X, START, weights=weights).components
    labels = (found.log_densities(X) + np.log(found.weights)).argmax(axis=1)
    for b in range(3):
        np.testing.assert_allclose(found.means[b], X[labels == b].mean(axis=0))
        np.testing.assert_allclose(found.covariances[b], np.cov(X[labels == b].T, bias=True))
    shares = np.bincount(labels) / len(X)
    np.testing.assert_allclose(found.weights, shares if weights == "free" else 1 / 3)


def test_weighted_em_is_scikit_learns():
    X = data()
    ours = fit_assignment(X, START, assignment="soft", weights="free", tol=1e-12)
    theirs = ScikitLearn(
        3,
        weights_init=START.weights,
        means_init=START.means,
        precisions_init=np.linalg.inv(START.covariances),
        reg_covar=0,
        tol=1e-12,
        max_iter=2000,
    ).fit(X)
    np.testing.assert_allclose(ours.components.means, theirs.means_, atol=1e-4)
    np.testing.assert_allclose(ours.components.covariances, theirs.covariances_, atol=1e-4)
    np.testing.assert_allclose(ours.components.weights, theirs.weights_, atol=1e-4)


@pytest.mark.parametrize("covariance_type", ["full", "spherical"])
@pytest.mark.parametrize(("assignment", "weights"), ALGORITHMS[:4])
def test_the_fast_form_ends_where_this_one_does(assignment, weights, covariance_type):
    X = data()
    precisions = np.linalg.inv(START.covariances)
    fast = GaussianMixture(
        3,
        covariance_type=covariance_type,
        weights=weights,
        assignment=assignment,
        n_active=None,
        means_init=START.means,
        weights_init=START.weights if weights == "free" else None,
        precisions_init=precisions if covariance_type == "full" else precisions[:, 0, 0],
        tol=1e-11,
        max_iter=2000,
    ).fit(X)
    options = {"assignment": assignment, "weights": weights, "covariance_type": covariance_type}
    found = fit_assignment(X, START, tol=1e-11, **options)
    theirs = Gaussians.from_estimator(fast)
    np.testing.assert_allclose(theirs.means, found.components.means, atol=1e-4)
    np.testing.assert_allclose(theirs.covariances, found.components.covariances, atol=1e-4)
    np.testing.assert_allclose(theirs.weights, found.components.weights, atol=1e-5)
    shift = np.log(3) if (assignment, weights) == ("hard", "equal") else 0.0
    assert -fast.lower_bound_ == pytest.approx(found.losses[-1] + shift, abs=1e-6)


def test_far_clusters_of_one_size_are_those_of_k_means():
    X = np.repeat([[0.0, 0], [30, 0], [0, 40]], 50, axis=0) + np.random.default_rng(0).standard_normal((150, 2))
    start = Gaussians.spherical([[1, 1], [29, 1], [1, 39]], 1.0)
    found = fit_assignment(X, start, covariance_type="spherical").components
    np.testing.assert_allclose(found.means, KMeans(3, init=start.means).fit(X).cluster_centers_)


def test_posterior_descent_ends_where_the_loss_is_least_nearby():
    X = data()
    fit = fit_assignment(X, START, assignment="posterior", covariance_type="spherical", tol=1e-14)
    rng = np.random.default_rng(1)
    for _ in range(20):
        moved = Gaussians.spherical(
            fit.components.means + 1e-3 * rng.standard_normal((3, 2)),
            fit.components.standard_deviations * np.exp(1e-3 * rng.standard_normal(3)),
        )
        assert posterior_loss(moved.log_densities(X), unit="nats")[0].mean() >= fit.losses[-1] - 1e-10


def test_derivatives_of_the_posterior_loss_are_differences(rng):
    log_p = rng.standard_normal((1, 4)) * 3
    error = check_grad(
        lambda v: posterior_loss(v[np.newaxis])[0][0], lambda v: posterior_loss(v[np.newaxis])[1][0], log_p[0]
    )
    assert error < 1e-6


def test_a_component_far_away_is_brought_back():
    X = np.random.default_rng(0).standard_normal((500, 1))
    fit = fit_assignment(X, Gaussians.spherical([0, 100], 1.0))
    assert fit.path[1].means[1, 0] == X.max()
    assert fit.path[1].standard_deviations[1] == 1
    labels = fit.components.log_densities(X).argmax(axis=1)
    assert 0.2 < labels.mean() < 0.8


def test_two_components_far_away_go_to_different_points():
    X = np.random.default_rng(0).standard_normal((500, 1))
    second = fit_assignment(X, Gaussians.spherical([0, 100, 100], 1.0), max_iter=1).path[1]
    assert sorted(second.means[1:, 0]) == sorted(X[:, 0])[-2:]


@pytest.mark.parametrize("covariance_type", ["full", "spherical"])
@pytest.mark.parametrize(("assignment", "weights"), ALGORITHMS)
def test_shift_and_scale_change_nothing_but_the_units(assignment, weights, covariance_type):
    X = data()
    options = {"assignment": assignment, "weights": weights, "covariance_type": covariance_type, "max_iter": 5}
    plain = fit_assignment(X, START, **options).components
    moved_start = Gaussians(2 * START.means + 7, 4 * START.covariances, START.weights)
    moved = fit_assignment(2 * X + 7, moved_start, **options).components
    np.testing.assert_allclose(moved.means, 2 * plain.means + 7, rtol=1e-6)
    np.testing.assert_allclose(moved.standard_deviations, 2 * plain.standard_deviations, rtol=1e-6)


def test_variances_have_a_floor():
    X = np.repeat([[0.0], [1.0], [9.0]], 5, axis=0)
    found = fit_assignment(X, Gaussians.spherical([0, 1, 9], 0.1), reg_covar=0.01).components
    np.testing.assert_allclose(found.covariances.ravel(), 0.01)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"assignment": "other"}, "assignment must be one of"),
        ({"weights": "other"}, "weights must be one of"),
        ({"covariance_type": "diag"}, "covariance_type must be one of"),
        ({"X": np.zeros((9, 3))}, "X has 3 features, but start has 2"),
        ({"X": np.zeros((2, 2))}, "n_samples=2 should be >= 3"),
        ({"max_iter": 0}, "max_iter == 0"),
        ({"tol": -1.0}, "tol == -1.0"),
    ],
)
def test_wrong_arguments_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        fit_assignment(**({"X": data(), "start": START} | changes))


def test_the_start_must_be_gaussians():
    with pytest.raises(TypeError, match="start must be Gaussians"):
        fit_assignment(data(), 3)


@pytest.mark.parametrize(("assignment", "weights"), ALGORITHMS)
def test_a_weight_is_a_repetition_and_a_weight_of_zero_no_point(assignment, weights):
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.normal(size=(120, 2)), rng.normal(size=(120, 2)) + 3])
    w, start = rng.integers(0, 3, 240), Gaussians.spherical([[0.0, 0.0], [2.0, 3.0]], [1.0, 1.5])
    given = {"assignment": assignment, "weights": weights, "max_iter": 12}
    one = fit_assignment(X, start, sample_weight=w, **given)
    other = fit_assignment(np.repeat(X, w, axis=0), start, **given)
    np.testing.assert_allclose(one.losses, other.losses, rtol=1e-7)
    np.testing.assert_allclose(one.components.means, other.components.means, rtol=1e-4)
    assert not np.allclose(one.components.means, fit_assignment(X, start, **given).components.means, atol=1e-3)


@pytest.mark.parametrize(("assignment", "weights"), ALGORITHMS)
def test_blocks_of_rows_change_no_more_than_rounding(assignment, weights, monkeypatch):
    X = np.random.default_rng(3).normal(size=(300, 2))
    start = Gaussians.spherical([[0.0, 0.0], [1.0, 1.0], [50.0, 50.0], [60.0, 60.0]], [1.0, 1.0, 1.0, 1.0])
    given = {"assignment": assignment, "weights": weights, "max_iter": 9}
    whole = fit_assignment(X, start, **given)
    monkeypatch.setattr(partition, "_VALUES", 100)
    parts = fit_assignment(X, start, **given)
    np.testing.assert_allclose(parts.losses, whole.losses, rtol=1e-7)
    np.testing.assert_allclose(parts.components.means, whole.components.means, rtol=1e-4, atol=1e-6)


def test_steps_of_fixed_size_follow_the_gradient():
    start = Gaussians.spherical([[-1.0, 0], [1, 0.5]], [1.0, 1.5])
    X, w = start.sample(200, 0), np.random.default_rng(1).uniform(0.5, 2, 200)
    given = {"assignment": "posterior", "covariance_type": "spherical", "sample_weight": w}
    fit = fit_assignment(X, start, method="gradient", step=0.2, max_iter=1, tol=0, **given)

    def loss(numbers):
        P = Gaussians.spherical(numbers[:4].reshape(2, 2), numbers[4:])
        return w @ posterior_loss(P.log_densities(X))[0] / w.sum()

    begin = np.r_[start.means.ravel(), start.standard_deviations]
    expected = begin - 0.2 * approx_fprime(begin, loss, 1e-7)
    found = fit.components
    np.testing.assert_allclose(np.r_[found.means.ravel(), found.standard_deviations], expected, atol=1e-5)
    assert fit.losses[0] == pytest.approx(loss(begin) * np.log(2))


def test_steps_of_fixed_size_need_spherical_components_and_posterior_assignment():
    start = Gaussians.spherical([-1, 1], 1)
    with pytest.raises(ValueError, match="method='gradient' needs assignment='posterior', weights='equal' and"):
        fit_assignment(start.sample(50, 0), start, method="gradient")


@pytest.mark.parametrize("covariance_type", ["full", "spherical"])
def test_posterior_assignment_with_free_weights_minimizes_the_weighted_loss(covariance_type):
    X, w = data(n=300), np.random.default_rng(3).uniform(0.5, 2, 300)
    given = {"assignment": "posterior", "weights": "free", "covariance_type": covariance_type, "sample_weight": w}
    fit = fit_assignment(X, START, tol=1e-12, **given)

    def loss(P):
        return w @ posterior_loss(P.log_densities(X) + np.log(P.weights), unit="nats")[0] / w.sum()

    found = fit.components
    assert fit.losses[-1] == pytest.approx(loss(found), rel=1e-9)
    assert fit.losses[-1] < fit_assignment(X, START, tol=1e-12, max_iter=3, **given).losses[-1] < fit.losses[0]
    rng = np.random.default_rng(1)
    for _ in range(20):
        weights = found.weights * np.exp(1e-3 * rng.standard_normal(3))
        means = found.means + 1e-3 * rng.standard_normal((3, 2))
        assert loss(Gaussians(means, found.covariances, weights / weights.sum())) >= fit.losses[-1] - 1e-10
