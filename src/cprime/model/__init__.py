"""Mixture models: what a component is, and how parameters follow from moments."""

from cprime.model.base import FAMILIES, Model, register
from cprime.model.diag import Diag
from cprime.model.factors import Factors
from cprime.model.full import Full
from cprime.model.ppca import PrincipalComponents
from cprime.model.scatter import Scatter
from cprime.model.spherical import Spherical
from cprime.model.tied import Tied
from cprime.model.tied_spherical import TiedSpherical

__all__ = [
    "FAMILIES",
    "Diag",
    "Factors",
    "Full",
    "Model",
    "PrincipalComponents",
    "Scatter",
    "Spherical",
    "Tied",
    "TiedSpherical",
    "register",
]
