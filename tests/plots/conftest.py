"""Fixture for displays: they draw without a screen and leave pyplot unchanged except for new figures."""

import pytest


@pytest.fixture(autouse=True)
def quiet_pyplot():
    """Use the Agg backend; after the test, check that no figure remains and that settings are unchanged."""
    matplotlib = pytest.importorskip("matplotlib", reason="plots need matplotlib: pip install cprime[plots]")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    before = dict(matplotlib.rcParams)
    yield
    pyplot.close("all")
    assert dict(matplotlib.rcParams) == before
