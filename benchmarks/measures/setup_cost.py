"""What it costs to begin: the import in a new process, the first call after it, and the calls that follow."""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.data import random_start
from benchmarks.measures import options as given
from benchmarks.measures.options import MIXTURES
from benchmarks.peers import PEERS
from benchmarks.quality import judge
from benchmarks.records import Record
from benchmarks.rounds import plan, spread
from benchmarks.tables import case, grouped, left_out, table
from benchmarks.worker import FitFailed, Worker

TITLE = "Set-up cost"
_PEERS = {
    "k-means": [
        "cprime",
        "faiss",
        "superkmeans",
        "superkmeans-tree",
        "sklearn-default",
        "sklearn-minibatch",
        "sklearn-bisecting",
        "intelex",
    ],
    "mixture": ["cprime-em", "sklearn-mixture", "sklearn-bayesian"],
    "mixture-diag": ["cprime-diag-em", "sklearn-diag"],
    "mixture-full": ["cprime-full-em", "sklearn-full"],
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    given.add_data(parser, ["iris"])
    given.add_model(parser, "k-means", *MIXTURES)
    given.add_peers(parser)
    given.add_repetitions(parser, 3)
    parser.add_argument("--calls", type=given.positive, default=20, help="calls after the first (default: 20)")


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    names = given.chosen(options, _PEERS[options.model])
    for data, C, common in given.cases(options, "setup"):
        if data is None:
            yield [common]
            continue
        able, records = plan(names, data.X, C)
        print(case(common), flush=True)
        found: dict[str, Record] = {name: {"peer": name, "version": PEERS[name].version} for name in able}
        for _ in range(options.repetitions):
            for name in able:
                if "left_out" not in found[name]:
                    _once(found[name], data.X, C, options)
        yield [{**common, **record} for record in [*found.values(), *records]]


def _once(record: Record, X: NDArray, C: int, options: argparse.Namespace) -> None:
    """Time the import and the calls in two new processes, and add their seconds to the record."""
    name = record["peer"]
    imported = _import_seconds(PEERS[name].statement)
    with tempfile.TemporaryDirectory(prefix="cprime-benchmark-") as folder:
        path = Path(folder) / "X.npy"
        np.save(path, X)
        with Worker(name, path, options.threads, warm=False) as worker:
            try:
                start = random_start(X, C, 0)
                calls = [worker.fit(C, start, 0, {}, options.limit) for _ in range(1 + options.calls)]
            except FitFailed as error:
                record["left_out"] = str(error)
                return
    record.setdefault("import_seconds", []).append(imported)
    record.setdefault("first_seconds", []).append(calls[0].seconds)
    record.setdefault("seconds", []).append(float(np.median([call.seconds for call in calls[1:]])))
    record.setdefault("value", []).append(judge(X, C, calls[-1].fitted))


def _import_seconds(statement: str) -> float:
    code = f"from time import perf_counter as now; begin = now(); {statement}; print(now() - begin)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def report(records: list[Record]) -> str:
    parts = []
    for group in grouped(records, "model", "data", "C"):
        if "skipped" in group[0]:
            parts.append(f"### {group[0]['data']}\n\nSkipped: {group[0]['skipped']}.")
            continue
        rows = [
            [
                record["peer"],
                f"`{PEERS[record['peer']].statement}`",
                spread(record["import_seconds"]),
                *(spread([1000 * s for s in record[key]]) for key in ("first_seconds", "seconds")),
                f"{record['value'][-1]:.6g}",
            ]
            for record in group
            if record.get("seconds")
        ]
        figure = "L" if group[0]["model"] in MIXTURES else "J"
        columns = ["peer", "import", "import, s", "first call, ms", "later calls, ms", figure]
        parts.append(f"### {case(group[0])}\n\n{table(columns, rows)}")
        missing = left_out(group)
        if missing:
            parts.append(missing)
    return "\n\n".join(parts)


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
