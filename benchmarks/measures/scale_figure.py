"""The figure of the measure `scale`: formulas as lines, measurements as points."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from benchmarks import cost
from benchmarks.cost import Cluster, Rates, Sizes
from benchmarks.records import Record
from benchmarks.rounds import median
from benchmarks.simulation import G
from cprime._utils.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION, frame, name_curve, name_curves

_COLORS = (GREEN, BLUE, VERMILION, PURPLE)


def draw(records: list[Record], rates: Rates, asked: dict[str, Any]) -> Figure:
    """Draw seconds over the number of chunks, measured here, and over the number of machines, by the formulas."""
    figure = Figure(figsize=(9.5, 3.8), layout="constrained")
    here, there = figure.subplots(1, 2)
    _here(here, records, rates)
    _there(there, rates, asked)
    for ax in (here, there):
        ax.xaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_locator(LogLocator(10, numticks=8))
    return figure


def _here(ax: Axes, records: list[Record], rates: Rates) -> None:
    first = records[0]
    frame(ax, f"measured, N = {first['N']:,} × {first['D']}", "chunks M", "core seconds an iteration")
    ax.set(xscale="log", yscale="log")
    for C, color in zip(sorted({record["C"] for record in records}), _COLORS, strict=False):
        mine = [record for record in records if record["C"] == C]
        chunks = [record["runs"][0]["chunks"] for record in mine]
        curve = np.geomspace(chunks[0], chunks[-1], 50)
        sizes = [Sizes(first["N"], first["D"], C, G, M) for M in curve]  # type: ignore[arg-type]
        for style, formula, name in (
            ("-", [s.expectation(rates) for s in sizes], "computing"),
            ("--", [s.merging(rates) for s in sizes], "merging"),
        ):
            ax.plot(curve, np.where(np.array(formula) > 0, formula, np.nan), style, color=color, linewidth=1.2)
            runs = [
                [run[name] for run in record["runs"] if run["chunks"] > 1 or name == "computing"] for record in mine
            ]
            shown = [(M, run) for M, run in zip(chunks, runs, strict=True) if run]
            if not shown:
                continue
            middle = np.array([median(run) for _, run in shown])
            ends = [[median(run) - min(run) for _, run in shown], [max(run) - median(run) for _, run in shown]]
            marker = "o" if style == "-" else "s"
            face = color if style == "-" else "white"
            look = {"markersize": 4, "markerfacecolor": face, "elinewidth": 0.8}
            ax.errorbar([M for M, _ in shown], middle, ends, fmt=marker, color=color, **look)
        name_curve(
            ax, f"C = {C:,}", (chunks[-1], median([run["computing"] for run in mine[-1]["runs"]])), color, xytext=(6, 0)
        )
    runs = [run for record in records for run in record["runs"]]
    seconds = [run["computing"] for run in runs] + [run["merging"] for run in runs if run["chunks"] > 1]
    ax.set_ylim(max(min(seconds), 1e-4 * max(seconds)) / 2, 3 * max(seconds))
    ax.set_xlim(right=6 * curve[-1])
    ax.xaxis.set_major_locator(LogLocator(4, numticks=9))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}" if value <= curve[-1] else ""))
    for text, height in (("filled, full lines: E-steps", 0.97), ("open, dashed: merging", 0.90)):
        ax.annotate(text, (0.02, height), xycoords="axes fraction", fontsize=8, color="0.3", va="top")


def _power(n: int) -> str:
    """Return a power of ten in the form 10⁶, any other number with digits."""
    exponent = round(np.log10(n))
    return f"$10^{exponent}$" if n == 10**exponent else f"{n:,}"


def _there(ax: Axes, rates: Rates, asked: dict[str, Any]) -> None:
    N, C, D = asked["to_points"], asked["to_clusters"], asked["D"]
    frame(ax, f"by formula, N = {_power(N)}, C = {_power(C)}, D = {D}", "machines", "seconds an iteration")
    ax.set(xscale="log", yscale="log")
    machines = np.unique(np.geomspace(1, 10 * asked["machines"], 80).round().astype(int))
    link = asked["gigabits"] * 1e9 / 8
    found: dict[str, list[float]] = {}
    for W in machines:
        cluster = Cluster(int(W), asked["cores"], link)
        sizes = Sizes(N, D, C, G, int(W) * asked["cores"])
        merged = cost.merged(sizes, cluster, rates)
        for name, value in (
            ("E-steps", cost.computed(sizes, cluster, rates)),
            ("job handed on", cost.sent(sizes, cluster)[0]),
            ("parts: all to the driver", merged["all to the driver"]),
            ("parts: tree of 8", merged["tree of 8, as it is"]),
            ("parts: by rows", merged["reduced by rows"]),
            ("driver: step", sizes.driver(rates)),
            ("driver: new lists, when due", sizes.refresh(rates)),
        ):
            found.setdefault(name, []).append(value)
    colors = (VERMILION, BLUE, "0.6", GREEN, PURPLE, ORANGE, BLACK)
    ends = []
    for (name, values), color in zip(found.items(), colors, strict=True):
        ax.plot(machines, values, color=color, linewidth=1.4)
        ends.append((name, values[-1], color))
    ax.axvline(asked["machines"], color="0.7", linestyle=":", linewidth=1)
    ax.set_xlim(1, machines[-1])
    ax.set_ylim(min(min(v) for v in found.values()) / 2, max(max(v) for v in found.values()) * 2)
    name_curves(ax, ends)
