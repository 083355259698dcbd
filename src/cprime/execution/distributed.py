"""Data of a Dask array or dataframe whose passes run on the workers of a cluster.

One task processes a group of consecutive chunks. The number of chunks in a group is a power of two, so that partial
results are merged in the same pairs as in a local fit. The rows and active sets of a group stay in the memory of the
workers. A job (the function of a pass) is an argument of all tasks or, if it is large, the result of one task. Tasks
merge partial results until few are left. If a worker is lost, Dask recomputes its results, including the passes since
the last write to disk: this takes time and does not change the result.
"""

import logging
import os
import pickle
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from typing import Any, NoReturn

import dask
import numpy as np
from numpy.typing import NDArray

from cprime._utils.values import replace
from cprime.execution import dask_tasks as tasks
from cprime.execution.base import Data, Job, P, RowSample, merge
from cprime.execution.block import Chunk, by_chunk, join_active_sets
from cprime.execution.dask_tasks import GroupState
from cprime.execution.local import MakeRows, Prepare

logger = logging.getLogger("cprime")

# A task processes a group of chunks. There are at least this number of groups per thread, so that threads have about
# equal loads; if groups are small, one group per thread suffices.
_GROUPS_A_THREAD = 4
# Groups of chunks with at most this number of bytes of rows are small: unequal loads of threads then take little time.
_LIGHT = 2**20
# If all copies of a job (one for each task) together need more bytes than this, tasks share one copy.
_SENT = 2**20
# Number of partial results that one task merges; a power of two, so that sums are added in the same pairs as in a local
# fit.
_FAN_IN = 8
# Number of passes between writes of active sets to disk; lost results are recomputed from these.
_CUT = 8


