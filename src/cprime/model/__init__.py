"""Mixture models: what a component is, and how parameters follow from sufficient statistics."""

from cprime.model.tied_spherical import Spread, TiedSpherical

__all__ = ["Spread", "TiedSpherical"]
