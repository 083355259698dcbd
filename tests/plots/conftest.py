"""Fixture for tests of displays: they draw without a screen and must not change settings of matplotlib."""

import pytest


@pytest.fixture(autouse=True)
def quiet_pyplot():
    """Use the Agg backend; after the test, close all figures and check that settings are unchanged."""
    matplotlib = pytest.importorskip("matplotlib", reason="plots need matplotlib: pip install cprime[plots]")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    before = dict(matplotlib.rcParams)
    yield
    pyplot.close("all")
    assert dict(matplotlib.rcParams) == before
