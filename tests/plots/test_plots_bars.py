"""Displays of cluster sizes, codebooks, responsibilities and decompositions."""

from types import SimpleNamespace

import numpy as np
import pytest

from cprime import GaussianMixture, KMeans
from cprime.theory import partition_loss

pytest.importorskip("matplotlib", reason="plots need matplotlib: pip install cprime[plots]")
from matplotlib.container import ErrorbarContainer

from cprime.plots import CodebookDisplay, DecompositionDisplay, ResponsibilitiesDisplay, SizesDisplay

LOSS = {"modeling": 0.25, "entropy": 3.0, "partition_entropy": 1.0, "assignment_entropy": 0.5}


@pytest.fixture
def X(rng):
    return rng.standard_normal((500, 4)) + 3 * rng.integers(2, size=(500, 4))


def test_sizes_count_the_labels(X):
    km = KMeans(7, random_state=0).fit(X)
    display = SizesDisplay.from_estimator(km)
    np.testing.assert_array_equal(display.sizes, np.bincount(km.labels_))
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert widths == sorted(display.sizes, reverse=True)
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert [display.sizes[int(name)] for name in names] == widths
    assert [text.get_text() for text in display.ax_.texts] == [*(f"{width:g}" for width in widths), "N/C"]


def test_sizes_may_be_of_other_points_and_of_weights(X):
    km = KMeans(7, random_state=0).fit(X)
    weights = np.arange(100.0)
    display = SizesDisplay.from_estimator(km, X[:100], sample_weight=weights)
    np.testing.assert_allclose(display.sizes, np.bincount(km.predict(X[:100]), weights, minlength=7))
    mixture = GaussianMixture(3, random_state=0, max_iter=500).fit(X).to_sklearn()
    assert SizesDisplay.from_estimator(mixture, X).sizes.sum() == 500
    with pytest.raises(AttributeError, match="X must be given: GaussianMixture has no labels_"):
        SizesDisplay.from_estimator(mixture)


def test_sizes_of_many_are_a_curve():
    display = SizesDisplay([*range(40), 0]).plot()
    np.testing.assert_array_equal(display.ax_.lines[0].get_ydata(), [*range(39, -1, -1), 0])
    assert not display.ax_.patches
    assert display.ax_.get_title(loc="left") == "largest 39, median 19, smallest 0, 2 empty"
    assert display.plot(log=True).ax_.get_yscale() == "log"
    assert SizesDisplay([3, 4]).plot(log=True).ax_.get_xscale() == "log"


def test_tiles_are_the_centers_the_largest_first(X):
    km = KMeans(5, random_state=0).fit(X)
    display = CodebookDisplay.from_estimator(km, columns=3)
    order = np.argsort(-np.bincount(km.labels_), kind="stable")
    np.testing.assert_array_equal(display.tiles, km.cluster_centers_[order].reshape(5, 2, 2))
    low, high = km.cluster_centers_.min(), km.cluster_centers_.max()
    side = 16 + 2  # a tile and the space between tiles
    assert display.image_.shape == (2 * side - 2, 3 * side - 2, 3)
    np.testing.assert_allclose(display.image_[::8, ::8][:2, :2, 0], (display.tiles[0] - low) / (high - low))
    np.testing.assert_allclose(display.image_[side::8, side::8][:2, :2, 0], (display.tiles[4] - low) / (high - low))
    assert (display.image_[16:18] == 1).all()
    assert (display.image_[side:, 2 * side :] == 1).all()
    np.testing.assert_array_equal(display.ax_.images[0].get_array(), display.image_)
    by_index = CodebookDisplay.from_estimator(km, order="index", image_shape=(1, 4))
    np.testing.assert_array_equal(by_index.tiles[:, 0], km.cluster_centers_)


@pytest.mark.parametrize(("top", "limits"), [(0.8, (0, 1)), (200, (0, 255)), (300, (100, 300))])
def test_colors_of_a_palette_stay_what_they_are(top, limits):
    palette = np.linspace(min(100, 0.1 * top) if top < 256 else 100, top, 12).reshape(4, 1, 1, 3)
    display = CodebookDisplay(palette).plot()
    assert display.limits == pytest.approx(limits)
    shown = (palette[0, 0, 0] - limits[0]) / (limits[1] - limits[0])
    np.testing.assert_allclose(display.image_[0, 0], shown)


def test_the_sheet_has_few_empty_places():
    tiles = np.zeros((32, 2, 2))
    assert CodebookDisplay(tiles, (0, 1)).plot().image_.shape[:2] == (4 * 18 - 2, 8 * 18 - 2)


def test_tiles_of_another_shape_are_refused(X):
    km = KMeans(3, random_state=0).fit(X[:, :2])
    with pytest.raises(ValueError, match="image_shape must have as many values as there are features, 2; a square has"):
        CodebookDisplay.from_estimator(km)
    with pytest.raises(ValueError, match=r"features, 2; image_shape=\(3, 3\) has not"):
        CodebookDisplay.from_estimator(km, image_shape=(3, 3))
    with pytest.raises(ValueError, match=r"tiles must be of shape .*, got \(3, 4\)"):
        CodebookDisplay(np.zeros((3, 4)))
    with pytest.raises(ValueError, match=r"order must be one of \['size', 'index'\], got 'hue'"):
        CodebookDisplay.from_estimator(km, image_shape=(1, 2), order="hue")


