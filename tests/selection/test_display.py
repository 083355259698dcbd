"""The plot of a sweep: its content, and the error without matplotlib."""

import sys

import numpy as np
import pytest
from selection_data import apart

from cprime import KMeans
from cprime.selection import SelectionDisplay, sweep

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _without_windows():
    before = pyplot.get_backend()
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")
    pyplot.switch_backend(before)


def texts(display):
    return [text.get_text() for text in display.ax_.texts]


def test_every_criterion_has_a_curve_with_its_best_named():
    X = apart(5, 2)[0]
    found = sweep(KMeans(), X, range(1, 13), random_state=0)
    display = SelectionDisplay.from_sweep(found)
    assert set(display.lines_) == {"bic", "icl", "aic", "free_energy_bic", "held_out"}
    bic = display.lines_["bic"]
    assert np.array_equal(bic.get_xdata(), found.n_components)
    assert np.allclose(bic.get_ydata(), found.bic / (2 * len(X)))
    assert np.allclose(display.lines_["held_out"].get_ydata(), -found.held_out)
    assert "BIC, best: 5" in texts(display)
    from matplotlib.text import Text

    display.figure_.canvas.draw()
    for line in display.lines_.values():
        (name,) = [text for text in display.ax_.texts if text.get_color() == line.get_color()]
        box, end = Text.get_window_extent(name), display.ax_.transData.transform(line.get_xydata()[-1])
        assert abs((box.y0 + box.y1) / 2 - end[1]) < 50  # four names of 8 points in pixels
        assert 0 < box.x0 - end[0] < 40
    assert "elbow of J: 5" in texts(display)
    assert display.figure_ is display.ax_.figure


def test_given_axes_are_drawn_on_and_what_was_not_computed_is_left_out():
    ax = pyplot.subplots()[1]
    X = np.random.default_rng(0).standard_normal((200, 2))
    display = SelectionDisplay.from_estimator(
        KMeans(), X, range(1, 9), ax=ax, holdout=None, criteria=("aic",), random_state=0
    )
    assert display.ax_ is ax
    assert set(display.lines_) == {"aic"}
    assert not any("elbow" in text for text in texts(display))


def test_a_missing_matplotlib_is_named(monkeypatch):
    found = sweep(KMeans(), apart(3, 2, 20)[0], [2, 3], random_state=0)
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        SelectionDisplay.from_sweep(found)
    with pytest.raises(ImportError, match="needs matplotlib"):
        SelectionDisplay.from_estimator(KMeans(), np.ones((5, 2)), [1, 2])
