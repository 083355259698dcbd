"""Compiled kernels (the hot loops), and classes of data rows whose methods call them.

Each kernel has a twin: a slow NumPy version that passes the same contract tests. `Rows` is the base class of data rows.
`Dense` is for rows of float arrays, `StoredRows` for narrow types (uint8, float16), `SparseRows` for sparse rows, and
`Reference` calls the twins instead of compiled kernels. Kernels that read no data rows are plain functions.
"""

from cprime.kernels.bounds import DistanceBounds, Moves
from cprime.kernels.cells import CenterCells
from cprime.kernels.compute import as_rows, computing, instruction_set
from cprime.kernels.distances import potentials
from cprime.kernels.exact import Posterior, Responses, joined, posterior
from cprime.kernels.factors import FactorAnalysers
from cprime.kernels.line import cut_line
from cprime.kernels.many import lloyd_many, plus_plus_many
from cprime.kernels.masked import ReadGaps, with_nan
from cprime.kernels.measures import Exact, Floats, GaussianParameters, Measure
from cprime.kernels.partial import Evidence, SearchResult, changed
from cprime.kernels.rows import Dense, Rows
from cprime.kernels.sparse import SparseRows
from cprime.kernels.stored import StoredRows, wide_bytes
from cprime.kernels.student_t_weights import StudentTWeights, scaled_responsibilities
from cprime.kernels.sums import grouped_order, means, without_negligible
from cprime.kernels.tables import TabulatedCosts
from cprime.kernels.transport import COPIES_OF_POINTS, Infeasible, assign_bounded, assign_weighted

__all__ = [
    "COPIES_OF_POINTS",
    "CenterCells",
    "Dense",
    "DistanceBounds",
    "Evidence",
    "Exact",
    "FactorAnalysers",
    "Floats",
    "GaussianParameters",
    "Infeasible",
    "Measure",
    "Moves",
    "Posterior",
    "ReadGaps",
    "Responses",
    "Rows",
    "SearchResult",
    "SparseRows",
    "StoredRows",
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
    "wide_bytes",
    "with_nan",
    "without_negligible",
]
