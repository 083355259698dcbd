"""The scikit-learn surface: validation of arguments, fitted attributes; no numerics."""

from cprime.estimators.base import Bounds
from cprime.estimators.fuzzy_kmeans import FuzzyKMeans
from cprime.estimators.gaussian_mixture import GaussianMixture
from cprime.estimators.kmeans import KMeans
from cprime.estimators.kmedoids import KMedoids
from cprime.estimators.soft_kmeans import SoftKMeans
from cprime.storage import load  # the classes above are known to it once they are imported

__all__ = ["Bounds", "FuzzyKMeans", "GaussianMixture", "KMeans", "KMedoids", "SoftKMeans", "load"]
