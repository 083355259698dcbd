"""Which components a point looks at before it keeps the best: one file a search."""

from cprime.search.base import Factors, Search
from cprime.search.bounded import BoundedSearch
from cprime.search.chunk import Chunk
from cprime.search.components import Centers, Components, GaussianCosts
from cprime.search.estimated import EstimatedSearch
from cprime.search.exact import ExactSearch
from cprime.search.full import FullSearch
from cprime.search.graph import GraphSearch

__all__ = [
    "BoundedSearch",
    "Centers",
    "Chunk",
    "Components",
    "EstimatedSearch",
    "ExactSearch",
    "Factors",
    "FullSearch",
    "GaussianCosts",
    "GraphSearch",
    "Search",
]
