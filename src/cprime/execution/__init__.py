"""Where the data live: a pass computes a job on every chunk and merges the parts in a fixed order."""

from cprime.execution.base import Data, Job, Taken, rows_of
from cprime.execution.chunk import Chunk
from cprime.execution.local import Local, local
from cprime.execution.spill import PREFIX as SPILL_PREFIX

__all__ = ["SPILL_PREFIX", "Chunk", "Data", "Job", "Local", "Taken", "local", "rows_of"]
