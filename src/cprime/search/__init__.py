"""Which components a point looks at before it keeps the best: one file a search."""

from cprime.search.base import Search
from cprime.search.full import FullSearch

__all__ = ["FullSearch", "Search"]
