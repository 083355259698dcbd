"""Estimators with scikit-learn's interface: they check arguments and set fitted attributes, but contain no numerics."""

from cprime.estimators.conditional_mixtures import ConditionalMixtures
from cprime.estimators.fuzzy_kmeans import FuzzyKMeans
from cprime.estimators.gaussian_mixture import GaussianMixture
from cprime.estimators.kmeans import KMeans
from cprime.estimators.kmeans_1d import KMeans1D
from cprime.estimators.kmedoids import KMedoids
from cprime.estimators.quality import Bounds, SearchQualityWarning
from cprime.estimators.soft_kmeans import SoftKMeans
from cprime.estimators.student_t_mixture import StudentTMixture

__all__ = [
    "Bounds",
    "ConditionalMixtures",
    "FuzzyKMeans",
    "GaussianMixture",
    "KMeans",
    "KMeans1D",
    "KMedoids",
    "SearchQualityWarning",
    "SoftKMeans",
    "StudentTMixture",
]
