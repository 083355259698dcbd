"""Table S1 of Lücke & Forster: k-means, k-means-C′, lazy-k-means and DBSCAN on BIRCH data.

The paper has one data set of either kind. To estimate how its values vary between data sets, every statistic is
computed on several of them; their spread says how far a published value may lie from ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import kmeans_plusplus as plain_or_greedy
from sklearn.utils import Bunch

from cprime._utils.random import check_random_state
from cprime._utils.style import BLUE, VERMILION, frame
from cprime.seeding import kmeans_plusplus
from reproduction.base import Context, Entry, Result, Row, compare, standard_error
from reproduction.dbscan import tuned
from reproduction.scores import agreement
from reproduction.truncated_runs import BIRCH, N_CLUSTERS, TITLES, centers, estimator, fitted, nearest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = 100
LEAST_DATA_SETS, MOST_DATA_SETS = 5, 20
AGREEMENT = ("purity", "NMI")
MEASURES = ("L", "φ", *AGREEMENT)
_ROUNDING = {"L": 0.0005, "φ": 0.5, "purity": 0.0005, "NMI": 0.0005}


class Algorithm(NamedTuple):
    """k-means, lazy or not (C′ = 1), or k-means-C′."""

    n_active: int
    epsilon: float = 0.0


# C′ = 2 and ε = 0.1, as in the paper.
ALGORITHMS = {"k-means": Algorithm(1), "k-means-C′": Algorithm(2), "lazy-k-means": Algorithm(1, 0.1)}

# Mean and best value: for L and φ of the best run, for purity and NMI of the run with the largest sum of both.
PUBLISHED = {
    ("grid", "k-means"): ((-6.127, -6.016), (5503, 4836), (0.971, 0.992), (0.977, 0.987)),
    ("grid", "k-means-C′"): ((-6.117, -6.016), (5476, 4837), (0.973, 0.992), (0.978, 0.986)),
    ("grid", "lazy-k-means"): ((-6.117, -6.016), (5452, 4837), (0.974, 0.992), (0.978, 0.987)),
    ("random", "k-means"): ((-5.842, -5.789), (4535, 4291), (0.819, 0.856), (0.879, 0.875)),
    ("random", "k-means-C′"): ((-5.828, -5.771), (4637, 4331), (0.811, 0.864), (0.880, 0.880)),
    ("random", "lazy-k-means"): ((-5.850, -5.803), (4592, 4351), (0.809, 0.846), (0.876, 0.880)),
}
PUBLISHED_DBSCAN = {"grid": (0.989, 0.982), "random": (0.502, 0.800)}


def measure(known: Bunch, algorithm: Algorithm, start: NDArray, context: Context) -> tuple[float, float, float, float]:
    """Return L, φ, purity and NMI of one run; labels are the nearest centers."""
    model = fitted(estimator(start, algorithm.n_active, context, epsilon=algorithm.epsilon), known.data)
    labels, error = nearest(known.data, centers(model), context)
    return (model.bounds(known.data).log_likelihood, error, *agreement(known.target, labels))


def mean_and_best(values: NDArray) -> tuple[NDArray, NDArray]:
    """Return the mean (4,) and the best (4,) of runs (runs, 4), in the order of MEASURES, as the paper defines them."""
    combined = values[:, 2:].sum(axis=1).argmax()
    return values.mean(axis=0), np.array([values[:, 0].max(), values[:, 1].min(), *values[combined, 2:]])


def compute(context: Context) -> Result:
    """Run all algorithms on all data sets; there are as many data sets as runs, but between 5 and 20."""
    n_data_sets = min(max(context.runs, LEAST_DATA_SETS), MOST_DATA_SETS)
    content: dict[str, Any] = {"data_sets": n_data_sets, "runs": context.runs, "algorithms": {}, "dbscan": {}}
    rows = []
    for kind in BIRCH:
        rng = check_random_state(context.random_state)
        statistics: dict[str, list[tuple[NDArray, NDArray]]] = {name: [] for name in ALGORITHMS}
        plain, settings = [], []
        for number in range(n_data_sets):
            context.report(f"{TITLES[kind]}: data set {number + 1} of {n_data_sets}, {context.runs} runs of each")
            known = BIRCH[kind](random_state=rng)
            starts = _starts(known.data, context, rng)
            for name, algorithm in ALGORITHMS.items():
                statistics[name].append(_statistics(known, algorithm, starts, context))
            if kind == "grid":
                plain.append(
                    _statistics(known, ALGORITHMS["k-means"], _plain_starts(known.data, context, rng), context)
                )
            settings.append(tuned(known.data, known.target))
        for name, pairs in statistics.items():
            content["algorithms"][f"{kind}, {name}"] = _record(pairs)
            rows += _rows(kind, name, pairs, context)
        content["dbscan"][kind] = [s._asdict() | {"agreement": s.agreement._asdict()} for s in settings]
        for place, (label, value) in enumerate(zip(AGREEMENT, PUBLISHED_DBSCAN[kind], strict=True)):
            note = (
                f"one setting for each of {n_data_sets} data sets; noise counts as one cluster, which the source does "
                "not say, nor among which parameters it chose"
            )
            values = [setting.agreement[place] for setting in settings]
            row = compare(f"{kind}, DBSCAN: {label}", value, values, 1, 0.0005, note)
            rows.append(row._replace(generous=True))
        if plain:
            content["algorithms"][f"{kind}, k-means from plain k-means++"] = _record(plain)
            rows += _plain_rows(plain)
    return ENTRY.result(context.runs, rows, content)


def _starts(X: NDArray, context: Context, rng: np.random.RandomState) -> list[NDArray]:
    seeds = range(context.runs)
    return [kmeans_plusplus(X, N_CLUSTERS, random_state=rng, n_threads=context.n_threads)[0] for _ in seeds]


def _plain_starts(X: NDArray, context: Context, rng: np.random.RandomState) -> list[NDArray]:
    """Return k-means++ centers with one trial per center, as first published; ours and scikit-learn's default is
    greedy.
    """
    return [plain_or_greedy(X, N_CLUSTERS, random_state=rng, n_local_trials=1)[0] for _ in range(context.runs)]


def _statistics(known: Bunch, algorithm: Algorithm, starts: list[NDArray], context: Context) -> tuple[NDArray, NDArray]:
    return mean_and_best(np.array([measure(known, algorithm, start, context) for start in starts]))


def _record(pairs: list[tuple[NDArray, NDArray]]) -> dict[str, Any]:
    """Return each data set's mean and best, and their mean and standard deviation over data sets."""
    values = np.array(pairs)
    return {
        label: {
            which: {
                "values": values[:, place, column].tolist(),
                "mean": float(values[:, place, column].mean()),
                "standard_deviation": float(values[:, place, column].std(ddof=1)),
            }
            for place, which in enumerate(("mean", "best"))
        }
        for column, label in enumerate(MEASURES)
    }


