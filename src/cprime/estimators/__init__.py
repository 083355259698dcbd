"""Estimators with scikit-learn's interface: they check arguments and set fitted attributes, but contain no numerics."""

from cprime.estimators.categorical_mixture import CategoricalMixture
from cprime.estimators.conditional_mixtures import ConditionalMixtures
from cprime.estimators.fuzzy_kmeans import FuzzyKMeans
from cprime.estimators.gaussian_mixture import GaussianMixture
from cprime.estimators.given_centers import assign
from cprime.estimators.kmeans import KMeans
from cprime.estimators.kmeans_1d import KMeans1D
from cprime.estimators.kmedians import KMedians
from cprime.estimators.kmedoids import KMedoids
from cprime.estimators.many import Many, fit_many
from cprime.estimators.poisson_mixture import PoissonMixture
from cprime.estimators.quality import Bounds, SearchQualityWarning
from cprime.estimators.residual_kmeans import ResidualKMeans
from cprime.estimators.soft_kmeans import SoftKMeans
from cprime.estimators.student_t_mixture import StudentTMixture

__all__ = [
    "Bounds",
    "CategoricalMixture",
    "ConditionalMixtures",
    "FuzzyKMeans",
    "GaussianMixture",
    "KMeans",
    "KMeans1D",
    "KMedians",
    "KMedoids",
    "Many",
    "PoissonMixture",
    "ResidualKMeans",
    "SearchQualityWarning",
    "SoftKMeans",
    "StudentTMixture",
    "assign",
    "fit_many",
]
