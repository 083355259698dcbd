"""Selection of test cases that contain every value of each parameter, or every pair of values of two parameters."""

import heapq
from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence
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
    missing, chosen = set().union(*pairs), []
    left = [(-len(pairs[position]), position) for position in range(len(rows))]  # a heap: already in order of size
    while missing:
        position = heapq.heappop(left)[1]
        now = -len(pairs[position] & missing), position  # never more than what was missing when it was pushed
        if left and left[0] < now:
            heapq.heappush(left, now)
            continue
        chosen.append(position)
        missing -= pairs[position]
    return sorted(chosen)


def beyond(items: Sequence[pytest.Item], together: int) -> set[pytest.Item]:
    """Return the cases that are not needed to cover all values (`together` = 1) or all pairs of values of their tests.

    A tuple of parameters counts as one value. Quick and long cases are covered separately.
    """
    cases = defaultdict(list)
    for item in items:
        values = tuple(getattr(getattr(item, "callspec", None), "_idlist", ()))
        if len(values) > together:
            cases[item.nodeid.partition("[")[0], len(values), is_quick(item)].append((item, values))
    out = set()
    for found in cases.values():
        chosen = covering([values for _, values in found], together=together)
        out.update(item for item, _ in found)
        out.difference_update(found[position][0] for position in chosen)
    return out


def is_quick(item: pytest.Item) -> bool:
    return item.get_closest_marker("long") is None
