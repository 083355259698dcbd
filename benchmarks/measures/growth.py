"""How the time of an iteration grows with C, N, D or the number of threads: the exponent of a power law.

Everything else stays the same. Seconds are those of whole fits, with the start where a peer makes its own, by their
iterations; of cprime those of single iterations are shown too. What came back is judged on a sample of the points,
searched exactly. With --executions the library alone is run, on data in memory, in files and on a Dask cluster: seconds
are then of iterations alone, and compared with those of data that are one chunk in memory, round by round.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from benchmarks import blas, executions
from benchmarks.data import Data
from benchmarks.measures import options as given
from benchmarks.peers import PEERS, Settings
from benchmarks.plots import Curve, draw
from benchmarks.records import Record
from benchmarks.rounds import median, plan, ratios, repeat, spread
from benchmarks.tables import case, grouped, left_out, table
from cprime import datasets

TITLE = "Growth"
_JUDGED = 10_000
_LEAST = 3  # points needed to fit a power law
_VALUES = {
    "C": (1024, 4096, 16384, 65536),
    "N": (50_000, 100_000, 200_000, 400_000, 800_000),
    "D": (4, 16, 64, 256),
}
_DATA = {"C": "sift", "N": "clusters", "D": "clusters-small", "threads": "clusters-small"}
_NAMES = {"C": "clusters C", "N": "points N", "D": "dimensions D", "threads": "threads T"}
_SYMBOLS = {"C": "C", "N": "N", "D": "D", "threads": "T"}
_PEERS = ["cprime", "cprime-lloyd", "faiss"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--along", choices=tuple(_NAMES), default="C", help="what grows (default: C)")
    parser.add_argument("--values", type=given.counts, metavar="A,B,…", help="how it grows (default: by --along)")
    parser.add_argument("--data", metavar="NAME|FILE", help="the data, but along D (default: by --along)")
    parser.add_argument("-C", "--clusters", type=given.positive, help="number of clusters, but along C")
    given.add_peers(parser)
    given.add_repetitions(parser, 1)
    parser.add_argument("--iterations", type=given.positive, default=5, help="iterations of a fit (default: 5)")
    parser.add_argument("--executions", action="store_true", help="where data are in place of peers; not along threads")
    parser.set_defaults(model="k-means")


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    runs = {name: PEERS[name].exactly(options.iterations) for name in given.chosen(options, _PEERS)}
    along, asked = options.along, options.data
    if options.executions and (along == "threads" or options.peers):
        raise ValueError("--executions cannot be chosen with --peers or along threads: workers have one thread each")
    if along == "D" and asked:
        raise ValueError("--data cannot be chosen along D: clusters are generated for every number of dimensions")
    if along == "C" and options.clusters:
        raise ValueError("-C cannot be chosen along C: --values has the numbers of clusters")
    clusters = 1 if along == "C" else options.clusters  # for growth along C, the values are the numbers of clusters
    options = argparse.Namespace(**{**vars(options), "data": [asked or _DATA[along]], "clusters": clusters})
    for data, C, common in given.cases(options, "growth"):
        common |= {"along": along, "executions": options.executions}
        if data is None:
            yield [common]
            continue
        ended: set[str] = set()
        values = options.values or _default_values(along, options.threads, data)
        if along in "CN" and max(values) > len(data.X):
            raise ValueError(f"--values must be at most the {len(data.X)} points of {data.name}, got {max(values)}")
        if along == "N" and min(values) < C:
            raise ValueError(f"--values must be at least the {C} clusters, got {min(values)}")
        for value in values:
            yield [{**common, **record} for record in _at(value, data, C, options, runs, ended)]


def _default_values(along: str, n_threads: int, data: Data) -> tuple[int, ...]:
    if along == "threads":
        return tuple(sorted({*(2**k for k in range(n_threads.bit_length())), n_threads}))
    most = len(data.X) if along in "CN" else np.inf
    return tuple(value for value in _VALUES[along] if value <= most)


def _at(
    value: int, data: Data, C: int, options: argparse.Namespace, wanted: dict[str, Settings], ended: set[str]
) -> Iterator[Record]:
    """Yield the records of one value; peers in `ended` took too long before and are not run again."""
    along, X, n_threads = options.along, data.X, options.threads
    if along == "C":
        C = value
    elif along == "N":
        X = X[np.sort(np.random.default_rng(0).permutation(len(X))[:value])]
    elif along == "D":
        X = datasets.clusters(len(X), C, value, random_state=0).data
    else:
        n_threads = given.threads(str(value))
    sizes: dict[str, Any] = {"at": value, "N": len(X), "D": X.shape[1], "C": C, "threads": n_threads}
    print(f"{_NAMES[along]} = {value:,}", flush=True)
    scored = X[np.sort(np.random.default_rng(1).permutation(len(X))[:_JUDGED])]
    if options.executions:
        how = {"iterations": options.iterations, "repetitions": options.repetitions, "n_threads": n_threads}
        for record in executions.repeat(X, C, scored=scored, **how):
            yield {**sizes, **record}
        return
    able, unable = plan([name for name in wanted if name not in ended], X, C)
    runs = [(name, wanted[name]) for name in able]
    found = repeat(
        runs,
        X,
        C,
        repetitions=options.repetitions,
        n_threads=n_threads,
        limit=options.limit,
        scored=scored,
    )
    ended |= {record["peer"] for record in found if "left_out" in record}
    for record in [*found, *unable]:
        yield {**sizes, **record}


def series(records: list[Record]) -> dict[str, list[tuple[int, list[float]]]]:
    """Return seconds per iteration at each value, by name: whole fits divided by iterations, and cprime's single
    iterations.
    """
    found: dict[str, list[tuple[int, list[float]]]] = {}
    for record in records:
        if not record.get("seconds"):
            continue
        whole = [seconds / n for seconds, n in zip(record["seconds"], record["n_iter"], strict=True)]
        found.setdefault(record["peer"], []).append((record["at"], whole))
        if record["peer"] == "cprime":
            steps = [median(extra["step_seconds"][1:] or extra["step_seconds"]) for extra in record["extra"]]
            found.setdefault("cprime, one iteration", []).append((record["at"], steps))
    return found


def exponent(points: list[tuple[int, list[float]]]) -> tuple[float, float]:
    """Return the slope, with its standard error, of a least-squares line through the logarithms of at least three
    medians.
    """
    x = np.log([value for value, _ in points])
    y = np.log([median(seconds) for _, seconds in points])
    slope, intercept = np.polyfit(x, y, 1)
    residual = float(((y - slope * x - intercept) ** 2).sum())
    freedom = len(points) - 2
    error = np.sqrt(residual / freedom / ((x - x.mean()) ** 2).sum())
    return float(slope), float(error)


def _law(points: list[tuple[int, list[float]]]) -> str:
    if len(points) < _LEAST:
        return ""
    slope, error = exponent(points)
    return f"{slope:+.2f} ± {error:.2f}"


def report(records: list[Record]) -> str:
    parts = []
    for group in grouped(records, "along", "data", "executions"):
        along = group[0]["along"]
        if "skipped" in group[0]:
            parts.append(f"### {group[0]['data']}, along {along}\n\nSkipped: {group[0]['skipped']}.")
            continue
        values = list(dict.fromkeys(record["at"] for record in group))
        rows = []
        for name, points in series(group).items():
            cells = dict(points)
            rows.append([name, *(spread(cells[value]) if value in cells else "" for value in values), _law(points)])
        columns = ["seconds an iteration", *(f"{along} = {value:,}" for value in values), "exponent"]
        parts.append(f"### {_heading(group)}\n\n{table(columns, rows)}")
        if group[0].get("executions"):
            parts.append(_against_memory(group, values))
        parts += filter(None, (blas.note(group), left_out(group)))
    return "\n\n".join(parts)


def _against_memory(records: list[Record], values: list[int]) -> str:
    """Return a table of seconds per iteration divided by those of one chunk in memory, in the same round."""
    steps = {
        (record["peer"], record["at"]): [
            median(extra["step_seconds"][1:] or extra["step_seconds"]) for extra in record["extra"]
        ]
        for record in records
        if record.get("seconds")
    }
    rows = []
    for name in dict.fromkeys(name for name, _ in steps):
        pairs = [(steps.get((name, value)), steps[executions.WHOLE, value]) for value in values]
        rows.append((name, *("" if mine is None else spread(ratios(mine, whole)) for mine, whole in pairs)))
    columns = ["an iteration, against one chunk in memory", *(f"{records[0]['along']} = {value:,}" for value in values)]
    return table(columns, rows)


def _heading(records: list[Record]) -> str:
    first = records[0]
    fixed = [text for text in case(first).split(", ") if not (first["along"] == "C" and text.startswith("C ="))]
    if first["along"] in "ND":
        fixed = [first["data"], f"D = {first['D']}" if first["along"] == "N" else f"N = {first['N']:,}", fixed[-1]]
    return f"Along {first['along']}: {', '.join(fixed)}"


def figures(records: list[Record]) -> dict[str, Figure]:
    return {
        f"growth-{group[0]['along']}-{group[0]['data']}{'-executions' * group[0].get('executions', False)}": _figure(
            group
        )
        for group in grouped(records, "along", "data", "executions")
        if len({record["at"] for record in group if record.get("seconds")}) > 1  # a single point gives no axis limits
    }


def _figure(records: list[Record]) -> Figure:
    along = records[0]["along"]
    curves = []
    for name, points in series(records).items():
        law = f" $\\propto {_SYMBOLS[along]}^{{{exponent(points)[0]:.2f}}}$" if len(points) >= _LEAST else ""
        curves.append(
            Curve(
                label=name + law,
                family="cprime" if name in executions.EXECUTIONS else PEERS[name.partition(",")[0]].family,
                x=[float(value) for value, _ in points],
                y=[median(seconds) for _, seconds in points],
                y_range=[(min(seconds), max(seconds)) for _, seconds in points],
            )
        )
    values = sorted({record["at"] for record in records})

    def ticks(axes: Axes) -> None:
        axes.xaxis.set_major_locator(FixedLocator([float(value) for value in values]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        low, high = axes.get_ylim()
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())

    return draw(curves, _NAMES[along], "seconds an iteration", _heading(records), finish=ticks)
