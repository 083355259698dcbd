"""Data for tests of checkpoints, fits that are aborted, and comparisons of two fits."""

import numpy as np

FITTED = (
    *("cluster_centers_", "means_", "weights_", "covariances_", "variance_", "stiffness_", "inertia_", "labels_"),
    *("counts_", "n_iter_", "converged_", "lower_bound_", "lower_bounds_", "n_relocated_", "certificate_"),
    *("neighbors_", "n_active_", "n_features_in_", "feature_names_in_", "covariance_type_"),
)


class Died(Exception):
    """Exception that aborts a fit."""


def dying(estimator, passes):
    """Return the estimator with a callback that aborts its fit after `passes` calls, counted over all starts."""
    left = [passes]

    def callback(row):
        left[0] -= 1
        if left[0] == 0:
            raise Died

    return estimator.set_params(callbacks=callback)


def died(estimator, passes, X, **arguments):
    """Return whether the fit was aborted after `passes` calls of its callback, rather than ended before."""
    try:
        dying(estimator, passes).fit(X, **arguments)
    except Died:
        return True
    finally:
        estimator.set_params(callbacks=None)
    return False


def assert_same(found, expected):
    """Check that two fits agree bit for bit in all fitted attributes, except the seconds in the history."""
    for name in FITTED:
        assert hasattr(found, name) == hasattr(expected, name), name
        if hasattr(expected, name):
            assert_equal(getattr(found, name), getattr(expected, name), name)
    for column in expected.history_.dtype.names:
        if column != "seconds":
            np.testing.assert_array_equal(found.history_[column], expected.history_[column], column)


def assert_equal(found, expected, name):
    """Check that two values of one attribute are equal."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), name
        for key, value in expected.items():
            assert_equal(found[key], value, f"{name}[{key!r}]")
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype, name
        np.testing.assert_array_equal(found, expected, name)
    else:
        assert type(found) is type(expected), name
        assert found == expected, name


def content(folder):
    """Return the bytes of every file below a folder, by relative path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
