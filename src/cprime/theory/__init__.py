"""Numerical theory of hard and soft assignment: the objective of each algorithm, and the terms of each objective."""

from cprime.theory.annealing import SoftKMeansPath, soft_kmeans_path
from cprime.theory.denoising import posterior_mean
from cprime.theory.divergence import Divergence, kl_divergence
from cprime.theory.energy import em_loss, free_energy
from cprime.theory.fits import AssignmentFit, fit_assignment
from cprime.theory.ledger import Identity, Ledger, ledger
from cprime.theory.loss import PartitionLoss, part_densities, partition_loss
from cprime.theory.lower_bound import LowerBound, lower_bound
from cprime.theory.mixtures import Gaussians, Univariate
from cprime.theory.posterior import mixture_loss, posterior_loss, repulsion, repulsion_zero
from cprime.theory.variation import VariationBounds, VariationDistance, variation_bounds, variation_distance

__all__ = [
    "AssignmentFit",
    "Divergence",
    "Gaussians",
    "Identity",
    "Ledger",
    "LowerBound",
    "PartitionLoss",
    "SoftKMeansPath",
    "Univariate",
    "VariationBounds",
    "VariationDistance",
    "em_loss",
    "fit_assignment",
    "free_energy",
    "kl_divergence",
    "ledger",
    "lower_bound",
    "mixture_loss",
    "part_densities",
    "partition_loss",
    "posterior_loss",
    "posterior_mean",
    "repulsion",
    "repulsion_zero",
    "soft_kmeans_path",
    "variation_bounds",
    "variation_distance",
]


def __dir__() -> list[str]:
    return __all__
