"""Truncated variational EM: the loop, its rules and E-steps, and the state of a fit."""

from cprime.em.assignment import Drawn, Hard, Soft, Winners, assignment_of
from cprime.em.expectation import EStep, ExactEStep, Totals
from cprime.em.k_means_rule import KMeansRule
from cprime.em.loop import Plan, assigned, begin, hard_start, proceed, run, sampler
from cprime.em.mixture_rule import MixtureRule
from cprime.em.online import ALL, k_means_step, mixture_step
from cprime.em.state import HISTORY, Fit, free_energy, hard_free_energy, history

__all__ = [
    "ALL",
    "HISTORY",
    "Drawn",
    "EStep",
    "ExactEStep",
    "Fit",
    "Hard",
    "KMeansRule",
    "MixtureRule",
    "Plan",
    "Soft",
    "Totals",
    "Winners",
    "assigned",
    "assignment_of",
    "begin",
    "free_energy",
    "hard_free_energy",
    "hard_start",
    "history",
    "k_means_step",
    "mixture_step",
    "proceed",
    "run",
    "sampler",
]
