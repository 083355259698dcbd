"""docs/_static/quality.png: seconds against J, of cprime and its peers, from docs/benchmarks/results.jsonl."""

import json
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from cprime._utils.style import BLACK, BLUE, SKY, VERMILION, frame

DOCS = Path(__file__).parents[1]
RESULTS = DOCS / "benchmarks" / "results.jsonl"
OUTPUT = DOCS / "_static" / "quality.png"
DATA, C = "sift", 2000
TICKS = (0.5, 1, 2, 5, 10, 20)
LEFT, RIGHT, ABOVE = (-8, 0, "right"), (8, 0, "left"), (-12, 14, "center")
PEERS = (
    ("cprime", "cprime", VERMILION, RIGHT),
    ("faiss", "FAISS", BLUE, LEFT),
    ("sklearn-lloyd", "scikit-learn", BLACK, ABOVE),
    ("sklearn-minibatch", "MiniBatchKMeans", SKY, RIGHT),
)


def curves(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The records of each peer, in the order of their seconds; of settings that others surpass in both, none."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    found = {}
    for peer, *_ in PEERS:
        mine = [
            {"seconds": median(r["seconds"]), "J": median(r["value"]), "settings": r["settings"], "N": r["N"]}
            for r in records
            if r["measure"] == "time-to-quality" and (r["peer"], r["data"], r["C"]) == (peer, DATA, C)
        ]
        mine.sort(key=lambda record: record["seconds"])
        found[peer] = [r for place, r in enumerate(mine) if all(r["J"] < before["J"] for before in mine[:place])]
    return found


def draw(axes: Axes, found: dict[str, list[dict[str, Any]]]) -> None:
    best = min(record["J"] for records in found.values() for record in records)
    axes.set_xscale("log")
    for peer, name, color, (right, up, aligned) in PEERS:
        seconds = [record["seconds"] for record in found[peer]]
        excess = [100 * (record["J"] / best - 1) for record in found[peer]]
        line = {"linestyle": "-", "linewidth": 2.2} if peer == "cprime" else {"linestyle": ":", "linewidth": 1}
        axes.plot(seconds, excess, color=color, marker="o", markersize=6, clip_on=False, **line)
        axes.annotate(
            name, (seconds[0], excess[0]), (right, up), textcoords="offset points", ha=aligned, va="center",
            color=color, fontsize=11.5, fontweight="bold",
        )  # fmt: skip
    frame(axes)
    axes.set_xlabel("seconds on two cores, the start included", fontsize=10)
    axes.set_ylabel("J above the best of all, %", fontsize=10)
    axes.tick_params(which="both", labelsize=10)
    axes.set_ylim(bottom=0)
    axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axes.xaxis.set_minor_formatter(NullFormatter())


def main() -> None:
    found = curves(RESULTS)
    theirs = found["faiss"][-1]
    ours = next(record for record in found["cprime"] if record["J"] <= theirs["J"])
    figure = Figure(figsize=(7, 3.9), layout="constrained")
    axes = figure.add_subplot()
    draw(axes, found)
    title = f"cprime: {ours['seconds']:.1f} s for a J that takes FAISS {theirs['seconds']:.0f} s"
    axes.set_title(title, loc="left", fontsize=13, fontweight="bold", pad=26)
    counts = " and ".join(f"{record['settings']['niter']}" for record in found["faiss"])
    subject = f"{ours['N']:,} SIFT descriptors, {C:,} clusters; FAISS and scikit-learn after {counts} iterations"
    axes.text(0, 1.04, subject, transform=axes.transAxes, fontsize=10.5, in_layout=False)
    OUTPUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUTPUT, dpi=200)


if __name__ == "__main__":
    main()
