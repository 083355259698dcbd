"""Simulation of workers by chunks of an array: bytes sent and returned, computing and merging of each pass.

A chunk is processed on one core, like a task of a cluster; the driver uses all given cores.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from benchmarks.cost import EXPANDED, MOST_EXACT, Rates, Sizes
from cprime import open_data
from cprime._utils.random import Key
from cprime.em.expectation import Totals
from cprime.em.hard import ClusterSums, HardEStep
from cprime.em.k_means import Exchange, ReassignmentSums, Settings
from cprime.em.loop import FitPlan, Run, begin, iterate
from cprime.execution import Local
from cprime.execution.block import ActiveSet, Block, Chunk
from cprime.execution.statistics import Tally
from cprime.kernels import as_rows, computing
from cprime.model import TiedSpherical
from cprime.model.tied_spherical import variance_floor
from cprime.neighbors import exact_lists, refined_lists
from cprime.search import Graph
from cprime.search.base import SearchStats
from cprime.search.graph import GraphState, LastPass

G = 33


@dataclass
class Pass:
    """Measurements of the last E-step: core seconds, bytes sent to each chunk, bytes returned by each.

    dense: whether the sums of all components were returned
    besides: seconds of passes of other types since, and of measuring these bytes
    """

    computing: float = 0.0
    merging: float = 0.0
    besides: float = 0.0
    job: int = 0
    parts: list[int] = field(default_factory=list)
    dense: bool = True


class TimedEStep:
    """E-step that is timed chunk by chunk, on one core."""

    reads = keeps = True

    def __init__(self, job: HardEStep, seen: Pass):
        self.job, self.seen = job, seen

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[ActiveSet, Totals]:
        start = process_time()
        with computing(1):
            after, part = self.job(block, kept)
        self.seen.computing += process_time() - start
        self.seen.parts.append(n_bytes(part))
        self.seen.dense = not isinstance(part.moments.sums, ReassignmentSums)
        return after, part


class Simulated(Local):
    """Data whose chunks simulate the machines of a cluster, one after the other; `seen` describes the last E-step."""

    def each(self, job: Any) -> Any:
        start = perf_counter()
        if isinstance(job, HardEStep):
            self.seen = Pass(job=n_bytes(job))
            watched, before = TimedEStep(job, self.seen), process_time()
            total = super().each(watched)
            self.seen.merging = process_time() - before - self.seen.computing
        else:
            total = super().each(job)
        self.seen.besides += perf_counter() - start
        return total


def _no_sample(rows: NDArray[np.int64]) -> Any:
    raise AssertionError("no audit is due")


def n_bytes(value: Any) -> int:
    """Return the bytes that are sent for a value: its arrays, and the rest of it as a pickle."""
    buffers: list[Any] = []
    head = pickle.dumps(value, 5, buffer_callback=buffers.append)
    return len(head) + sum(buffer.raw().nbytes for buffer in buffers)


@dataclass(frozen=True)
class Started:
    """k-means at random initial rows: its plan, its state with the first lists, and the points' initial active sets."""

    X: NDArray[np.float32]
    plan: FitPlan
    fit: Run
    kept: ActiveSet


def started(X: NDArray[np.float32], C: int, n_iter: int, n_threads: int) -> Started:
    centers = X[np.random.default_rng(C).choice(len(X), C, replace=False)]
    first = Exchange(Settings(n_iter, 0.0, incremental=True))
    plan = FitPlan(1, Graph(min(G, C), regroup=False), first)
    with computing(n_threads):
        data = Local(open_data(X), checked=True)
        fit = begin(data, TiedSpherical(centers, 1.0, variance_floor(centers)), plan, Key(0))
    (chunk,) = data.chunks()
    assert chunk.kept is not None
    return Started(X, plan, fit, chunk.kept)


