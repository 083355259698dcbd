"""Merging of components into clusters: the components of a fit are joined, pair by pair, to any smaller number.

`entropy.py` chooses the pairs by entropy, and `cprime.em.joins` by Ward's criterion. `tree.py` contains the resulting
tree, `merge.py` the public function.
"""

from cprime.selection.merging.merge import merge
from cprime.selection.merging.tree import MergeTree

__all__ = ["MergeTree", "merge"]
