"""E-steps and M-steps of every family agree with sums over points that are written out."""

from dataclasses import replace

import numpy as np
import pytest
from model_data import CENTERS, NAMES, C, D, known, points, weights_of

from cprime.execution import local
from cprime.execution.block import Block
from cprime.kernels import as_rows
from cprime.model import Scatter, TiedSpherical
from cprime.model.base import means_of
from cprime.model.interface import Responsibilities
from cprime.model.scatter import ScatterOf
from cprime.model.tied_spherical import FixedVariance, SphericalMoments
from cprime.model.unit import UnitCenters, unit_rows

families = pytest.mark.parametrize("name", NAMES)
free_or_equal = pytest.mark.parametrize("free", [False, True])
with_weights = pytest.mark.parametrize("weighted", [False, True])


def mean_covariances(name, X, q, w, reg_covar=0.0):
    """Return the covariances of the M-step, computed directly from the points."""
    share = w[:, np.newaxis] * q
    counts = share.sum(axis=0)
    means = share.T @ X / counts[:, np.newaxis]
    shift = X[:, np.newaxis] - means
    each = np.einsum("nc,nci,ncj->cij", share, shift, shift)
    if name in ("tied", "tied_spherical"):
        within = each.sum(axis=0) / w.sum()
        return means, within + reg_covar * np.eye(D) if name == "tied" else np.trace(within) / D
    each /= counts[:, None, None]
    each += reg_covar * np.eye(D)
    diagonal = np.diagonal(each, axis1=1, axis2=2)
    return means, {"full": each, "diag": diagonal, "spherical": diagonal.mean(axis=1)}[name]


def prior_of(model, block):
    return None if model.prior is None else model.prior(block, None)[1]


@pytest.mark.parametrize("reg_covar", [0.0, 0.3])
@with_weights
@free_or_equal
@families
def test_the_m_step_is_that_of_the_points(name, free, weighted, reg_covar):
    X, truth = points(), known(name, free, reg_covar)
    block = Block(as_rows(X), weights_of(weighted))
    w = np.ones(len(X)) if not weighted else block.sample_weight
    q = truth.posterior(X)
    new = truth.model.maximise(truth.model.expect_all(block).moments, prior_of(truth.model, block))
    means, covariances = mean_covariances(name, X, q, w, reg_covar)
    np.testing.assert_allclose(new.centers, means, rtol=1e-9)
    np.testing.assert_allclose(new.covariances, covariances, rtol=1e-8, atol=1e-12)
    if free:
        np.testing.assert_allclose(new.weights, w @ q / w.sum(), rtol=1e-9)
    else:
        assert new.weights is None


@free_or_equal
@families
def test_remembered_sums_give_the_parameters_again(name, free):
    model = known(name, free, reg_covar=0.05).model
    shares = model.weights if free else np.array([0.4, 0.3, 0.2, 0.1])
    before = np.copy(model.covariances)
    statistics, scatter = model.pseudo_moments(shares)
    np.testing.assert_array_equal(model.covariances, before)
    assert statistics.counts.sum() == pytest.approx(1.0)
    again = model.maximise(statistics, scatter)
    np.testing.assert_allclose(again.centers, model.centers, rtol=1e-12)
    np.testing.assert_allclose(again.covariances, model.covariances, rtol=1e-12)
    if free:
        np.testing.assert_allclose(again.weights, shares)


@families
def test_a_component_without_points_keeps_its_mean(name):
    X, model = points(), known(name, True).model
    block, q = Block(as_rows(X)), known(name, True).posterior(X)
    q[:, 1] = 0
    q /= q.sum(axis=1, keepdims=True)
    kept = np.tile(np.arange(C, dtype=np.int32), (len(X), 1))
    cost = (q * np.square(X[:, np.newaxis] - CENTERS).sum(axis=2)).sum()
    if name == "tied_spherical":
        cost += (q * np.square(model._handicap)).sum()
    found = model.summarise(block, Responsibilities(kept, q, cost))
    counts, new = found.counts, model.maximise(found, prior_of(model, block))
    np.testing.assert_array_equal(new.centers[1], CENTERS[1])
    others = [0, 2, 3]
    means, covariances = mean_covariances(name, X, q + 1e-300, np.ones(len(X)))
    np.testing.assert_allclose(new.centers[others], means[others], rtol=1e-9)
    if name in ("spherical", "diag", "full"):
        share = counts[others] / counts.sum()
        np.testing.assert_allclose(new.covariances[others], covariances[others], rtol=1e-9)
        np.testing.assert_allclose(new.covariances[1], np.tensordot(share, covariances[others], axes=1), rtol=1e-9)
    else:
        np.testing.assert_allclose(new.covariances, covariances, rtol=1e-9)
    assert new.weights[1] == 0


