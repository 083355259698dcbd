"""Truncated variational EM, in which each point has an active set of C′ components.

The package contains the EM loop, its E-steps, and its stages: the phases of a fit, such as Lloyd's steps of k-means.
"""

from cprime.em.batch_jumps import jump_between_batches
from cprime.em.certificate import Loss, certify
from cprime.em.diverse_starts import diverse_start
from cprime.em.expectation import (
    ASSIGNMENTS,
    CostPass,
    DrawFromAll,
    EStep,
    ExactEStep,
    Label,
    LogLikelihood,
    SampledAssignment,
    Totals,
    hard_assignment,
    soft_assignment,
)
from cprime.em.hard import HardEStep, SetLabels
from cprime.em.k_means import Exchange, Lloyd, Settings, hard_free_energy
from cprime.em.loop import HISTORY, FitPlan, Run, assigned, begin, hard_start, proceed, reached, run, sample_rows
from cprime.em.mixture import EM, MixtureSettings, Momentum, free_energy
from cprime.em.online import ALL, k_means_step, mixture_step, rate, toward_means
from cprime.em.problem import Problem
from cprime.em.solving import Runs, solve
from cprime.em.stages import Accept, End, Final, Stage, Undo, Warmup

__all__ = [
    "ALL",
    "ASSIGNMENTS",
    "EM",
    "HISTORY",
    "Accept",
    "CostPass",
    "DrawFromAll",
    "EStep",
    "End",
    "ExactEStep",
    "Exchange",
    "Final",
    "FitPlan",
    "HardEStep",
    "Label",
    "Lloyd",
    "LogLikelihood",
    "Loss",
    "MixtureSettings",
    "Momentum",
    "Problem",
    "Run",
    "Runs",
    "SampledAssignment",
    "SetLabels",
    "Settings",
    "Stage",
    "Totals",
    "Undo",
    "Warmup",
    "assigned",
    "begin",
    "certify",
    "diverse_start",
    "free_energy",
    "hard_assignment",
    "hard_free_energy",
    "hard_start",
    "jump_between_batches",
    "k_means_step",
    "mixture_step",
    "proceed",
    "rate",
    "reached",
    "run",
    "sample_rows",
    "soft_assignment",
    "solve",
    "toward_means",
]
