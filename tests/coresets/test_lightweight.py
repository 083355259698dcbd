"""Lightweight coresets: sampling probabilities and weights, unbiased costs, and fits evaluated on all data."""

import tracemalloc

import numpy as np
import pytest

from cprime import KMeans, coresets
from cprime.coresets import lightweight

DTYPES = (np.float32, np.float64)


def points(n=300, D=3, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    return (5 * rng.standard_normal((4, D))[rng.integers(4, size=n)] + rng.standard_normal((n, D))).astype(dtype)


def probabilities(X, w):
    """Return the sampling probabilities of a lightweight coreset by their formula, (n,)."""
    squares = ((X - np.average(X, axis=0, weights=w)) ** 2).sum(axis=1)
    return w / (2 * w.sum()) + w * squares / (2 * (w * squares).sum())


def cost(X, centers, w):
    """Return J = Σ_n w_n min_c ‖x_n − μ_c‖² for given centers."""
    squares = ((X[:, np.newaxis, :].astype(np.float64) - centers) ** 2).sum(axis=2)
    return (w * squares.min(axis=1)).sum()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_probabilities_and_weights_are_the_formula(dtype, weighted):
    X = points(60, dtype=dtype)
    w = np.random.default_rng(1).exponential(size=60) if weighted else np.ones(60)
    w[7] = 0 if weighted else 1
    q = probabilities(X.astype(np.float64), w)
    m = 200_000
    core = lightweight(X, m, sample_weight=w if weighted else None, random_state=0)
    assert core.points.dtype == dtype
    assert np.array_equal(core.points, X[core.indices])
    np.testing.assert_allclose(core.weights, (w / (m * np.where(q > 0, q, 1)))[core.indices], rtol=1e-5)
    counts = np.bincount(core.indices, minlength=60)
    assert np.array_equal(counts[q == 0], np.zeros((q == 0).sum()))
    possible = q > 0
    chi_squared = ((counts - m * q)[possible] ** 2 / (m * q[possible])).sum()
    assert chi_squared < 110  # 59 degrees of freedom: exceeded once in 20,000


@pytest.mark.parametrize("weighted", [False, True])
def test_cost_and_total_weight_are_unbiased(weighted):
    X = points()
    w = np.random.default_rng(1).exponential(size=len(X)) if weighted else np.ones(len(X))
    centers = [X[:1], X[[3, 50, 200]], np.array([[30.0, 0.0, 0.0], [-2.0, 1.0, 5.0]])]
    exact = np.array([*(cost(X, c, w) for c in centers), w.sum()])
    estimates = []
    for seed in range(400):
        core = lightweight(X, 40, sample_weight=w if weighted else None, random_state=seed)
        estimates.append([*(cost(core.points, c, core.weights) for c in centers), core.weights.sum()])
    error = np.std(estimates, axis=0, ddof=1) / np.sqrt(len(estimates))
    assert (np.abs(np.mean(estimates, axis=0) - exact) < 4 * error).all()
    assert (error < 0.03 * exact).all()


def test_a_weight_is_a_repetition():
    """A point of integer weight w is drawn as often as w copies of it, and with the same coreset weight."""
    X = points(50)
    repeats = np.random.default_rng(0).integers(0, 4, size=50)
    copies = np.repeat(np.arange(50), repeats)
    weighted = lightweight(X, 50_000, sample_weight=repeats, random_state=0)
    repeated = lightweight(X[copies], 50_000, random_state=0)
    weights = np.zeros((2, 50))  # coreset weight of each point that was drawn
    weights[0, weighted.indices] = weighted.weights
    weights[1, copies[repeated.indices]] = repeated.weights
    drawn = (weights > 0).all(axis=0)
    assert drawn.sum() > 0.9 * (repeats > 0).sum()
    np.testing.assert_allclose(weights[0, drawn], weights[1, drawn], rtol=1e-12)
    counts = [np.bincount(i, minlength=50) for i in (weighted.indices, copies[repeated.indices])]
    np.testing.assert_allclose(counts[0], counts[1], atol=5 * np.sqrt(2 * counts[1].max()))


def test_a_rare_far_cluster_is_found_that_a_uniform_sample_misses():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50_000, 2))
    X[:10] += 300
    best = KMeans(2, init=[[0.0, 0.0], [300.0, 300.0]]).fit(X).inertia_
    by_coreset, by_uniform = [], []
    for seed in range(10):
        core = lightweight(X, 200, random_state=seed)
        by_coreset.append(-KMeans(2, random_state=0).fit(core.points, sample_weight=core.weights).score(X))
        sample = X[np.random.default_rng(seed).integers(len(X), size=200)]
        by_uniform.append(-KMeans(2, random_state=0).fit(sample).score(X))
    assert max(by_coreset) < 1.05 * best
    assert np.median(by_uniform) > 5 * best


