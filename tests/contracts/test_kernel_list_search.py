"""`best_in_lists`, the partial E-step by points, and kernels that sort, gather and sum rows by component."""

import numpy as np
import pytest
from kernel_calls import native, reference
from kernel_data import (
    DTYPES,
    THREADS,
    assert_evidence,
    assert_moments,
    clustered,
    looked_at,
    packed_beside_outliers,
    random_ids,
    rounding,
    same_bits,
    sixteenths,
)


def assert_among(X, centers, lists, previous, n_kept, extra):
    """Compare `search_lists` with float64 distances; ids may differ only if distances tie within rounding."""
    found = native.search_lists(X, centers, lists, previous, n_kept, extra, evidence=True, n_threads=1)
    expected = reference.search_lists(X, centers, lists, previous, n_kept, extra, evidence=True)
    assert [a.dtype for a in found[:3]] == [np.int32, X.dtype, np.int32]
    tolerance = rounding(X.dtype, X.shape[1])
    np.testing.assert_array_equal(found.counts, expected.counts)
    np.testing.assert_allclose(found.costs, expected.costs, rtol=tolerance)
    truth = reference.distances(X.astype(np.float64), centers.astype(np.float64)).T
    there = found.kept >= 0
    np.testing.assert_array_equal(there, expected.kept >= 0)
    achieved = np.where(there, np.take_along_axis(truth, np.maximum(found.kept, 0), axis=1), np.inf)
    np.testing.assert_allclose(found.costs, achieved, rtol=tolerance)
    with np.errstate(invalid="ignore"):
        step = np.diff(found.costs, axis=1)
    assert not (step < 0).any(), "distances do not ascend"
    assert (np.diff(found.kept, axis=1)[step == 0] > 0).all(), "a tie does not go to the lower id"
    looked = looked_at(lists, previous, extra)
    for kept, offered in zip(found.kept, looked, strict=True):
        kept = kept[kept >= 0]
        assert len(np.unique(kept)) == len(kept)
        assert offered[kept].all()
    assert_evidence(found.evidence, np.sqrt(truth), looked, found.kept[:, 0], rtol=tolerance)
    plain = native.search_lists(X, centers, lists, previous, n_kept, extra, n_threads=1)
    assert plain.evidence is None
    assert same_bits(tuple(plain[:3]), tuple(found[:3]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("D", [1, 2, 17, 64, 200])
@pytest.mark.parametrize("length", [0, 1, 16, 33, 130])
def test_finds_the_nearest_of_what_is_offered(length, D, dtype):
    sizes = (1, 1, 1, 1, 0), (7, 20, 2, 5, 1), (40, 140, 3, 3, 2), (9, 5, 5, 9, 0), (101, 5, 3, 2, 1)
    for n, C, width, n_kept, n_extra in sizes:
        X, centers = clustered(n, D, dtype, seed=D), clustered(C, D, dtype, seed=n)
        lists, extra = random_ids(C, length, C, seed=1), random_ids(n, n_extra, C, seed=2)
        assert_among(X, centers, lists, random_ids(n, width, C), n_kept, extra)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("n_kept", [1, 4, 30])
@pytest.mark.parametrize("dtype", DTYPES)
def test_ties_go_to_the_lower_id_and_an_offset_changes_nothing(dtype, n_kept, offset):
    """All differences and sums are exact here, so results must be bit-identical."""
    X, centers = sixteenths(150, 3, dtype, span=9), sixteenths(60, 3, dtype, seed=1, span=9)
    centers[40:50] = centers[:10]
    lists, previous, extra = random_ids(60, 9, 60), random_ids(150, 3, 60, seed=1), random_ids(150, 2, 60, seed=2)
    expected = reference.search_lists(X, centers, lists, previous, n_kept, extra, evidence=True)
    found = native.search_lists(
        X + dtype(offset), centers + dtype(offset), lists, previous, n_kept, extra, evidence=True
    )
    assert same_bits(tuple(found[:3]), tuple(expected[:3]))
    for ours, theirs in zip(found.evidence, expected.evidence, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_nearest_is_found_beside_far_outliers(dtype):
    X, centers = packed_beside_outliers(200, dtype)
    assert_among(X, centers, random_ids(80, 20, 80), random_ids(200, 2, 80), 4, random_ids(200, 1, 80))


def test_nothing_offered_keeps_nothing(kernels):
    X = clustered(5, 2, np.float64)
    nobody = np.full((5, 2), -1, dtype=np.int32)
    found = kernels.search_lists(X, X, np.zeros((5, 3), np.int32), nobody, 2, evidence=True)
    np.testing.assert_array_equal(found.kept, -1)
    np.testing.assert_array_equal(found.costs, np.inf)
    np.testing.assert_array_equal(found.counts, 0)
    assert same_bits(found.evidence[0], np.zeros(6, np.int64))
    assert all(part.shape == (0,) for part in found.evidence[1:])


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_number_of_threads_gives_the_same_bits_for_many_components(dtype):
    C = 20_000
    X, centers = clustered(3001, 5, dtype), clustered(C, 5, dtype, seed=2)
    given = random_ids(C, 12, C), random_ids(3001, 3, C), 4, random_ids(3001, 1, C, seed=5)
    first, *others = [
        native.search_lists(X, centers, *given, evidence=True, n_threads=n_threads) for n_threads in THREADS
    ]
    assert all(same_bits(tuple(first), tuple(other)) for other in others)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_accumulate_sums_the_given_rows_only(dtype, weighted):
    """Rows may come in any order and repeatedly, with shares of any sign, as for reassigned points."""
    X = clustered(300, 7, dtype)
    rng = np.random.default_rng(0)
    w = rng.exponential(size=300) if weighted else None
    for n in (0, 1, 450):
        rows = rng.integers(300, size=n)
        kept, sign = random_ids(n, 2, 40, holes=0), rng.choice([-1.0, 1.0], (n, 2))
        result = native.accumulate(X, kept, sign, w, n_components=40, rows=rows)
        expected = reference.accumulate(X, kept, sign, w, n_components=40, rows=rows)
        gathered = native.accumulate(X[rows], kept, sign, None if w is None else w[rows], n_components=40)
        for a, b in zip(result, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-11)
        for a, b in zip(result, gathered, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-11)
        many = [native.accumulate(X, kept, sign, w, n_components=40, rows=rows, n_threads=t) for t in THREADS]
        assert all(same_bits(result, other) for other in many)


@pytest.mark.parametrize(("n", "n_components"), [(6000, 300), (6000, 2000), (70, 300)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_of_several_components_a_row_equal_the_reference(dtype, n, n_components):
    """Sums equal the reference, both by blocks of rows (if all sums fit in a cache) and by components."""
    X, D = clustered(n, 90, dtype), 90
    rng = np.random.default_rng(1)
    means = X[rng.integers(n, size=n_components)]
    kept = random_ids(n, 3, n_components, holes=0)
    q, w = rng.dirichlet([1, 1, 1], n), rng.exponential(size=n) * (rng.random(n) < 0.9)
    plain = [native.accumulate(X, kept, q, w, n_components=n_components, n_threads=t) for t in THREADS]
    about = [native.moments(X, means, kept, q, w, full=False, n_threads=t) for t in THREADS]
    for results in (plain, about):
        assert all(same_bits(tuple(results[0]), tuple(other)) for other in results[1:])
    for a, b in zip(plain[0], reference.accumulate(X, kept, q, w, n_components=n_components), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-10 * D)
    assert_moments(about[0], reference.moments(X, means, kept, q, w, full=False), X, means, kept, q, w)


@pytest.mark.parametrize("n", [1, 1000, 70_001])
def test_grouped_order_is_stable_and_sorted_by_label(n):
    labels = np.random.default_rng(n).integers(3, 97, size=n).astype(np.int32)
    expected = reference.grouped_order(labels, 100)
    np.testing.assert_array_equal(expected, np.lexsort((np.arange(n), labels)))
    assert all(same_bits(native.grouped_order(labels, 100, n_threads=t), expected) for t in THREADS)


@pytest.mark.parametrize("n", [1, 1000, 70_001])
def test_changed_marks_rows_that_differ(n):
    R = np.random.default_rng(n)
    after, before = (R.integers(2, size=(n, H)).astype(np.int32) for H in (5, 3))
    for n_columns in (1, 2, 3):
        expected = reference.changed(after, before, n_columns)
        np.testing.assert_array_equal(expected, (after[:, :n_columns] != before[:, :n_columns]).any(axis=1))
        assert all(same_bits(native.changed(after, before, n_columns, n_threads=t), expected) for t in THREADS)
    expected = reference.changed(after, after[::-1])
    assert same_bits(native.changed(after, after[::-1]), expected)
    assert not native.changed(after, after).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_gather_copies_rows_in_the_given_order(dtype, kernels):
    X = clustered(9001, 3, dtype)
    order = np.random.default_rng(0).integers(9001, size=10_000)
    rows = kernels.gather(np.asfortranarray(X), order)
    assert same_bits(rows, X[order])
    assert rows.flags.c_contiguous
    assert rows.flags.writeable


@pytest.mark.parametrize("dtype", DTYPES)
def test_normalized_rows_have_length_one(dtype, kernels):
    X = clustered(3001, 21, dtype)
    X[:5] *= np.array([0, 1e-30, 1e-43, 1e9, 1e15], dtype)[:, np.newaxis]
    X[5, 1:] = 0
    order = np.random.default_rng(0).integers(3001, size=3500)
    exact = np.sqrt(np.square(X.astype(np.longdouble)).sum(axis=1))
    exact_rows = X / np.where(exact > 0, exact, 1)[:, np.newaxis]
    digits = {"rtol": 4 * np.finfo(dtype).eps}
    rows, lengths = kernels.normalized(X)
    np.testing.assert_allclose(lengths, exact.astype(float), rtol=1e-14)
    np.testing.assert_allclose(rows, exact_rows.astype(dtype), **digits)
    assert rows.dtype == dtype
    in_order = kernels.normalized(X, order)
    assert same_bits(in_order[0], rows[order])
    assert same_bits(in_order[1], lengths[order])
