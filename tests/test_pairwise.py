"""The selected cases of a product of parameters contain every value, or every pair of values."""

from itertools import combinations, product

import pytest

from pairwise import covering


def pairs(rows):
    return {(i, j, row[i], row[j]) for row in rows for i, j in combinations(range(len(row)), 2)}


@pytest.mark.parametrize("sizes", [(2, 2, 2), (10, 5, 2, 3, 2), (3, 1, 4)], ids=str)
def test_every_pair_of_values_is_left(sizes):
    rows = list(product(*map(range, sizes)))
    chosen = [rows[position] for position in covering(rows)]
    assert pairs(chosen) == pairs(rows)
    assert len(chosen) < len(rows) / 1.9 or 1 in sizes


def test_every_value_of_two_parameters_is_left():
    rows = list(product(range(3), range(5)))
    chosen = [rows[position] for position in covering(rows, together=1)]
    assert len(chosen) == 5
    assert {first for first, _ in chosen} == {0, 1, 2}
    assert {second for _, second in chosen} == set(range(5))


def test_what_no_other_row_has_stays():
    rows = [(0, 0, 0), (0, 1, 0), (1, 1, 1), (1, 0, 1), (0, 0, 1)]
    assert covering(rows) == [0, 1, 2, 3, 4]