@pytest.mark.parametrize(("exponent", "power"), [(40, 1), (40, 2), (80, 1), (80, 2)])
@families
def test_far_points_count_whatever_their_responsibility(name, exponent, power):
    """A responsibility of 2⁻⁸⁰ of a point at 2⁴⁰ adds as much to second moments as a responsibility of 1 at 1."""
    near, far = points(10), 2.0**exponent * np.random.default_rng(3).random((5, D))
    X, model = np.vstack([near, far]), known(name, True).model
    centers = CENTERS.copy()
    centers[2] = far.mean(axis=0)
    model = replace(model, centers=centers)
    kept = np.tile(np.array([1, 2], dtype=np.int32), (len(X), 1))
    q = np.where(np.arange(len(X)) < 10, 1.0, 2.0 ** (-power * exponent))
    shares = np.column_stack([q, 1 - q])
    cost = (shares * np.square(X[:, np.newaxis] - centers[kept[0]]).sum(axis=2)).sum()
    if name == "tied_spherical":
        cost += (shares * np.square(model._handicap[[1, 2]])).sum()
    block = Block(as_rows(X))
    new = model.maximise(model.summarise(block, Responsibilities(kept, shares, cost)), prior_of(model, block))
    every = np.zeros((len(X), C))
    every[:, 1:3] = shares
    every[:, [0, 3]] = 1e-300
    means, covariances = mean_covariances(name, X, every, np.ones(len(X)))
    np.testing.assert_allclose(new.centers[1], means[1], rtol=1e-9)
    if name in ("tied", "tied_spherical"):
        np.testing.assert_allclose(new.covariances, covariances, rtol=1e-9)
    else:
        np.testing.assert_allclose(new.covariances[1], covariances[1], rtol=1e-9)


def test_means_of_sums_are_the_old_ones_where_nothing_is():
    counts, sums = np.array([0.5, 0.0, 1.0]), np.array([[4.0], [3.0], [np.inf]])
    old = np.array([[9], [8], [7]], dtype=np.float32)
    means = means_of(counts, sums, old)
    np.testing.assert_array_equal(means, [[8], [8], [7]])
    assert means.dtype == np.float64


def test_squares_come_from_the_scatter_where_the_old_centers_were_far():
    """Σ q ‖x − μ‖² about centers 1e9 away has lost the digits of the new variance, but the scatter has not."""
    X = points()
    far = TiedSpherical(CENTERS + 1e9, 1.0, 1e-20)
    labels = np.arange(len(X), dtype=np.int32)[:, np.newaxis] % C
    counts, sums = np.bincount(labels[:, 0], minlength=C).astype(float), np.zeros((C, D))
    np.add.at(sums, labels[:, 0], X)
    squares = np.square(X - far.centers[labels[:, 0]]).sum()
    moments = SphericalMoments(counts, sums, float(len(X)), squares)
    scatter = ScatterOf(full=False)(Block(as_rows(X)), None)[1]
    means = sums / counts[:, np.newaxis]
    expected = np.square(X - means[labels[:, 0]]).sum()
    new, found = far.recentred(counts, sums, squares, scatter)
    np.testing.assert_allclose(new.centers, means)
    assert found == pytest.approx(expected, rel=1e-10)
    assert far.maximise(moments, scatter).variance == pytest.approx(expected / X.size, rel=1e-10)
    near = TiedSpherical(means + 0.01, 1.0, 1e-20)
    of_near = np.square(X - near.centers[labels[:, 0]]).sum()
    wrong = Scatter(scatter.mean, of_near * 1.01, scatter.weight)
    assert near.recentred(counts, sums, of_near, wrong)[1] == pytest.approx(expected, rel=1e-10)
    assert near.recentred(counts, sums, of_near)[1] == pytest.approx(expected, rel=1e-10)
    assert near.recentred(counts, sums, 0.0)[1] == 0.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@with_weights
