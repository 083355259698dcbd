"""Cards (sections) of the report. A card has a heading, a short text, drawings, and possibly a table."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from cprime.estimators.quality import size_cost_text
from cprime.report.certainty import Certainty
from cprime.report.course import ConvergenceHistory
from cprime.report.drawing.chart import bars, interval, line, ranked, steps, written
from cprime.report.evidence import ReportData
from cprime.report.gap import BoundGap, Estimate

_BY_BARS = 30
# A gap L − F of log-likelihood L and free energy F below this fraction of |L| is attributed to rounding.
_ROUNDING = 1e-6
_RANKED = "clusters, the largest first"


@dataclass(frozen=True)
class Card:
    """Card (section) of the report.

    id: HTML id    drawings: SVG    heads, rows: column heads and rows of the card's table; empty without a table
    """

    id: str
    title: str
    text: str
    drawings: tuple[Markup, ...] = ()
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def cards(evidence: ReportData, values: dict[str, Any]) -> list[Card]:
    """Return the cards (sections) of the report, without those for which there are no results.

    values: results of the other files of this package, by name; None where a result does not exist
    """
    found = [
        _sizes(values["clusters"].sizes, evidence.fit_sizes is not None, evidence.estimator),
        _search(evidence.estimator, values["course"]),
    ]
    if values["certainty"] is not None:
        found.append(_certainty(values["certainty"]))
    if values["course"] is not None:
        found += _convergence(values["course"])
    if values["gap"] is not None:
        found.append(_gap(values["gap"]))
    return [card for card in found if card is not None]


def _sizes(weights: NDArray[np.float64], of_fit: bool, estimator: Any) -> Card:
    order = np.argsort(-weights, kind="stable")
    ordered, mean = weights[order], float(weights.mean())
    most, middle, least = (written(float(value)) for value in (ordered[0], np.median(ordered), ordered[-1]))
    facts = f"From {most} down to {least}, {middle} in the middle; a mean of {written(mean)}."
    label = f"Sizes of the clusters, the largest first. {facts}"
    if len(weights) <= _BY_BARS:
        names = [f"cluster {c}: {written(float(weights[c]))}" for c in order]
        drawn = bars(label, ordered, _RANKED, names, (0, len(weights)))
    else:
        drawn = ranked(label, ordered, mean, _RANKED)
    text = f"{facts} {'Weights of the points in the fit.' if of_fit else 'Of the rows in this report.'}"
    if hasattr(estimator, "n_displaced_"):
        text += f" Sizes were bounded in the fit: {size_cost_text(estimator)}."
    return Card("sizes", "Sizes", text, (drawn,))


def _search(estimator: Any, course: ConvergenceHistory | None) -> Card | None:
    if not hasattr(estimator, "certificate_"):
        return None
    found, drawn = estimator.certificate_, []
    if found is not None:
        low, high = found["agreement_interval"]
        share = (
            f"{found['agreement']:.1%} of {found['n_points']:,} rows drawn at random are at their best cluster, "
            f"{low:.1%} to {high:.1%} at 95 %."
        )
        drawn.append(interval(share, found["agreement"], low, high, (min(0.9, np.floor(low * 20) / 20), 1.0), "%"))
        text = f"{share} {_loss(found)}"
    elif getattr(estimator, "neighbors_", None) is None:
        text = "Exact: nothing was left out that could have been a row's best cluster."
    else:
        text = "The search was partial, and none of its points was checked: its option certificate=1000 does so."
    if course is not None and course.evaluations.max() > 0 and np.ptp(course.evaluations) > 0:
        percent = 100 * course.evaluations
        names = [f"iteration {i + 1}: {value:.3g} % of all" for i, value in enumerate(percent)]
        text += f" An iteration measured {np.median(percent):.3g} % of all N·C distances in the median."
        label = "Distances measured, in percent of all, by iteration"
        drawn.append(bars(label, percent, "iteration (% of all N·C distances)", names, (1, len(percent) + 1)))
    return Card("search", "Search quality", text, tuple(drawn))


def _loss(found: dict[str, Any]) -> str:
    """Return a sentence that says by how much the approximate search raises J (k-means), or lowers F (mixtures).

    J is the sum of squared distances to the centers, F the free energy.
    found: certificate of the fit's search, with estimates and 95 % intervals by name
    """
    if "relative_excess" in found:
        low, high = found["relative_excess_interval"]
        return f"J is {found['relative_excess']:.2%} above that of nearest centers ({low:.2%} to {high:.2%} at 95 %)."
    low, high = found["shortfall_interval"]
    lost = f"{found['shortfall']:.3g} nats per point"
    return f"F is {lost} below that of an exact search ({low:.2g} to {high:.2g} at 95 %)."


def _certainty(found: Certainty) -> Card:
    text = (
        f"The greatest responsibility is {found.mean:.2f} in the mean, and above 0.95 in {found.sure:.0%} of the rows. "
        "Those below are the least certain of those looked at."
    )
    n, percent = len(found.counts), 100 * found.counts / (found.counts.sum() or 1.0)
    names = [f"{i / n:.2f} to {(i + 1) / n:.2f}: {share:.1f} % of the rows" for i, share in enumerate(percent)]
    label = f"Rows by their greatest responsibility. {text}"
    drawn = bars(label, percent, "greatest responsibility (% of rows)", names, (0, 1))
    rows = [(f"{d.row:,}", f"{d.first}: {d.shares[0]:.2f}", f"{d.second}: {d.shares[1]:.2f}") for d in found.doubts]
    return Card("certainty", "Certainty", text, (drawn,), ("row", "best", "second"), tuple(rows))


def _convergence(found: ConvergenceHistory) -> list[Card]:
    """Return the cards (sections) that show J, if the fit computed it, and F over time.

    J is the sum of squared distances to the centers, F the free energy.
    """
    bound = _course("bound", "F by second", found, found.lower_bound, "F", "nats a point, higher is better")
    if found.error is None:
        return [bound]
    which = "squared distances to the centers; lower is better"
    if not found.lowers_error:
        which = "squared distances to the best centers, which this fit does not aim to lower"
    return [_course("error", "J by second", found, found.error, "J", which), bound]


def _course(
    place: str, title: str, found: ConvergenceHistory, values: NDArray[np.float64], name: str, which: str
) -> Card:
    text, total = (
        f"{written(float(values[0]))} at first, {written(float(values[-1]))} at last; {which}.",
        found.seconds[-1],
    )
    if found.by_batch:
        text += " Each point is a batch, of rows of its own."
    elif len(values) > 2 and values[-1] != values[0]:
        most = np.flatnonzero(np.abs(values - values[0]) >= 0.99 * abs(values[-1] - values[0]))[0]
        text += f" 99 % of the way was done after {found.seconds[most]:.3g} of {total:.3g} s."
    names = [
        f"iteration {i + 1}, {second:.3g} s: {name} = {value:.6g}"
        for i, (second, value) in enumerate(zip(found.seconds, values, strict=True))
    ]
    times, unit = (found.seconds, "seconds") if total >= 0.5 else (1000 * found.seconds, "milliseconds")
    return Card(place, title, text, (line(f"{title}. {text}", times, values, unit, names),))


def _gap(found: BoundGap) -> Card:
    title, bound = "What C′ leaves out", written(found.free_energy.value)
    of = f"Means of {found.n_rows:,} rows"
    if found.gap.value <= max(2 * found.gap.error, _ROUNDING * abs(found.log_likelihood.value)):
        text = f"A row keeps C′ = {found.n_active} of all, and F = {bound} is L but for rounding: a larger C′ has"
        return Card("gap", title, f"{text} nothing to win here. {of}.")
    text = (
        f"A row keeps C′ = {found.n_active} component{'s' if found.n_active > 1 else ''}, and F = {bound} lies "
        f"{found.gap.value:.3g} nats a point below L. Keeping {found.more} would win "
        f"{found.gain.value / found.gap.value:.0%} of that at once, and lets centers move for more. {of}, "
        "± two standard errors."
    )
    left = found.gap.value - found.gain.value
    parts = (
        (f"L − F of C′ = {found.n_active}", found.gap.value, _estimate(found.gap)),
        (f"won by C′ = {found.more}", found.gain.value, _estimate(found.gain)),
        (f"L − F of C′ = {found.more}", left, f"{left:.3g}"),
    )
    return Card("gap", title, text, (steps(f"Gap to the log-likelihood. {text}", parts),))


def _estimate(found: Estimate) -> str:
    return f"{found.value:.3g} ± {2 * found.error:.1g}"
