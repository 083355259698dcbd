"""Figure C.1 of Forster & Lücke: L, F and φ of the four algorithms by iteration, on 5×5 clusters and on KDD."""

from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction import sublinear_curves as curves
from reproduction.base import TOO_FEW, Context, Entry, Missing, Result, Row
from reproduction.data import load
from reproduction.sublinear_runs import SOURCE, Setting, fewest_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CLOSE = 0.01
_ALMOST = 0.05
_ALIKE = Setting("KDD", curves.COMPONENTS["KDD"], True, "S", 20)  # the green line of the source's figure
# What other thresholds than that of `curves.REACHED` give on BIRCH, by algorithm and G.
_THRESHOLDS = {
    ("var-GMM-S", "2"): (
        "With other thresholds, of 50 runs: iterations until the mean error is within 2, 5, 10, 20 and 50 % of where "
        "the full algorithm's ends are 40, 16, 8, 4 and 1 with all 25 and 13, 13, 12, 11 and 9 with G = 2, which are "
        "27 and 3 fewer and 4, 7 and 8 more. The full algorithm comes down slowly at its end, so only where both "
        "curves are steep does G = 2 need about ten more; and G = 2 ends 11 % "
        "lower than all 25"
    ),
    ("var-k-means-S", "5"): (
        "With other thresholds, of 50 runs: against the full algorithm's end 4 or 5 more at 2 to 50 %; but G = 5 ends "
        "1.4 % higher in these runs, and until either mean error is within 5 % of its own end it takes 10 iterations, "
        "all 25 take 8, which is 2 more"
    ),
}


def compute(context: Context) -> Result:
    """Compute the curves (the paper: 100 runs on BIRCH, 10 on KDD); fewer runs are made on KDD, where one takes
    minutes.
    """
    found = {"BIRCH": curves.panels("BIRCH", context)}
    runs, statements = curves.most_runs(found["BIRCH"]), _birch_rows(found["BIRCH"])
    try:
        load("KDD")
    except Missing as missing:
        return ENTRY.result(runs, statements, found, [f"the panels of KDD: {missing}"])
    found["KDD"] = curves.panels("KDD", context)
    skipped = curves.left_out("KDD", found["KDD"])
    return ENTRY.result(runs, statements + _kdd_rows(found["KDD"]), found, skipped)


def _birch_rows(found: dict[str, dict[str, Any]]) -> list[Row]:
    """Return the rows for the statements of appendix C about BIRCH."""
    return [
        _later("BIRCH", found, "var-GMM-S", "2", (5, 15), "around 10"),
        _later("BIRCH", found, "var-k-means-S", "5", (-1, 3), "0 to 2"),
        _better(found),
        _best(found),
        _saved("BIRCH", found, "var-GMM-S", "2", "more than 6", 6),
        _saved("BIRCH", found, "var-k-means-S", "5", "C/G = 5", 5),
        _tight("BIRCH", found),
    ]


def _kdd_rows(found: dict[str, dict[str, Any]]) -> list[Row]:
    """Return the rows for the statements of appendix C about KDD, for curves that were computed."""
    rows = [
        _later("KDD", found, "var-GMM-S", "5", (0, 6), "about 3"),
        _later("KDD", found, "var-k-means-S", "20", (0, 6), "2 to 4"),
        _saved("KDD", found, "var-GMM-S", "5", "at least 8", 8),
        _saved("KDD", found, "var-k-means-S", "20", "at least 10", 10),
        _matches(found, "var-GMM-S", "5"),
        _matches(found, "var-k-means-S", "20"),
        _tight("KDD", found),
    ]
    column, full = found["var-GMM-S"], str(curves.COMPONENTS["KDD"])
    published = "indistinguishable"
    if "20" not in column:
        needed = (
            f"the curve of G = 20 takes minutes a run; --runs {fewest_runs(_ALIKE)} or more makes it, and "
            "sublinear-table-2-long compares the ends of one run"
        )
        return [*rows, Row("KDD, var-GMM-S: L of G = 20 and of all 200", published, "not run", None, None, needed)]
    ends = {G: float(np.mean(column[G]["final_log_likelihoods"])) for G in ("20", full)}
    gap, gained = ends[full] - ends["20"], ends[full] - column[full]["log_likelihood"]["mean"][0]
    return [
        *rows,
        Row(
            "KDD, var-GMM-S: L of G = 20 below L of all 200, % of what EM gains after its first iteration",
            published,
            100 * float(gap / gained),
            None,
            bool(abs(gap) <= _CLOSE * gained),
            f"agrees within {_CLOSE:.0%}; {_runs(column['20'])}",
        ),
    ]


