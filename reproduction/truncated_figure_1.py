"""Figure 1 of Lücke & Forster: free energies, likelihoods, purity and found centers of k-means and k-means-C′."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cprime.datasets import birch
from reproduction import truncated_panels as panels
from reproduction.base import Context, Entry, Missing, Result, Row
from reproduction.dbscan import tuned
from reproduction.truncated_runs import (
    BIRCH_ACTIVE,
    KDD_ACTIVE,
    TITLES,
    birch_data,
    birch_runs,
    centers,
    estimator,
    fitted,
    log_likelihood,
    stretch,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Largest distance, in standard deviations, of true centers compared in panels J and K.
CLOSE = 3.0
_DATA_SETS = 10
_SIZES = (100, 1000)
_NEARLY_VANISHED = 0.01
_UNTIL = 20
_READING = """A, D  solid: L, dashed: F; runs by how
         many clusters they miss
B, C, E, F  solid: mean of the runs,
         dashed: the best of them
G, H  means, shaded: standard errors
I, J, K  circles: true centers,
         crosses: those that were found"""


def compute(context: Context) -> Result:
    """Compute all panels, and the statements of section 5 about them."""
    content: dict[str, Any] = {"points": {}}
    for kind, letters in (("grid", "ABC"), ("random", "DEF")):
        context.report(f"{TITLES[kind]}: {context.runs} runs for each C′")
        known = birch_data(kind, context.random_state)
        content["points"][kind] = known.data.T.round(1).tolist()
        content[letters[0]] = panels.k_means(kind, context)
        content[letters[1]] = panels.by_active(kind, "log_likelihood", context)
        content[letters[2]] = panels.by_active(kind, "purity", context)
        setting = tuned(known.data, known.target)
        content[letters[2]]["dbscan"] = setting._asdict() | {"agreement": setting.agreement._asdict()}
    for letter, kind, n_active in (("I", "grid", 1), ("J", "random", 1), ("K", "random", 2)):
        content[letter] = panels.found_centers(kind, n_active, context)
    content["overfitting"] = _overfitting(context)
    rows = [*_grid_rows(content), *_overlap_rows(content, context)]
    examples = len(content["A"]["examples"])
    skipped = [f"panel A: none of {context.runs} runs missed {examples} clusters"] if examples < len("012") else []
    try:
        content["GH"] = panels.kdd(("log_likelihood", "free_energy", "quantization_error"), context)
        rows += _kdd_rows(content["GH"]["gap"])
    except Missing as missing:
        skipped.append(f"panels G and H: {missing}")
    return ENTRY.result(context.runs, rows, content, skipped)


def _overfitting(context: Context) -> dict[str, Any]:
    """Return L of k-means started at the truth less L of the truth, for several numbers of points per cluster."""
    excess = {}
    for size in _SIZES:
        values = []
        for seed in range(_DATA_SETS):
            known = birch(n_per_cluster=size, random_state=context.random_state + seed)
            model = fitted(estimator(known.centers, 1, context), known.data)
            truth = log_likelihood(known.data, known.centers, 1.0, context)
            values.append(log_likelihood(known.data, centers(model), model.variance_, context) - truth)
        excess[str(size)] = panels.mean_and_error(np.array(values))
    return excess


def _grid_rows(content: dict[str, Any]) -> list[Row]:
    best = content["A"]["best"]
    excess = best["log_likelihood"][-1] - content["A"]["truth"]
    by_size = [content["overfitting"][str(size)] for size in _SIZES]
    gaps = content["A"]["gap"]
    means = [gap["mean"] for gap in gaps.values()]
    return [
        Row("A: clusters that the run of largest F misses", 0, best["missed"], None, best["missed"] == 0),
        Row("A: L of that run less L of the truth", "above 0", excess, None, excess > 0),
        Row(
            f"L of the best optimum less L of the truth, {_SIZES[0]} → {_SIZES[1]} points a cluster",
            "decreases",
            " → ".join(f"{size['mean']:.4f}" for size in by_size),
            None,
            by_size[1]["mean"] < by_size[0]["mean"],
            f"k-means from the true centers, means over {_DATA_SETS} data sets",
        ),
        Row(
            f"A: L − F at the end of runs that miss {', '.join(gaps)} clusters",
            "larger in worse optima",
            ", ".join(f"{mean:.4f}" for mean in means),
            None,
            means == sorted(means) if len(means) > 1 else None,
            ", ".join(f"{gap['runs']}" for gap in gaps.values()) + " runs",
        ),
    ]


def _overlap_rows(content: dict[str, Any], context: Context) -> list[Row]:
    grid, overlapping = (content[letter]["mean_gap"] for letter in "AD")
    rows = [
        Row(
            "D: L − F of k-means at the end, grid → random positions",
            "larger with overlap",
            f"{grid['mean']:.4f} → {overlapping['mean']:.4f}",
            None,
            overlapping["mean"] > grid["mean"],
        )
    ]
    likelihoods = {n: birch_runs("random", n, context).final("log_likelihood") for n in BIRCH_ACTIVE}
    for n_active in BIRCH_ACTIVE[1:]:
        gain = float(likelihoods[n_active].max() - likelihoods[1].max())
        rows.append(Row(f"E: best L with C′ = {n_active} less that of k-means", "above 0", gain, None, gain > 0))
    ratios = [stretch(np.array(content[letter]["found"]), np.array(content[letter]["truth"]), CLOSE) for letter in "JK"]
    rows.append(
        Row(
            "J → K: found over true distance of close centers",
            "above 1, less with C′ = 2",
            " → ".join(f"{ratio:.3f}" for ratio in ratios),
            None,
            ratios[0] > 1 and abs(ratios[1] - 1) < ratios[0] - 1,
            f"mean over pairs up to {CLOSE:g} standard deviations apart that were both found, best run of each",
        )
    )
    content["stretch"] = {"1": ratios[0], "2": ratios[1], "farthest": CLOSE}
    return rows


def _kdd_rows(gaps: dict[str, Any]) -> list[Row]:
    first = gaps["1"]
    rows = [Row("G: KDD, L − F at the end, C′ = 1", None, first["mean"], first["standard_error"], None)]
    statements = {2: "clearly below C′ = 1", 5: None, 10: "nearly 0"}
    for n_active in KDD_ACTIVE[1:]:
        gap = gaps[str(n_active)]
        met, note = None, ""
        if n_active == 2 and gap["standard_error"] is not None:
            margin = 2 * np.hypot(gap["standard_error"], first["standard_error"])
            met, note = bool(first["mean"] - gap["mean"] > margin), "lower by more than two standard errors"
        elif n_active == KDD_ACTIVE[-1]:
            met, note = gap["mean"] < _NEARLY_VANISHED * first["mean"], f"below {_NEARLY_VANISHED:.0%} of C′ = 1"
        name = f"G: KDD, L − F at the end, C′ = {n_active}"
        rows.append(Row(name, statements[n_active], gap["mean"], gap["standard_error"], met, note))
    return rows


def draw(result: Result, figure: Figure) -> None:
    """Draw a row for each data set (grid, random, KDD), centers in the last column, and a legend in the free panel."""
    from reproduction.figures import by_iteration as drawing

    figure.set_size_inches(12, 8.8)
    panel = figure.subplots(3, 4)
    content = result.data
    for row, letters, kind in ((panel[0], "ABC", "grid"), (panel[1], "DEF", "random")):
        what = ("k-means, L and F", "C′, L", "C′, purity")
        titles = [drawing.titled(f"{kind}: {text}", letter) for letter, text in zip(letters, what, strict=True)]
        first, second, third = (content[letter] for letter in letters)
        drawing.k_means(row[0], titles[0], first, _UNTIL)
        drawing.by_active(row[1], titles[1], second, "log_likelihood", _UNTIL)
        tuned = ("DBSCAN", third["dbscan"]["agreement"]["purity"])
        drawing.by_active(row[2], titles[2], third, "purity", _UNTIL, reference=tuned)
    for ax, letter, measures, text in (
        (panel[2, 0], "G", ("log_likelihood", "free_energy"), "L and F"),
        (panel[2, 1], "H", ("quantization_error",), "φ"),
    ):
        title = drawing.titled(f"KDD: C′, {text}", letter)
        if "GH" in content:
            drawing.kdd(ax, title, content["GH"], measures)
        else:
            drawing.skipped(ax, title, result.skipped[-1])
    for ax, (letter, text) in zip(
        panel[:, 3], (("I", "grid, k-means"), ("J", "random, k-means"), ("K", "random, C′ = 2")), strict=True
    ):
        drawing.centers(ax, drawing.titled(text, letter), content[letter], content["points"][text.split(",")[0]])
    panel[2, 2].set_axis_off()
    panel[2, 2].text(0, 0.9, _READING, transform=panel[2, 2].transAxes, va="top", fontsize=9, linespacing=1.7)


ENTRY = Entry(
    "truncated-figure-1",
    "Free energies, likelihoods, purity and centers of k-means and k-means-C′",
    "Lücke & Forster 2019, figure 1 and section 5",
    100,
    compute,
    draw,
)
