"""The scikit-learn surface: validation of arguments, fitted attributes; no numerics."""

from cprime.estimators.base import Bounds
from cprime.estimators.gaussian_mixture import GaussianMixture
from cprime.estimators.kmeans import KMeans
from cprime.storage import load  # the classes above are known to it once they are imported

__all__ = ["Bounds", "GaussianMixture", "KMeans", "load"]
