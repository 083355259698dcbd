"""Data, fits that die and what two fits must have in common."""

import numpy as np

FITTED = (
    *("cluster_centers_", "means_", "weights_", "covariances_", "variance_", "stiffness_", "inertia_", "labels_"),
    *("counts_", "n_iter_", "converged_", "lower_bound_", "lower_bounds_", "n_relocated_", "certificate_"),
    *("neighbors_", "n_active_", "n_features_in_", "feature_names_in_", "covariance_type_"),
)


class Died(Exception):
    """What a fit is killed with."""


def clustered(n=400, D=3, seed=0, n_clusters=6):
    """Points (n, D) around random places, near enough to each other to need some iterations."""
    rng = np.random.default_rng(seed)
    places = 3.0 * rng.standard_normal((n_clusters, D))
    return places[rng.integers(n_clusters, size=n)] + rng.standard_normal((n, D))


def weights_of(n, seed=1):
    """Weights (n,) with zeros among them."""
    rng = np.random.default_rng(seed)
    return rng.exponential(size=n) * (rng.random(n) > 0.2)


def dying(estimator, passes):
    """The estimator, whose fit dies once it has called back so many times, over all its starts."""
    left = [passes]

    def callback(row):
        left[0] -= 1
        if left[0] == 0:
            raise Died

    return estimator.set_params(callbacks=callback)


def died(estimator, passes, X, **arguments):
    """Whether the fit was long enough to die then."""
    try:
        dying(estimator, passes).fit(X, **arguments)
    except Died:
        return True
    finally:
        estimator.set_params(callbacks=None)
    return False


def assert_same(found, expected):
    """All that is fitted, bit for bit, but for the seconds of the history."""
    for name in FITTED:
        assert hasattr(found, name) == hasattr(expected, name), name
        if hasattr(expected, name):
            assert_equal(getattr(found, name), getattr(expected, name), name)
    for column in expected.history_.dtype.names:
        if column != "seconds":
            np.testing.assert_array_equal(found.history_[column], expected.history_[column], column)


def assert_equal(found, expected, name):
    """Two values of one attribute."""
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
    """Every file below a folder, with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
