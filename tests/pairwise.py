"""Of the product of three or more parameters as many cases as hold every pair of their values."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from itertools import combinations

import pytest


def covering(rows: Sequence[tuple[Hashable, ...]]) -> list[int]:
    """Positions, rising, of rows in which every two values occur together that do in any of them; few of them."""
    pairs = [{(i, j, row[i], row[j]) for i, j in combinations(range(len(row)), 2)} for row in rows]
    missing, left, chosen = set().union(*pairs), list(range(len(rows))), []
    while missing:
        best = max(left, key=lambda position: len(pairs[position] & missing))
        left.remove(best)
        chosen.append(best)
        missing -= pairs[best]
    return sorted(chosen)


def left_out(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """The cases of tests of three or more parameters that have no pair of values which others have not.

    Of parameters that come as tuples the tuple is the value. Quick and long cases are looked at apart.
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
