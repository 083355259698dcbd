"""k-means of directions: seconds and mean cosine to the center for both metrics of cprime and FAISS's spherical
k-means.

Rows have length 1, so every peer may compare them by squared distances; centers are scaled to length 1 before they are
evaluated. Rounds are interleaved.
"""

import argparse
from collections.abc import Iterator

from matplotlib.figure import Figure

from benchmarks import blas
from benchmarks.directions import directions
from benchmarks.measures import options as given
from benchmarks.quality import mean_cosine
from benchmarks.records import Record
from benchmarks.rounds import Run, compare, label, median, ratios, spread
from benchmarks.tables import case, left_out, table

TITLE = "Directions"
_BASE = "cprime (default)"
_RUNS: tuple[Run, ...] = (
    ("cprime", {}),
    ("cprime", {"metric": "cosine"}),
    ("faiss", {"niter": 25, "spherical": True}),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--points", type=given.positive, default=100_000, help="rows (default: 100,000)")
    parser.add_argument("-D", "--dimensions", type=given.positive, default=768, help="columns (default: 768)")
    parser.add_argument("-C", "--clusters", type=given.positive, default=2000, help="clusters (default: 2000)")
    given.add_repetitions(parser, 3)
    given.add_peers(parser)


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    X, C = directions(options.points, options.dimensions, options.clusters), options.clusters
    found = compare(_RUNS, X, C, options, lambda fitted: {"cosine": mean_cosine(X, fitted.centers)})
    N, D = X.shape
    common = {"measure": "cosine", "data": "directions", "N": N, "D": D, "C": C, "threads": options.threads}
    yield [{**common, **record} for record in found]


def report(records: list[Record]) -> str:
    done = [record for record in records if record.get("seconds")]
    base = next((record for record in done if label(record) == _BASE), done[0])
    rows = [
        [
            label(record),
            spread(record["seconds"]),
            f"{median(ratios(record['seconds'], base['seconds'])):.2f}",
            f"{median([extra['cosine'] for extra in record['extra']]):.5f}",
        ]
        for record in done
    ]
    columns = ["fit", "seconds", f"of {label(base)}", "mean cosine"]
    parts = [f"### {case(base)}", table(columns, rows), blas.note(done), left_out(records)]
    return "\n\n".join(part for part in parts if part)


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
