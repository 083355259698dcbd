"""The package `cprime.plots` as a whole: required libraries, returned objects, side effects."""

import importlib
import sys
from functools import partial

import numpy as np
import pytest

from cprime import KMeans


def forget_plots(monkeypatch):
    for name in [name for name in sys.modules if name == "cprime.plots" or name.startswith("cprime.plots.")]:
        monkeypatch.delitem(sys.modules, name)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    forget_plots(monkeypatch)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"cprime\.plots needs matplotlib.*pip install matplotlib"):
        importlib.import_module("cprime.plots")


def test_importing_chooses_no_backend(monkeypatch):
    forget_plots(monkeypatch)
    for name in [name for name in sys.modules if name.startswith("matplotlib.pyplot")]:
        monkeypatch.delitem(sys.modules, name)
    importlib.import_module("cprime.plots")
    assert "matplotlib.pyplot" not in sys.modules


def makers():
    """Return a function of `ax` and the number of panels of every display of the package."""
    from drawings import draw, n_panels

    from cprime import plots

    return {name: (partial(draw, name, "few"), n_panels(name, "few")) for name in plots.__all__}


def axes_of(display):
    return list(display.axes_) if hasattr(display, "axes_") else [display.ax_]


def test_every_display_draws_where_it_is_told_or_makes_one_figure():
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    for name, (make, n_panels) in makers().items():
        display = make(None)
        assert type(display).__name__ == name
        assert pyplot.get_fignums() == [display.figure_.number]
        assert display.figure_.get_size_inches()[0] == pytest.approx(89 / 25.4)
        assert display.figure_.axes == axes_of(display)
        assert len(axes_of(display)) == n_panels
        display.figure_.canvas.draw()
        pyplot.close("all")

        own = Figure()
        given = list(np.ravel(own.subplots(1, n_panels)))
        display = make(given[0] if n_panels == 1 else given)
        assert axes_of(display) == given
        assert display.figure_ is own
        assert all(axes.has_data() for axes in given)
        assert pyplot.get_fignums() == []
        own.canvas.draw()


def test_panels_that_do_not_fit_are_an_error_that_says_how_many():
    from matplotlib.figure import Figure

    for make, n_panels in makers().values():
        axes = list(np.ravel(Figure().subplots(1, n_panels + 1)))
        with pytest.raises(ValueError, match=f"ax must have {n_panels} Axes, one for each panel, got {n_panels + 1}"):
            make(axes)
        with pytest.raises(TypeError, match="ax must be Axes of matplotlib or None, got 'here'"):
            make(["here"])


@pytest.mark.long
def test_text_is_legible_in_one_column():
    from matplotlib.text import Text

    for make, _ in makers().values():
        figure = make(None).figure_
        figure.canvas.draw()
        sizes = [text.get_fontsize() for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
        assert not sizes or min(sizes) >= 8


@pytest.mark.parametrize(
    "name", ["ConvergenceDisplay", "StepsDisplay", "ResponsibilitiesDisplay", "SearchSpaceDisplay"]
)
def test_what_is_no_estimator_of_ours_is_an_error(name):
    from sklearn.exceptions import NotFittedError

    from cprime import plots

    display = getattr(plots, name)
    with pytest.raises(
        TypeError, match=r"estimator must be a KMeans, GaussianMixture, .*StudentTMixture or SoftKMeans, got 3"
    ):
        display.from_estimator(3, np.zeros((4, 2)))
    with pytest.raises(NotFittedError, match="not fitted yet"):
        display.from_estimator(KMeans(2), np.zeros((4, 2)))


@pytest.mark.parametrize("name", ["ClustersDisplay", "SizesDisplay", "CodebookDisplay"])
def test_others_need_centers(name):
    from sklearn.cluster import DBSCAN

    from cprime import plots

    X = np.zeros((9, 2))
    arguments = [X] if name == "ClustersDisplay" else []
    with pytest.raises(TypeError, match=r"estimator must have cluster_centers_ or means_, got DBSCAN\(\)"):
        getattr(plots, name).from_estimator(DBSCAN().fit(X), *arguments)
