"""Truncated variational EM: the loop, its stages and E-steps."""

from cprime.em.assignment import Drawn, Hard, Soft, assignment_of
from cprime.em.expectation import DrawFromAll, EStep, ExactEStep, Label, LogLikelihood, Totals, Visit
from cprime.em.k_means import Exchange, Lloyd, Settings, Win, hard_free_energy
from cprime.em.loop import HISTORY, Plan, Run, assigned, begin, hard_start, history, proceed, reached, run, sampler
from cprime.em.mixture import EM, MixtureSettings, Momentum, free_energy
from cprime.em.online import ALL, k_means_step, mixture_step
from cprime.em.stages import Accept, End, Final, Stage, Undo, Warmup

__all__ = [
    "ALL",
    "EM",
    "HISTORY",
    "Accept",
    "DrawFromAll",
    "Drawn",
    "EStep",
    "End",
    "ExactEStep",
    "Exchange",
    "Final",
    "Hard",
    "Label",
    "Lloyd",
    "LogLikelihood",
    "MixtureSettings",
    "Momentum",
    "Plan",
    "Run",
    "Settings",
    "Soft",
    "Stage",
    "Totals",
    "Undo",
    "Visit",
    "Warmup",
    "Win",
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
    "reached",
    "run",
    "sampler",
]
