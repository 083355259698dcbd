"""All Lloyd steps in one call of a kernel give the results of single passes, to the last bit."""

import numpy as np
import pytest

from cprime import KMeans
from cprime.em.k_means import Lloyd


def fitted(X, w, seen, **arguments):
    """Return a fit whose passes are made in one call, or one by one if a callback sees them."""
    callback = (lambda row, estimator: seen.append(row["n_moved"])) if seen is not None else None
    arguments = {"search": "full", "jumps": False, "random_state": 0, **arguments}
    return KMeans(callbacks=callback, **arguments).fit(X, sample_weight=w)


def rows(n, D, dtype):
    rng = np.random.default_rng(n)
    X = 3 * rng.integers(5, size=(n, 1)) + rng.standard_normal((n, D))
    return (20 * X).clip(0, 255).astype(dtype) if dtype == np.uint8 else X.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        {"n_clusters": 1},
        {"n_clusters": 9},
        {"n_clusters": 9, "max_iter": 2},
        {"n_clusters": 9, "tol": 0.5, "n_init": 3},
        {"n_clusters": 5, "init": "random", "jumps": True},
    ],
)
@pytest.mark.parametrize(("n", "D"), [(12, 1), (700, 20)])
def test_one_call_gives_the_bits_of_single_passes(n, D, arguments, weighted, dtype, monkeypatch):
    made, all_passes = [], Lloyd.all_passes

    def watched(*args):
        made.append(all_passes(*args))
        return made[-1]

    monkeypatch.setattr(Lloyd, "all_passes", watched)
    X, seen = rows(n, D, dtype), []
    w = np.random.default_rng(1).exponential(size=n) if weighted else None
    one, other = fitted(X, w, None, **arguments), fitted(X, w, seen, **arguments)
    assert made
    assert made[-1] is not None
    assert len(seen) >= one.n_iter_
    for name in ("cluster_centers_", "labels_", "counts_", "inertia_", "variance_", "lower_bound_", "converged_"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for name in ("phase", "lower_bound", "quantization_error", "n_distances", "n_moved"):
        assert np.array_equal(one.history_[name], other.history_[name]), name


def test_empty_clusters_fixed_centers_and_cosine_are_left_to_single_passes():
    X = rows(300, 3, np.float64)
    far = np.vstack([X[:3], np.full((1, 3), 1e4)])
    for arguments in (
        {"n_clusters": 4, "init": far, "jumps": False},
        {"n_clusters": 4, "fixed": X[:2]},
        {"n_clusters": 4, "metric": "cosine"},
        {"n_clusters": 4, "epsilon": 0.1},
    ):
        one, other = fitted(X, None, None, **arguments), fitted(X, None, [], **arguments)
        assert np.array_equal(one.cluster_centers_, other.cluster_centers_)
        assert one.n_relocated_ == other.n_relocated_
    assert fitted(X, None, None, n_clusters=4, init=far).n_relocated_ == 1
