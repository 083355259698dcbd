"""Pairwise testing: selection of test cases that contain every pair of values of three or more parameters."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence
from itertools import combinations

import pytest


def covering(rows: Sequence[tuple[Hashable, ...]], without: Collection[tuple[int, int]] = ()) -> list[int]:
    """Return sorted indices of a small subset of rows that contains every pair of values that occurs in a row.

    without: pairs of columns (the lesser index first) of which not every pair of values is needed
    """
    positions = [pair for pair in combinations(range(len(rows[0]) if rows else 0), 2) if pair not in without]
    pairs = [{(i, j, row[i], row[j]) for i, j in positions} for row in rows]
    missing, left, chosen = set().union(*pairs), list(range(len(rows))), []
    while missing:
        best = max(left, key=lambda position: len(pairs[position] & missing))
        left.remove(best)
        chosen.append(best)
        missing -= pairs[best]
    return sorted(chosen)


def left_out(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Return the cases of tests of three or more parameters that are not needed to cover all pairs of values.

    A tuple of parameters counts as one value. Quick and long cases are covered separately.
    """
    cases = defaultdict(list)
    for item in items:
        values = getattr(getattr(item, "callspec", None), "_idlist", ())
        if len(values) > 2:
            test = item.nodeid.partition("[")[0]
            cases[test, len(values), item.get_closest_marker("long") is None].append((item, tuple(values)))
    out = set()
    for found in cases.values():
        chosen = covering([values for _, values in found])
        out.update(item for item, _ in found)
        out.difference_update(found[position][0] for position in chosen)
    return out
