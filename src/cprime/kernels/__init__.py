"""The hot loops, compiled, each beside a NumPy twin that a contract suite holds it to; and the rows that they read.

`Rows` are the verbs; `Dense`, `StoredRows` and `SparseRows` are those of arrays, of narrower ones, and of rows that are
mostly zeros, `Reference` those that the twins serve. What needs no rows is a function here.
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
