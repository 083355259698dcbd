"""Figures of fits and of the theory, in the style of scikit-learn's displays: `Display.from_estimator(estimator, …)`.

Needs matplotlib. Every display stores the drawn data as attributes. Its method `plot`
draws them again, optionally on other axes. If no Axes is given, pyplot makes a figure as wide as a journal column.
"""

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError("cprime.plots needs matplotlib, which is missing: pip install matplotlib") from error

from cprime.plots.clusters import ClustersDisplay
from cprime.plots.codebook import CodebookDisplay
from cprime.plots.convergence import ConvergenceDisplay
from cprime.plots.decomposition import DecompositionDisplay
from cprime.plots.merge_tree import MergeTreeDisplay
from cprime.plots.responsibilities import ResponsibilitiesDisplay
from cprime.plots.search_space import SearchSpaceDisplay
from cprime.plots.sizes import SizesDisplay
from cprime.plots.steps import StepsDisplay

__all__ = [
    "ClustersDisplay",
    "CodebookDisplay",
    "ConvergenceDisplay",
    "DecompositionDisplay",
    "MergeTreeDisplay",
    "ResponsibilitiesDisplay",
    "SearchSpaceDisplay",
    "SizesDisplay",
    "StepsDisplay",
]


def __dir__() -> list[str]:
    return __all__
