"""Mixture models: densities of components, and M-steps that compute parameters from moments.

`interface.py` has the protocol `Model`, `base.py` the base classes. Families, with their costs of a component for a
point, from which log p(c, x) = `log_scale` + `scale` · cost:

- `tied_spherical.py`: one σ² for all, as in the papers; squared distances.
- `tied.py`: one covariance matrix for all; squared distances of whitened points (`embed`). `Embedded` in `base.py`, and
  `scatter.py` for M-steps, are common code of these two.
- `own_covariance.py`: diagonal, spherical or full covariances; −2 log p(c, x), eq. 31.
- `decomposed.py`: diagonal or full covariances of equal volumes, shapes or orientations; only M-steps differ.
- `pooled.py`: the tied families for rows with missing values (`Model.with_missing`); marginal densities.
- `factors.py`: factor analyzers, and "ppca" with one noise variance per component; the same costs from low-rank
  matrices (`factor_costs.py`). `factor_steps.py`: moments and M-steps, also for rows with missing values.
- `linear.py`: base of families whose log-density is linear in a transformed row, by products with natural parameters:
  `poisson.py` for counts, `categorical.py` for categories, which are read as zeros and ones, and `von_mises_fisher.py`
  for directions.
- `laplace.py`: independent Laplace columns with one scale for each component and column, or shared ones; the M-step of
  weighted medians needs the rows.
- `regression.py`: regressions of a last column on others, with weights that may depend on further columns. M-steps need
  the rows, which are moments of `row_moments.py` here and in `laplace.py`.
- `conjugate.py`: families with a conjugate prior; `bayesian.py`: posteriors of all parameters (variational Bayes).
- `product.py`: products of these families over blocks of columns.
- `student_t.py`: t distributions with the parameters of diag, spherical or full; moments and M-step use q u in place of
  q.

A family implements everything that is specific to it: moments of its own type and the M-step (`summarise`, `maximise`,
`pseudo_moments`), and a pass over the data that its M-steps may need (`prior`); the fitted attributes (`attributes`,
`from_attributes`, `shape`, `starting`); values for plots, reports and `theory` (`covariances_along`, `variances`,
`distances`, `noise`, `least_variances`); `marginal` and `conditional` (`conditional.py`). It is `register`ed under its
name, and no code outside this package depends on that name. An exact E-step and extrapolation are optional (`exact`,
`accelerates`). `tests/model/laplace.py` is a family in one file of plain NumPy that works with everything else.

Searches use a model only through `neighbors/components.py`. `Components` implements all operations from costs alone,
slowly. `Centers` and `GaussianCosts` use kernels, and describe their properties by flags (`squared_distances`,
`steady`). For models with squared distances, free weights are one more coordinate of the centers, which is 0 for all
points. `covariance.py` factors covariances and repairs singular ones. scikit-learn's `reg_covar` is added to variances,
so F may fall slightly if variances are of this size. For `tied_spherical` it is the least variance, and F never falls.
"""

from cprime._utils.declared import Array
from cprime.model.base import FAMILIES, register
from cprime.model.bayesian import BAYESIAN, BayesianPrior
from cprime.model.categorical import CATEGORICAL, Categorical
from cprime.model.conjugate import PENALIZED, ConjugatePrior
from cprime.model.decomposed import EEV, EVE, EVI, EVV, VEE, VEI, VEV, VVE, Decomposed, TiedDiag
from cprime.model.factors import FactorAnalyzers, PrincipalComponents
from cprime.model.interface import Model
from cprime.model.laplace import LAPLACE, Laplace
from cprime.model.own_covariance import Diag, FullCovariance, Spherical
from cprime.model.poisson import POISSON, Poisson
from cprime.model.pooled import PooledSpherical
from cprime.model.product import PRODUCT, Product
from cprime.model.regression import REGRESSION, Regression
from cprime.model.scatter import Scatter
from cprime.model.student_t import (
    STUDENT_T,
    StudentTDiag,
    StudentTFull,
    StudentTSpherical,
    StudentTTied,
    StudentTTiedSpherical,
)
from cprime.model.tied import Tied
from cprime.model.tied_spherical import TiedSpherical
from cprime.model.von_mises_fisher import VON_MISES_FISHER

__all__ = [
    "BAYESIAN",
    "CATEGORICAL",
    "EEV",
    "EVE",
    "EVI",
    "EVV",
    "FAMILIES",
    "LAPLACE",
    "PENALIZED",
    "POISSON",
    "PRODUCT",
    "REGRESSION",
    "STUDENT_T",
    "VEE",
    "VEI",
    "VEV",
    "VON_MISES_FISHER",
    "VVE",
    "Array",
    "BayesianPrior",
    "Categorical",
    "ConjugatePrior",
    "Decomposed",
    "Diag",
    "FactorAnalyzers",
    "FullCovariance",
    "Laplace",
    "Model",
    "Poisson",
    "PooledSpherical",
    "PrincipalComponents",
    "Product",
    "Regression",
    "Scatter",
    "Spherical",
    "StudentTDiag",
    "StudentTFull",
    "StudentTSpherical",
    "StudentTTied",
    "StudentTTiedSpherical",
    "Tied",
    "TiedDiag",
    "TiedSpherical",
    "register",
]
