"""Searches, which choose the candidate components of each point. Each search has its own file.

Instances of `Full`, `Bounded`, `Graph` and `Papers` are values of the argument `search` of estimators. The strings that
this argument accepts are shorthands for such instances.
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
