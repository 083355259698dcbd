"""k-means, Gaussian mixtures and everything between them, at any number of clusters.

`KMeans` and `GaussianMixture` are scikit-learn estimators; `seeding` and `datasets` can be used alone; `load` brings
back what an estimator's `save` wrote. C′ ("C prime") is the number of components that a point keeps: 1 is k-means,
all C is exact EM.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cprime import datasets, seeding
    from cprime.estimators import Bounds, GaussianMixture, KMeans, load

__version__ = "0.1.0"
__all__ = ["Bounds", "GaussianMixture", "KMeans", "__version__", "datasets", "load", "seeding"]

_HOME = {
    "Bounds": "cprime.estimators",
    "GaussianMixture": "cprime.estimators",
    "KMeans": "cprime.estimators",
    "load": "cprime.estimators",
}


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in ("datasets", "seeding"):
        return import_module(f"cprime.{name}")
    raise AttributeError(f"module 'cprime' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
