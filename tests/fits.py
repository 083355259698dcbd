"""Points, weights, results of fits, and fits that are aborted, for tests of several packages."""

import numpy as np


def clustered(n=500, D=3, dtype=np.float64, seed=0, n_clusters=6, spread=3.0):
    """Return points (n, D) of unit variance around a few random centers, so that clusters overlap."""
    rng = np.random.default_rng(seed)
    places = spread * rng.standard_normal((n_clusters, D))
    return (places[rng.integers(n_clusters, size=n)] + rng.standard_normal((n, D))).astype(dtype)


def random_weights(n, seed=1):
    """Return weights (n,) float64, some of which are zero."""
    rng = np.random.default_rng(seed)
    return rng.exponential(size=n) * (rng.random(n) > 0.2)


def squared_distances(X, centers):
    """Return ‖x_n − μ_c‖², (n, C) float64."""
    difference = np.asarray(X, dtype=np.float64)[:, np.newaxis] - np.asarray(centers, dtype=np.float64)
    return np.square(difference).sum(axis=2)


def centers_of(estimator):
    return estimator.cluster_centers_ if hasattr(estimator, "cluster_centers_") else estimator.means_


def outcome(estimator):
    """Return all fitted attributes by name, in a form that can be compared, except for the seconds of the fit."""
    found = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    history = found.pop("history_", None)
    found |= found.pop("certificate_", None) or {}
    if history is not None:
        found |= {name: history[name] for name in history.dtype.names if name != "seconds"}
    arrays = {name: np.asarray(value) for name, value in found.items()}
    return {
        name: array.tolist() if array.dtype == object else (array.dtype, array.shape, array.tobytes())
        for name, array in arrays.items()
    }


def assert_same(found, expected):
    """Check that two fits are bit-identical in all fitted attributes, except for the seconds that they took."""
    ours, theirs = outcome(found), outcome(expected)
    assert ours.keys() == theirs.keys()
    assert [name for name, value in theirs.items() if ours[name] != value] == []


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