def _runs(curve: dict[str, Any]) -> str:
    return f"mean of {len(curve['final_errors'])} run(s)"


def _later(
    data: str, found: dict[str, dict[str, Any]], name: str, G: str, allowed: tuple[int, int], published: str
) -> Row:
    """Return the row of the additional iterations that an algorithm needs compared with its full counterpart."""
    full = str(curves.COMPONENTS[data])
    experiments = f". {_THRESHOLDS[name, G]}" if data == "BIRCH" else ""
    late, first = found[name][G]["reached"], found[name][full]["reached"]
    more = None if late is None else late - first
    return Row(
        f"{curves.NAMES[data]}, {name}, G = {G}: iterations more than with all {full}",
        published,
        "never as low" if more is None else float(more),
        None,
        more is not None and bool(allowed[0] <= more <= allowed[1]),
        f"{curves.REACHED}; agrees from {allowed[0]} to {allowed[1]}; {_runs(found[name][G])}{experiments}",
        f"the full algorithm takes {first:.0f} iterations to come so close to its own end; the source reads the "
        "difference off the curves by eye, and another threshold explains it (see the note)",
    )


def _better(found: dict[str, dict[str, Any]]) -> Row:
    """Return the row on avoided local optima: mean errors of truncated searches against the full algorithm's."""
    means = {name: {G: float(np.mean(c["final_errors"])) for G, c in column.items()} for name, column in found.items()}
    full = str(curves.COMPONENTS["BIRCH"])
    excesses = {
        f"{name}, G = {G}": ends[G] / ends[full] - 1
        for name, ends in means.items()
        for G in ends
        if full != G and (name, G) != ("var-k-means-S", "2")
    }
    above = [f"{setting} (by {excess:.1%})" for setting, excess in excesses.items() if excess > _CLOSE]
    return Row(
        "BIRCH 5×5: settings that end at a mean error not above the full algorithm's",
        "all, but for var-k-means-S with G = 2",
        f"{len(excesses) - len(above)} of {len(excesses)}",
        None,
        not above,
        f"not above by more than {_CLOSE:.0%}. The mean errors of var-k-means-S with G = 5 and of the full algorithm "
        "have standard errors of 1.9 and 2.3 % in 50 runs, more than the 1.4 % between them; in 40 runs with other "
        "data in each, S ended 2.9 % below: the seeds explain the difference",
        "above it ends " + "; ".join(above) if above else "",
    )


def _best(found: dict[str, dict[str, Any]]) -> Row:
    """Return the row that says whether the best runs reach the error of the best full run."""
    full = str(curves.COMPONENTS["BIRCH"])
    excesses = {
        f"{name}, G = {G}": min(curve["final_errors"]) / min(column[full]["final_errors"]) - 1
        for name, column in found.items()
        for G, curve in column.items()
        if full != G and (name, G) != ("var-k-means-S", "2")
    }
    worst = max(excesses, key=lambda name: excesses[name])
    runs, source = curves.most_runs(found), curves.RUNS_OF["BIRCH"]
    criterion = f"it is {worst}; agrees within {_CLOSE:.0%}"
    return Row(
        "BIRCH 5×5: error of the best run above that of the full algorithm's best, largest over the settings, %",
        "almost perfectly match",
        100 * float(excesses[worst]),
        None,
        bool(excesses[worst] <= _CLOSE) if runs >= source else None,
        criterion if runs >= source else f"{criterion}; best of {runs} runs, the source's of {source}: {TOO_FEW}",
        "with lists so short a run may end before all points have met their nearest center",
    )


