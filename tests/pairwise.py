"""Selection of test cases that contain every value of two parameters, or every pair of values of more parameters."""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Sequence
from itertools import combinations

import pytest


def covering(
    rows: Sequence[tuple[Hashable, ...]], without: Collection[tuple[int, int]] = (), together: int = 2
) -> list[int]:
    """Return sorted indices of a small subset of rows that contains every pair of values that occurs in a row.

    without: pairs of columns (the lesser index first) of which not every pair of values is needed
    together: 1 if it suffices that every single value is in a row
    """
    chosen_columns = combinations(range(len(rows[0]) if rows else 0), together)
    positions = [columns for columns in chosen_columns if columns not in without]
    pairs = [{(columns, *(row[i] for i in columns)) for columns in positions} for row in rows]
    missing, left, chosen = set().union(*pairs), list(range(len(rows))), []
    while missing:
        best = max(left, key=lambda position: len(pairs[position] & missing))
        left.remove(best)
        chosen.append(best)
        missing -= pairs[best]
    return sorted(chosen)


def left_out(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Return the cases of tests of three or more parameters that are not needed to cover all pairs of values."""
    return _beyond(items, lambda n_parameters: n_parameters > 2, 2)


def left_to_long_runs(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Return the quick cases of tests of two parameters that are not needed to cover all values of either."""
    return _beyond([item for item in items if _is_quick(item)], lambda n_parameters: n_parameters == 2, 1)


def _is_quick(item: pytest.Item) -> bool:
    return item.get_closest_marker("long") is None


def _beyond(items: Sequence[pytest.Item], is_chosen: Callable[[int], bool], together: int) -> set[pytest.Item]:
    """Return the cases that are not needed to cover all values, or pairs of values, of tests with so many parameters.

    A tuple of parameters counts as one value. Quick and long cases are covered separately.
    """
    cases = defaultdict(list)
    for item in items:
        values = getattr(getattr(item, "callspec", None), "_idlist", ())
        if is_chosen(len(values)):
            test = item.nodeid.partition("[")[0]
            cases[test, len(values), _is_quick(item)].append((item, tuple(values)))
    out = set()
    for found in cases.values():
        chosen = covering([values for _, values in found], together=together)
        out.update(item for item, _ in found)
        out.difference_update(found[position][0] for position in chosen)
    return out
