"""The most memory that a fit needs above the loaded data, each in a new process of its own."""

import argparse
from collections.abc import Iterator

from matplotlib.figure import Figure

from benchmarks.measures import options as given
from benchmarks.measures.options import MIXTURES
from benchmarks.peers import PEERS, shown
from benchmarks.records import Record
from benchmarks.rounds import plan, repeat, spread
from benchmarks.tables import case, grouped, left_out, megabytes, table

TITLE = "Peak memory"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    given.add_data(parser, ["kdd"])
    given.add_model(parser, "k-means", *MIXTURES)
    given.add_peers(parser)
    parser.add_argument("--iterations", type=given.positive, default=3, help="iterations of a fit (default: 3)")


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    names = given.chosen(options)
    for data, C, common in given.cases(options, "memory"):
        if data is None:
            yield [common]
            continue
        able, unable = plan(names, data.X, C)
        print(case(common), flush=True)
        runs = [(name, PEERS[name].ladder((options.iterations,))[0]) for name in able]
        found = repeat(runs, data.X, C, repetitions=1, n_threads=options.threads, limit=options.limit, afresh=True)
        bytes_of_data = {"data_bytes": data.X.nbytes}
        yield [{**common, **bytes_of_data, **record} for record in [*found, *unable]]


def report(records: list[Record]) -> str:
    parts = []
    for group in grouped(records, "model", "data", "C"):
        first = group[0]
        if "skipped" in first:
            parts.append(f"### {first['data']}\n\nSkipped: {first['skipped']}.")
            continue
        rows = [
            [
                record["peer"],
                shown(record["settings"]),
                megabytes(record["memory"]),
                spread(record["seconds"]),
                f"{record['value'][0]:.6g}",
            ]
            for record in group
            if record.get("seconds")
        ]
        figure = "L" if first["model"] in MIXTURES else "J"
        columns = ["peer", "settings", "MB above the data", "seconds", figure]
        text = f"The data themselves are {first['data_bytes'] / 1e6:,.0f} MB."
        parts.append(f"### {case(first)}\n\n{table(columns, rows)}\n\n{text}")
        missing = left_out(group)
        if missing:
            parts.append(missing)
    return "\n\n".join(parts)


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
