"""`best`, `top_k_gaussians` and `best_among`: the components of least cost −2 log p(c, x); and `products`."""

import numpy as np
import pytest
from kernel_calls import native, reference
from kernel_data import (
    SIZES,
    THREADS,
    assert_evidence,
    assert_kept,
    clustered,
    cost_rounding,
    every_dtype,
    every_shape,
    exact_gaussians,
    gaussians,
    looked_at,
    neighbours,
    random_ids,
    rounding,
    same_bits,
    sixteenths,
    whole_costs,
)

from cprime.kernels import GaussianParameters


@every_shape
@every_dtype
@pytest.mark.parametrize(("n", "D", "C"), SIZES)
def test_best_equals_the_reference(n, D, C, dtype, full):
    X, given = clustered(n, D, dtype, seed=D), gaussians(C, D, dtype, full, seed=n)
    for n_kept in sorted({1, min(3, C), C}):
        kept, costs = native.nearest(X, given, n_kept)
        assert kept.shape == costs.shape == (n, n_kept)
        assert_kept(kept, costs, X, given, reference.nearest(X, given, n_kept))


@every_shape
@every_dtype
@pytest.mark.parametrize(("n", "D", "C"), SIZES)
@pytest.mark.parametrize("length", [0, 1, 16, 33])
def test_keep_best_equals_the_reference(n, D, C, length, dtype, full):
    X, given = clustered(n, D, dtype, seed=D), gaussians(C, D, dtype, full, seed=n)
    lists = neighbours(C, length)
    for width, n_kept in ((1, 1), (2, 5), (5, 2)):
        previous = random_ids(n, width, C, seed=width)
        found = native.top_k(X, given, lists, previous, n_kept)
        assert found[0].shape == found[1].shape == (n, n_kept)
        assert_kept(*found, X, given, reference.top_k(X, given, lists, previous, n_kept))


@every_shape
@every_dtype
@pytest.mark.parametrize(("n", "D", "C"), SIZES)
@pytest.mark.parametrize(("length", "width", "n_kept", "n_extra"), [(0, 1, 1, 0), (3, 2, 4, 1), (40, 3, 3, 2)])
def test_best_among_equals_the_reference(n, D, C, length, width, n_kept, n_extra, dtype, full):
    X, given = clustered(n, D, dtype, seed=D), gaussians(C, D, dtype, full, seed=n)
    ids = random_ids(C, length, C, seed=1), random_ids(n, width, C), n_kept, random_ids(n, n_extra, C, seed=2)
    found = native.search_lists(X, given, *ids, evidence=True)
    expected = reference.search_lists(X, given, *ids, evidence=True)
    assert_kept(found.kept, found.costs, X, given, (expected.kept, expected.costs))
    np.testing.assert_array_equal(found.counts, expected.counts)
    slack, looked = cost_rounding(X, given).max(), looked_at(ids[0], ids[1], ids[3])
    assert_evidence(found.evidence, whole_costs(X, given), looked, found.kept[:, 0], atol=slack)
    plain = native.search_lists(X, given, *ids)
    assert plain.evidence is None
    assert same_bits(tuple(plain[:3]), tuple(found[:3]))


@pytest.mark.parametrize("n_kept", [1, 3, 5])
@pytest.mark.parametrize(("n", "D", "H"), [(1, 1, 1), (37, 16, 3), (130, 33, 5), (200, 90, 2)])
@every_shape
@every_dtype
def test_what_is_kept_alone_is_measured_as_among_others(n, D, H, n_kept, dtype, full):
    """Results of several rows computed together equal those of single rows to the last bit.

    Sets of components contain repeated ids, and −1 for no component.
    """
    X, given, no_lists = clustered(n, D, dtype), gaussians(21, D, dtype, full), np.empty((21, 0), dtype=np.int32)
    kept = np.random.default_rng(D).integers(-1, 21, size=(n, H)).astype(np.int32)
    together = native.search_lists(X, given, no_lists, kept, n_kept)
    one_by_one = native.search_lists(X, given, no_lists, kept, n_kept, evidence=True)
    assert same_bits(tuple(together[:3]), tuple(one_by_one[:3]))
    squared = native.search_lists(X, given.means, no_lists, kept, n_kept)
    others = native.search_lists(X, given.means, no_lists, kept, n_kept, evidence=True)
    assert same_bits(tuple(squared[:3]), tuple(others[:3]))