def iterations(start: Started, n_chunks: int, n_iter: int, n_threads: int) -> Iterator[dict[str, Any]]:
    """Yield measurements of each iteration: core seconds of chunks and of merging, and the driver's other seconds."""
    data = Simulated(open_data(start.X, chunk_rows=-(-len(start.X) // n_chunks)), checked=True)
    ends = np.cumsum((0, *data.sizes))
    data.restore([Chunk(start.kept.at(np.arange(a, b))) for a, b in pairwise(ends)])
    fit = start.fit
    for _ in range(n_iter):
        before, begun = fit, perf_counter()
        with computing(n_threads):
            fit = iterate(data, fit, start.plan)
        seconds, seen = perf_counter() - begun, data.seen
        yield {
            "chunks": len(data.sizes),
            "computing": seen.computing,
            "merging": seen.merging,
            "driver": seconds - seen.besides,
            "refreshed": fit.search.lists is not before.search.lists,
            "job": seen.job,
            "part": median(seen.parts),
            "dense": seen.dense,
            "moved": int(fit.history["n_moved"][-1]) if len(fit.rows) > len(before.rows) else None,
        }
        if fit.over:
            return


def chunk_seconds(start: Started, sizes: Sequence[int], repetitions: int) -> Iterator[dict[str, Any]]:
    """Yield the E-step's seconds for chunks of each size, on one core; repetitions use different chunks if possible."""
    model, search, stage = start.fit.model, start.fit.search, start.fit.stage
    components = stage.components(model)
    look = start.plan.search.look(search, components, Key(0))
    job = stage.propose(model, components, look, Key(0))
    for n in sizes:
        seconds, held = [], []
        for i in range(repetitions + 1):
            first = i * n % (len(start.X) - n + 1)
            kept, block = (
                start.kept.at(np.arange(first, first + n)),
                Block(as_rows(start.X[first : first + n]), None, first),
            )
            with computing(1):
                begun = process_time()
                job(block, kept)
                seconds.append(process_time() - begun)
            held.append(len(np.unique(kept.winners)))
        yield {"n": n, "held": median(held), "C": len(model.centers), "seconds": median(seconds[1:])}


def driver_seconds(C: int, D: int, repetitions: int, n_threads: int) -> dict[str, float]:
    """Return the driver's seconds for C random centers: an M-step, merging two partial results, and new lists.

    Lists are measured as refined and, if C is small enough, also from all pairs.
    """
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((C, D), dtype=np.float32)
    model = TiedSpherical(centers, 1.0, variance_floor(centers))
    stage, search = Exchange(Settings(10, 0.0, incremental=True)), Graph(min(G, C), regroup=False)
    lists = rng.integers(0, C, (C, min(G, C) - 1), dtype=np.int32)
    everything, sums = np.arange(C, dtype=np.int32), 4 * centers.astype(np.float64) + 0.1
    wins = ClusterSums(np.full(C, 4.0), np.full(C, 4), sums)
    stats = SearchStats(4 * C, C, everything)
    totals = Totals(Tally(4.0 * C, 0.0, 0.0, C, C, 8.0 * C * D), wins, stats)
    state = GraphState(min(G, C), min(G, C), lists, last=LastPass((centers + 0.1,), everything))

    def step() -> None:
        after = stage.judge(model, totals, None)
        search.learn(
            state,
            search.look(state, after.model.components(), Key(0)),
            model.components(),
            stats,
            _no_sample,
            Key(0),
        )

    with computing(n_threads):
        found = {"C": C, "D": D, "step": timed(step, repetitions)}
        if C <= MOST_EXACT:
            found["pairs"] = timed(lambda: exact_lists(centers, min(G, C), lists), 1)
        found["refining"] = timed(lambda: refined_lists(centers, lists, min(G, C)), 1)
    with computing(1):
        found["merging"] = timed(lambda: totals + totals, repetitions, process_time)
    return found


def rates(chunks: list[dict[str, Any]], driver: list[dict[str, Any]], reading: float, D: int) -> Rates:
    """Return the nonnegative rates that fit the measurements with the least relative errors."""
    terms = np.array([[c["n"] * G * D, c["held"] * G * D, c["C"] * D] for c in chunks], dtype=float)
    seconds = np.array([c["seconds"] for c in chunks])
    evaluation, packing, component = nnls(terms / seconds[:, np.newaxis], np.ones(len(seconds)))[0]
    most = min(G, min(d["C"] for d in driver))

    def rate(name: str, size: Callable[[int], float]) -> float:
        return median(d[name] / size(d["C"]) for d in driver if name in d)

    return Rates(
        evaluation=float(evaluation),
        packing=float(packing),
        component=float(component),
        merging=rate("merging", lambda C: Sizes(1, D, C, G, 1).dense_part),
        step=rate("step", lambda C: C * D),
        pair=rate("pairs", lambda C: C * C * D),
        refining=rate("refining", lambda C: C * min(EXPANDED, most - 1) * most * D),
        reading=reading,
    )


def reading_seconds(X: NDArray[np.float32], folder: Path, repetitions: int) -> float:
    """Return the seconds per byte of reading, block by block, a .npy file that was just written."""
    path = folder / "read.npy"
    np.save(path, X)
    source = open_data(path)
    out, n = np.empty((1 << 14, X.shape[1]), np.float32), len(X)

    def read() -> None:
        for first in range(0, n, len(out)):
            source.read_into(first, min(first + len(out), n), out[: min(first + len(out), n) - first])

    return timed(read, repetitions, process_time) / X.nbytes


def timed(call: Callable[[], object], repetitions: int, clock: Callable[[], float] = perf_counter) -> float:
    """Return the median seconds of a few calls, after one warm-up call."""
    seconds = []
    for _ in range(repetitions + 1):
        start = clock()
        call()
        seconds.append(clock() - start)
    return median(seconds[1:])
