"""Kernels for many problems give the results of the kernels for one problem, and of their reference versions."""

import math

import numpy as np
import pytest
from kernel_data import DTYPES, THREADS, same_bits, sixteenths, weights
from scipy.sparse import csr_array

from cprime.kernels import Dense, as_rows, lloyd_many, means, plus_plus_many, weighted_sum
from reference import Reference


def problems(sizes, D, dtype):
    """Return rows on multiples of 1/16 and the offsets of problems of the given sizes."""
    return sixteenths(sum(sizes), D, dtype, seed=D, span=200), np.concatenate([[0], np.cumsum(sizes)])


def plus_plus(kind, X, offsets, C, w=None, n_trials=3, n_uniform=None, n_threads=1):
    sizes, rng = np.diff(offsets), np.random.default_rng(1)
    order = np.concatenate([rng.permutation(n) for n in sizes])
    n_proposed = n_trials + np.minimum(np.arange(C), 9)  # later candidates are drawn for several centers together
    n_uniform = 1 + 2 * int(n_proposed.sum()) if n_uniform is None else n_uniform
    uniform = rng.random((len(sizes), n_uniform))
    return plus_plus_many(kind(X), offsets, order, uniform, n_trials, n_proposed, w, n_threads=n_threads)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("sizes", "D", "C"), [([1], 1, 1), ([40, 7, 700], 3, 5), ([300, 200], 17, 40)])
def test_starting_centers_are_those_of_the_reference(sizes, D, C, weighted, dtype):
    X, offsets = problems(sizes, D, dtype)
    w = np.random.default_rng(0).integers(1, 4, len(X)).astype(float) if weighted else None
    found, expected = (plus_plus(kind, X, offsets, C, w) for kind in (Dense, Reference))
    np.testing.assert_array_equal(found, expected)
    for rows in found:
        assert len(set(rows)) == C
        assert rows.min() >= 0


@pytest.mark.parametrize("kind", [Dense, Reference])
def test_starting_centers_without_enough_numbers_or_rows_are_left_to_others(kind):
    X, offsets = problems([50, 60], 2, np.float64)
    X[:50] = X[0]
    found = plus_plus(kind, X, offsets, 4)
    assert found[0, 0] == -1
    assert found[1].min() >= 0
    assert (plus_plus(kind, X, offsets, 4, n_uniform=2)[:, 0] == -1).all()
    no_weight = np.repeat([0.0, 1.0], [50, 60])
    assert plus_plus(kind, X, offsets, 1, no_weight)[0, 0] == -1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("sizes", "D", "C"), [([1], 1, 1), ([40, 7, 700], 3, 5), ([300, 900], 17, 20)])
def test_iterations_are_those_of_the_reference(sizes, D, C, weighted, dtype):
    X, offsets = problems(sizes, D, dtype)
    w = weights(len(X)) + 0.1 if weighted else None
    centers = np.stack([X[begin : begin + C] for begin in offsets[:-1]])
    found, expected = (lloyd_many(kind(X), offsets, centers, 4, 0.0, w) for kind in (Dense, Reference))
    np.testing.assert_array_equal(found.n_iterations, expected.n_iterations)
    held = np.repeat(found.n_iterations >= 0, sizes)
    assert held.any()
    np.testing.assert_array_equal(found.labels[held], expected.labels[held])
    close = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found.squares[held], expected.squares[held], rtol=close, atol=100 * close)
    held = found.n_iterations >= 0
    np.testing.assert_allclose(found.centers[held], expected.centers[held], rtol=close, atol=10 * close)


@pytest.mark.parametrize("kind", [Dense, Reference])
def test_problems_with_an_empty_cluster_and_omitted_ones_are_marked(kind):
    X, offsets = problems([30, 30, 30], 2, np.float64)
    centers = np.stack([X[:3], X[30:33], X[60:63]])
    centers[1, 2] = 1e6
    found = lloyd_many(kind(X), offsets, centers, 5, 0.0, omitted=np.array([False, False, True]))
    assert found.n_iterations[0] > 0
    np.testing.assert_array_equal(found.n_iterations[1:], -1)


