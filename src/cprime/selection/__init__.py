"""How many clusters: criteria along a range of C, and estimators that find C themselves.

`sweep` fits a mixture or k-means for every C of a range and returns a `Sweep`, which `SelectionDisplay` draws; `XMeans`
and `GMeans` split clusters, and merge them, until none asks for it. `merge` joins the components of a fit, in a
`MergeTree` that is cut at any number. Calls the estimators as a user would.
"""

from cprime.selection.display import SelectionDisplay
from cprime.selection.gmeans import GMeans
from cprime.selection.merging import MergeTree, merge
from cprime.selection.results import Sweep
from cprime.selection.sweep import sweep
from cprime.selection.xmeans import XMeans

__all__ = ["GMeans", "MergeTree", "SelectionDisplay", "Sweep", "XMeans", "merge", "sweep"]


def __dir__() -> list[str]:
    return __all__
