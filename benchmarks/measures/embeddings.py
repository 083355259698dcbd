"""Embeddings in their stored data types: seconds, exact J or mean cosine, and memory beyond the rows.

The rows are generated: length 1, a common mean, topics within larger topics, and standard deviations that decrease as
i^−0.6 along random orthogonal directions. Rows in float16 and bytes are rounded: int8 about zero, uint8 from the least
to the greatest value. Every fit has its own process, which holds the rows in their stored type. A library that computes
only with float32 gets a copy, which is timed and counts as its memory. The quality of a fit is computed from its
centers on all stored rows, so J is in squared units of the stored values. Memory is the peak of resident pages above
what the process held before the fit.
"""

import argparse
from collections.abc import Iterator

from matplotlib.figure import Figure

from benchmarks import blas
from benchmarks.directions import STORED, directions
from benchmarks.measures import options as given
from benchmarks.quality import mean_cosine
from benchmarks.records import Record
from benchmarks.rounds import Run, compare, label, median, ratios, spread
from benchmarks.tables import case, grouped, left_out, megabytes, table

TITLE = "Embeddings as they are stored"
_BASE = "cprime (default)"
_RUNS: tuple[Run, ...] = (
    ("cprime", {}),
    ("cprime", {"metric": "cosine"}),
    ("faiss", {"niter": 25}),
    ("faiss", {"niter": 25, "spherical": True}),
    ("faiss-super", {"niter": 25}),
    ("superkmeans", {"iters": 25}),
    ("superkmeans-tree", {}),
    ("superkmeans-tree", {"iters_refinement": 2}),
    ("sklearn-minibatch", {}),
)
_FALLING, _COMMON = 0.6, 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--points", type=given.positive, default=100_000, help="rows (default: 100,000)")
    parser.add_argument(
        "-D", "--dimensions", type=given.counts, default=(768, 1536), metavar="D,…", help="columns (default: 768,1536)"
    )
    parser.add_argument("-C", "--clusters", type=given.positive, default=2000, help="clusters (default: 2000)")
    parser.add_argument(
        "--types",
        type=_types,
        default=["float32", "float16", "int8"],
        metavar="A,B,…",
        help=f"of {', '.join(STORED)} (default: float32,float16,int8)",
    )
    given.add_repetitions(parser, 1)
    given.add_peers(parser)


def _types(text: str) -> list[str]:
    names = text.split(",")
    unknown = sorted(set(names) - set(STORED))
    if unknown:
        raise argparse.ArgumentTypeError(f"must be among {', '.join(STORED)}, got {', '.join(unknown)}")
    return names


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    N, C = options.points, options.clusters
    if N < C:
        raise ValueError(f"--points must be at least the {C} clusters, got {N}")
    for D in options.dimensions:
        made = directions(N, D, C, _FALLING, _COMMON)
        for name in options.types:
            X = STORED[name](made)
            common = {"measure": "embeddings", "data": name, "N": N, "D": D, "C": C, "threads": options.threads}
            print(case(common), flush=True)
            found = compare(
                _RUNS, X, C, options, lambda fitted, X=X: {"cosine": mean_cosine(X, fitted.centers)}, afresh=True
            )
            yield [{**common, "data_bytes": X.nbytes, **record} for record in found]


def report(records: list[Record]) -> str:
    return "\n\n".join(_section(group) for group in grouped(records, "D", "data"))


def _section(records: list[Record]) -> str:
    """Return the section of the report for rows of one data type."""
    done = [record for record in records if record.get("seconds")]
    parts = [f"### {case(records[0])}", f"The rows are {records[0]['data_bytes'] / 1e6:,.0f} MB."]
    if done:
        base = next((record for record in done if label(record) == _BASE), done[0])
        best = min((_inertia(record) for record in done if not _by_angle(record)), default=None)
        columns = [
            *("fit", "seconds", f"of {label(base)}", "J a row", "above the least, %", "mean cosine"),
            "MB beyond the rows",
        ]
        parts.append(table(columns, [_row(record, base, best) for record in done]))
    return "\n\n".join(part for part in (*parts, blas.note(done), left_out(records)) if part)


def _row(record: Record, base: Record, best: float | None) -> list[str]:
    """Return one row of the table; J is left out if centers are directions, because these are not means of rows."""
    J = None if best is None or _by_angle(record) else _inertia(record)
    return [
        label(record),
        spread(record["seconds"]),
        f"{median(ratios(record['seconds'], base['seconds'])):.2f}",
        *(("", "") if J is None else (f"{J / record['N']:.6g}", f"{100 * (J / best - 1):.2f}")),
        f"{median([extra['cosine'] for extra in record['extra']]):.5f}",
        megabytes(record["memory"]),
    ]


def _inertia(record: Record) -> float:
    return median(record["value"])


def _by_angle(record: Record) -> bool:
    return record["settings"].get("metric") == "cosine" or bool(record["settings"].get("spherical"))


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
