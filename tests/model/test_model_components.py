"""The methods that models provide for searches agree with costs that are written out."""

import numpy as np
import pytest
from model_data import CENTERS, SHARES, C, D, known, matrices, points
from scipy.stats import multivariate_normal

from cprime.execution.block import ActiveSet
from cprime.kernels import as_rows
from cprime.model import Diag, FullCovariance, Spherical
from cprime.neighbors import components as module
from cprime.neighbors.components import Centers
from cprime.search import graph


def of(name, free=True):
    model = known(name, free).model
    return model.components(), -2 * (known(name, free).joint(points()) - model.log_scale)


def lists_of(ids):
    return np.array(ids, dtype=np.int32)


UNITS = (2.0**-900, 2.0**-1000)
LISTS = lists_of([[1, 2], [0, 3], [3, -1], [2, 0]])
WINNERS = np.arange(50, dtype=np.int32) % C
CASES = {"centers": None, "diag": "diag", "full": "full"}


@pytest.fixture(params=list(CASES))
def case(request):
    """Return components, points, and the costs of all pairs (n, C)."""
    X = points()
    if request.param == "centers":
        return Centers(CENTERS), as_rows(X), np.square(X[:, np.newaxis] - CENTERS).sum(axis=2)
    components, costs = of(request.param)
    return components, as_rows(X), costs


def test_search_of_all_finds_the_best(case):
    components, X, costs = case
    ids, found = components.best(X, 2)
    np.testing.assert_array_equal(ids, np.argsort(costs, axis=1)[:, :2])
    np.testing.assert_allclose(found, np.sort(costs, axis=1)[:, :2], rtol=1e-9, atol=1e-12)
    hinted = components.best(X, 2, hint=ids)
    np.testing.assert_array_equal(hinted[0], ids)


def offered(previous, lists=LISTS):
    """Return a mask (n, C) of each point's candidates: its previous components and the list of the first of them."""
    there = np.zeros((len(previous), C), dtype=bool)
    for row, own in zip(there, previous, strict=True):
        row[own] = True
        row[[c for c in lists[own[0]] if c >= 0]] = True
    return there


def test_search_of_a_list_finds_its_best(case):
    components, X, costs = case
    labels, found = components.reassign(X, LISTS, WINNERS)
    expected = np.where(offered(WINNERS[:, np.newaxis]), costs, np.inf)
    np.testing.assert_array_equal(labels, expected.argmin(axis=1))
    np.testing.assert_allclose(found, expected.min(axis=1), rtol=1e-9, atol=1e-12)
    assert labels.shape == found.shape == (len(X),)


def test_search_of_active_sets_and_lists_finds_their_best(case):
    components, X, costs = case
    previous = np.column_stack([WINNERS, (WINNERS + 1) % C]).astype(np.int32)
    expected = np.where(offered(previous), costs, np.inf)
    ids, found = components.top_k(X, LISTS, previous, 2)
    np.testing.assert_array_equal(ids, np.argsort(expected, axis=1)[:, :2])
    np.testing.assert_allclose(found, np.sort(expected, axis=1)[:, :2], rtol=1e-9, atol=1e-12)


def test_search_of_lists_and_drawn_components_finds_their_best(case):
    components, X, costs = case
    previous = np.column_stack([WINNERS, (WINNERS + 2) % C]).astype(np.int32)
    extra = ((WINNERS + 3) % C)[:, np.newaxis].astype(np.int32)
    there = offered(previous) | offered(previous[:, ::-1]) | np.eye(C, dtype=bool)[extra[:, 0]]
    expected = np.where(there, costs, np.inf)
    found = components.search_lists(X, LISTS, previous, 2, extra, evidence=True)
    np.testing.assert_array_equal(found.kept, np.argsort(expected, axis=1)[:, :2])
    np.testing.assert_allclose(found.costs, np.sort(expected, axis=1)[:, :2], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found.counts, there.sum(axis=1))
    evidence, weights = found.evidence, np.zeros((C, C))
    weights[np.repeat(np.arange(C), np.diff(evidence.indptr)), evidence.indices] = evidence.weights
    np.testing.assert_array_equal(weights, (np.arange(C)[:, np.newaxis] == found.kept[:, 0]) @ there.astype(float))
    assert components.search_lists(X, LISTS, previous, 2).evidence is None


