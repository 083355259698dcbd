"""Mixture models: what a component is, and how parameters follow from sufficient statistics."""

from cprime.model.tied_spherical import TiedSpherical

__all__ = ["TiedSpherical"]
