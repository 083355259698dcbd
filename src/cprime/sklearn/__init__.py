"""scikit-learn's names, arguments and behaviour, with this library underneath.

Each class is a subclass of scikit-learn's of the same name: arguments, their checks, tags, pickles and what it is shown
as are inherited; `fit`, `predict` and their like call cprime's estimators and kernels. What cprime cannot serve runs
scikit-learn's own code, which one line of the logger "cprime" says.

`patch` puts the names in the place of scikit-learn's, for programs that are not to be edited; so does
``python -m cprime.sklearn program.py``.
"""

from cprime.sklearn.bisecting import BisectingKMeans
from cprime.sklearn.functions import k_means, kmeans_plusplus
from cprime.sklearn.kmeans import KMeans
from cprime.sklearn.mini_batch import MiniBatchKMeans
from cprime.sklearn.mixture import GaussianMixture
from cprime.sklearn.patching import patch, unpatch

__all__ = [
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
