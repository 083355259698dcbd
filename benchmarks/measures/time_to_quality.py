"""How good a result is after how many seconds: exact J, or the log-likelihood, on a ladder of budgets.

Time is everything after the data are in memory, the start included where a peer makes its own. What is judged are the
centers that came back (`quality.py`).
"""

import argparse
import math
from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from benchmarks import blas
from benchmarks.measures import options as given
from benchmarks.measures.options import MIXTURES
from benchmarks.peers import PEERS
from benchmarks.plots import Curve, draw
from benchmarks.records import Record
from benchmarks.rounds import label, median, plan, ratios, repeat, spread
from benchmarks.tables import case, grouped, left_out, table

TITLE = "Time to quality"
_REFERENCES = {
    "k-means": ("faiss", "sklearn-lloyd"),
    "mixture": ("sklearn-mixture",),
    "mixture-diag": ("sklearn-diag",),
    "mixture-full": ("sklearn-full",),
    "seeding": ("cprime-plusplus",),
}
_REFERENCE_ITERATIONS = 25


def add_arguments(parser: argparse.ArgumentParser) -> None:
    given.add_data(parser, ["kdd"])
    given.add_model(parser, "k-means", *MIXTURES, "seeding")
    given.add_peers(parser)
    given.add_repetitions(parser, 3)
    parser.add_argument(
        "--iterations",
        type=given.counts,
        default=(1, 3, 10, 25),
        metavar="A,B,…",
        help="the budgets of peers that count iterations (default: 1,3,10,25)",
    )
    parser.add_argument("--defaults", action="store_true", help="of this library, its default settings only")


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    names = given.chosen(options)
    for data, C, common in given.cases(options, "time-to-quality"):
        if data is None:
            yield [common]
            continue
        able, unable = plan(names, data.X, C)
        runs = [
            (name, settings)
            for name in able
            for settings in ([{}] if options.defaults and name == "cprime" else PEERS[name].ladder(options.iterations))
        ]
        print(case(common), flush=True)
        found = repeat(runs, data.X, C, repetitions=options.repetitions, n_threads=options.threads, limit=options.limit)
        yield [{**common, **record} for record in [*found, *unable]]


def reference(records: list[Record]) -> Record | None:
    """Return the record for comparison: a peer's 25 iterations or its costliest setting; None if no fit was done."""
    done = [record for record in records if record.get("seconds")]
    for name in (*_REFERENCES[records[0]["model"]], *(record["peer"] for record in done)):
        mine = [record for record in done if record["peer"] == name]
        wanted = [record for record in mine if _REFERENCE_ITERATIONS in record["settings"].values()]
        if mine:
            return (wanted or mine)[-1]
    return None


def unmatched(records: list[Record]) -> tuple[list[Record], list[Record]]:
    """Return records of peers for which no record of cprime is both as fast and as good, by medians.

    The comparison is with `KMeans(C)` from its own initialization; among seeding methods, with all of cprime's. The
    first list has records better than everything that cprime has by their time, or than its first result. The second
    list has records that are faster than cprime's first one, and worse.
    """
    done = [record for record in records if record.get("seconds")]
    family = [record for record in done if PEERS[record["peer"]].family == "cprime"]
    ours = [record for record in family if record["peer"] == "cprime"] or family
    first = min(ours, key=lambda record: median(record["seconds"]))
    below, left = [], []
    for other in (record for record in done if PEERS[record["peer"]].family != "cprime"):
        seconds, loss = median(other["seconds"]), _loss(other)
        by_then = [_loss(record) for record in ours if median(record["seconds"]) <= seconds]
        if loss < min(by_then, default=_loss(first)):
            below.append(other)
        elif not by_then:
            left.append(other)
    return below, left


def _loss(record: Record) -> float:
    """Return the figure of merit with the sign for which less is better."""
    return median(record["value"]) * (-1 if record["model"] in MIXTURES else 1)


def report(records: list[Record]) -> str:
    parts = []
    for group in grouped(records, "model", "data", "C"):
        if "skipped" in group[0]:
            parts.append(f"### {group[0]['data']}\n\nSkipped: {group[0]['skipped']}.")
            continue
        parts.append(f"### {_heading(group[0])}\n\n{_case_report(group)}")
    return "\n\n".join(parts)


def _heading(record: Record) -> str:
    kinds = {"k-means": "", "seeding": "Starts: ", "mixture": "Mixtures: "}
    shape = record["model"].removeprefix("mixture-")
    return kinds.get(record["model"], f"Mixtures with {shape} covariances: ") + case(record)


def _case_report(records: list[Record]) -> str:
    base = reference(records)
    if base is None:
        return left_out(records)
    quality = "L" if base["model"] in MIXTURES else "J"
    against = "L − L(reference), nats" if quality == "L" else "J against the reference"
    columns = ["peer", "seconds", quality, against, "speed-up", "iterations", "it says besides"]
    rows = [_row(record, base) for record in records if record.get("seconds")]
    note = (
        f"The reference is {label(base)}. Medians of {len(base['seconds'])} round(s), of seconds with from where to"
        " where they went; differences and speed-ups are taken round by round."
    )
    return "\n\n".join(
        part
        for part in (
            table(columns, rows),
            note,
            _verdict(records),
            _notes(records),
            blas.note(records),
            left_out(records),
        )
        if part
    )


