"""Display of F, L and J by iteration."""

import numpy as np
import pytest

from cprime import GaussianMixture, KMeans, SoftKMeans
from cprime.search import Papers

pytest.importorskip("matplotlib", reason="plots need matplotlib: pip install cprime[plots]")
from matplotlib.text import Text

from cprime.plots import ConvergenceDisplay


@pytest.fixture
def X(rng):
    return rng.standard_normal((400, 3)) + 4 * rng.integers(2, size=(400, 3))


def test_records_are_those_of_the_fit(X):
    km = KMeans(8, init="random", random_state=0).fit(X)
    display = ConvergenceDisplay.from_estimator(km)
    np.testing.assert_array_equal(display.free_energy, [*km.lower_bounds_, km.lower_bound_])
    np.testing.assert_array_equal(display.error, [*km.history_["quantization_error"], km.inertia_])
    above, below = display.axes_
    (line,) = above.lines
    np.testing.assert_array_equal(line.get_xydata(), np.column_stack([range(km.n_iter_ + 1), display.free_energy]))
    np.testing.assert_array_equal(below.lines[0].get_ydata(), display.error)
    assert display.log_likelihood is None
    assert [text.get_text() for text in above.texts] == ["F"]


def test_data_add_the_likelihood_of_the_end(X):
    gm = GaussianMixture(4, n_active=2, random_state=0).fit(X)
    display = ConvergenceDisplay.from_estimator(gm, X)
    bounds = gm.bounds(X)
    assert np.flatnonzero(np.isfinite(display.log_likelihood)).tolist() == [gm.n_iter_]
    assert display.log_likelihood[-1] == bounds.log_likelihood
    texts = [text.get_text() for text in display.axes_[0].texts]
    assert texts == ["F", f"L − F = {bounds.log_likelihood - gm.lower_bound_:.2g}", "L"]
    assert np.isnan(display.error).all()
    assert len(display.axes_) == 1
    with pytest.raises(ValueError, match=r"panels_shown must be \['bounds'\] where J is not known"):
        display.plot(panels_shown=["error"])


def test_a_mixture_of_one_spherical_variance_knows_j_but_of_the_end(X):
    gm = GaussianMixture(4, covariance_type="tied_spherical", random_state=0).fit(X)
    display = ConvergenceDisplay.from_estimator(gm)
    assert len(display.axes_) == 1
    assert np.isnan(display.error[-1])
    (axes,) = display.plot(panels_shown=["error"]).axes_
    assert len(axes.lines[0].get_ydata()) == gm.n_iter_


@pytest.mark.parametrize(
    "estimator",
    [
        KMeans(8, init="random", random_state=0),
        KMeans(8, init="random", n_init=3, random_state=0),
        GaussianMixture(4, covariance_type="tied_spherical", n_active=2, random_state=0),
        GaussianMixture(4, covariance_type="full", init_params="random", n_init=2, random_state=0),
        SoftKMeans(4, n_active=3, n_init=2, random_state=0),
    ],
    ids=str,
)
def test_a_trace_is_the_path_of_the_fit_with_its_start(X, estimator):
    estimator.fit(X)
    display = ConvergenceDisplay.from_estimator(estimator, X, trace=True)
    np.testing.assert_array_equal(display.iterations, range(estimator.n_iter_ + 1))
    np.testing.assert_allclose(display.free_energy[:-1], estimator.lower_bounds_, rtol=1e-12)
    if np.isfinite(estimator.history_["quantization_error"]).any():
        np.testing.assert_allclose(display.error[:-1], estimator.history_["quantization_error"], rtol=1e-10)
    assert len(display.axes_) == (2 if isinstance(estimator, KMeans) else 1)
    bounds = estimator.bounds(X)
    assert display.free_energy[-1] == pytest.approx(bounds.free_energy)
    assert display.log_likelihood[-1] == pytest.approx(bounds.log_likelihood)
    assert (display.log_likelihood >= display.free_energy - 1e-12).all()
    assert (np.diff(display.free_energy) > -1e-9).all()
    assert len(display.axes_[0].collections) == 1  # the area between F and L


def test_the_trace_of_a_weighted_fit_knows_the_weights(X, rng):
    weights = rng.integers(1, 4, len(X))
    repeated = np.repeat(X, weights, axis=0)
    km = KMeans(5, init=X[:5]).fit(X, sample_weight=weights)
    display = ConvergenceDisplay.from_estimator(km, X, sample_weight=weights, trace=True)
    twin = ConvergenceDisplay.from_estimator(KMeans(5, init=X[:5]).fit(repeated), repeated, trace=True)
    for name in ("free_energy", "log_likelihood", "error"):
        np.testing.assert_allclose(getattr(display, name), getattr(twin, name))


def test_a_trace_of_a_partial_search_begins_after_the_first_iteration(X):
    km = KMeans(20, search=Papers(n_neighbors=4), random_state=0).fit(X)
    display = ConvergenceDisplay.from_estimator(km, X, trace=True)
    np.testing.assert_array_equal(display.iterations, range(1, km.n_iter_ + 1))
    assert display.error[-1] == pytest.approx(-km.score(X))


def test_names_of_curves_are_beside_their_ends_after_a_change_of_limits(X):
    gm = GaussianMixture(4, n_active=2, random_state=0).fit(X)
    display = ConvergenceDisplay.from_estimator(gm, X, trace=True)
    (axes,) = display.axes_
    for limits in (axes.get_ylim(), (display.free_energy[-1] - 50, display.free_energy[-1] + 1)):
        axes.set_ylim(*limits)
        display.figure_.canvas.draw()
        names = {text.get_text(): text for text in axes.texts}
        for name, values in (("F", display.free_energy), ("L", display.log_likelihood)):
            box = Text.get_window_extent(names[name])
            end = axes.transData.transform((gm.n_iter_, values[-1]))
            assert abs((box.y0 + box.y1) / 2 - end[1]) < 35  # three names
            assert 0 < box.x0 - end[0] < 25


def test_the_warm_up_is_marked(X):
    km = KMeans(20, search=Papers("estimated", n_neighbors=4, start="random", n_warmup=6), random_state=0).fit(X)
    display = ConvergenceDisplay.from_estimator(km)
    assert display.n_warmup == 6
    assert all(axes.lines[-1].get_xdata() == [6, 6] for axes in display.axes_)
    assert "end of warm-up" in [text.get_text() for text in display.axes_[0].texts]


def test_one_panel_may_be_enough(X):
    km = KMeans(3, random_state=0).fit(X)
    (axes,) = ConvergenceDisplay.from_estimator(km, panels_shown=["error"]).axes_
    np.testing.assert_array_equal(axes.lines[0].get_ydata()[-1], km.inertia_)
    with pytest.raises(ValueError, match=r"panels_shown must be among \['bounds', 'error'\], got 'J'"):
        ConvergenceDisplay.from_estimator(km, panels_shown=["J"])


def test_the_fitted_estimator_is_left_as_it_is(X):
    km = KMeans(3, random_state=0).fit(X)
    before = dict(vars(km))
    ConvergenceDisplay.from_estimator(km, X, trace=True)
    assert vars(km).keys() == before.keys()
    assert all(vars(km)[name] is before[name] for name in before)


def test_a_trace_needs_data(X):
    km = KMeans(3, random_state=0).fit(X)
    with pytest.raises(ValueError, match="X must be the training data where trace=True, got None"):
        ConvergenceDisplay.from_estimator(km, trace=True)
    with pytest.raises(ValueError, match="X has 2 features, but KMeans is expecting 3 features"):
        ConvergenceDisplay.from_estimator(km, X[:, :2])
