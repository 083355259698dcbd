"""Truncated variational EM, in which each point has an active set of C′ components.

The package contains `solve`, which fits a `Problem`, the EM loop, its E-steps, and its stages: the phases of a fit.

- `solving.py`: `Problem`, what a fit needs to know; `solve` makes all its starts, with callbacks and checkpoints.
- `loop.py`: `run` repeats `iterate`, which is the algorithm in readable form. `Run` is its state.
- `stages.py`: the protocol `Stage`; `Warmup`, E-steps before the first M-step; `Final`, the last pass.
- `k_means.py`: `Exchange`, then `Lloyd`, with the E-step of `hard.py`. σ² follows from J in the E-step. The centers of
  empty clusters move to distant points (`relocate_empty`). An exchange step multiplies distances by Hartigan's factors,
  which account for the shift of both centers when a point is reassigned, and extrapolates centers; it is rejected if J
  does not fall. Between iterations, centers jump to other clusters if this certainly lowers J (`jumps.py`). Sums are
  updated from the reassigned points, and are recomputed after points of large weight have left a cluster.
- `mixture.py`: `EM`, and `Momentum`, whose E-steps use extrapolated parameters; a pass that lowers F is rejected, and
  the last step of a fit is a plain EM step.
- `expectation.py`: the E-steps `EStep` and `ExactEStep`, other jobs over the data, and the assignments.
- `certificate.py`: how much a partial search has missed. `diverse_starts.py`: starts of mixtures with `n_init` above 1.
- `batches.py`: online k-means, with the steps of `online.py` (which also has those of mixtures) and the jumps of
  centers between batches of `batch_jumps.py`.
- `sizes.py`: means alternate with the assignment of points to clusters of bounded size (`kernels/transport.py`).
- `fuzzy.py`, `medians.py`, `medoids.py`, `residuals.py`: algorithms that are not a combination of model, truncation,
  search and assignment.
"""

from cprime.em.batch_jumps import jump_between_batches
from cprime.em.batches import Online, OnlinePlan, RecentRows, learn_batch
from cprime.em.certificate import Loss, certify
from cprime.em.diverse_starts import StartingPartitions, diverse_start, n_doubtful
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
from cprime.em.sizes import BoundedSizes, SizeBounds, assign_within
from cprime.em.solving import FirstModel, Problem, Runs, solve
from cprime.em.stages import Accept, End, Final, Stage, Undo, Warmup

__all__ = [
    "ALL",
    "ASSIGNMENTS",
    "EM",
    "HISTORY",
    "Accept",
    "BoundedSizes",
    "CostPass",
    "DrawFromAll",
    "EStep",
    "End",
    "ExactEStep",
    "Exchange",
    "Final",
    "FirstModel",
    "FitPlan",
    "HardEStep",
    "Label",
    "Lloyd",
    "LogLikelihood",
    "Loss",
    "MixtureSettings",
    "Momentum",
    "Online",
    "OnlinePlan",
    "Problem",
    "RecentRows",
    "Run",
    "Runs",
    "SampledAssignment",
    "SetLabels",
    "Settings",
    "SizeBounds",
    "Stage",
    "StartingPartitions",
    "Totals",
    "Undo",
    "Warmup",
    "assign_within",
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
    "learn_batch",
    "mixture_step",
    "n_doubtful",
    "proceed",
    "rate",
    "reached",
    "run",
    "sample_rows",
    "soft_assignment",
    "solve",
    "toward_means",
]