def _row(record: Record, base: Record) -> list[str]:
    if record["model"] in MIXTURES:
        change = f"{median([a - b for a, b in zip(record['value'], base['value'], strict=False)]):+.4f}"
        value = f"{median(record['value']):.4f}"
    else:
        change = f"{median(ratios(record['value'], base['value'])) - 1:+.2%}"
        value = f"{median(record['value']):.6g}"
    extra = record["extra"][-1]
    says = [
        f"{text} {extra[key]:{form}}"
        for key, text, form in (
            ("n_neighbors", "G", "d"),
            ("evaluations", "evaluations a point", ",.0f"),
            ("agreement", "agreement", ".3f"),
            ("relative_excess", "excess of J", ".2%"),
            ("shortfall", "shortfall of F", ".4f"),
        )
        if key in extra
    ]
    iterations = [n for n in record["n_iter"] if n is not None]
    return [
        label(record),
        spread(record["seconds"]),
        value,
        change,
        f"{median(ratios(base['seconds'], record['seconds'])):.3g}×",
        f"{median(iterations):g}" if iterations else "",
        ", ".join(says),
    ]


def _verdict(records: list[Record]) -> str:
    """Return the sentences on records of peers for which no record of cprime is both as fast and as good."""
    done = [record for record in records if record.get("seconds")]
    if records[0]["model"] in MIXTURES:
        if records[0]["model"] != "mixture":
            return ""
        return (
            "Peers whose components have more parameters reach a greater L, which compares the fits of one model only: "
            "the figure has those of one."
        )
    if len({PEERS[record["peer"]].family == "cprime" for record in done}) < 2:
        return ""  # only cprime or only peers
    below, left = unmatched(records)
    text = f"Points of peers below and left of cprime's curve: {', '.join(map(label, below)) or 'none'}."
    if left:
        text += f" Faster than cprime's first point, and worse: {', '.join(map(label, left))}."
    return text


def _notes(records: list[Record]) -> str:
    """Return a list of the peers: version, remarks and initialization."""
    names = dict.fromkeys(record["peer"] for record in records if record.get("seconds"))
    versions = {record["peer"]: record["version"] for record in records if record.get("seconds")}
    return "\n".join(
        f"- {name}: {PEERS[name].distribution} {versions[name]}, {PEERS[name].note}; start: {PEERS[name].start}"
        for name in names
    )


def figures(records: list[Record]) -> dict[str, Figure]:
    return {
        f"{group[0]['model']}-{group[0]['data']}-{group[0]['C']}": _figure(group)
        for group in grouped(_drawn(records), "model", "data", "C")
        if len(group) > 1  # a single point gives no axis limits
    }


def _drawn(records: list[Record]) -> list[Record]:
    """Return finished records of peers with comparable models."""
    return [record for record in records if record.get("seconds") and not PEERS[record["peer"]].apart]


def _figure(records: list[Record]) -> Figure:
    base = reference(records)
    assert base is not None
    mixture = base["model"] in MIXTURES
    curves = []
    for group in grouped(records, "peer"):
        group = sorted(group, key=lambda record: median(record["seconds"]))
        values = [
            record["value"] if mixture else [100 * ratio for ratio in ratios(record["value"], base["value"])]
            for record in group
        ]
        seconds = [record["seconds"] for record in group]
        stars = [place for place, record in enumerate(group) if record["peer"] == "cprime" and not record["settings"]]
        curves.append(
            Curve(
                label=group[0]["peer"] + (" (★ default)" if stars else ""),
                family=PEERS[group[0]["peer"]].family,
                x=[median(s) for s in seconds],
                y=[median(v) for v in values],
                x_range=[(min(s), max(s)) for s in seconds],
                y_range=[(min(v), max(v)) for v in values],
                special=stars[0] if stars else None,
                path=_front([_loss(record) for record in group]),
            )
        )
    y_label = "log-likelihood per point, nats" if mixture else f"J, % of {label(base)}"
    if mixture:  # L is already a logarithm
        return draw(curves, "seconds", y_label, _heading(base), y_scale="linear")
    return draw(curves, "seconds", y_label, _heading(base), finish=_percent)


def _front(losses: list[float]) -> list[int]:
    """Return the indices of results, ordered by seconds, that are better than all earlier ones."""
    return [place for place, loss in enumerate(losses) if loss < min(losses[:place], default=math.inf)]


def _percent(axes: Axes) -> None:
    """Set round percent labels on a logarithmic axis, which may span much less than a decade."""
    low, high = axes.get_ylim()
    if high < 2.2 * low:
        step = next(step for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if (high - low) / step <= 9 or step == 20)
        ticks = [step * place for place in range(math.ceil(low / step), math.floor(high / step) + 1)]
    else:
        digits = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9) if high < 12 * low else (1, 2, 5)
        ticks = [digit * 10**power for power in range(-3, 9) for digit in digits if low <= digit * 10**power <= high]
    axes.set_yticks(ticks)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