def _rows(kind: str, name: str, pairs: list[tuple[NDArray, NDArray]], context: Context) -> list[Row]:
    """Return rows that compare the published mean and best, from one data set, with ours over several data sets."""
    rows = []
    note = f"mean over {len(pairs)} data sets of {context.runs} runs; agrees if one data set may lie so far from it"
    for column, label in enumerate(MEASURES):
        for place, which in enumerate(("mean", "best")):
            published = PUBLISHED[kind, name][column][place]
            values = [float(pair[place][column]) for pair in pairs]
            row = compare(f"{kind}, {name}: {label}, {which}", published, values, 1, _ROUNDING[label], note)
            if which == "best" and context.runs < RUNS:
                row = row._replace(met=None, note=f"best of {context.runs} runs, the source's of {RUNS}: not judged")
            rows.append(row)
    return rows


def _plain_rows(pairs: list[tuple[NDArray, NDArray]]) -> list[Row]:
    note = "not the source's numbers: its seeding was the greedy variant, as above"
    rows = []
    for column in range(2):
        values = [float(mean[column]) for mean, _ in pairs]
        name = f"grid, k-means from plain k-means++: {MEASURES[column]}, mean"
        rows.append(Row(name, None, float(np.mean(values)), standard_error(values), None, note))
    return rows


def draw(result: Result, figure: Figure) -> None:
    """Draw a panel for each column of the table: ours with two standard deviations over data sets, and theirs."""
    figure.set_size_inches(10, 9)
    axes = figure.subplots(4, 2)
    for column, kind in enumerate(BIRCH):
        for row, label in enumerate(MEASURES):
            ax = axes[row, column]
            names = [*ALGORITHMS, "DBSCAN"] if label in AGREEMENT else list(ALGORITHMS)
            for place, name in enumerate(names):
                for which, shift, values, published in _cell(result, kind, name, label):
                    mean, deviation = float(np.mean(values)), float(np.std(values, ddof=1))
                    fill = "full" if which == "mean" else "none"
                    ours: dict[str, Any] = {"fmt": "o", "color": BLUE, "fillstyle": fill, "markersize": 5, "capsize": 2}
                    ax.errorbar(mean, place + shift, xerr=2 * deviation, **ours)
                    ax.plot(published, place + shift, "D", color=VERMILION, markersize=5, fillstyle=fill)
            frame(ax, f"{TITLES[kind]}: {label}")
            ax.set_yticks(range(len(names)), names if column == 0 else [""] * len(names))
            ax.set_ylim(len(names) - 0.5, -0.5)
    figure.supxlabel(
        "blue: ours, mean and two standard deviations between data sets; red diamond: published; "
        "full: mean of runs, open: best run",
        fontsize=9,
    )


def _cell(result: Result, kind: str, name: str, label: str) -> list[tuple[str, float, list[float], float]]:
    """Return, for one cell of the table: (mean or best, offset from its line, our values over data sets, published
    value).
    """
    if name in ALGORITHMS:
        cell = result.data["algorithms"][f"{kind}, {name}"][label]
        published = PUBLISHED[kind, name][MEASURES.index(label)]
        return [(which, (-0.15, 0.15)[k], cell[which]["values"], published[k]) for k, which in enumerate(cell)]
    values = [setting["agreement"][label.lower()] for setting in result.data["dbscan"][kind]]
    return [("mean", 0.0, values, PUBLISHED_DBSCAN[kind][AGREEMENT.index(label)])]


ENTRY = Entry(
    "truncated-table-s1",
    "k-means, k-means-C′ (C′ = 2), lazy-k-means (ε = 0.1) and DBSCAN on BIRCH data",
    "Lücke & Forster 2019, table S1",
    RUNS,
    compute,
    draw,
)
