"""Drop-in replacements with scikit-learn's names, arguments and behavior, computed by this library.

Each class is a subclass of scikit-learn's class of the same name. Arguments, their checks, tags, pickling and
representations are inherited; `fit`, `predict` and similar methods call cprime's estimators and kernels. Cases that
cprime does not support run scikit-learn's own code and log one line to the logger "cprime".

`patch` replaces the classes in scikit-learn's modules by these classes, for programs that are not to be edited. So does
``python -m cprime.sklearn program.py``.
"""

from cprime.sklearn.bisecting import BisectingKMeans
from cprime.sklearn.functions import k_means, kmeans_plusplus
from cprime.sklearn.kmeans import KMeans
from cprime.sklearn.mini_batch import MiniBatchKMeans
from cprime.sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from cprime.sklearn.patching import patch, unpatch

__all__ = [
    "BayesianGaussianMixture",
    "BisectingKMeans",
    "GaussianMixture",
    "KMeans",
    "MiniBatchKMeans",
    "k_means",
    "kmeans_plusplus",
    "patch",
    "unpatch",
]


def __dir__() -> list[str]:
    return __all__