class Distributed(Data):
    """Data in the chunks of a Dask array, on the cluster of a client."""

    in_memory = False
    sparse = False
    is_local = False

    def __init__(self, X: Any, sample_weight: Any, dtype: Any, client: Any, columns: list[str] | None = None):
        self.client = client
        self.columns = columns
        self.n_features = int(X.shape[1])
        self.dtype = np.dtype(dtype)
        self.weighted = sample_weight is not None
        self._X = X
        self.has_missing = False
        self._reading = tasks.Reading(self.dtype, columns=columns)
        self._name = f"cprime-{uuid.uuid4().hex[:12]}"
        self._n_tasks = 0
        self.sizes = tuple(int(n) for n in X.chunks[0])
        self.n_points = sum(self.sizes)
        self.n_bytes = self.n_points * self.n_features * min(X.dtype.itemsize, self.dtype.itemsize)
        self._scratch: Path | None = None
        self._cuts = True
        self._step = self._chunks_of_a_group(max(1, sum(client.nthreads().values())))
        self._groups = [
            tuple(range(begin, min(begin + self._step, len(self.sizes))))
            for begin in range(0, len(self.sizes), self._step)
        ]
        self._weight = sample_weight
        self._blocks: list[Any] | None = None
        self._ordered: list[Any] | None = None
        self._kept: list[Any] | None = None
        self._before: list[Any] | None = None
        self._passes = 0
        self._heavy: NDArray[np.int64] | None = None  # number of positive weights in each chunk, computed on first use

    def prepared(self, prepare: Prepare) -> "Distributed":
        self._reading, self._blocks = replace(self._reading, prepare=prepare), None
        return self

    def read_by(
        self,
        rows: MakeRows,
        has_missing: bool,
        n_features: int | None = None,
        sparse: bool | None = None,
        dtype: Any = None,
    ) -> "Distributed":
        self.n_features = self.n_features if n_features is None else n_features
        self.sparse = self.sparse if sparse is None else sparse
        self.dtype = self.dtype if dtype is None else np.dtype(dtype)
        self._reading, self.has_missing, self._blocks = (
            replace(self._reading, rows=rows, dtype=self.dtype),
            has_missing,
            None,
        )
        return self

    @property
    def n_weighted(self) -> int:
        return int(self._heavy_by_chunk().sum()) if self.weighted else self.n_points

    @property
    def placed(self) -> bool:
        return self._kept is not None

    def each(self, job: Job[P]) -> P:
        sent, blocks = self._sent(job), self._ordered or self._given
        held = self._kept or [None] * len(blocks)
        done = [
            self._submit("pass", tasks.apply, sent, group, before) for group, before in zip(blocks, held, strict=True)
        ]
        parts = [self._submit("part", attrgetter("part"), one) for one in done] if job.keeps else done
        while len(parts) > _FAN_IN:
            parts = [
                self._submit("merge", merge, parts[begin : begin + _FAN_IN]) for begin in range(0, len(parts), _FAN_IN)
            ]
        total = merge(self.client.gather(parts))
        if job.keeps:
            self._before, self._kept = self._kept, done
            self._passes += 1
            if self._passes % _CUT == 0:
                self._kept = self._cut(done)
        return total

    def commit(self) -> None:
        self._before = None

    def rollback(self) -> None:
        self._kept, self._before = self._before, None

    def begin(self, keep: bool) -> None:
        if not keep:
            self._kept = None
        elif self._kept is not None:
            self._kept = [self._submit("begin", tasks.begun, kept) for kept in self._kept]
        self._before = self._ordered = None

    def regroup(self, n_components: int) -> None:
        assert self._kept is not None
        self._kept = [self._submit("regroup", tasks.regrouped, kept, n_components) for kept in self._kept]
        self._order_blocks()

    def take(self, rows: NDArray[np.int64]) -> RowSample:
        X = np.empty((len(rows), self.n_features), dtype=self.dtype)
        weights, kept = np.empty(len(rows)) if self.weighted else None, []
        places, found = [], []
        for g, chunks in self._by_group(rows).items():
            held = None if self._kept is None else self._kept[g]
            places.append(np.concatenate([mine for _, mine, _ in chunks]))
            inside = [(i, rows_of) for i, _, rows_of in chunks]
            found.append(self._submit("take", tasks.taken, self._given[g], held, inside))
        for mine, (x, w, k) in zip(places, self.client.gather(found), strict=True):
            X[mine] = x
            if weights is not None:
                weights[mine] = w
            if k is not None:
                kept.append((mine, k))
        return RowSample(self._reading.rows(X), weights, join_active_sets(kept, len(rows)))

    def edit(self, rows: NDArray[np.int64], components: NDArray[np.int32]) -> None:
        assert self._kept is not None
        kept = list(self._kept)
        for g, chunks in self._by_group(rows).items():
            changes = [(i, inside, components[mine]) for i, mine, inside in chunks]
            kept[g] = self._submit("edit", tasks.edited, kept[g], changes)
        self._kept = kept

    def labels(self) -> Any:
        """Return each point's best component as a Dask array of int32, in the chunks of the data."""
        if self._kept is None:
            return None
        import dask.array as da
        from dask.delayed import delayed

        chunks = [
            da.from_delayed(delayed(tasks.labels)(kept, i), (self.sizes[group[i]],), np.int32)
            for group, kept in zip(self._groups, self._kept, strict=True)
            for i in range(len(group))
        ]
        return self.client.persist(da.concatenate(chunks))

    def map(
        self,
        function: Callable[..., Any],
        width: int | None,
        dtype: Any,
        out: Any = None,
        *,
        numbered: bool = False,
    ) -> Any:
        """Return the results of a function, called for every block of rows, as lazy Dask arrays (one per result)."""
        if out is not None:
            raise ValueError("out must be None for Dask collections on a cluster: results are lazy Dask arrays.")
        several = isinstance(dtype, tuple)
        dtype = np.dtype([(f"f{i}", one) for i, one in enumerate(dtype)] if several else dtype)
        drop, chunks = (1, None) if width is None else (None, (self._X.chunks[0], (width,)))
        found = self._X.map_blocks(
            tasks.RowFunction(function, self._reading, dtype, numbered),
            dtype=dtype,
            drop_axis=drop,
            chunks=chunks,
            meta=np.empty((0,) if width is None else (0, width), dtype=dtype),
        )
        return tuple(found[name] for name in dtype.names) if several else found

    def spilled(self, folder: Path) -> NoReturn:
        raise ValueError(
            f"spill={str(folder)!r} must be None for Dask collections on a cluster, whose workers store active sets."
        )

    def chunks(self) -> Iterator[Chunk]:
        for kept, group in zip(self._kept or [None] * len(self._groups), self._groups, strict=True):
            yield from [Chunk()] * len(group) if kept is None else kept.result().chunks

    def restore(self, chunks: Iterable[Chunk]) -> None:
        chunks = list(chunks)
        self._before = self._ordered = None
        if chunks[0].kept is None:
            self._kept = None
            return
        self._kept = [
            self._submit("restore", tasks.as_it_is, GroupState([chunks[i] for i in group])) for group in self._groups
        ]
        if chunks[0].order is not None:
            self._order_blocks()

    def identity(self) -> dict[str, Any]:
        found = self.client.gather(self._from_rows(tasks.hashes, self.dtype))
        whole = blake2b(b"".join(b"".join(group) for group in found), digest_size=32)
        return {"data": whole.hexdigest(), "opened": None}

    def without_file(self) -> dict[str, NDArray]:
        return {}

    def whole(self) -> None:
        return None

    @property
    def _given(self) -> list[Any]:
        """Return a list with a Dask future for each group of chunks: the list of the group's blocks, one per chunk.

        A `Block` has the rows of a chunk in their original order, and their weights. The first call of this property
        sends the tasks that make the blocks, and later calls return the same futures.
        """
        if self._blocks is None:
            before = None
            if self.weighted:
                before = np.concatenate([[0], np.cumsum(self._heavy_by_chunk())])[[group[0] for group in self._groups]]
            self._blocks = self._from_rows(tasks.made, self._reading, before=before)
        return self._blocks

    def _order_blocks(self) -> None:
        """Sort the rows of all blocks, on the cluster, in the present order of the points in their chunks."""
        assert self._kept is not None
        self._ordered = [
            self._submit("ordered", tasks.in_order, blocks, kept)
            for blocks, kept in zip(self._given, self._kept, strict=True)
        ]

    def _heavy_by_chunk(self) -> NDArray[np.int64]:
        if self._heavy is None:
            from dask.delayed import delayed

            counts = [delayed(tasks.heavy)(weights) for weights in self._weight.to_delayed()]
            self._heavy = np.array(self.client.gather(self.client.compute(counts)))
        return self._heavy

    def _from_rows(
        self, function: Callable[..., Any], *args: Any, before: NDArray[np.int64] | None = None
    ) -> list[Any]:
        """Call a function for each group of chunks on the cluster, and return the Dask futures of the results.

        The function is called with the group's rows, its weights, the index of its first row, `args` and, if `before`
        is given, its entry of `before` (one value per group).
        """
        from dask.delayed import delayed

        ends = np.cumsum(self.sizes)
        rows = self._X.to_delayed()[:, 0]
        weights = None if self._weight is None else self._weight.to_delayed()
        groups = []
        for g, group in enumerate(self._groups):
            first = int(ends[group[0]] - self.sizes[group[0]])
            mine = [rows[i] for i in group], None if weights is None else [weights[i] for i in group]
            given = () if before is None else (int(before[g]),)
            groups.append(delayed(function, pure=False)(*mine, first, *args, *given))
        return self.client.compute(groups)

    def _chunks_of_a_group(self, n_threads: int) -> int:
        """Return the number of chunks per group, a power of two.

        Larger groups need fewer tasks; smaller groups balance the load of threads better.
        """
        step, n_bytes = 1, self.n_bytes
        while 2 * step * n_threads <= len(self.sizes):
            light = n_bytes * step <= _LIGHT * len(self.sizes)
            if not light and 2 * step * _GROUPS_A_THREAD * n_threads > len(self.sizes):
                break
            step *= 2
        return step

    def _sent(self, job: Any) -> Any:
        """Return the argument by which tasks receive the job: the job itself or, if it is large, a future of it."""
        buffers: list[Any] = []
        n_bytes = len(pickle.dumps(job, 5, buffer_callback=buffers.append)) + sum(b.raw().nbytes for b in buffers)
        if n_bytes * len(self._groups) <= _SENT:
            return job
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):  # no warning of large jobs
            return self._submit("job", tasks.as_it_is, job)

    def _submit(self, what: str, function: Callable[..., Any], *args: Any) -> Any:
        self._n_tasks += 1
        return self.client.submit(function, *args, key=f"{self._name}-{what}-{self._n_tasks}", pure=False)

    def _by_group(self, rows: NDArray[np.int64]) -> dict[int, list[tuple[int, NDArray, NDArray]]]:
        """Split row indices `rows` by group of chunks; return a dictionary from the group's index to a list.

        The list has an item for each chunk of the group with any of the rows: (index of the chunk in the group,
        positions of its rows in `rows`, their indices in the chunk).
        """
        found: dict[int, list[tuple[int, NDArray, NDArray]]] = {}
        for i, mine, inside in by_chunk(self.sizes, rows):
            found.setdefault(i // self._step, []).append((i % self._step, mine, inside))
        return found

    def _cut(self, kept: list[Any]) -> list[Any]:
        """Write the active sets of all groups of chunks to files, and return Dask futures that read these files.

        Results lost with a worker are then recomputed from these files. Without a folder that all workers can access,
        the argument `kept` (futures of the active sets) is returned.
        """
        if self._cuts and self._scratch is None:
            self._scratch = _scratch(self.client)
            self._cuts = self._scratch is not None
        if self._scratch is None:
            return kept
        paths = [self._scratch / f"{self._passes}-{g}.npz" for g in range(len(kept))]
        written = [self._submit("write", tasks.written, one, str(path)) for one, path in zip(kept, paths, strict=True)]
        try:
            self.client.gather(written)
        except OSError as error:
            logger.warning(
                "cannot write to folder %s (%s): after the loss of a worker, its results are recomputed",
                self._scratch,
                error,
            )
            self._cuts, self._scratch = False, None
            return kept
        cut = [self._submit("read", tasks.read, str(path)) for path in paths]
        for path in self._scratch.glob(f"{self._passes - 2 * _CUT}-*"):
            path.unlink(missing_ok=True)
        return cut


def _scratch(client: Any) -> Path | None:
    """Create a folder in Dask's "temporary-directory"; return its path, or None if not all workers can access it.

    Workers that are lost meanwhile are not asked. The folder is deleted together with the client.
    """
    folder = Path(tempfile.mkdtemp(prefix="cprime-", dir=dask.config.get("temporary-directory", None)))
    weakref.finalize(client, shutil.rmtree, folder, True)
    if all(client.run(os.path.isdir, str(folder), on_error="ignore").values()):
        return folder
    logger.info(
        "folder %s is not visible to all workers: after the loss of one, its results are recomputed from the start",
        folder,
    )
    return None
