"""Table 1 of Forster & Lücke: exponents of evaluated distances and of memory in N, C, D and G, measured."""

from __future__ import annotations

import tracemalloc
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cprime._utils.style import BLUE, VERMILION, frame
from reproduction.base import Context, Entry, Result, Row
from reproduction.sublinear_runs import SOURCE, Setting, make_estimator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ITERATIONS = 4
_TOLERANCE = 0.1  # of an exponent
_SPREAD = 5.0  # standard deviation of the centers, in those of a cluster


class Size(NamedTuple):
    """Numbers of points, clusters and dimensions, and length of the neighbor lists."""

    N: int
    C: int
    D: int
    G: int


# One number is varied and the others stand still. C is so large that memory of order C is a part of all memory.
SWEEPS = {
    "N": [Size(N, 100, 8, 4) for N in (4000, 16000, 64000)],
    "C": [Size(8000, C, 8, 4) for C in (800, 1600, 3200)],
    "D": [Size(8000, 800, D, 4) for D in (8, 32, 128)],
    "G": [Size(8000, 400, 8, G) for G in (3, 6, 12)],
}
# (C′ > 1, lists) → largest exponents of N, C, D, G in the numbers of distances of points (the source multiplies them by
# D) and in memory.
PREDICTED = {
    (True, "X"): ({"N": 1, "C": 0, "G": 2}, {"N": 1, "C": 1, "D": 1, "G": 1}),
    (True, "S"): ({"N": 1, "C": 0, "G": 2}, {"N": 1, "C": 1, "D": 1, "G": 2}),
    (False, "X"): ({"N": 1, "C": 0, "G": 1}, {"N": 1, "C": 1, "D": 1, "G": 1}),
    (False, "S"): ({"N": 1, "C": 0, "G": 1}, {"N": 1, "C": 1, "D": 1, "G": 1}),
}
_MEASURES = ("distances", "memory")
_NAMES = {"distances": "distances of points an iteration", "memory": "memory"}
_NOTES = {
    "distances": (
        f"at most the predicted exponent and {_TOLERANCE:g}. Lists of different components have common ones, so the "
        "exponent of G may be lower. Distances between centers, which X needs, are counted apart"
    ),
    "memory": (
        f"at most the predicted exponent and {_TOLERANCE:g}: largest size of all arrays of NumPy during the fit beside "
        "the data. The table adds terms, and where another one is the largest the exponent is lower; of the "
        "distances of an iteration, NC′G, a sum is kept for each pair of clusters"
    ),
}
_WHY = (
    "the estimates take an entry for each pair of clusters that an iteration compares, at most NC′G. In longer lists "
    "more points change clusters, so that the number of pairs comes near this limit, and on the way it grows faster "
    "than G: with 16,000 points and 2,000 clusters var-k-means-S has an exponent of 1.6 from G = 8 to 16, and 1.0 from "
    "16 to 32"
)


def compute(context: Context) -> Result:
    """Fit every algorithm at the sizes of all sweeps, four iterations each, and compute slopes of logarithms."""
    rows = []
    content: dict[str, Any] = {}
    for (soft, lists), predicted in PREDICTED.items():
        name = Setting("", 0, soft, lists, 0).algorithm
        content[name] = {}
        for variable, sizes in SWEEPS.items():
            context.report(f"{name}: sizes by {variable}")
            values = [getattr(size, variable) for size in sizes]
            found = [measured(soft, lists, size, context.random_state) for size in sizes]
            content[name][variable] = {
                "values": values,
                **{measure: [each[measure] for each in found] for measure in (*_MEASURES, "between")},
            }
        for measure, exponents in zip(_MEASURES, predicted, strict=True):
            rows += [
                _row(name, measure, content[name][variable], variable, most) for variable, most in exponents.items()
            ]
        rows.append(_between_row(name, content[name]["C"]))
    return ENTRY.result(1, rows, content)


