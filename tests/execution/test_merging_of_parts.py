"""Parts of a pass are summed in the order of a binary counter, whatever the parts are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprime.em.k_means import ReassignmentSums
from cprime.execution.base import merge
from cprime.model.tied_spherical import SphericalMoments


class Noted:
    """Part that records the order of its summation as a tree."""

    def __init__(self, tree):
        self.tree = tree

    def __add__(self, other):
        return Noted((self.tree, other.tree))


def leaves(tree):
    return [tree] if isinstance(tree, int) else [leaf for branch in tree for leaf in leaves(branch)]


def depth(tree):
    return 0 if isinstance(tree, int) else 1 + max(map(depth, tree))


@given(n=st.integers(1, 200))
def test_every_part_counts_once_and_in_order(n):
    tree = merge(Noted(i) for i in range(n)).tree
    assert leaves(tree) == list(range(n))
    assert depth(tree) <= int(np.ceil(np.log2(n))) + 1


def test_the_pairs_are_those_of_a_binary_counter():
    assert merge([Noted(0)]).tree == 0
    assert merge(map(Noted, range(3))).tree == ((0, 1), 2)
    assert merge(map(Noted, range(4))).tree == ((0, 1), (2, 3))
    assert merge(map(Noted, range(7))).tree == (((0, 1), (2, 3)), ((4, 5), 6))


def test_few_are_alive_at_a_time():
    alive, most = 0, 0

    class Instance:
        def __init__(self):
            nonlocal alive, most
            alive += 1
            most = max(most, alive)

        def __del__(self):
            nonlocal alive
            alive -= 1

        def __add__(self, other):
            return Instance()

    merge(Instance() for _ in range(1000))
    assert most <= 14


def test_nothing_cannot_be_merged():
    with pytest.raises(IndexError):
        merge([])


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=100))
def test_sums_of_numbers(values):
    total = merge([np.array([value]) for value in values])[0]
    assert total == pytest.approx(sum(values), abs=1e-6)


def test_statistics_are_sums_of_fields():
    rng = np.random.default_rng(0)
    parts = [SphericalMoments(rng.random(3), rng.random((3, 2)), *rng.random(2)) for _ in range(5)]
    total = merge(parts)
    for name in SphericalMoments.__dataclass_fields__:
        np.testing.assert_allclose(getattr(total, name), sum(getattr(part, name) for part in parts), rtol=1e-14)
        np.testing.assert_allclose(getattr(parts[0].scaled(3.0), name), 3 * np.asarray(getattr(parts[0], name)))


def test_movers_are_added_by_component():
    rng = np.random.default_rng(0)
    parts, dense = [], np.zeros((20, 2))
    for m in (0, 3, 7, 20, 1):
        ids, sums = np.sort(rng.permutation(20)[:m]).astype(np.int32), rng.standard_normal((m, 2))
        before = sums.copy()
        parts.append(ReassignmentSums(ids, sums))
        dense[ids] += sums
        total = merge(parts)
        np.testing.assert_array_equal(sums, before)
    assert total.ids.dtype == np.int32
    assert (np.diff(total.ids) > 0).all()
    found = np.zeros((20, 2))
    found[total.ids] = total.sums
    np.testing.assert_allclose(found, dense, atol=1e-14)
