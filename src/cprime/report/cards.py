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
    facts = f"From {most} down to {least}, half of them below {middle}; a mean of {written(mean)}."
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
            f"Of {found['n_points']:,} random rows, {found['agreement']:.1%} have the best of all clusters; "
            f"the 95 % interval is {low:.1%} to {high:.1%}."
        )
        drawn.append(interval(share, found["agreement"], low, high, (min(0.9, np.floor(low * 20) / 20), 1.0), "%"))
        text = f"{share} {_loss(found)}"
    elif getattr(estimator, "neighbors_", None) is None:
        text = "Exact: each row was compared with all clusters that can be its best one."
    else:
        text = "The search was partial, and its quality was not measured: its option certificate=1000 does this."
    if course is not None and course.evaluations.max() > 0 and np.ptp(course.evaluations) > 0:
        percent = 100 * course.evaluations
        names = [f"iteration {i + 1}: {value:.3g} % of all" for i, value in enumerate(percent)]
        text += f" A typical iteration computed {np.median(percent):.3g} % of all N·C distances."
        label = "Computed distances, in percent of all, by iteration"
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
        f"The probability of a row's best component is {found.mean:.2f} on average, and above 0.95 for "
        f"{found.sure:.0%} of the rows. The table has the rows whose component is least certain."
    )
    n, percent = len(found.counts), 100 * found.counts / (found.counts.sum() or 1.0)
    names = [f"{i / n:.2f} to {(i + 1) / n:.2f}: {share:.1f} % of the rows" for i, share in enumerate(percent)]
    label = f"Rows by the probability of their best component. {text}"
    drawn = bars(label, percent, "probability of the best component (% of rows)", names, (0, 1))
    rows = [(f"{d.row:,}", f"{d.first}: {d.shares[0]:.2f}", f"{d.second}: {d.shares[1]:.2f}") for d in found.doubts]
    return Card("certainty", "Certainty", text, (drawn,), ("row", "best", "second"), tuple(rows))


def _convergence(found: ConvergenceHistory) -> list[Card]:
    """Return the cards (sections) that show J, if the fit computed it, and F over time.

    J is the sum of squared distances to the centers, F the free energy.
    """
    bound = _course("bound", "Free energy F", found, found.lower_bound, "F", "nats a row, higher is better")
    if found.error is None:
        return [bound]
    which = "sum of squared distances to the centers, lower is better"
    if not found.lowers_error:
        which = "sum of squared distances to the best centers, which this fit does not aim to lower"
    return [_course("error", "Squared error J", found, found.error, "J", which), bound]


def _course(
    place: str, title: str, found: ConvergenceHistory, values: NDArray[np.float64], name: str, which: str
) -> Card:
    text, total = (
        f"{written(float(values[0]))} in the first iteration, {written(float(values[-1]))} in the last; {which}.",
        found.seconds[-1],
    )
    if found.by_batch:
        text += " Each point of the curve is a batch of other rows."
    elif len(values) > 2 and values[-1] != values[0]:
        most = np.flatnonzero(np.abs(values - values[0]) >= 0.99 * abs(values[-1] - values[0]))[0]
        text += f" 99 % of the change was reached after {found.seconds[most]:.3g} of {total:.3g} s of iterations."
    names = [
        f"iteration {i + 1}, {second:.3g} s: {name} = {value:.6g}"
        for i, (second, value) in enumerate(zip(found.seconds, values, strict=True))
    ]
    times, unit = (found.seconds, "seconds") if total >= 0.5 else (1000 * found.seconds, "milliseconds")
    return Card(place, title, text, (line(f"{title}. {text}", times, values, unit, names),))


def _gap(found: BoundGap) -> Card:
    title, bound = "Components per row", written(found.free_energy.value)
    of = f"Means of {found.n_rows:,} rows"
    if found.gap.value <= max(2 * found.gap.error, _ROUNDING * abs(found.log_likelihood.value)):
        text = f"A row has the best C′ = {found.n_active} of all components. F = {bound} is the log-likelihood L of all"
        return Card("gap", title, f"{text} except for rounding, so a larger C′ cannot improve it. {of}.")
    text = (
        f"A row has the best C′ = {found.n_active} of all components, and F = {bound} is {found.gap.value:.3g} nats a "
        f"row below the log-likelihood L of all. With C′ = {found.more}, {found.gain.value / found.gap.value:.0%} of "
        f"this difference would disappear at once, and a new fit could gain more. {of}, ± two standard errors."
    )
    left = found.gap.value - found.gain.value
    parts = (
        (f"L − F of C′ = {found.n_active}", found.gap.value, _estimate(found.gap)),
        (f"gain by C′ = {found.more}", found.gain.value, _estimate(found.gain)),
        (f"L − F of C′ = {found.more}", left, f"{left:.3g}"),
    )
    return Card("gap", title, text, (steps(f"Gap to the log-likelihood. {text}", parts),))


def _estimate(found: Estimate) -> str:
    return f"{found.value:.3g} ± {2 * found.error:.1g}"