def measured(soft: bool, lists: str, size: Size, random_state: int) -> dict[str, float]:
    """Return the numbers of distances of points and between centers of an iteration, and the largest size of NumPy's
    arrays [bytes] during a fit.
    """
    rng = np.random.default_rng(random_state)
    centers = _SPREAD * rng.standard_normal((size.C, size.D))
    X = (centers[rng.integers(0, size.C, size.N)] + rng.standard_normal((size.N, size.D))).astype(np.float32)
    setting = Setting("BIRCH", size.C, soft, lists, size.G)
    estimator = make_estimator(setting, X[: size.C].copy(), random_state, 1).set_params(max_iter=_ITERATIONS, tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tracemalloc.start()
        try:
            estimator.fit(X)
            memory = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    history = estimator.history_
    is_em = history["phase"] == "em"
    return {
        "distances": float(history["n_distances"][is_em].mean()),
        "between": float(history["n_between"][is_em].mean()),
        "memory": float(memory),
    }


def exponent(values: list[float], measures: list[float]) -> float:
    """Return the slope of a line through the logarithms of both."""
    return float(np.polyfit(np.log(values), np.log(measures), 1)[0])


def _row(name: str, measure: str, sweep: dict[str, Any], variable: str, predicted: int) -> Row:
    """Return the row that compares a measured exponent with the predicted one."""
    slope = exponent(sweep["values"], sweep[measure])
    met = slope <= predicted + _TOLERANCE
    is_known = variable == "G" and measure == "memory" and name.endswith("S")
    values = ", ".join(f"{value:,}" for value in sweep["values"])
    return Row(
        f"{name}: {_NAMES[measure]}, exponent of {variable} ({values})",
        f"at most {predicted}",
        round(slope, 3),
        None,
        met,
        _NOTES[measure],
        _WHY if is_known and not met else "",
    )


def _between_row(name: str, sweep: dict[str, Any]) -> Row:
    """Return the row of the distances between centers: of order C² with exact lists, none with estimated ones."""
    counts = sweep["between"]
    label = f"{name}: distances between centers an iteration"
    if name.endswith("S"):
        return Row(label, "none", max(counts), None, max(counts) == 0)
    slope = exponent(sweep["values"], counts)
    note = f"at most the predicted exponent and {_TOLERANCE:g}"
    return Row(f"{label}, exponent of C", "at most 2", round(slope, 3), None, slope <= 2 + _TOLERANCE, note)


def draw(result: Result, figure: Figure) -> None:
    """Draw a row for each measure and a column for each varied number, on logarithmic axes."""
    from matplotlib.ticker import NullFormatter, NullLocator

    figure.set_size_inches(10, 5)
    panels = figure.subplots(len(_MEASURES), len(SWEEPS), sharey="row")
    labels = {"distances": "distances / iteration", "memory": "memory, MB"}
    for row, measure in zip(panels, _MEASURES, strict=True):
        for ax, variable in zip(row, SWEEPS, strict=True):
            frame(ax, "", variable, labels[measure] if variable == "N" else "")
            for name, sweeps in result.data.items():
                color, style = VERMILION if "GMM" in name else BLUE, "-" if name.endswith("S") else "--"
                values = np.array(sweeps[variable][measure]) / (1e6 if measure == "memory" else 1)
                ax.plot(sweeps[variable]["values"], values, style, marker="o", markersize=3, color=color)
            ax.set_xscale("log")
            ax.set_yscale("log")
            ticks = sweeps[variable]["values"]
            ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
            ax.xaxis.set_minor_locator(NullLocator())
            ax.yaxis.set_minor_formatter(NullFormatter())
    figure.suptitle("var-GMM (vermilion) and var-k-means (blue), S solid, X dashed", fontsize=9)


ENTRY = Entry(
    "sublinear-table-1",
    "Exponents of evaluated distances and of memory in N, C, D and G",
    f"{SOURCE}, table 1 and appendix D",
    1,
    compute,
    draw,
)
