"""Functions that issue warnings with the location of a line in the user's code, even from deep in the library."""

import sys
import warnings

from sklearn.exceptions import ConvergenceWarning

_INSIDE = ("cprime", "sklearn")  # packages whose code is not the user's


def warn(message: str, category: type[Warning]) -> None:
    """Warn with the location of the innermost line outside of cprime and scikit-learn, whose decorators wrap fits."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def warn_if_few(n_found: int, n_clusters: int) -> None:
    """Warn if the data have fewer distinct rows than the requested number of clusters."""
    if n_found < n_clusters:
        warn(
            f"Number of distinct clusters ({n_found}) found smaller than n_clusters ({n_clusters}). "
            "Possibly due to duplicate points in X.",
            ConvergenceWarning,
        )
