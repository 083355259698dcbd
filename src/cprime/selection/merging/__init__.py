"""Clusters from components: a fit of many is joined, pair by pair, to any lesser number.

`entropy.py` and `ward.py` say which pair is next, `tree.py` is what comes of it, `merge.py` what is asked of a fit.
"""

from cprime.selection.merging.merge import merge
from cprime.selection.merging.tree import MergeTree

__all__ = ["MergeTree", "merge"]
