"""Compiled kernels (the hot loops), each with a NumPy twin that passes the same contract tests, and their rows.

`Rows` is the protocol of rows, whose methods call kernels. `Dense` are rows of float arrays, `StoredRows` of narrow
types, `SparseRows` sparse rows, and `Reference` rows whose methods call the twins. Kernels that need no rows are
functions.
"""

from cprime.kernels.among import Evidence, Found
from cprime.kernels.bounds import Bounds, Moves
from cprime.kernels.cells import CenterCells
from cprime.kernels.compute import as_rows, computing, instruction_set
from cprime.kernels.exact import Posterior, Responses, joined, posterior
from cprime.kernels.factors import FactorAnalysers
from cprime.kernels.line import cut_line
from cprime.kernels.masked import ReadGaps, with_nan
from cprime.kernels.measures import Exact, Floats, Gaussians, Measure
from cprime.kernels.offers import Offer
from cprime.kernels.order import changed, grouped_order
from cprime.kernels.rows import Dense, Rows
from cprime.kernels.sampling import potentials
from cprime.kernels.sparse import SparseRows
from cprime.kernels.stored import StoredRows, wide_bytes
from cprime.kernels.sums import means
from cprime.kernels.tables import Tabled
from cprime.kernels.tails import Pulled, pull

__all__ = [
    "Bounds",
    "CenterCells",
    "Dense",
    "Evidence",
    "Exact",
    "FactorAnalysers",
    "Floats",
    "Found",
    "Gaussians",
    "Measure",
    "Moves",
    "Offer",
    "Posterior",
    "Pulled",
    "ReadGaps",
    "Responses",
    "Rows",
    "SparseRows",
    "StoredRows",
    "Tabled",
    "as_rows",
    "changed",
    "computing",
    "cut_line",
    "grouped_order",
    "instruction_set",
    "joined",
    "means",
    "posterior",
    "potentials",
    "pull",
    "wide_bytes",
    "with_nan",
]
