"""Figure S2 of Lücke & Forster: L, quantization error, purity and NMI of k-means-C′ on BIRCH data, by iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cprime._utils.random import check_random_state
from cprime.seeding import kmeans_plusplus
from reproduction import truncated_panels as panels
from reproduction.base import Context, Entry, Result, Row, compare
from reproduction.scores import agreement
from reproduction.truncated_runs import (
    BIRCH,
    N_CLUSTERS,
    TITLES,
    birch_data,
    birch_runs,
    centers,
    estimator,
    fitted,
    nearest,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MEASURES = ("log_likelihood", "quantization_error", "purity", "nmi")
_NAMES = ("L", "φ", "purity", "NMI")
_PUBLISHED_LOSS = -0.004  # 0.875 minus 0.879
_ROUNDING = 0.001  # of two numbers with three digits
_DATA_SETS = 20
_EXPERIMENTS = (
    "Experiments with 12 to 20 data sets of 30 to 60 runs: with plain k-means++ or random points as starts, with a "
    "smaller square, with purity by true clusters in place of found ones, and with NMI divided by the geometric mean "
    "or the larger of the two entropies, the run of the largest sum has on average 0.003 to 0.025 more than the mean "
    "NMI, and less on none to 2 of 12 data sets. If NMI is divided by the smaller entropy, it has less on 4 of 20, by "
    "0.001 to 0.003 while purity gains 0.032 to 0.039, much as in the source (0.004 and 0.037); if the run is also "
    "chosen by φ, on 15 of 20. The textbook that the source cites divides by the arithmetic mean, as ours does"
)
_NEAR = 0.02
_UNTIL = 20


def compute(context: Context) -> Result:
    """Compute the eight panels, and the statements of supplement E about them."""
    content: dict[str, Any] = {}
    for kind in BIRCH:
        context.report(f"{TITLES[kind]}: {context.runs} runs for each C′")
        content[kind] = {measure: panels.by_active(kind, measure, context) for measure in _MEASURES}
    return ENTRY.result(context.runs, _rows(content, context), content)


def _rows(content: dict[str, Any], context: Context) -> list[Row]:
    runs = {n_active: birch_runs("random", n_active, context) for n_active in (1, 2)}
    finals = {n: {m: panels.mean_and_error(each.final(m)) for m in _MEASURES} for n, each in runs.items()}
    known = birch_data("random", context.random_state)
    ideal = agreement(known.target, nearest(known.data, known.centers, context)[0])
    two = runs[2].final("purity"), runs[2].final("nmi")
    chosen = panels.best_run(runs[2], "nmi")
    content["final"] = {str(n): values for n, values in finals.items()}
    content["truth"] = ideal._asdict()
    gains = {m: finals[2][m]["mean"] - finals[1][m]["mean"] for m in ("log_likelihood", "quantization_error")}
    content["nmi_of_best_less_mean"] = losses = _losses(context)
    return [
        Row(
            "random: mean L and φ of C′ = 2 less those of k-means",
            "both above 0 (table S1: 0.014 and 102)",
            f"{gains['log_likelihood']:.4f} and {gains['quantization_error']:.0f}",
            None,
            min(gains.values()) > 0,
            "a larger φ at a larger L: the two objectives do not coincide",
        ),
        compare(
            "random: NMI of k-means' run of largest purity + NMI less its mean NMI",
            _PUBLISHED_LOSS,
            losses,
            1,
            _ROUNDING,
            f"table S1 of the source, which has one data set; ours is the mean over {len(losses)} of {context.runs} "
            f"runs: agrees if one data set may lie so far from it. {_EXPERIMENTS}",
            f"the source reads it as NMI traded for purity; on {sum(loss < 0 for loss in losses)} of {len(losses)} "
            "data sets of ours the run of the largest sum is below the mean. Another normalization of NMI would "
            "explain it, seeding and the number of runs would not (see the note)",
        ),
        Row(
            "random: purity and NMI of C′ = 2, run of largest sum; of the true centers",
            "near the truth",
            f"{two[0][chosen]:.3f}, {two[1][chosen]:.3f}; {ideal.purity:.3f}, {ideal.nmi:.3f}",
            None,
            bool(two[0][chosen] > ideal.purity - _NEAR and two[1][chosen] > ideal.nmi - _NEAR),
            f"less than {_NEAR} below what the nearest true center gives",
        ),
    ]


def _losses(context: Context) -> list[float]:
    """Return, for several data sets, the NMI of the k-means run with the largest purity + NMI, less the mean NMI."""
    rng = check_random_state(context.random_state)
    losses = []
    for number in range(_DATA_SETS):
        context.report(f"{TITLES['random']}: data set {number + 1} of {_DATA_SETS}, {context.runs} runs of k-means")
        known = BIRCH["random"](random_state=rng)
        found = []
        for _ in range(context.runs):
            start = kmeans_plusplus(known.data, N_CLUSTERS, random_state=rng, n_threads=context.n_threads)[0]
            model = fitted(estimator(start, 1, context), known.data)
            found.append(agreement(known.target, nearest(known.data, centers(model), context)[0]))
        best = max(found, key=lambda score: score.combined)
        losses.append(best.nmi - float(np.mean([score.nmi for score in found])))
    return losses


def draw(result: Result, figure: Figure) -> None:
    """Draw a row for each data set, a column for each measure."""
    from reproduction.figures import by_iteration as drawing

    figure.set_size_inches(10, 5)
    axes = figure.subplots(2, 4)
    for row, kind in zip(axes, BIRCH, strict=True):
        for ax, measure, name in zip(row, _MEASURES, _NAMES, strict=True):
            title = f"{kind}: {name}"
            drawing.by_active(ax, title, result.data[kind][measure], measure, _UNTIL)
    figure.suptitle("solid: mean, dashed: best run", fontsize=9)


ENTRY = Entry(
    "truncated-figure-s2",
    "Likelihood, quantization error, purity and NMI of k-means-C′ on BIRCH data",
    "Lücke & Forster 2019, figure S2",
    100,
    compute,
    draw,
)