@pytest.mark.parametrize("full", [False, True])
def test_the_scatter_is_that_about_the_mean(full, weighted, dtype):
    """The scatter is accurate even if the mean is far from 0 and float32 rounds it by a hundredth of the spread."""
    X, w = (points() + 1e6).astype(dtype), weights_of(weighted)
    data = local(X, w)
    found = data.each(ScatterOf(full))
    share = np.ones(len(X)) if w is None else w
    mean = share @ X.astype(np.float64) / share.sum()
    matrix = (share[:, np.newaxis] * (X - mean)).T @ (X - mean)
    assert not data.placed
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    exact = matrix if full else np.trace(matrix)
    np.testing.assert_allclose(found.squares, exact, rtol=1e-7 if dtype == np.float64 else 1e-5)
    assert found.weight == pytest.approx(share.sum())


@pytest.mark.parametrize("full", [False, True])
def test_scatters_add_up_and_scale(full):
    X, w = points(), weights_of(True)
    whole = ScatterOf(full)(Block(as_rows(X), w), None)[1]
    parts = [ScatterOf(full)(Block(as_rows(X[rows]), w[rows]), None)[1] for rows in (slice(0, 7), slice(7, None))]
    both = parts[0] + parts[1]
    np.testing.assert_allclose(both.mean, whole.mean)
    np.testing.assert_allclose(both.squares, whole.squares)
    assert both.weight == pytest.approx(whole.weight)
    triple = whole.scaled(3.0)
    np.testing.assert_array_equal(triple.mean, whole.mean)
    np.testing.assert_allclose(triple.squares, 3 * whole.squares)
    assert triple.weight == pytest.approx(3 * whole.weight)
    nothing = ScatterOf(full)(Block(as_rows(X[:2]), np.zeros(2)), None)[1]
    assert (nothing + nothing).weight == 0
    for total in (nothing + whole, whole + nothing):
        np.testing.assert_allclose(total.mean, whole.mean)
        np.testing.assert_allclose(total.squares, whole.squares)


def test_a_stiff_variance_and_weights_stay():
    model = FixedVariance(CENTERS, 0.7, 1e-20)
    new = model.maximise(model.expect_all(Block(as_rows(points()))).moments)
    assert (new.variance, new.weights) == (0.7, None)
    expected = known("tied_spherical").model.maximise(model.expect_all(Block(as_rows(points()))).moments)
    np.testing.assert_array_equal(new.centers, expected.centers)


def test_directions_are_scaled_sums_and_what_has_none_stays():
    old = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    X = unit_rows(as_rows(np.array([[3.0, 4.0], [4.0, 3.0], [1.0, 0.0], [-1.0, 0.0]])), "X").given()
    sums = np.vstack([X[0] + X[1], X[2] + X[3], np.zeros(2)])
    labels = [0, 0, 1, 1]
    before = np.square(X - old[labels]).sum()
    model, squares = UnitCenters(old, 1.0, 1e-20).recentred(np.array([2.0, 2.0, 0.0]), sums, before)
    np.testing.assert_allclose(model.centers, [[np.sqrt(0.5), np.sqrt(0.5)], [0, 1], [0.6, 0.8]])
    assert squares == pytest.approx(np.square(X - model.centers[labels]).sum())
    tight = UnitCenters(old, 1.0, 1e-20).recentred(
        np.array([1.0, 0, 0]), np.array([[1 + 1e-9, 0], [0, 0], [0, 0]]), 0.0
    )
    assert tight[1] == 0.0
    rounded = (np.array([1e6, 1.0, 1.0]), np.array([[1e-11, 0], [0, -1.0], [1.0, 0]]), 0.0)
    np.testing.assert_array_equal(
        UnitCenters(old, 1.0, 1e-20).recentred(*rounded)[0].centers, [[1, 0], [0, -1], [1, 0]]
    )


def test_rows_of_length_one_keep_their_type_and_zeros_are_refused():
    X = np.array([[3, 4], [0, 2]], dtype=np.float32)
    scaled = unit_rows(as_rows(X), "X").given()
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled, [[0.6, 0.8], [0, 1]], rtol=1e-7)
    with pytest.raises(ValueError, match=r"init must have no rows of zeros with metric='cosine', got 2: rows 1, 2\."):
        unit_rows(as_rows(np.array([[1.0, 0], [0, 0], [0, 0]])), "init")
