"""Neighbor lists of components, and coarse cells of centers.

Cells are groups of centers near each other. They are used to find centers near a point that has no component yet.
"""

from cprime.neighbors.cells import SAMPLE_PER_CELL, Cells, GroupedCenters, coarse_centers, table
from cprime.neighbors.components import (
    EXACT_LISTS,
    exact_lists,
    least_lists,
    put_first,
    refined_lists,
    with_self,
    without_self,
)
from cprime.neighbors.near import CenterIndex, OnlineCenterIndex

__all__ = [
    "EXACT_LISTS",
    "SAMPLE_PER_CELL",
    "Cells",
    "CenterIndex",
    "GroupedCenters",
    "OnlineCenterIndex",
    "coarse_centers",
    "exact_lists",
    "least_lists",
    "put_first",
    "refined_lists",
    "table",
    "with_self",
    "without_self",
]