def test_points_are_compared_with_centers_as_they_are_unless_said_otherwise():
    assert Centers(CENTERS).steady
    assert not Centers(CENTERS, steady=False).steady


def test_changed_components_are_marked():
    after = CENTERS.copy()
    after[2, 1] += 1e-9
    np.testing.assert_array_equal(Centers(after).changed((CENTERS,)), [False, False, True, False])
    assert of("diag")[0].changed(()).tolist() == [True] * C


def test_audits_compare_excess_costs_with_the_least_costs_or_with_the_size_of_the_data(case):
    components, X, costs = case
    no_lists, worst = np.empty((C, 0), dtype=np.int32), costs.argmax(axis=1).astype(np.int32)
    excess, least = (costs.max(axis=1) - costs.min(axis=1)).sum(), costs.min(axis=1).sum()
    scale = least if components.squared_distances else len(X) * D
    found = graph._list_quality(components, no_lists, X, ActiveSet(worst[:, np.newaxis]))
    assert found == (0.0, pytest.approx(excess / scale, rel=1e-5))


def test_lists_of_centers_begin_with_the_nearest():
    between = np.square(CENTERS[:, np.newaxis] - CENTERS).sum(axis=2)
    np.testing.assert_array_equal(Centers(CENTERS).lists(3), np.argsort(between, axis=1)[:, 1:3])


@pytest.mark.parametrize("name", ["spherical", "diag", "full"])
def test_lists_of_gaussians_are_by_mean_costs_of_what_a_component_generates(name):
    """Lists follow E_c[−2 log p(c̃, x)], here from a large sample; it is 2 KL(c‖c̃) − 2 log π_c̃ + a constant of c."""
    truth = known(name, True)
    rng = np.random.default_rng(0)
    means = np.empty((C, C))
    for c in range(C):
        X = multivariate_normal(CENTERS[c], truth.covariances[c]).rvs(60_000, random_state=rng)
        means[c] = -2 * truth.joint(X).mean(axis=0)
    expected = np.array([[b for b in np.argsort(row) if b != c] for c, row in enumerate(means)])
    np.testing.assert_array_equal(truth.model.components().lists(C), expected)


@pytest.mark.parametrize("family", [Spherical, Diag, FullCovariance])
def test_lists_are_those_of_larger_variances_where_mean_costs_leave_float64(family):
    """If variances near 2⁻¹⁰⁰⁰ make mean costs overflow 2¹⁰²⁴, the lists equal those for larger variances."""
    variances = {
        Spherical: np.array([0.5, 1.0, 2.0, 0.8]),
        Diag: matrices()[:, 0] ** 2 + 0.1,
        FullCovariance: matrices(),
    }[family]
    lists = [family(2.0**15 * CENTERS, variances * unit, weights=SHARES).components().lists(C) for unit in UNITS]
    np.testing.assert_array_equal(*lists)


def test_lists_of_very_many_gaussians_are_by_the_distances_of_their_means(monkeypatch):
    monkeypatch.setattr(module, "EXACT_LISTS", C - 1)
    components = of("full")[0]
    between = np.square(CENTERS[:, np.newaxis] - CENTERS).sum(axis=2)
    nearest = np.argsort(between, axis=1)[:, 1:]
    np.testing.assert_array_equal(components.lists(3), nearest[:, :2])
    np.testing.assert_array_equal(components.lists(C, lists_of(nearest)), nearest)
    monkeypatch.setattr(module, "EXACT_LISTS", C)
    assert not np.array_equal(components.lists(C), nearest)


def test_costs_of_gaussians_are_relative_to_the_least_offset():
    """The constant common to all costs is part of `log_scale`, so that float32 resolves their differences."""
    model = known("full", True).model
    half_logs = 0.5 * np.linalg.slogdet(2 * np.pi * matrices())[1] - np.log(SHARES)
    np.testing.assert_allclose(model.gaussians.offsets, 2 * (half_logs - half_logs.min()), rtol=1e-10, atol=1e-12)
    assert model.log_scale == pytest.approx(-half_logs.min())
