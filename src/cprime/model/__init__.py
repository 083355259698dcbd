"""Mixture models: what a component is, and how parameters follow from sufficient statistics."""

from cprime.model.base import Model, Scatter
from cprime.model.diag import Diag
from cprime.model.full import Full
from cprime.model.spherical import Spherical
from cprime.model.tied import Tied
from cprime.model.tied_spherical import TiedSpherical

# By the name that `covariance_type` has for it.
FAMILIES = {"tied_spherical": TiedSpherical, "spherical": Spherical, "diag": Diag, "tied": Tied, "full": Full}

__all__ = ["FAMILIES", "Diag", "Full", "Model", "Scatter", "Spherical", "Tied", "TiedSpherical"]