@pytest.mark.parametrize("kind", [Dense, Reference])
def test_iterations_end_at_the_tolerance(kind):
    X, offsets = problems([400, 400], 2, np.float64)
    centers = np.stack([X[:9], X[400:409]])
    n = [lloyd_many(kind(X), offsets, centers, 50, tol).n_iterations.max() for tol in (1.0, 1e-2, 0.0)]
    assert n[0] == 2  # the least number, because the error is compared with that of the iteration before
    assert n[0] < n[1] < n[2] <= 50


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [12, 4000])
def test_iterations_end_at_the_least_shift(n, dtype):
    """The last iteration is the first one whose squared shifts sum to no more than the limit."""
    X, offsets = np.random.default_rng(n).standard_normal((n, 3)).astype(dtype), np.array([0, n])
    rows, centers, shifts = Dense(X), X[:5].copy(), []
    for _ in range(3):
        found = rows.assign(centers)
        new = means(found.counts, found.sums, centers)[0]
        shifts.append(weighted_sum(np.square(np.subtract(new, centers, dtype=np.float64)).ravel()))
        centers = new
    third = shifts[2] if min(shifts[:2]) > shifts[2] > 0 else min(shifts)
    for kind, limit in ((Dense, third), (Reference, third * (1 + 1e-4))):
        n_iterations = lloyd_many(kind(X), offsets, X[np.newaxis, :5], 99, 9.0, least_shift=limit).n_iterations[0]
        assert n_iterations == shifts.index(third) + 1
    longer = lloyd_many(rows, offsets, X[np.newaxis, :5], 99, 9.0, least_shift=np.nextafter(third, 0)).n_iterations[0]
    assert longer > shifts.index(third) + 1 or third == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [60, 128, 131, 1000, 8192])
def test_errors_are_bit_identical_to_weighted_sums(n, weighted, dtype):
    """The tolerance shows the relative change of the errors J of iterations, which `weighted_sum` gives, too."""
    X, offsets = np.random.default_rng(n).standard_normal((n, 2)).astype(dtype), np.array([0, n])
    w, rows, centers, errors = weights(n) if weighted else None, Dense(X), X[:5].copy(), []
    for _ in range(3):
        found = rows.assign(centers, None, w)
        errors.append(weighted_sum(found.costs[:, 0], w))
        centers = means(found.counts, found.sums, centers)[0]
    second, third = np.abs(np.diff(errors)) / errors[1:]
    assert 0 < third < second
    steps = [
        lloyd_many(rows, offsets, X[np.newaxis, :5], 9, tol, w).n_iterations[0]
        for tol in (second, np.nextafter(second, 0), third, np.nextafter(third, 0))
    ]
    assert steps[:3] == [2, 3, 3]
    assert steps[3] > 3


@pytest.mark.parametrize("dtype", DTYPES)
def test_threads_change_no_bit(dtype):
    X, offsets = problems([300, 500, 40, 60, 900], 6, dtype)
    one, *others = [plus_plus(Dense, X, offsets, 7, n_threads=n) for n in THREADS]
    assert all(same_bits(other, one) for other in others)
    centers = X[one + offsets[:-1, np.newaxis]]
    one, *others = [lloyd_many(Dense(X), offsets, centers, 9, 0.0, n_threads=n) for n in THREADS]
    assert all(same_bits(other, one) for other in others)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "D", "C", "max_iter"), [(1, 1, 1, 1), (60, 2, 3, 2), (900, 5, 6, 99)])
def test_one_problem_is_that_of_many_and_of_the_twin_with_its_history(n, D, C, max_iter, weighted, dtype):
    X, offsets = problems([n], D, dtype)
    w, centers = weights(n) if weighted else None, X[:C]
    found, expected = (kind(X).lloyd(centers, max_iter, 1e-3, w) for kind in (Dense, Reference))
    many = lloyd_many(Dense(X), offsets, centers[np.newaxis], max_iter, 1e-3, w)
    assert len(found.errors) == len(found.n_moved) == len(expected.errors) == many.n_iterations[0]
    assert same_bits(found.centers, many.centers[0])
    assert (found.converged, found.settled) == (expected.converged, expected.settled)
    assert found.converged == (len(found.errors) < max_iter)
    np.testing.assert_array_equal(found.n_moved, expected.n_moved)
    np.testing.assert_array_equal(found.labels, expected.labels)
    close = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found.errors, expected.errors, rtol=close, atol=close)
    np.testing.assert_allclose(found.counts, expected.counts, rtol=close)
    before = Dense(X).lloyd(centers, max(1, len(found.errors) - 1), 0.0, w).centers
    last = Dense(X).assign(before if len(found.errors) > 1 else centers, None, w)
    assert same_bits(found.labels, last.kept[:, 0])
    assert same_bits(found.squares, last.costs[:, 0])
    assert same_bits(found.counts, last.counts)


