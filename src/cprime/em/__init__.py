"""Truncated variational EM: the loop, its E-step, and the state of a fit."""

from cprime.em.expectation import expect
from cprime.em.loop import begin, hard_free_energy, run, with_hard_variance
from cprime.em.online import k_means_step, mixture_step
from cprime.em.state import HISTORY, Fit, Settings, free_energy, history

__all__ = [
    "HISTORY",
    "Fit",
    "Settings",
    "begin",
    "expect",
    "free_energy",
    "hard_free_energy",
    "history",
    "k_means_step",
    "mixture_step",
    "run",
    "with_hard_variance",
]