def _saved(data: str, found: dict[str, dict[str, Any]], name: str, G: str, published: str, least: int) -> Row:
    """Return the row of the factor by which an iteration evaluates fewer distances, which is to be `least` or more."""
    saved = curves.COMPONENTS[data] / found[name][G]["evaluations"]
    label = f"{curves.NAMES[data]}, {name}, G = {G}: times fewer distances an iteration"
    return Row(label, published, float(saved), None, bool(saved >= least), generous=True)


def _tight(data: str, found: dict[str, dict[str, Any]]) -> Row:
    """Return the row that says whether the free energy of a small G is near the likelihood."""
    curve, full = found["var-GMM-S"]["5"], found["var-GMM-S"][str(curves.COMPONENTS[data])]
    gap = np.mean(curve["final_log_likelihoods"]) - np.mean(curve["final_free_energies"])
    gained = np.mean(full["final_log_likelihoods"]) - full["log_likelihood"]["mean"][0]
    return Row(
        f"{curves.NAMES[data]}, var-GMM-S, G = 5: L − F at the end, % of what EM gains after its first iteration",
        "almost tight for relatively small G",
        100 * float(gap / gained),
        None,
        bool(gap <= _ALMOST * gained),
        f"agrees below {_ALMOST:.0%}; {_runs(curve)}",
        generous=True,
    )


def _matches(found: dict[str, dict[str, Any]], name: str, G: str) -> Row:
    """Return the row that says whether the final error equals that of the full algorithm."""
    ends = {key: float(np.mean(found[name][key]["final_errors"])) for key in (G, str(curves.COMPONENTS["KDD"]))}
    excess = ends[G] / ends[str(curves.COMPONENTS["KDD"])] - 1
    return Row(
        f"KDD, {name}, G = {G}: final error above the full algorithm's, %",
        "match",
        100 * excess,
        None,
        bool(abs(excess) <= _CLOSE),
        f"agrees within {_CLOSE:.0%}; {_runs(found[name][G])}",
    )


def draw(result: Result, figure: "Figure") -> None:
    """Draw a column for each algorithm; for each data set L with F, and φ below them."""
    from reproduction.figures import lists

    data_sets = list(result.data)
    figure.set_size_inches(12, 4.8 * len(data_sets))
    panels = figure.subplots(2 * len(data_sets), 4)
    for (upper, lower), data in zip(panels.reshape(-1, 2, 4), data_sets, strict=True):
        found = result.data[data]
        top, heights = lists.highest(found), lists.likely(found)
        for above, below, (name, column) in zip(upper, lower, found.items(), strict=True):
            lists.draw_bounds(above, curves.look(data), column, f"{data}: {name}", heights)
            lists.draw_errors(below, curves.look(data), column, "", top)
        for axes in (*upper[1:], *lower[1:]):  # labels are in the first column only
            axes.set_ylabel("")
            axes.tick_params(axis="y", labelleft=False)
    counts = f"{result.runs} runs on BIRCH"
    if "KDD" in data_sets:
        counts += f", at most {curves.most_runs(result.data['KDD'])} on KDD"
    figure.suptitle(
        f"means with standard errors of L (F is thin and dashed) and of φ (rings: the best run's end): {counts}",
        fontsize=10,
    )


ENTRY = Entry(
    "sublinear-figure-c1",
    "L, F and φ by iteration on BIRCH 5×5 and KDD, for exact and estimated neighbour lists",
    f"{SOURCE}, figure C.1",
    100,
    compute,
    draw,
)
