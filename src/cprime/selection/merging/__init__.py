"""Merging of components into clusters: the components of a fit are joined, pair by pair, to any smaller number.

`entropy.py` and `ward.py` choose the next pair, `tree.py` holds the resulting tree, `merge.py` contains the public
function.
"""

from cprime.selection.merging.merge import merge
from cprime.selection.merging.tree import MergeTree

__all__ = ["MergeTree", "merge"]
