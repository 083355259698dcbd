"""Estimators with scikit-learn's interface: they check arguments and set fitted attributes.

`KMeans` has two base classes beside `SavableEstimator` (`savable.py`: copies, model files, reports): `Clusterer`
(`base.py`: fits, bounds) and `NearestCenter` (labels, distances and J from centers, also for other estimators).
Mixtures have one class `Mixture` (`mixture.py`) between `Clusterer` and the public classes. Other methods are functions
that classes take: `fitted_mixture.py` (predictions, densities), `nearest_center.py`, `approximate.py` (`certify`),
`missing.py` (`impute`), `batches.py` (`partial_fit` of `KMeans`), `updating.py` (`update`), `conditionals.py`.

- `opening.py`: data of any type become `execution.Data`; `as_prepared` is the one place that fills and scales rows.
- `validation.py`, `constraints.py`: checks of arguments. `covariances.py`, `memory_limit.py`: values of arguments that
  have options. `problems.py`, `mixture_problems.py`: options of fits, values that make the problem for some data.
- `solutions.py`: results as frozen values, whose `attributes` are the fitted attributes.
- `quality.py`: certificates as text. `watching.py`: callbacks of the loop and of scikit-learn. `folders.py`: folders of
  checkpoints.
- `mixed_columns.py`: families of the columns of `MixedMixture`, and the numbers that its models read.
- `many.py`: many small k-means problems by kernels that make whole fits, with the bits of `KMeans`.
- `memory.py`: the memory of a fit by formulas, for `planning` and for `budget.py` (`max_memory`).
"""

from cprime.estimators.bayesian_mixture import BayesianGaussianMixture
from cprime.estimators.categorical_mixture import CategoricalMixture
from cprime.estimators.conditional_mixtures import ConditionalMixtures
from cprime.estimators.covariances import Factors
from cprime.estimators.fuzzy_kmeans import FuzzyKMeans
from cprime.estimators.gaussian_mixture import GaussianMixture
from cprime.estimators.given_centers import assign
from cprime.estimators.kmeans import KMeans
from cprime.estimators.kmeans_1d import KMeans1D
from cprime.estimators.kmedians import KMedians
from cprime.estimators.kmedoids import KMedoids
from cprime.estimators.laplace_mixture import LaplaceMixture
from cprime.estimators.many import Many, fit_many
from cprime.estimators.memory_limit import Memory
from cprime.estimators.mixed_mixture import MixedMixture
from cprime.estimators.noise import Noisy
from cprime.estimators.poisson_mixture import Exposed, PoissonMixture
from cprime.estimators.priors import Prior
from cprime.estimators.quality import Bounds, SearchQualityWarning
from cprime.estimators.regression_mixture import RegressionMixture
from cprime.estimators.residual_kmeans import ResidualKMeans
from cprime.estimators.soft_kmeans import SoftKMeans
from cprime.estimators.student_t_mixture import StudentTMixture
from cprime.estimators.von_mises_fisher_mixture import VonMisesFisherMixture

__all__ = [
    "BayesianGaussianMixture",
    "Bounds",
    "CategoricalMixture",
    "ConditionalMixtures",
    "Exposed",
    "Factors",
    "FuzzyKMeans",
    "GaussianMixture",
    "KMeans",
    "KMeans1D",
    "KMedians",
    "KMedoids",
    "LaplaceMixture",
    "Many",
    "Memory",
    "MixedMixture",
    "Noisy",
    "PoissonMixture",
    "Prior",
    "RegressionMixture",
    "ResidualKMeans",
    "SearchQualityWarning",
    "SoftKMeans",
    "StudentTMixture",
    "VonMisesFisherMixture",
    "assign",
    "fit_many",
]