def test_one_problem_with_an_empty_cluster_has_no_result():
    X = problems([30], 2, np.float64)[0]
    for kind in (Dense, Reference):
        assert kind(X).lloyd(np.vstack([X[:2], [[1e6, 0]]]), 5, 0.0) is None
        many = lloyd_many(kind(X), np.array([0, 30]), np.vstack([X[:2], [[1e6, 0]]])[np.newaxis], 1, 0.0)
        assert many.n_iterations.tolist() == [-1]


def sparse(X):
    return as_rows(csr_array(X))


@pytest.mark.parametrize("kind", [Dense, Reference, sparse])
def test_the_center_of_an_empty_cluster_stays_if_empty_ones_are_kept(kind):
    X = problems([300], 2, np.float64)[0]
    few, found = (kind(X).lloyd(m, 9, 0.0, keep_empty=True) for m in (X[:4], np.vstack([X[:4], [[1e6, 0]]])))
    np.testing.assert_array_equal(found.centers, np.vstack([few.centers, [[1e6, 0]]]))
    np.testing.assert_array_equal(found.counts, np.append(few.counts, 0))
    np.testing.assert_array_equal(found.labels, few.labels)
    assert kind(X).lloyd(np.vstack([X[:4], [[1e6, 0]]]), 9, 0.0) is None


@pytest.mark.parametrize("weighted", [False, True])
def test_iterations_of_sparse_rows_are_those_of_dense_ones(weighted):
    X = problems([900], 6, np.float64)[0] * (np.random.default_rng(2).random((900, 6)) < 0.5)
    w = np.random.default_rng(3).integers(1, 4, 900).astype(float) if weighted else None
    found, expected = (kind(X).lloyd(X[:7], 99, 0.0, w, keep_empty=True) for kind in (sparse, Dense))
    for name in ("labels", "n_moved", "counts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    for name in ("centers", "squares", "errors"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-10, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 7, 4099, 100_000])
def test_weighted_sums_are_exact_to_a_few_roundings(n, dtype):
    values, w = np.random.default_rng(n).random(n).astype(dtype), weights(n)
    assert weighted_sum(values) == pytest.approx(math.fsum(values.tolist()), rel=1e-14)
    assert weighted_sum(values, w) == pytest.approx(math.fsum((w * values).tolist()), rel=1e-14)


@pytest.mark.parametrize("kind", [Dense, Reference])
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("offsets", {"offsets": np.array([0, 5, 5, 20])}),
        ("offsets", {"offsets": np.array([0, 19])}),
        ("centers", {"centers": np.zeros((2, 3, 5))}),
        ("centers", {"centers": np.zeros((3, 3, 2))}),
        ("centers", {"centers": np.zeros((2, 3, 2), dtype=np.float32)}),
        ("max_iter", {"max_iter": 0}),
        ("sample_weight", {"sample_weight": np.ones(3)}),
    ],
)
def test_bad_arguments_are_named(kind, name, change):
    X, offsets = problems([10, 10], 2, np.float64)
    given = {"offsets": offsets, "centers": np.stack([X[:3], X[10:13]]), "max_iter": 3, "tol": 0.0, **change}
    with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
        lloyd_many(kind(X), **given)
    order, uniform, n_proposed = np.tile(np.arange(10), 2), np.zeros((2, 20)), np.full(2, 3)
    for bad in ({"order": order[:5]}, {"uniform": uniform[:1]}, {"n_proposed": n_proposed - 1}, {"n_trials": 0}):
        given = {"order": order, "uniform": uniform, "n_trials": 3, "n_proposed": n_proposed, **bad}
        with pytest.raises((TypeError, ValueError), match=next(iter(bad))):
            plus_plus_many(kind(X), offsets, **given)
