"""Mixture models: densities of components, and M-steps that compute parameters from moments."""

from cprime.model.base import FAMILIES, register
from cprime.model.categorical import CATEGORICAL, Categorical
from cprime.model.factors import Factors, PrincipalComponents
from cprime.model.interface import Model
from cprime.model.own_covariance import Diag, FullCovariance, Spherical
from cprime.model.poisson import POISSON, Poisson
from cprime.model.pooled import PooledSpherical
from cprime.model.scatter import Scatter
from cprime.model.student_t import STUDENT_T, StudentTDiag, StudentTFull, StudentTSpherical
from cprime.model.student_t_tied import StudentTTied, StudentTTiedSpherical
from cprime.model.tied import Tied
from cprime.model.tied_spherical import TiedSpherical

__all__ = [
    "CATEGORICAL",
    "FAMILIES",
    "POISSON",
    "STUDENT_T",
    "Categorical",
    "Diag",
    "Factors",
    "FullCovariance",
    "Model",
    "Poisson",
    "PooledSpherical",
    "PrincipalComponents",
    "Scatter",
    "Spherical",
    "StudentTDiag",
    "StudentTFull",
    "StudentTSpherical",
    "StudentTTied",
    "StudentTTiedSpherical",
    "Tied",
    "TiedSpherical",
    "register",
]
