"""k-means, Gaussian mixtures and everything between them, at any number of clusters.

`KMeans`, `GaussianMixture` and related classes are scikit-learn estimators; the subpackages can be used on their own.
`open_data` opens files that are read chunk by chunk, `load` reads a saved estimator, `resume` continues an interrupted
fit, and `combine` makes one model of several. C′ ("C prime") is the size of each point's active set of components: C′
= 1 is k-means, C′ = C is exact EM.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cprime import callbacks, coresets, datasets, plots, search, seeding, selection, sklearn, theory, tl
    from cprime.combining import combine
    from cprime.estimators import (
        BayesianGaussianMixture,
        Bounds,
        CategoricalMixture,
        ConditionalMixtures,
        Exposed,
        Factors,
        FuzzyKMeans,
        GaussianMixture,
        KMeans,
        KMeans1D,
        KMedians,
        KMedoids,
        LaplaceMixture,
        Many,
        Memory,
        MixedMixture,
        Noisy,
        PoissonMixture,
        Prior,
        RegressionMixture,
        ResidualKMeans,
        SearchQualityWarning,
        SoftKMeans,
        StudentTMixture,
        VonMisesFisherMixture,
        assign,
        fit_many,
    )
    from cprime.estimators.planning import Plan, plan
    from cprime.loading import load, resume
    from cprime.selection import DPMeans, GMeans, MixtureClassifier, XMeans
    from cprime.sources import open_data

__version__ = "0.1.0"
__all__ = [
    "BayesianGaussianMixture",
    "Bounds",
    "CategoricalMixture",
    "ConditionalMixtures",
    "DPMeans",
    "Exposed",
    "Factors",
    "FuzzyKMeans",
    "GMeans",
    "GaussianMixture",
    "KMeans",
    "KMeans1D",
    "KMedians",
    "KMedoids",
    "LaplaceMixture",
    "Many",
    "Memory",
    "MixedMixture",
    "MixtureClassifier",
    "Noisy",
    "Plan",
    "PoissonMixture",
    "Prior",
    "RegressionMixture",
    "ResidualKMeans",
    "SearchQualityWarning",
    "SoftKMeans",
    "StudentTMixture",
    "VonMisesFisherMixture",
    "XMeans",
    "__version__",
    "assign",
    "callbacks",
    "combine",
    "coresets",
    "datasets",
    "fit_many",
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
    "BayesianGaussianMixture": "cprime.estimators",
    "Bounds": "cprime.estimators",
    "CategoricalMixture": "cprime.estimators",
    "ConditionalMixtures": "cprime.estimators",
    "DPMeans": "cprime.selection",
    "Exposed": "cprime.estimators",
    "Factors": "cprime.estimators",
    "FuzzyKMeans": "cprime.estimators",
    "GMeans": "cprime.selection",
    "GaussianMixture": "cprime.estimators",
    "KMeans": "cprime.estimators",
    "KMeans1D": "cprime.estimators",
    "KMedians": "cprime.estimators",
    "KMedoids": "cprime.estimators",
    "LaplaceMixture": "cprime.estimators",
    "Many": "cprime.estimators",
    "Memory": "cprime.estimators",
    "MixedMixture": "cprime.estimators",
    "MixtureClassifier": "cprime.selection",
    "Noisy": "cprime.estimators",
    "Plan": "cprime.estimators.planning",
    "PoissonMixture": "cprime.estimators",
    "Prior": "cprime.estimators",
    "RegressionMixture": "cprime.estimators",
    "ResidualKMeans": "cprime.estimators",
    "SearchQualityWarning": "cprime.estimators",
    "SoftKMeans": "cprime.estimators",
    "StudentTMixture": "cprime.estimators",
    "VonMisesFisherMixture": "cprime.estimators",
    "XMeans": "cprime.selection",
    "assign": "cprime.estimators",
    "combine": "cprime.combining",
    "fit_many": "cprime.estimators",
    "load": "cprime.loading",
    "open_data": "cprime.sources",
    "plan": "cprime.estimators.planning",
    "resume": "cprime.loading",
}
_PACKAGES = (
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
    if name in _PACKAGES:
        return import_module(f"cprime.{name}")
    raise AttributeError(f"module 'cprime' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
