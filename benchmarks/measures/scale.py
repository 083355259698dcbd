"""What an iteration costs on many machines: bytes and seconds by formula, with rates that are measured here.

The rates come from single chunks, single merges and the driver's work alone. They are then checked where they were not
fitted: whole iterations with the data in 1, 4, … 256 chunks, every chunk computed on one core, as a task of a cluster
is. Last, the formulas say what machines and links that are not here would do. Of cores the processor time is taken, of
the driver the time that passes.
"""

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks import cost, simulation
from benchmarks.cost import Cluster, Rates, Sizes
from benchmarks.measures import options as given
from benchmarks.measures.scale_figure import draw
from benchmarks.records import Record
from benchmarks.rounds import median
from benchmarks.tables import table
from cprime import datasets

TITLE = "Scale"
_GENERATED = 16  # mean number of points per generated cluster


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--points", type=given.positive, default=1 << 18, help="points N here (default: 262,144)")
    parser.add_argument("-D", "--dimensions", type=given.positive, default=128, help="dimensions D (default: 128)")
    parser.add_argument("--clusters", type=given.counts, default=(4096, 16384, 65536), help="numbers of clusters C")
    parser.add_argument("--chunks", type=given.counts, default=(1, 4, 16, 64, 256), help="numbers of chunks M")
    parser.add_argument("--rates-from", type=given.counts, default=(8192, 32768), help="C that rates are fitted to")
    parser.add_argument("--iterations", type=given.positive, default=12, help="of the fit whose bytes are followed")
    parser.add_argument("--to-points", type=given.positive, default=10**9, help="N that is asked for (10⁹)")
    parser.add_argument("--to-clusters", type=given.positive, default=10**6, help="C that is asked for (10⁶)")
    parser.add_argument("--machines", type=given.positive, default=1000, help="machines (default: 1000)")
    parser.add_argument("--cores", type=given.positive, default=16, help="cores of each (default: 16)")
    parser.add_argument("--gigabits", type=given.positive, default=10, help="of a link, each way (default: 10)")
    given.add_repetitions(parser, 3)


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    N, D, n_threads, repetitions = options.points, options.dimensions, options.threads, options.repetitions
    X = datasets.clusters(N, max(N // _GENERATED, 1), D, random_state=0).data
    base: Record = {"measure": "scale", "N": N, "D": D, "threads": n_threads}
    chunks, driver = [], []
    for C in options.rates_from:
        start = simulation.started(X, C, 2, n_threads)
        chunks += simulation.chunk_seconds(start, [n for n in (512, 2048, 8192, 32768, 131072) if n <= N], repetitions)
        driver.append(simulation.driver_seconds(C, D, repetitions, n_threads))
    with tempfile.TemporaryDirectory(prefix="cprime-benchmark-") as folder:
        reading = simulation.reading_seconds(X, Path(folder), repetitions)
    rates = simulation.rates(chunks, driver, reading, D)
    yield [{**base, "kind": "rates", "rates": asdict(rates), "chunks": chunks, "driver": driver}]
    for C in options.clusters:
        start = simulation.started(X, C, options.iterations, n_threads)
        for M in options.chunks:
            runs = [next(simulation.iterations(start, M, 1, n_threads)) for _ in range(repetitions)]
            print(f"C = {C:,}, {M} chunks: {median([run['computing'] for run in runs]):.3g} s", flush=True)
            yield [{**base, "kind": "chunks", "C": C, "runs": runs}]
        if options.clusters[len(options.clusters) // 2] == C:
            M = options.chunks[len(options.chunks) // 2]
            runs = list(simulation.iterations(start, M, options.iterations, n_threads))
            yield [{**base, "kind": "course", "C": C, "runs": runs}]
    asked = {name: getattr(options, name) for name in ("to_points", "to_clusters", "machines", "cores", "gigabits")}
    yield [{**base, "kind": "asked", **asked}]


def tables(records: list[Record]) -> dict[str, str]:
    """Return the tables of a page by name, made from the records."""
    kinds: dict[str, list[Record]] = {}
    for record in records:
        kinds.setdefault(record["kind"], []).append(record)
    rates = Rates(**kinds["rates"][0]["rates"])
    asked = kinds["asked"][0]
    found = {
        "rates": _rates(rates),
        "chunks": _chunks(kinds["chunks"], rates),
        "course": _course(kinds["course"]),
    }
    D = asked["D"]
    cluster = Cluster(asked["machines"], asked["cores"], asked["gigabits"] * 1e9 / 8)
    sizes = Sizes(asked["to_points"], D, asked["to_clusters"], simulation.G, 4 * cluster.machines * cluster.cores)
    return found | {
        "case": _case(sizes, cluster),
        "bytes": _bytes(sizes, cluster),
        "seconds": _seconds(sizes, cluster, rates),
        "driver": _driver(asked["to_points"], D, cluster, rates),
    }


def report(records: list[Record]) -> str:
    return "\n\n".join(f"### {name.capitalize()}\n\n{text}" for name, text in tables(records).items())


def _rates(rates: Rates) -> str:
    rows = [
        ("ε, a point with a component of its list, a dimension", f"{rates.evaluation * 1e12:.3g} ps", "core"),
        ("π, a list's entry of a component that holds points, a dimension", f"{rates.packing * 1e12:.3g} ps", "core"),
        ("ζ, a component of a chunk, a dimension", f"{rates.component * 1e12:.3g} ps", "core"),
        ("μ, a byte of a part that is merged", f"{rates.merging * 1e12:.3g} ps", "core"),
        ("ρ, a byte that is read from .npy, out of the system's memory", f"{rates.reading * 1e12:.3g} ps", "core"),
        ("δ, a component of the driver's step, a dimension", f"{rates.step * 1e12:.3g} ps", "driver"),
        ("κ, a pair of exact lists, a dimension", f"{rates.pair * 1e12:.3g} ps", "driver"),
        ("λ, a candidate of refined lists, a dimension", f"{rates.refining * 1e12:.3g} ps", "driver"),
    ]
    return table(("rate", "seconds", "of"), rows)


def _chunks(records: list[Record], rates: Rates) -> str:
    rows: list[tuple[str, ...]] = []
    off: dict[str, list[float]] = {"chunks": [], "merging": [], "driver": []}
    for record in records:
        runs = record["runs"]
        sizes = Sizes(record["N"], record["D"], record["C"], simulation.G, runs[0]["chunks"])
        measured = {name: median([run[name] for run in runs]) for name in ("computing", "merging", "driver")}
        off["chunks"].append(measured["computing"] / sizes.expectation(rates))
        off["driver"].append(measured["driver"] / sizes.driver(rates))
        if sizes.M > 1:
            off["merging"].append(measured["merging"] / sizes.merging(rates))
        rows.append(
            (
                f"{sizes.C:,}",
                f"{sizes.M}",
                _pair(runs[0]["job"] / 1e6, (sizes.job - 8 * sizes.C) / 1e6),  # the first iteration is no exchange
                _pair(runs[0]["part"] / 1e6, sizes.dense_part / 1e6),
                _pair(measured["computing"], sizes.expectation(rates)),
                _pair(measured["merging"], sizes.merging(rates)) if sizes.M > 1 else "",
                _pair(measured["driver"], sizes.driver(rates)),
            )
        )
    text = table(("C", "M", "job, MB", "part, MB", "chunks, s", "merging, s", "driver, s"), rows)
    ranges = [f"{name} {min(values):.2f} to {max(values):.2f}" for name, values in off.items() if values]
    return f"{text}\n\nMeasured seconds by those of the formula: {', '.join(ranges)}."


def _pair(measured: float, formula: float) -> str:
    return f"{measured:.3g} ({formula:.3g})"


def _course(records: list[Record]) -> str:
    parts = []
    for record in records:
        rows = []
        for i, run in enumerate(record["runs"]):
            sizes = Sizes(record["N"], record["D"], record["C"], simulation.G, run["chunks"])
            moved = run["moved"]
            few = not run["dense"] and moved is not None
            formula = sizes.movers_part(moved / sizes.M) if few else sizes.dense_part
            share = "not counted" if moved is None else f"{moved / sizes.N:.1%}"
            kind = "all" if run["dense"] else "movers"
            lists = "new" if run["refreshed"] else ""
            rows.append((i + 1, share, kind, _pair(run["part"] / 1e6, formula / 1e6), f"{run['driver']:.3g}", lists))
        columns = ("iteration", "points that moved", "sums of", "part, MB", "driver, s", "lists")
        head = f"C = {record['C']:,}, {record['runs'][0]['chunks']} chunks, N = {record['N']:,} × {record['D']}:"
        parts.append(f"{head}\n\n{table(columns, rows)}")
    return "\n\n".join(parts)


def _case(sizes: Sizes, cluster: Cluster) -> str:
    return (
        f"N = {sizes.N:,}, D = {sizes.D}, C = {sizes.C:,}, G = {sizes.G}; {cluster.machines:,} machines of"
        f" {cluster.cores} cores, {cluster.link * 8 / 1e9:g} Gbit/s each way; {sizes.M:,} groups of chunks,"
        " four a core."
    )


def _bytes(sizes: Sizes, cluster: Cluster) -> str:
    W, groups = cluster.machines, sizes.M / cluster.machines
    few = Sizes(sizes.N, sizes.D, sizes.C, sizes.G, W)
    per = sizes.N / W
    rows = [
        ("data of a machine", _size(sizes.data / W)),
        ("what its points keep, two generations", _size(2 * 8 * per)),
        ("centers", _size(sizes.model)),
        ("lists", _size(sizes.lists)),
        ("a job: both, and factors", _size(sizes.job)),
        ("a part with the sums of all components", _size(sizes.dense_part)),
        (f"such parts of the {groups:g} groups of a machine", _size(groups * sizes.dense_part)),
        ("a part of movers, 10 % of a machine's points moving", _size(few.movers_part(0.1 * per))),
        ("1 %", _size(few.movers_part(0.01 * per))),
        ("0.1 %", _size(few.movers_part(0.001 * per))),
    ]
    return table(("", "bytes"), rows)


def _size(n: float) -> str:
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if n >= unit:
            return f"{n / unit:.3g} {name}"
    return f"{n / 1e3:.3g} kB"


def _seconds(sizes: Sizes, cluster: Cluster, rates: Rates) -> str:
    handed_on, one_by_one = cost.sent(sizes, cluster)
    coarse = Sizes(sizes.N, sizes.D, sizes.C, sizes.G, cluster.machines * cluster.cores)
    rows = [
        ("job, from machine to machine", f"{handed_on:.3g}"),
        ("job, all from one machine", f"{one_by_one:.3g}"),
        ("reading the data from .npy, out of the system's memory", f"{_reading(sizes, cluster, rates):.3g}"),
        (f"E-steps, {sizes.M:,} groups", f"{cost.computed(sizes, cluster, rates):.3g}"),
        (f"E-steps, {coarse.M:,} groups, one a core", f"{cost.computed(coarse, cluster, rates):.3g}"),
        ("merging inside a machine", f"{cost.merged_here(sizes, cluster, rates):.3g}"),
        *((f"merging: {name}", f"{seconds:.3g}") for name, seconds in cost.merged(sizes, cluster, rates).items()),
        ("driver: step", f"{sizes.driver(rates):.3g}"),
        ("driver: new lists, when they are due", f"{sizes.refresh(rates):.3g}"),
        ("new lists, shared by the machines", f"{sizes.refresh(rates) / cluster.machines:.3g}"),
    ]
    return table(("", "seconds"), rows)


def _reading(sizes: Sizes, cluster: Cluster, rates: Rates) -> float:
    return rates.reading * sizes.data / cluster.machines


def _driver(N: int, D: int, cluster: Cluster, rates: Rates) -> str:
    """Return a table of seconds of cores and driver for several C, and from how many machines on the driver takes
    longer.
    """
    rows = []
    for C in (10**3, 10**4, 10**5, 10**6):
        sizes = Sizes(N, D, C, simulation.G, cluster.machines * cluster.cores)
        looked_at = (rates.evaluation * N + rates.packing * sizes.M * sizes.held(N / sizes.M)) * sizes.G * D
        everything = sizes.driver(rates) + rates.merging * cost.FAN_IN * sizes.dense_part
        rows.append(
            (
                f"{C:,}",
                f"{looked_at / 3600:.3g}",
                f"{sizes.driver(rates):.3g}",
                f"{everything - sizes.driver(rates):.3g}",
                f"{sizes.refresh(rates):.3g}",
                f"{looked_at / cluster.cores / everything:,.0f}",
                f"{looked_at / cluster.cores / (everything + sizes.refresh(rates)):,.0f}",
            )
        )
    columns = ("C", "workers, core hours", "step, s", "last merges, s", "new lists, s")
    return table((*columns, "machines", "machines, new lists each time"), rows)


def figures(records: list[Record]) -> dict[str, Figure]:
    rates = next(Rates(**record["rates"]) for record in records if record["kind"] == "rates")
    asked: dict[str, Any] = next(record for record in records if record["kind"] == "asked")
    return {"scale": draw([record for record in records if record["kind"] == "chunks"], rates, asked)}
