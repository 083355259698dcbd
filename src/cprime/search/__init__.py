"""Which components a point looks at before it keeps the best: one file a search.

`Full`, `Bounded`, `Graph` and `Papers` are values that estimators take as `search`; strings are their shorthands.
"""

from cprime.search.base import Look, Lookup, Sample, Search, SearchStats
from cprime.search.bounded import Bounded
from cprime.search.full import Full
from cprime.search.graph import Graph
from cprime.search.papers import Papers

__all__ = [
    "Bounded",
    "Full",
    "Graph",
    "Look",
    "Lookup",
    "Papers",
    "Sample",
    "Search",
    "SearchStats",
]


def __dir__() -> list[str]:
    return __all__
