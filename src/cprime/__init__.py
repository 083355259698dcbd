"""k-means, Gaussian mixtures and everything between them, at any number of clusters.

`KMeans`, `GaussianMixture` and their relatives are scikit-learn estimators; the rooms beside them can be used alone;
`open_data` opens files that are read chunk by chunk, `load` brings back what an estimator's `save` wrote, and `resume`
goes on with a fit that has died. C′ ("C prime") is the number of components that a point keeps: 1 is k-means, all C is
exact EM.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cprime import callbacks, coresets, datasets, plots, search, seeding, selection, sklearn, theory, tl
    from cprime.estimators import (
        Bounds,
        ConditionalMixtures,
        FuzzyKMeans,
        GaussianMixture,
        KMeans,
        KMeans1D,
        KMedoids,
        SearchQualityWarning,
        SoftKMeans,
        StudentTMixture,
    )
    from cprime.loading import load, resume
    from cprime.planning import Plan, plan
    from cprime.selection import GMeans, XMeans
    from cprime.sources import open_data

__version__ = "0.1.0"
__all__ = [
    "Bounds",
    "ConditionalMixtures",
    "FuzzyKMeans",
    "GMeans",
    "GaussianMixture",
    "KMeans",
    "KMeans1D",
    "KMedoids",
    "Plan",
    "SearchQualityWarning",
    "SoftKMeans",
    "StudentTMixture",
    "XMeans",
    "__version__",
    "callbacks",
    "coresets",
    "datasets",
    "load",
    "open_data",
    "plan",
    "plots",
    "resume",
    "search",
    "seeding",
    "selection",
    "sklearn",
    "theory",
    "tl",
]

_HOME = {
    "Bounds": "cprime.estimators",
    "ConditionalMixtures": "cprime.estimators",
    "FuzzyKMeans": "cprime.estimators",
    "GMeans": "cprime.selection",
    "GaussianMixture": "cprime.estimators",
    "KMeans": "cprime.estimators",
    "KMeans1D": "cprime.estimators",
    "KMedoids": "cprime.estimators",
    "Plan": "cprime.planning",
    "SearchQualityWarning": "cprime.estimators",
    "SoftKMeans": "cprime.estimators",
    "StudentTMixture": "cprime.estimators",
    "XMeans": "cprime.selection",
    "load": "cprime.loading",
    "open_data": "cprime.sources",
    "plan": "cprime.planning",
    "resume": "cprime.loading",
}
_ROOMS = (
    "callbacks",
    "coresets",
    "datasets",
    "faiss",
    "plots",
    "search",
    "seeding",
    "selection",
    "sklearn",
    "theory",
    "tl",
)


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _ROOMS:
        return import_module(f"cprime.{name}")
    raise AttributeError(f"module 'cprime' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
