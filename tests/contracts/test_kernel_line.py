"""`cut_line`: the best cut of sorted values into runs, compared with all cuts and with the NumPy reference."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from kernel_calls import native, reference

KINDS = ("normal", "integers", "cauchy", "log-normal", "clusters", "lattice")


def values_of(kind, n, rng):
    """Return at most n distinct values in ascending order, drawn from the distribution named `kind`."""
    drawn = {
        "normal": lambda: rng.standard_normal(n),
        "integers": lambda: rng.integers(0, 3 * n, size=n).astype(float),
        "cauchy": lambda: rng.standard_cauchy(n),
        "log-normal": lambda: np.exp(5 * rng.standard_normal(n)),
        "clusters": lambda: 1e4 * rng.integers(0, 5, size=n) + rng.standard_normal(n),
        "lattice": lambda: np.arange(n, dtype=float),
    }
    return np.unique(drawn[kind]())


def weights_of(n, weighted, rng):
    return rng.exponential(size=n) + 1e-3 if weighted else np.ones(n)


def cost(values, weights, starts):
    """Return J of the runs, computed from differences to each mean."""
    total = 0.0
    for x, w in zip(np.split(values, starts[1:]), np.split(weights, starts[1:]), strict=True):
        x = x - x[0]
        total += (w * (x - np.average(x, weights=w)) ** 2).sum()
    return total


def exact_cost(values, weights, starts):
    """Return J of the runs in rational numbers."""
    total = Fraction(0)
    for begin, end in zip(starts, [*starts[1:], len(values)], strict=True):
        x = [Fraction(v) for v in values[begin:end].tolist()]
        w = [Fraction(v) for v in weights[begin:end].tolist()]
        mean = sum(a * b for a, b in zip(w, x, strict=True)) / sum(w)
        total += sum(a * (b - mean) ** 2 for a, b in zip(w, x, strict=True))
    return total


def assert_starts(starts, n, C):
    assert starts.dtype == np.int64
    assert starts.shape == (C,)
    assert starts[0] == 0
    assert (np.diff(starts) > 0).all()
    assert starts[-1] < n


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_no_other_cut_is_better(kernels, kind, weighted):
    rng = np.random.default_rng(len(kind))
    values = values_of(kind, 9, rng)
    weights = weights_of(len(values), weighted, rng)
    for C in range(1, len(values) + 1):
        starts = kernels.cut_line(values, weights, C)
        assert_starts(starts, len(values), C)
        cuts = combinations(range(1, len(values)), C - 1)
        least = min(exact_cost(values, weights, [0, *cut]) for cut in cuts)
        assert exact_cost(values, weights, starts.tolist()) <= least * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_cuts_are_as_good_as_those_of_the_reference(kind, weighted):
    rng = np.random.default_rng(len(kind))
    for n in (1, 2, 3, 17, 60, 200):
        values = values_of(kind, n, rng)
        weights = weights_of(len(values), weighted, rng)
        for C in sorted({1, 2, 3, 7, len(values) // 2, len(values) - 1, len(values)} & set(range(1, len(values) + 1))):
            found = native.cut_line(values, weights, C)
            assert_starts(found, len(values), C)
            expected = cost(values, weights, reference.cut_line(values, weights, C))
            assert cost(values, weights, found) <= expected * (1 + 1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_cuts_of_many_values_are_optimal_between_neighbors(kind):
    """Cuts of 20,000 values are optimal by two necessary conditions; the NumPy reference would be too slow.

    The optimal costs are convex in C, and no two neighboring runs can be cut better between them.
    """
    rng = np.random.default_rng(0)
    values = values_of(kind, 20_000, rng)
    weights = weights_of(len(values), True, rng)
    costs = []
    for C in (40, 41, 42):
        starts = native.cut_line(values, weights, C)
        assert_starts(starts, len(values), C)
        costs.append(cost(values, weights, starts))
        ends = np.append(starts, len(values))
        for run in range(C - 1):
            begin, middle, end = ends[run : run + 3]
            pair = cost(values[begin:end], weights[begin:end], np.array([0, middle - begin]))
            best, one = best_of_two(values[begin:end], weights[begin:end])
            assert pair <= best + 1e-12 * one
    assert costs[0] - costs[1] >= (costs[1] - costs[2]) * (1 - 1e-9)


def best_of_two(values, weights):
    """Return the least J of two runs, from cumulative sums, and the J of one run."""
    x = values - values[0]
    x -= np.average(x, weights=weights)
    left, first = np.cumsum(weights)[:-1], np.cumsum(weights * x)[:-1]
    total = (weights * x * x).sum()
    return (total - first**2 / left - first**2 / (weights.sum() - left)).min(), total


def test_equal_steps_have_many_optima():
    """The optimal cost E(C) is linear from n/2 to n, so cuts for most C are combined from two penalized optima."""
    values = np.arange(1000.0)
    for C in (1, 7, 333, 499, 500, 501, 600, 777, 999, 1000):
        short, long = divmod(1000, C)
        sizes = np.repeat([short, short + 1], [C - long, long])
        assert cost(values, np.ones(1000), native.cut_line(values, np.ones(1000), C)) == pytest.approx(
            (sizes * (sizes**2 - 1) / 12).sum(), rel=1e-12
        )


def test_as_many_runs_as_values(kernels):
    values = np.sort(np.random.default_rng(0).standard_normal(50))
    assert np.array_equal(kernels.cut_line(values, np.ones(50), 50), np.arange(50))
    assert np.array_equal(kernels.cut_line(values[:1], np.ones(1), 1), [0])


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e12])
def test_small_distances_far_from_zero_are_seen(kernels, offset):
    """Four groups are found whose distances are only some thousand units in the last place of their offset."""
    step = 2.0**-42 * max(abs(offset), 1)
    values = offset + step * np.concatenate([5000 * g + np.arange(40) for g in range(4)])
    assert np.array_equal(kernels.cut_line(values, np.ones(160), 4), [0, 40, 80, 120])


def test_small_distances_beside_large_ones_are_seen():
    """Values 1e-4 apart are cut at their gap, even if nearly all of the weight is 1e9 away."""
    values = np.append(1e-4 * np.concatenate([np.arange(5.0), 20 + np.arange(5.0)]), 1e9)
    assert np.array_equal(native.cut_line(values, np.append(np.ones(10), 1000), 3), [0, 5, 10])


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_units_do_not_matter(scale):
    values = np.sort(np.random.default_rng(0).standard_normal(300))
    power = 2.0 ** np.round(np.log2(scale))
    expected = native.cut_line(values, np.ones(300), 9)
    assert np.array_equal(native.cut_line(values * power, np.ones(300), 9), expected)
    assert np.array_equal(native.cut_line(values, np.full(300, power), 9), expected)


@pytest.mark.parametrize(
    ("values", "weights", "n_clusters", "name"),
    [
        ([[0.0, 1.0]], [1.0, 1.0], 1, "values"),
        ([0.0, 0.0], [1.0, 1.0], 1, "values"),
        ([1.0, 0.0], [1.0, 1.0], 1, "values"),
        ([0.0, np.inf], [1.0, 1.0], 1, "values"),
        ([0.0, np.nan], [1.0, 1.0], 1, "values"),
        ([0.0, 1.0], [1.0], 1, "weights"),
        ([0.0, 1.0], [1.0, 0.0], 1, "weights"),
        ([0.0, 1.0], [1.0, np.inf], 1, "weights"),
        ([0.0, 1.0], [1.0, np.nan], 1, "weights"),
        ([0.0, 1.0], [1.0, 1.0], 0, "n_clusters"),
        ([0.0, 1.0], [1.0, 1.0], 3, "n_clusters"),
        ([0.0, 1.0], [1.0, 1.0], 1.5, "n_clusters"),
        ([], [], 1, "n_clusters"),
    ],
)
def test_an_error_names_the_argument(kernels, values, weights, n_clusters, name):
    with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
        kernels.cut_line(np.array(values), np.array(weights), n_clusters)


@pytest.mark.parametrize("n_threads", [0, 1.5])
def test_the_number_of_threads_is_checked(n_threads):
    with pytest.raises(ValueError, match="n_threads"):
        native.cut_line(np.arange(3.0), np.ones(3), 2, n_threads=n_threads)
