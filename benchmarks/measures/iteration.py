"""Seconds of an iteration, against what no iteration can be faster than: one read of X, and the peak of sgemm.

A search by products of lower precision than single, whose result is then proved, may be faster than sgemm's peak.
Every peer does the same few iterations from the same start (where it takes one), and its seconds are those of the whole
fit by the iterations it says it did. Of cprime the seconds of a single iteration, which it records, are shown too.
"""

import argparse
from collections.abc import Iterator

from matplotlib.figure import Figure

from benchmarks import blas
from benchmarks.machine import read_seconds, sgemm_rate
from benchmarks.measures import options as given
from benchmarks.measures.options import MIXTURES
from benchmarks.peers import PEERS, Settings, shown
from benchmarks.records import Record
from benchmarks.rounds import median, plan, ratios, repeat, spread
from benchmarks.tables import case, grouped, left_out, table

TITLE = "Seconds an iteration"
_PEERS = {
    "k-means": [
        "cprime-lloyd",
        "cprime-graph",
        "cprime-mixture-3",
        "cprime-mixture-5",
        "faiss",
        "faiss-super",
        "superkmeans",
        "sklearn-lloyd",
        "sklearn-elkan",
        "intelex",
    ],
    "mixture": ["cprime-em", "cprime-mixture-5", "sklearn-mixture", "sklearn-bayesian"],
    "mixture-diag": ["cprime-diag-em", "cprime-diag-graph-5", "sklearn-diag"],
    "mixture-full": ["cprime-full-em", "cprime-full-graph-5", "sklearn-full"],
}
# Options of partial searches besides the number of iterations: C′ = 1 and 3 with G = 15, and var-GMM-S with C′ = 5.
_PARTIAL: dict[str, Settings] = {
    "cprime-graph": {"n_neighbors": 15, "jumps": False},
    "cprime-mixture-3": {"search": "graph", "n_neighbors": 15},
    "cprime-mixture-5": {"search": "estimated", "n_neighbors": 5},
}
_ALL_CENTERS = {"cprime-lloyd", "faiss", "sklearn-lloyd", "intelex"}  # peers that compute N·C·D products


def add_arguments(parser: argparse.ArgumentParser) -> None:
    given.add_data(parser, ["kdd"])
    given.add_model(parser, "k-means", *MIXTURES)
    given.add_peers(parser)
    given.add_repetitions(parser, 3)
    parser.add_argument("--iterations", type=given.positive, default=5, help="iterations of a fit (default: 5)")


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    runs = {name: _settings(name, options) for name in given.chosen(options, _PEERS[options.model])}
    for data, C, common in given.cases(options, "iteration"):
        if data is None:
            yield [common]
            continue
        able, left = plan(runs, data.X, C)
        print(case(common), flush=True)
        found = repeat(
            [(name, runs[name]) for name in able],
            data.X,
            C,
            repetitions=options.repetitions,
            n_threads=options.threads,
            limit=options.limit,
        )
        limits = {
            "read_seconds": read_seconds(data.X, options.threads),
            "sgemm_seconds": 2 * data.X.size * C / sgemm_rate(options.threads),
        }
        yield [{**common, **limits, **record} for record in [*found, *left]]


def _settings(name: str, options: argparse.Namespace) -> Settings:
    partial = _PARTIAL.get(name, {}) if options.model == "k-means" else {}
    return {**PEERS[name].exactly(options.iterations), **partial}


def _per_iteration(record: Record) -> list[float]:
    """Return the seconds per iteration of whole fits, for each round."""
    return [seconds / n for seconds, n in zip(record["seconds"], record["n_iter"], strict=True)]


def _steps(record: Record) -> list[float]:
    """Return the seconds of all single iterations except the first of each round; empty if the peer does not record
    them.
    """
    return [step for extra in record["extra"] for step in extra.get("step_seconds", [])[1:]]


def report(records: list[Record]) -> str:
    parts = []
    for group in grouped(records, "model", "data", "C"):
        if "skipped" in group[0]:
            parts.append(f"### {group[0]['data']}\n\nSkipped: {group[0]['skipped']}.")
        else:
            parts.append(f"### {case(group[0])}\n\n{_case_report(group)}")
    return "\n\n".join(parts)


def _case_report(records: list[Record]) -> str:
    done = [record for record in records if record.get("seconds")]
    if not done:
        return left_out(records)
    first = done[0]
    read, sgemm = first["read_seconds"], first["sgemm_seconds"]
    figure = "L" if first["model"] in MIXTURES else "J"
    columns = [
        "peer",
        "settings",
        "fit / iterations, s",
        f"{first['peer']} takes of it",
        "one iteration, s",
        "reads of X",
        "of sgemm's peak",
        f"{figure} against {first['peer']}",
    ]
    rows = []
    for record in done:
        whole, steps = _per_iteration(record), _steps(record)
        rows.append(
            [
                record["peer"],
                shown(record["settings"]),
                spread(whole),
                spread(ratios(_per_iteration(first), whole), ".3g"),
                f"{median(steps):.3g}" if steps else "",
                f"{median(steps or whole) / read:.3g}",
                f"{sgemm / median(whole):.0%}" if record["peer"] in _ALL_CENTERS else "",
                _against(record, first),
            ]
        )
    note = (
        f"One read of X by {first['threads']} thread(s) takes {read:.3g} s; N·C·D multiplications and additions at"
        f" sgemm's peak take {sgemm:.3g} s. Medians of {len(first['seconds'])} round(s), with from where to where they"
        " went."
    )
    return "\n\n".join(part for part in (table(columns, rows), note, blas.note(records), left_out(records)) if part)


def _against(record: Record, first: Record) -> str:
    """Return how the quality after the last iteration compares with the first record's, if both models are the same."""
    if PEERS[record["peer"]].model != PEERS[first["peer"]].model:
        return ""
    if first["model"] in MIXTURES:
        return f"{median([a - b for a, b in zip(record['value'], first['value'], strict=False)]):+.4f} nats"
    return f"{median(ratios(record['value'], first['value'])) - 1:+.1e}"


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
