"""The examples and figures of Kearns, Mansour & Ng: runs, rows of results, pictures."""

import numpy as np
import pytest
from reproduction.report import Report, as_json, from_json

from cprime.theory import Gaussians, fit_assignment, posterior_loss
from marks import long_but
from reproduction import Context, entry, kearns, kearns_example_d, kearns_figure_7

CONTEXT = Context(runs=3)
PANELS = {"a": 2, "b": 2, "c": 2, "d": 2}


@pytest.fixture
def small(monkeypatch):
    """Use fewer points than the paper's 10,000, and fewer distances in figure 7."""
    monkeypatch.setattr(kearns, "N_POINTS", 800)
    monkeypatch.setattr(kearns_figure_7, "DISTANCES", (2.0, 4.0))


@pytest.mark.parametrize("letter", long_but(["b"], PANELS))
@pytest.mark.usefixtures("small")
def test_examples_have_rows_and_are_drawn_from_their_json(letter):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    item = entry(f"kearns-example-{letter}")
    result = item.compute(CONTEXT)
    published = [row for row in result.rows if isinstance(row.published, float)]
    assert len(published) >= 9
    assert all(row.met in (True, False, None) for row in published)
    assert sum(row.met is True for row in published) > len(published) / 2
    item.draw(from_json(as_json(Report(result, {}))).result, figure)
    assert len(figure.axes) == PANELS[letter]


@pytest.mark.long
@pytest.mark.usefixtures("small")
def test_figure_7_has_the_order_of_the_source_and_is_drawn():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    item = entry("kearns-figure-7")
    result = item.compute(CONTEXT)
    means = {name: np.array(values) for name, values in result.data["means"].items()}
    assert (means["K-means"] > means["EM"]).all()
    assert (np.array(result.data["truth"]) < 2).all()
    item.draw(from_json(as_json(Report(result, {}))).result, figure)
    assert len(figure.axes) == 1


def test_figure_8_agrees_and_is_drawn():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    item = entry("kearns-figure-8")
    result = item.compute(CONTEXT)
    assert result.rows[0].met is True
    assert result.rows[1].ours < 1e-6
    item.draw(from_json(as_json(Report(result, {}))).result, figure)
    assert len(figure.axes) == 1


def test_samples_are_of_the_sources_size_and_differ():
    first, second = kearns.samples(kearns.EXAMPLES["A"].Q, Context(2))
    assert first.shape == second.shape == (10_000, 1)
    assert not np.array_equal(first, second)


def test_k_means_from_the_truth_of_example_a_pushes_the_components_apart():
    Q, start = kearns.EXAMPLES["A"]
    fit = fit_assignment(kearns.samples(Q, Context(1))[0], start)
    assert fit.components.means[0, 0] < -2.05
    assert fit.components.means[1, 0] > 2.05
    assert (fit.components.standard_deviations < 1.4).all()


def test_plain_gradient_descent_stops_as_the_source_did_on_its_way_to_the_minimum():
    Q, start = kearns.EXAMPLES["A"]
    X = kearns.samples(Q, Context(1))[0]

    def loss(components):
        return posterior_loss(components.log_densities(X))[0].mean()

    given = {"assignment": "posterior", "covariance_type": "spherical"}
    stopped = fit_assignment(X, start, method="gradient", step=0.043, tol=0.03, **given)
    least = fit_assignment(X, start, **given).components
    assert 0 < stopped.n_iter < 1000
    assert loss(start) > loss(stopped.components) > loss(least)


def test_mirrored_solutions_are_turned():
    left = Gaussians.spherical([-10, 3], [1, 5], [0.2, 0.8])
    turned = kearns_example_d._turned(left)
    np.testing.assert_allclose(turned.means[:, 0], [-3, 10])
    np.testing.assert_allclose(turned.standard_deviations, [5, 1])
    np.testing.assert_allclose(turned.weights, [0.8, 0.2])
    assert kearns_example_d._turned(turned) is turned
