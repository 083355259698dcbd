"""`reassign`: one partial E-step by clusters, with and without the factors of the exchange criterion."""

import numpy as np
import pytest
from kernel_calls import native, reference
from kernel_data import DTYPES, clustered, packed_beside_outliers, packed_far_away, rounding, same_bits, sixteenths


def random_lists(n_components, length, seed=0, emptied=0.0):
    """Return distinct neighbors of each component, without itself, (C, length) int32; short lists end with −1."""
    rng = np.random.default_rng(seed)
    lists = np.full((n_components, length), -1, dtype=np.int32)
    for c in range(n_components):
        others = rng.permutation(np.delete(np.arange(n_components), c))[:length]
        lists[c, : len(others)] = others
        if rng.random() < emptied:
            lists[c, rng.integers(length + 1) :] = -1
    return lists


def random_labels(n, n_components, seed=0):
    return np.random.default_rng(seed).integers(n_components, size=n).astype(np.int32)


def random_factors(n_components, dtype, seed=0):
    """Return factors of an exchange: above one for the own component, below one for others."""
    size = np.random.default_rng(seed).integers(2, 40, size=n_components)
    return (size / (size - 1)).astype(dtype), (size / (size + 1)).astype(dtype)


def assert_reassigned(X, centers, lists, labels, inside=None, outside=None, share=1.0):
    """Compare a result with all scores in float64; labels may differ from the best only within rounding."""
    winners, distances = native.reassign(X, centers, lists, labels, inside, outside, share, n_threads=1)
    assert winners.dtype == np.int32
    assert distances.dtype == X.dtype
    assert winners.shape == distances.shape == labels.shape
    truth = reference.distances(X.astype(np.float64), centers.astype(np.float64)).T
    stay = np.ones(len(centers)) if inside is None else inside.astype(np.float64)
    go = np.ones(len(centers)) if outside is None else outside.astype(np.float64)
    row = np.arange(len(X))
    own = stay[labels] * truth[row, labels]
    offered = lists[labels]
    scores = np.where(offered < 0, np.inf, go[offered] * truth[row[:, np.newaxis], offered])
    best = np.minimum(own, scores.min(axis=1, initial=np.inf))
    achieved = np.where(winners == labels, own, go[winners] * truth[row, winners])
    assert ((winners == labels) | (offered == winners[:, np.newaxis]).any(axis=1)).all(), "not in the list"
    np.testing.assert_allclose(distances, truth[row, winners], rtol=rounding(X.dtype, X.shape[1]))
    assert (achieved <= own * (1 + rounding(X.dtype, X.shape[1]))).all(), "a point went where it is worse"
    # Products are relative to the own center, so their rounding error is that of squares about it.
    about = truth[row, labels] + np.where(offered < 0, 0, _between(centers)[labels[:, np.newaxis], offered]).max(
        axis=1, initial=0
    )
    assert (achieved <= best + 4 * rounding(X.dtype, X.shape[1]) * about).all(), "a better one was in the list"


def _between(centers):
    return reference.distances(centers.astype(np.float64), centers.astype(np.float64))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("D", [1, 2, 17, 64, 200])
@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 33, 130])
def test_goes_to_the_best_of_the_list(length, D, dtype):
    for n, C in ((1, 2), (7, 20), (150, 140)):
        X, centers = clustered(n, D, dtype, seed=D), clustered(C, D, dtype, seed=n)
        lists, labels = random_lists(C, length, seed=D, emptied=0.3), random_labels(n, C)
        assert_reassigned(X, centers, lists, labels)
        assert_reassigned(X, centers, lists, labels, *random_factors(C, dtype))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 1.0])