def test_truncated_responsibilities_are_those_of_the_estimator(X):
    gm = GaussianMixture(8, covariance_type="diag", n_active=3, random_state=0, max_iter=500).fit(X)
    for x in X[:5]:
        display = ResponsibilitiesDisplay.from_estimator(gm, x)
        np.testing.assert_allclose(display.exact, gm.to_sklearn().predict_proba(x[np.newaxis])[0], atol=1e-9)
        np.testing.assert_allclose(display.truncated, gm.predict_proba(x[np.newaxis])[0], atol=1e-12)
        above, below = display.axes_
        np.testing.assert_allclose([bar.get_height() for bar in above.patches], display.exact)
        np.testing.assert_allclose([bar.get_height() for bar in below.patches], display.truncated)


def test_the_gap_of_a_point_is_that_of_its_bounds(X):
    gm = GaussianMixture(8, covariance_type="tied_spherical", n_active=2, random_state=0, max_iter=500).fit(X)
    display = ResponsibilitiesDisplay.from_estimator(gm, X[3])
    gap = gm.bounds(X[3:4]).kl_gap
    assert -np.log(display.exact[display.kept].sum()) == pytest.approx(gap, abs=1e-9)
    assert f"gap {gap:.2g} nats" in display.axes_[0].get_title(loc="left")
    assert ResponsibilitiesDisplay.from_estimator(gm, X[3], n_active=8).truncated == pytest.approx(display.exact)


def test_k_means_gives_all_to_one(X):
    km = KMeans(4, random_state=0).fit(X.astype(np.float32))
    display = ResponsibilitiesDisplay.from_estimator(km, X[0])
    expected = np.exp(-np.square(X[0] - km.cluster_centers_).sum(axis=1) / (2 * km.variance_))
    np.testing.assert_allclose(display.exact, expected / expected.sum(), rtol=1e-4)
    np.testing.assert_array_equal(display.truncated, np.eye(4)[km.predict(X[:1])[0]])


def test_the_greatest_of_many_are_shown(rng):
    exact = rng.dirichlet(np.ones(50))
    display = ResponsibilitiesDisplay(exact, 2).plot()
    np.testing.assert_array_equal(display.shown, np.argsort(-exact)[:20])
    assert [label.get_text() for label in display.axes_[1].get_xticklabels()] == [str(c) for c in display.shown]


def test_no_more_are_kept_than_there_are():
    with pytest.raises(ValueError, match="n_active must be at most the 2 components, got 3"):
        ResponsibilitiesDisplay([0.5, 0.5], 3)


@pytest.mark.parametrize("form", [dict, lambda parts: SimpleNamespace(**parts)])
def test_bars_of_a_loss_add_up(form):
    display = DecompositionDisplay.from_loss(form({**LOSS, "unit": "nats"}))
    assert display.total == pytest.approx(2.75)
    bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in display.ax_.patches]
    np.testing.assert_allclose(bars, [(0, 0.25), (0.25, 3.25), (3.25, 2.25), (2.25, 2.75), (0, 2.75)])
    assert [label.get_text() for label in display.ax_.get_yticklabels()][-1] == "loss"
    assert [text.get_text() for text in display.ax_.texts] == ["0.250", "3.000", "−1.000", "0.500", "2.750"]
    assert display.ax_.get_xlabel() == "nats"
    assert display.plot().parts == display.parts


def test_intervals_are_drawn_with_the_sign_of_their_part():
    intervals = {"loss": (2.5, 2.9), "partition_entropy": (0.9, 1.2), "terms": ([0.1], [0.2])}
    display = DecompositionDisplay.from_loss({**LOSS, "intervals": intervals})
    assert display.intervals == {"loss": (2.5, 2.9), "−H(w)": (-1.2, -0.9)}
    drawn = [each for each in display.ax_.containers if isinstance(each, ErrorbarContainer)]
    ends = [each.lines[2][0].get_segments()[0][:, 0] for each in drawn]
    np.testing.assert_allclose(ends, [(3.25 - 1.2, 3.25 - 0.9), (2.5, 2.9)])


def test_a_loss_without_its_parts_is_one_bar():
    with pytest.raises(ValueError, match=r"loss must have modeling, .*; it has no entropy, assignment_entropy"):
        DecompositionDisplay.from_loss({"modeling": 1.0, "partition_entropy": 0.0})
    with pytest.raises(ValueError, match="parts must have at least one part, got none"):
        DecompositionDisplay({})


def test_the_loss_of_a_fitted_model_is_shown(X):
    theory = pytest.importorskip("cprime.theory", reason="cprime.theory is not there")
    gm = GaussianMixture(2, random_state=0, max_iter=500).fit(X)
    display = DecompositionDisplay.from_estimator(gm, X, unit="nats")
    loss = theory.partition_loss(gm, X, unit="nats")
    assert display.total == pytest.approx(loss.loss)
    assert display.unit == "nats"


def test_decomposition_of_many_rows_is_of_some_of_them(rng, monkeypatch):
    X = rng.standard_normal((400, 3))
    km = KMeans(40, random_state=0).fit(X)
    seen = []

    def counting(estimator, Q, **options):
        seen.append(len(Q))
        return partition_loss(estimator, Q, **options)

    monkeypatch.setattr("cprime.plots.decomposition.partition_loss", counting)
    few = DecompositionDisplay.from_estimator(km, X, max_rows=150)
    again = DecompositionDisplay.from_estimator(km, X, max_rows=150)
    every = DecompositionDisplay.from_estimator(km, X, max_rows=None)
    assert seen == [150, 150, 400]
    assert few.parts == again.parts
    assert few.total == pytest.approx(every.total, rel=0.1)
    with pytest.raises(ValueError, match="max_rows == 1, must be >= 2"):
        DecompositionDisplay.from_estimator(km, X, max_rows=1)