@pytest.mark.parametrize("offset", [0.0, 1e6])
@every_shape
@every_dtype
def test_ties_go_to_the_lower_id_and_an_offset_changes_nothing(dtype, full, offset):
    """All costs are exact here, so results must be bit-identical."""
    X, given = sixteenths(150, 3, dtype, span=9), exact_gaussians(60, 3, dtype, full, twins=10)
    far = X + dtype(offset), given._replace(means=given.means + dtype(offset))
    lists, previous, extra = neighbours(60, 9), random_ids(150, 3, 60, seed=1), random_ids(150, 2, 60, seed=2)
    for n_kept in (1, 4, 30):
        assert same_bits(native.nearest(*far, n_kept), reference.nearest(X, given, n_kept))
        given_lists = lists, previous, n_kept
        assert same_bits(native.top_k(*far, *given_lists), reference.top_k(X, given, *given_lists))
        found = native.search_lists(*far, *given_lists, extra, evidence=True)
        expected = reference.search_lists(X, given, *given_lists, extra, evidence=True)
        assert same_bits(tuple(found), tuple(expected))


@pytest.mark.parametrize("dof", [False, True], ids=["gaussian", "t"])
@pytest.mark.parametrize("D", [6, 90])
@every_shape
@every_dtype
def test_sums_that_end_early_change_nothing(D, dof, dtype, full):
    """Sums that end early, because a cost already exceeds the best ones, give the same results as single rows."""
    X, given = clustered(150, D, dtype), gaussians(40, D, dtype, full)
    if dof:
        given = given._replace(dof=np.linspace(2, 30, 40).astype(dtype))
    apart = np.random.default_rng(0).permutation(len(X))
    order = np.argsort(native.nearest(X[apart], given, 1)[0][:, 0], kind="stable")
    one_by_one = [native.nearest(row[np.newaxis], given, 3) for row in X[apart][order]]
    expected = tuple(np.concatenate(part) for part in zip(*one_by_one, strict=True))
    assert same_bits(native.nearest(X[apart][order], given, 3), expected)
    lists = np.array([np.delete(np.arange(40), c) for c in range(40)], dtype=np.int32)
    kept = native.top_k(X[apart][order], given, lists, expected[0], 3)
    one_by_one = [
        native.top_k(row[np.newaxis], given, lists, ids[np.newaxis], 3)
        for row, ids in zip(X[apart][order], expected[0], strict=True)
    ]
    assert same_bits(kept, tuple(np.concatenate(part) for part in zip(*one_by_one, strict=True)))


@every_dtype
def test_spherical_costs_of_one_variance_are_distances(dtype):
    """Costs (31) of Lücke & Forster are ordered as distances if covariances and weights are equal (Prop. 1)."""
    X, means = sixteenths(300, 6, dtype, span=40), sixteenths(50, 6, dtype, seed=2, span=40)
    given = GaussianParameters(means, np.full_like(means, 0.5), np.full(50, 3, dtype=dtype))
    kept, costs = native.nearest(X, given, 7)
    nearest, squared = reference.nearest(X, means, 7)
    np.testing.assert_array_equal(kept, nearest)
    np.testing.assert_array_equal(costs, squared / 4 + 3)


def test_nothing_offered_keeps_nothing(kernels):
    given = gaussians(5, 2, np.float64, True)
    nobody = np.full((5, 2), -1, dtype=np.int32)
    found = kernels.search_lists(given.means, given, np.zeros((5, 3), np.int32), nobody, 2, evidence=True)
    np.testing.assert_array_equal(found.kept, -1)
    np.testing.assert_array_equal(found.costs, np.inf)
    np.testing.assert_array_equal(found.counts, 0)
    assert all(len(part) == 0 for part in found.evidence[1:])


@every_dtype
@pytest.mark.parametrize(("n", "K", "m"), [(1, 1, 1), (7, 3, 5), (65, 17, 33), (200, 130, 16), (3, 300, 70)])
def test_products_equal_the_reference(n, K, m, dtype):
    X, B, shift = clustered(n, K, dtype), clustered(m, K, dtype, seed=1), clustered(1, K, dtype, seed=2)[0]
    for given in (None, shift):
        out = native.products(X, B, given)
        assert out.dtype == dtype
        size = (np.abs(X).astype(np.float64) + (0 if given is None else np.abs(given))) @ np.abs(B).T
        assert (np.abs(out - reference.products(X, B, given)) <= rounding(dtype, K) * size).all()
        many = [native.products(X, B, given, n_threads=t) for t in THREADS]
        assert all(same_bits(out, other) for other in many)


@every_dtype
def test_products_relative_to_a_shift_are_exact_far_off(dtype, kernels):
    X, B = sixteenths(90, 5, dtype, span=20), sixteenths(33, 5, dtype, seed=1, span=20)
    shift = np.full(5, 1e6, dtype=dtype)
    np.testing.assert_array_equal(kernels.products(X + shift, B, shift), X.astype(np.float64) @ B.T)
