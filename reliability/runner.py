"""Run many cases in worker processes; a case that crashes or hangs is identified by its number, and the run continues.

A worker writes the number of its present case into memory shared with its parent. A case that takes too long ends its
worker with a traceback of all threads, and the parent starts another worker with the next case.
"""

import faulthandler
import json
import multiprocessing
import os
import shutil
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

LIMIT = 30.0  # seconds per case, enough for a busy machine
BATCH = 2000  # cases per process


@dataclass
class Report:
    """Results of a run: counts of how cases ended, the failures, the longest case.

    late: cases that were stopped once at the time limit; if stopped again, they are failures
    """

    ends: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, -1)
    late: list[int] = field(default_factory=list)


Attempt = Callable[[int, Path], str]  # takes a number of a case and an empty folder, returns how the case ended


def run(
    attempt: Attempt, numbers: range, n_workers: int, seconds: float | None, show: Callable[[dict], None]
) -> Report:
    """Run cases by number until all are done or the time is over; return the report.

    show: called with every failure, a dictionary of number, kind ("wrong", "error", "crash" or "hang") and message
    """
    report, deadline = Report(), None if seconds is None else time.monotonic() + seconds
    batches = [range(begin, min(begin + BATCH, numbers.stop)) for begin in range(numbers.start, numbers.stop, BATCH)]
    batches.reverse()
    context = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn")
    workers: dict[int, _Worker] = {}
    n_shown = 0
    while batches or workers:
        over = deadline is not None and time.monotonic() > deadline
        while batches and not over and len(workers) < n_workers:
            worker = _Worker(context, attempt, batches.pop(), deadline)
            workers[worker.process.sentinel] = worker
        if not workers:
            break
        for sentinel in wait(list(workers), timeout=1.0):
            worker = workers.pop(sentinel)  # type: ignore[call-overload]
            rest = worker.finish(report)
            if rest is not None:
                batches.append(rest)
        for failure in report.failures[n_shown:]:
            show(failure)
        n_shown = len(report.failures)
    return report


class _Worker:
    """A process that runs one batch of cases."""

    def __init__(self, context: Any, attempt: Attempt, batch: range, deadline: float | None):
        self.batch = batch
        self.folder = Path(tempfile.mkdtemp(prefix="cprime-reliability-"))
        self.journal = context.RawValue("q", batch.start)
        self.process = context.Process(target=_work, args=(attempt, batch, deadline, self.journal, self.folder))
        self.process.start()

    def finish(self, report: Report) -> range | None:
        """Add the results of the ended process to the report; return the cases still to run, or None."""
        self.process.join()
        at, rest = self.journal.value, None
        for line in (self.folder / "ends.jsonl").read_text().splitlines():
            found = json.loads(line)
            report.ends[found["end"]] += 1
            report.slowest = max(report.slowest, (found["seconds"], found["number"]))
            if "message" in found:
                report.failures.append({"number": found["number"], "kind": found["end"], "message": found["message"]})
        if self.process.exitcode != 0:
            trace = (self.folder / "trace.txt").read_text() if (self.folder / "trace.txt").exists() else ""
            kind = "hang" if "Timeout" in trace else "crash"
            if kind == "hang" and at not in report.late:  # perhaps the machine was busy: try once more
                report.late.append(at)
                shutil.rmtree(self.folder, ignore_errors=True)
                return range(at, self.batch.stop)
            message = f"process ended with {self.process.exitcode}\n{trace}"
            report.failures.append({"number": at, "kind": kind, "message": message})
            report.ends[kind] += 1
            rest = range(at + 1, self.batch.stop) if at + 1 < self.batch.stop else None
        shutil.rmtree(self.folder, ignore_errors=True)
        return rest


def _work(attempt: Attempt, batch: range, deadline: float | None, journal: Any, folder: Path) -> None:
    with open(folder / "trace.txt", "w") as trace, open(folder / "ends.jsonl", "w", buffering=1) as ends:
        faulthandler.enable(trace)
        for number in batch:
            begin = time.monotonic()
            if deadline is not None and begin > deadline:
                break
            journal.value, message = number, {}
            faulthandler.dump_traceback_later(LIMIT, exit=True, file=trace)
            try:
                end = attempt(number, folder)
            except Exception as error:
                end, message = "wrong" if isinstance(error, AssertionError) else "error", {"message": _told(error)}
            faulthandler.cancel_dump_traceback_later()
            seconds = round(time.monotonic() - begin, 3)
            ends.write(json.dumps({"number": number, "end": end, "seconds": seconds, **message}) + "\n")
    os._exit(0)  # skip the cleanup inherited from the parent


def _told(error: BaseException) -> str:
    """Return the error's message with the place where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    return f"{type(error).__name__}: {error} [{places}]"
