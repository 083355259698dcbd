"""Callbacks of fits: their interface, and the progress bar that `verbose=1` shows."""

from cprime.callbacks.bar import ProgressBar, RowsProgress, shown
from cprime.callbacks.protocol import Callback, resolve

__all__ = ["Callback", "ProgressBar", "RowsProgress", "resolve", "shown"]


def __dir__() -> list[str]:
    return __all__
