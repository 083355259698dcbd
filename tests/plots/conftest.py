"""Displays draw without a screen, and change nothing of pyplot but that a figure is there."""

import pytest


@pytest.fixture(autouse=True)
def quiet_pyplot():
    """Agg, no figures left behind, settings as they were."""
    matplotlib = pytest.importorskip("matplotlib", reason="plots need matplotlib: pip install cprime[plots]")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    before = dict(matplotlib.rcParams)
    yield
    pyplot.close("all")
    assert dict(matplotlib.rcParams) == before
