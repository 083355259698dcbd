"""Runs of k-means and k-means-C′ by iteration: the measured quantities agree with theory."""

import math

import numpy as np
import pytest

from reproduction import Context
from reproduction import truncated_panels as panels
from reproduction import truncated_runs as runs

CONTEXT = Context(runs=3)
ACTIVE = runs.BIRCH_ACTIVE


@pytest.mark.parametrize("n_active", ACTIVE)
@pytest.mark.parametrize("kind", runs.BIRCH)
def test_free_energy_rises_and_bounds_the_likelihood(kind, n_active):
    curves = runs.birch_runs(kind, n_active, CONTEXT).curves
    F, L = curves["free_energy"], curves["log_likelihood"]
    assert F.shape == L.shape == (3, len(runs.BIRCH_ITERATIONS))
    assert (np.diff(F, axis=1) >= -1e-12).all()
    assert (L >= F - 1e-12).all()
    if n_active == runs.N_CLUSTERS:
        np.testing.assert_allclose(L, F, rtol=1e-12)


def test_free_energy_of_k_means_is_that_of_its_quantization_error():
    curves = runs.birch_runs("grid", 1, CONTEXT).curves
    variance = curves["quantization_error"] / 5000
    np.testing.assert_allclose(curves["free_energy"], -math.log(25) - np.log(2 * math.pi * math.e * variance))


def test_all_algorithms_begin_alike():
    first = [runs.birch_runs("random", n_active, CONTEXT) for n_active in ACTIVE]
    for measure in ("log_likelihood", "quantization_error", "purity", "nmi"):
        for other in first[1:]:
            np.testing.assert_allclose(other.curves[measure][:, 0], first[0].curves[measure][:, 0], rtol=1e-12)


@pytest.mark.parametrize("n_active", [1, 2])
def test_last_measures_are_those_of_the_fitted_estimator(n_active):
    known = runs.birch_data("random", 0)
    start = known.data[::100]
    model = runs.estimator(start, n_active, CONTEXT, max_iter=7)
    curves, centers = runs.follow(model, known.data, start, CONTEXT, range(8), known.target)
    bounds = model.bounds(known.data)
    assert curves["free_energy"][-1] == pytest.approx(bounds.free_energy, rel=1e-12)
    assert curves["log_likelihood"][-1] == pytest.approx(bounds.log_likelihood, rel=1e-12)
    np.testing.assert_array_equal(centers, runs.centers(model))
    assert curves["quantization_error"][-1] == pytest.approx(runs.nearest(known.data, centers, CONTEXT)[1])
    assert model.callbacks is None


def test_likelihood_is_that_computed_by_hand():
    X = np.array([[0.0, 0.0], [3.0, 4.0]])
    ours = runs.log_likelihood(X, np.array([[0.0, 0.0], [3.0, 4.0]]), 2.0, CONTEXT)
    assert ours == pytest.approx(math.log((1 + math.exp(-25 / 4)) / 2 / (2 * math.pi * 2.0)))


def test_missed_clusters_are_counted():
    truth = np.array([[0.0, 0.0], [10.0, 0.0], [20.0, 0.0]])
    assert runs.missed(truth[::-1] + 0.1, truth) == 0
    assert runs.missed(np.array([[9.0, 0.0], [11.0, 0.0], [20.0, 1.0]]), truth) == 1


def test_stretch_of_close_pairs_that_were_found():
    truth = np.array([[0.0, 0.0], [2.0, 0.0], [50.0, 0.0], [52.0, 0.0]])
    assert runs.stretch(truth[[2, 0, 3, 1]], truth, 3.0) == pytest.approx(1.0)
    apart = np.array([[-0.5, 0.0], [2.5, 0.0], [50.0, 0.0], [52.0, 0.0]])
    assert runs.stretch(apart, truth, 3.0) == pytest.approx((1.5 + 1.0) / 2)
    shared = np.array([[-0.5, 0.0], [2.5, 0.0], [50.0, 0.0], [50.5, 0.0]])  # the last pair was not found
    assert runs.stretch(shared, truth, 3.0) == pytest.approx(1.5)
    assert math.isnan(runs.stretch(truth, truth, 1.0))


def test_best_run_is_the_first_of_the_best():
    measures = {
        "log_likelihood": [[-2.0, -1.0], [-2.0, -3.0], [-2.0, -1.0 + 1e-9]],
        "quantization_error": [[9.0, 5.0], [9.0, 3.0], [9.0, 4.0]],
        "purity": [[0.0, 0.9], [0.0, 0.5], [0.0, 0.8]],
        "nmi": [[0.0, 0.5], [0.0, 0.6], [0.0, 0.7]],
    }
    some = runs.Runs((0, 1), {name: np.array(curves) for name, curves in measures.items()}, np.zeros((3, 1, 1)))
    assert [panels.best_run(some, name) for name in measures] == [0, 1, 2, 2]


def test_kdd_takes_a_tenth_of_the_runs(monkeypatch, rng):
    X = rng.standard_normal((600, 3)).astype(np.float32)
    monkeypatch.setattr(runs.data, "load", lambda name: X)
    monkeypatch.setattr(runs, "KDD_ITERATIONS", (0, 1, 3))
    runs._kdd_runs.cache_clear()
    counts = {n: len(runs.kdd_runs(1, Context(n)).centers) for n in (1, 2, 10, 40, 100, 500)}
    runs._kdd_runs.cache_clear()
    assert counts == {1: 1, 2: 2, 10: 2, 40: 4, 100: 10, 500: 10}