@pytest.mark.parametrize("D", [1, 3, 33])
@pytest.mark.parametrize("C", [1, 2, 9, 60])
def test_equals_the_reference_in_float64(C, D, share):
    X, centers = clustered(400, D, np.float64), clustered(C, D, np.float64, seed=2)
    lists = random_lists(C, 20, emptied=0.2)
    for labels in (random_labels(400, C), reference.nearest(X, centers)[0][:, 0], np.zeros(400, np.int32)):
        for factors in ((None, None), random_factors(C, np.float64), (None, random_factors(C, np.float64)[1])):
            winners, distances = native.reassign(X, centers, lists, labels, *factors, share)
            expected_winners, expected = reference.reassign(X, centers, lists, labels, *factors, share)
            np.testing.assert_array_equal(winners, expected_winners)
            np.testing.assert_allclose(distances, expected, rtol=rounding(np.float64, D))


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("D", [1, 2, 5, 64])
@pytest.mark.parametrize("dtype", DTYPES)
def test_ties_go_to_the_own_and_then_to_the_earlier_and_an_offset_changes_nothing(dtype, D, offset):
    """All differences and sums are exact here, so results must be bit-identical."""
    X, centers = sixteenths(600, D, dtype, span=9), sixteenths(60, D, dtype, seed=1, span=9)
    centers[40:50] = centers[:10]
    lists, labels = random_lists(60, 45), random_labels(600, 60)
    expected = reference.reassign(X, centers, lists, labels)
    assert (expected[0] != labels).any()
    assert (expected[0] == labels).any()
    assert same_bits(native.reassign(X + dtype(offset), centers + dtype(offset), lists, labels), expected)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.25, 1.0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_only_a_share_of_a_component_goes_where_it_is_farther(dtype, share):
    """At most a share of each segment moves to a farther center, though the factors favor moves of all points."""
    X = (np.random.default_rng(0).integers(-8, 9, size=(9000, 1)) / 16).astype(dtype)
    centers = np.array([[0], [1], [1]], dtype=dtype)
    lists = np.array([[2, 1], [0, 2], [0, 1]], dtype=np.int32)
    labels = (np.arange(9000) % 3 == 0).astype(np.int32)  # the first component has more than one segment
    outside = np.array([1, 2**-6, 2**-6], dtype=dtype)
    winners, distances = native.reassign(X, centers, lists, labels, None, outside, share)
    assert same_bits((winners, distances), reference.reassign(X, centers, lists, labels, None, outside, share))
    size = np.array([2048, 2048, 1904])
    at_most = np.maximum(1, (share * size).astype(int)).sum()
    moved = np.count_nonzero((labels == 0) & (winners == 2) & (distances >= np.square(X[:, 0])))
    would_move = np.count_nonzero((labels == 0) & (X[:, 0] <= 0.5) & (np.square(X[:, 0] - 1) < 64 * np.square(X[:, 0])))
    assert moved == min(at_most, would_move) > 0


def test_who_gets_nearer_does_not_count_as_an_exchange():
    """Points that move to a nearer center do not count towards the limit: all of them move, for every share."""
    X = np.full((5000, 3), 2.0)
    centers = np.array([[0.0] * 3, [2.0] * 3])
    lists = np.array([[1], [0]], dtype=np.int32)
    winners, distances = native.reassign(X, centers, lists, np.zeros(5000, np.int32), share=0.0)
    np.testing.assert_array_equal(winners, 1)
    np.testing.assert_array_equal(distances, 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_best_is_found_beside_far_outliers(dtype):
    X, centers = packed_beside_outliers(400, dtype)
    assert_reassigned(X, centers, random_lists(80, 33), random_labels(400, 80))
    assert_reassigned(X, centers, random_lists(80, 33), native.nearest(X, centers)[0][:, 0])


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_the_best_is_found_far_from_the_origin_in_float32(offset):
    X, centers = packed_far_away(offset)
    assert_reassigned(X, centers, random_lists(90, 40), random_labels(300, 90))


@pytest.mark.parametrize("value", [0.0, 1.1, -1e8])
@pytest.mark.parametrize("dtype", DTYPES)
def test_identical_points_stay(dtype, value, kernels):
    X = np.full((70, 5), value, dtype=dtype)
    labels = random_labels(70, 33)
    winners, distances = kernels.reassign(X, X[:33], random_lists(33, 20), labels)
    np.testing.assert_array_equal(winners, labels)
    np.testing.assert_array_equal(distances, 0)


def test_empty_components_and_lists_are_allowed(kernels):
    X, centers = clustered(50, 3, np.float64), clustered(40, 3, np.float64, seed=2)
    labels = np.full(50, 7, dtype=np.int32)
    expected = np.square(X - centers[7]).sum(axis=1)
    for lists in (np.empty((40, 0), np.int32), np.full((40, 4), -1, np.int32)):
        winners, distances = kernels.reassign(X, centers, lists, labels)
        np.testing.assert_array_equal(winners, 7)
        np.testing.assert_allclose(distances, expected, rtol=1e-13)


def test_what_is_behind_the_first_hole_is_not_read(kernels):
    X, centers = np.zeros((3, 1)), np.array([[2.0], [1.0], [0.0]])
    lists = np.array([[1, -1, 2], [-1, 2, 0], [0, 1, -1]], dtype=np.int32)
    labels = np.array([0, 1, 2], dtype=np.int32)
    np.testing.assert_array_equal(kernels.reassign(X, centers, lists, labels)[0], [1, 1, 2])


@pytest.mark.parametrize("dtype", DTYPES)
def test_lists_may_be_of_the_first_components_only(kernels, dtype):
    X, centers = clustered(90, 6, dtype), clustered(40, 6, dtype, seed=1)
    lists = np.arange(10, 40, dtype=np.int32).reshape(3, 10)
    labels = (np.arange(90) % 3).astype(np.int32)
    every = np.full((40, 10), -1, dtype=np.int32)
    every[:3] = lists
    found, expected = kernels.reassign(X, centers, lists, labels), kernels.reassign(X, centers, every, labels)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])