def test_a_fit_on_a_coreset_is_nearly_one_on_all():
    X = points(20_000, 4)
    core = lightweight(X, 2000, random_state=0)
    few = KMeans(4, random_state=0, n_init=3).fit(core.points, sample_weight=core.weights)
    assert few.score(X) > 1.02 * KMeans(4, random_state=0, n_init=3).fit(X).score(X)


@pytest.mark.long
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_read_only_memory_map_is_not_copied(tmp_path, dtype):
    X = points(200_000, 64, dtype)
    np.save(tmp_path / "X.npy", X)
    expected = lightweight(X, 100, random_state=0)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    tracemalloc.start()
    core = lightweight(mapped, 100, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert all(np.array_equal(a, b) for a, b in zip(core, expected, strict=True))
    assert not isinstance(core.points, np.memmap)
    assert peak < X.nbytes / 3


def test_blocks_give_what_the_whole_gives(monkeypatch):
    X, w = points(1000), np.random.default_rng(0).random(1000)
    whole = lightweight(X, 50, sample_weight=w, random_state=0)
    monkeypatch.setattr(coresets, "BLOCK", 64)
    blocks = lightweight(np.asfortranarray(X), 50, sample_weight=w, random_state=0)
    assert np.array_equal(whole.indices, blocks.indices)
    np.testing.assert_allclose(whole.weights, blocks.weights, rtol=1e-12)


def test_a_large_offset_changes_nothing():
    X = np.round(points(1000) * 1024) / 1024
    plain, moved = (lightweight(X + offset, 200, random_state=0) for offset in (0.0, 2.0**30))
    assert np.array_equal(plain.indices, moved.indices)
    np.testing.assert_allclose(plain.weights, moved.weights, rtol=1e-9)


def test_equal_points_are_drawn_by_weight():
    core = lightweight(np.ones((10, 2)), 20, random_state=0)
    np.testing.assert_allclose(core.weights, 0.5)
    core = lightweight(np.ones((2, 1)), 1000, sample_weight=[1.0, 3.0], random_state=0)
    np.testing.assert_allclose(core.weights, 4 / 1000)
    assert 650 < core.indices.sum() < 850


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"m": 0}, ValueError, "m == 0, must be >= 1"),
        ({"m": 2.5}, TypeError, "m must be an instance of int"),
        ({"m": True}, TypeError, "m must be an instance of int"),
        ({"X": np.ones(5)}, ValueError, "Expected 2D array"),
        ({"X": np.empty((0, 2))}, ValueError, "0 sample"),
        ({"X": [[0.0], [np.nan]]}, ValueError, "NaN"),
        ({"X": [[-1e200], [1e200]]}, ValueError, "X must have finite squared distances"),
        ({"X": [[0.0], [1.0]], "sample_weight": [1.0, -1.0]}, ValueError, "sample_weight"),
        ({"X": [[0.0], [1.0]], "sample_weight": [0.0, 0.0]}, ValueError, "(?i)sample.weights? must"),
        ({"X": [[0.0], [1.0]], "sample_weight": [1.0]}, ValueError, "sample_weight"),
    ],
)
def test_invalid_arguments_are_refused_by_name(arguments, error, words):
    with pytest.raises(error, match=words):
        lightweight(**({"X": np.arange(6.0).reshape(3, 2), "m": 2} | arguments))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, bool, np.float16])
def test_narrow_rows_have_the_coreset_of_the_wider_copy(dtype):
    X = np.random.default_rng(0).integers(0, 2 if dtype is bool else 100, (500, 3)).astype(dtype)
    for ours, theirs in zip(
        lightweight(X, 20, random_state=0), lightweight(X.astype(np.float64), 20, random_state=0), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs, strict=True)
