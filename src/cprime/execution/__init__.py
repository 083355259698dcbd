"""Execution of passes over the data, on this machine or on a Dask cluster.

A pass calls one function, the job, for every chunk of the data, and merges the partial results in a fixed order.

- `base.py`: `Data`, whose method `each` is the only pass. A job is a picklable function of a block of points and their
  active sets, ``(block, kept) -> (kept, part)``, which does not change its arguments. Parts are additive; `merge` adds
  them by a binary counter over the numbers of the chunks. The loop can `commit` or `rollback` a pass, because the
  previous active sets are stored until then. `take` returns a few rows by index.
- `local.py`: an array in memory, usually one chunk, or a source, chunk by chunk; the next chunk is read while one is
  computed, by kernels with all threads.
- `distributed.py`: a Dask array on the cluster of the current client, whose workers run the functions of
  `dask_tasks.py` on groups of chunks. Dask recomputes a lost future from its task. Every few passes the active sets
  are written to a folder that all workers share, if there is one, so that fewer passes must be recomputed.
- `dask_collections.py`: Dask arrays and dataframes as given; without a client, a source whose chunks Dask computes.
- `block.py`: blocks of points, and `ActiveSet`: ids (n, C′), costs, and the bounds of the bounded search.
- `spill.py`: active sets in files of a folder. Jobs and searches use arrays in both cases.
- `results.py`: results for all rows (`Data.map`), written piece by piece to an array or a file.
"""

from cprime.execution.base import Data, Job, RowSample, rows_of
from cprime.execution.block import Chunk
from cprime.execution.local import Local, local
from cprime.execution.spill import PREFIX as SPILL_PREFIX

__all__ = ["SPILL_PREFIX", "Chunk", "Data", "Job", "Local", "RowSample", "local", "rows_of"]
