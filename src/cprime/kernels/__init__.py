"""Compiled kernels (the hot loops), and classes of data rows whose methods call them.

Each operation is defined in the file of its concept: `distances.py` (exact search and distances), `partial.py` (search
among few candidates), `sums.py`, and so on. It checks its arguments once (`arguments.py`) and calls the compiled
kernel. The tests contain a slow NumPy version of each kernel (`tests/reference`), which passes the same contract tests.

`Rows` (`rows.py`) is the base class of data rows. Callers use only its methods, not the representation:

- `Dense`: rows of a float array.
- `SparseRows` (`sparse.py`): mostly zeros.
- `NarrowRows` (`narrow.py`): 8-bit integers and 16-bit floats, which are not converted as a whole.
- `MissingRows` (`missing.py`): rows with missing values. Costs under Gaussians are marginal densities (`marginals.py`,
  `diagonal_marginals.py`); distances to centers use filled values.
- `NoisyRows` (`noisy.py`): rows with known errors of measurement, whose covariances add to those of components.

`compute.py` converts arrays to the class of their rows. Kernels that read no data rows are plain functions.
"""

from cprime.kernels.bounds import DistanceBounds, Moves
from cprime.kernels.cells import CenterCells
from cprime.kernels.compute import as_rows, computing, instruction_set
from cprime.kernels.distances import potentials
from cprime.kernels.exact import Posterior, Responses, joined, posterior
from cprime.kernels.factors import FactorAnalysers
from cprime.kernels.line import cut_line
from cprime.kernels.many import lloyd_many, plus_plus_many
from cprime.kernels.measures import Exact, Floats, GaussianParameters, Measure
from cprime.kernels.missing import ExposedRows, MarginalRows, ReadExposed, ReadMissing, with_nan
from cprime.kernels.narrow import NarrowRows, wide_bytes
from cprime.kernels.noisy import ReadNoisy
from cprime.kernels.partial import Evidence, SearchResult, changed
from cprime.kernels.rows import Dense, Rows
from cprime.kernels.sparse import SparseRows
from cprime.kernels.student_t_weights import StudentTWeights, scaled_responsibilities
from cprime.kernels.sums import grouped_order, means, weighted_sum, without_negligible
from cprime.kernels.tables import TabulatedCosts
from cprime.kernels.transport import COPIES_OF_POINTS, Infeasible, assign_bounded, assign_weighted

__all__ = [
    "COPIES_OF_POINTS",
    "CenterCells",
    "Dense",
    "DistanceBounds",
    "Evidence",
    "Exact",
    "ExposedRows",
    "FactorAnalysers",
    "Floats",
    "GaussianParameters",
    "Infeasible",
    "MarginalRows",
    "Measure",
    "Moves",
    "NarrowRows",
    "Posterior",
    "ReadExposed",
    "ReadMissing",
    "ReadNoisy",
    "Responses",
    "Rows",
    "SearchResult",
    "SparseRows",
    "StudentTWeights",
    "TabulatedCosts",
    "as_rows",
    "assign_bounded",
    "assign_weighted",
    "changed",
    "computing",
    "cut_line",
    "grouped_order",
    "instruction_set",
    "joined",
    "lloyd_many",
    "means",
    "plus_plus_many",
    "posterior",
    "potentials",
    "scaled_responsibilities",
    "weighted_sum",
    "wide_bytes",
    "with_nan",
    "without_negligible",
]
