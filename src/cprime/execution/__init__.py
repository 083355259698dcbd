"""Execution of passes over the data, on this machine or on a Dask cluster.

A pass calls one function, the job, for every chunk of the data, and merges the partial results in a fixed order.
"""

from cprime.execution.base import Data, Job, RowSample, rows_of
from cprime.execution.block import Chunk
from cprime.execution.local import Local, local
from cprime.execution.spill import PREFIX as SPILL_PREFIX

__all__ = ["SPILL_PREFIX", "Chunk", "Data", "Job", "Local", "RowSample", "local", "rows_of"]
