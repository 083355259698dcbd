"""Where the data live: a pass computes a job on every chunk and merges the parts in a fixed order."""

from cprime.execution.base import Data, Job, Taken, rows_of
from cprime.execution.local import Local, local

__all__ = ["Data", "Job", "Local", "Taken", "local", "rows_of"]
