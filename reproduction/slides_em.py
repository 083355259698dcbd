"""The lecture slides' k-means and EM: panels on Old Faithful, and tests of their statements from several starts."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cprime._utils.random import Key
from cprime.estimators import GaussianMixture, KMeans, KMeans1D
from cprime.execution import local
from cprime.kernels import as_rows
from cprime.theory import ledger
from reproduction import slides
from reproduction.base import TOO_FEW, Context, Entry, Result, Row
from reproduction.bishop import START, HalfSteps, half_steps, record, standardised
from reproduction.slides import Cycles, Floats, Parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cprime.model import Model

N_CYCLES = 20
_SHOWN = (1, 2, 5)  # cycles after which the slides show EM
_OTHER_CLUSTERS = 3
_LINE_CLUSTERS = 5
_VARIANCES = tuple(10.0**-power for power in range(9))
_TRIALS = 20  # random changes tried on the steps of every cycle
_ROUNDING = 1e-9
_ROUNDED = f"agrees up to {_ROUNDING:.0e}, which is left to rounding; data are standardised"


class Both(NamedTuple):
    """A run of EM by the slides' formulas, and the library's run from the same start.

    models (T + 1): the library's parameters at the start and after each cycle
    bounds (T,): the library's F of each E-step [nats per point]
    """

    formulas: Cycles
    models: list[Model]
    bounds: Floats


def compute(context: Context) -> Result:
    """Compute the panels' run with two clusters, and runs with three from random points, by k-means and by EM."""
    X = standardised()
    rng = np.random.default_rng(context.random_state)
    distinct = np.unique(X, axis=0)
    starts = [START, *(rng.choice(distinct, _OTHER_CLUSTERS, replace=False) for _ in range(context.runs - 1))]
    context.report("k-means")
    hard = [half_steps(X, start, context) for start in starts]
    context.report("k-means on a line")
    line_rows, line = _line(X[:, 1], context)
    context.report("EM")
    soft = [both(X, start, context) for start in starts]
    limit_rows, limit = _hard_limit(X, starts, context)
    rows = [
        *_k_means_steps(X, hard, rng),
        *_k_means_runs(X, starts, hard, context),
        *line_rows,
        *_agreement(X, soft, context),
        *_bounds(X, soft, rng),
        *limit_rows,
    ]
    content = {"line": line, "limit": limit, "em": _record(soft[0])}
    return ENTRY.result(context.runs, rows, record(X, hard[0]) | content)


def both(X: Floats, means: Floats, context: Context) -> Both:
    """Run EM with full covariances and free weights, from given means (K, D), unit covariances and equal weights."""
    K, D = means.shape
    start = Parameters(np.full(K, 1 / K), means, np.tile(np.eye(D), (K, 1, 1)))
    mixture = GaussianMixture(
        K,
        n_active=None,
        search="full",
        weights_init=start.weights,
        means_init=start.means,
        precisions_init=start.covariances,  # the unit matrix is its own inverse
        reg_covar=0.0,
        tol=0.0,
        max_iter=N_CYCLES,
        n_threads=context.n_threads,
    )
    models = [mixture._first_batch(local(X), Key(context.random_state))]
    mixture.set_params(callbacks=lambda _, standing: models.append(standing._parameters()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of cycles is fixed
        mixture.fit(X)
    return Both(slides.expectation_maximisation(X, start, N_CYCLES), models, np.array(mixture.lower_bounds_))


def _below(quantity: str, published: str, value: float, note: str = _ROUNDED) -> Row:
    """Return the row of a quantity that must be at most zero, except for rounding."""
    return Row(quantity, published, value, None, bool(value <= _ROUNDING), note)


def _count(quantity: str, found: int, tried: int, note: str = "") -> Row:
    """Return the row with the number of tried changes that contradict the statement."""
    return Row(quantity, "none", f"{found:,} of {tried:,}", None, bool(found == 0), note)


def _k_means_steps(X: Floats, runs: list[HalfSteps], rng: np.random.Generator) -> list[Row]:
    """Check the statements on every E-step and every M-step of k-means; return a row for each."""
    rises = [np.diff(run.errors.ravel()) / run.errors.ravel()[:-1] for run in runs]
    moves = moves_tried = shifts = shifts_tried = 0
    off, newton = [], []
    for run in runs:
        K = run.centers.shape[1]
        for labels, before, after in zip(run.labels, run.centers, run.centers[1:], strict=False):
            z = slides.one_hot(labels, K)
            squares = slides.squared_distances(X, before)
            chosen = squares[np.arange(len(X)), labels]
            moves += int((squares < chosen[:, np.newaxis] - _ROUNDING).sum())
            moves_tried += len(X) * (K - 1)
            least = slides.cost(X, after, z)
            for scale in 10 ** rng.uniform(-3, 0, _TRIALS):
                shifts += slides.cost(X, after + scale * rng.standard_normal(after.shape), z) < least
            shifts_tried += _TRIALS
            off.append(np.abs(after - slides.center_update(X, z)).max())
            step = slides.gradient(X, before, z) / (2 * z.sum(axis=0)[:, np.newaxis])
            newton.append(np.abs(after - (before - step)).max())
    return [
        *(
            _below(
                f"k-means: largest rise of J in an {half}-step, of J",
                "none",
                max([0.0, *(float(value) for rise in rises for value in rise[first::2])]),
                f"{_ROUNDED}. The slides' data are not given: these are Old Faithful, two clusters from the start of "
                f"Bishop's figure 9.1, and {_OTHER_CLUSTERS} from random points in the other runs",
            )
            for half, first in (("E", 1), ("M", 0))
        ),
        _count("E-step: points that another center is nearer to", moves, moves_tried, "points × other centers"),
        _count("M-step: changes of the centers that lower J", shifts, shifts_tried, "random changes of all centers"),
        _below("M-step: Σ z x / Σ z, largest difference from KMeans", "equal", float(max(off))),
        _below(
            "M-step: Newton's step on J, largest difference from KMeans",
            "equal",
            float(max(newton)),
            f"{_ROUNDED}. The quadratic rate that the slides conclude is not judged: k-means does not go on "
            "converging, it ends",
        ),
    ]


def _k_means_runs(X: Floats, starts: list[Floats], runs: list[HalfSteps], context: Context) -> list[Row]:
    """Check the statements on whole runs of k-means; return a row for each."""
    ended = [bool((run.centers[-1] == run.centers[-2]).all()) for run in runs]
    cycles = [len(run.labels) for run in runs]
    residuals = []
    for start in starts:
        model = KMeans(len(start), init=start, search="full", tol=0.0, n_threads=context.n_threads).fit(X)
        matrix = next(each for each in ledger(model, X).identities if each.equation == "matrix")
        residuals.append(abs(matrix.difference) / matrix.right)
    ends = [float(run.errors[-1, 1]) for run in runs[1:]]
    poor = max(ends) / min(ends) if ends else 1.0
    found = poor > 1 + _ROUNDING
    return [
        Row(
            "k-means: runs that end with centers unchanged",
            "all",
            f"{sum(ended)} of {len(ended)}, after {min(cycles)} to {max(cycles)} cycles",
            None,
            all(ended),
            "the cycle that shows it is counted",
        ),
        _below("k-means: ‖X − UZ‖² against J, largest difference, of J", "equal", max(residuals)),
        Row(
            "k-means: J of the worst start, in J of the best",
            "above 1: poor minima",
            poor,
            None,
            True if found else None,
            f"{_OTHER_CLUSTERS} clusters, from random points" + ("" if found else f"; {TOO_FEW}"),
        ),
    ]


def _line(x: Floats, context: Context) -> tuple[list[Row], dict[str, Any]]:
    """Compare k-means from random points with the exact optimum in one dimension; return rows and data for JSON."""
    column = x[:, np.newaxis]
    program = slides.line_optimum(x, _LINE_CLUSTERS)
    optimum = KMeans1D(_LINE_CLUSTERS, n_threads=context.n_threads).fit(column).inertia_
    found = [
        KMeans(_LINE_CLUSTERS, init="random", search="full", tol=0.0, n_threads=context.n_threads, random_state=seed)
        .fit(column)
        .inertia_
        for seed in range(context.random_state, context.random_state + context.runs)
    ]
    below = sum(value < optimum * (1 - _ROUNDING) for value in found)
    above = sum(value > optimum * (1 + _ROUNDING) for value in found)
    about = f"{_LINE_CLUSTERS} clusters of the times to the next eruption"
    rows = [
        _below(
            "one dimension: KMeans1D against dynamic programming, difference of J, of J",
            "equal",
            abs(optimum - program) / program,
            f"{about}; {_ROUNDED}",
        ),
        _count("one dimension: starts of k-means that end below it", below, len(found), about),
        Row(
            "one dimension: starts that end above it",
            None,
            f"{above} of {len(found)}, by up to {max(found) / optimum - 1:.0%}",
            None,
            None,
            about,
        ),
    ]
    return rows, {"optimum": optimum, "dynamic_program": program, "starts": found}


def _agreement(X: Floats, runs: list[Both], context: Context) -> list[Row]:
    """Compare γ and the parameters of every cycle between the formulas and the library; return a row for each."""
    sums, gammas, weights, means, covariances, totals = ([0.0] for _ in range(6))
    for run in runs:
        for ours, gamma in zip(run.models, run.formulas.responsibilities, strict=False):
            q = ours.responsibilities(as_rows(X))
            sums.append(np.abs(q.sum(axis=1) - 1).max())
            gammas.append(np.abs(q - gamma).max())
        for ours, theirs in zip(run.models, run.formulas.parameters, strict=True):
            assert ours.weights is not None
            totals.append(abs(ours.weights.sum() - 1) if (ours.weights >= 0).all() else np.inf)
            weights.append(np.abs(ours.weights - theirs.weights).max())
            means.append(np.abs(ours.centers - theirs.means).max())
            covariances.append(np.abs(ours.attributes()["covariances_"] - theirs.covariances).max())
    differences = {
        "E-step: γ, largest difference of GaussianMixture from the formula": gammas,
        "M-step: π, largest difference": weights,
        "M-step: μ, largest difference": means,
        "M-step: Σ, largest difference": covariances,
    }
    note = f"{_ROUNDED}; {N_CYCLES} cycles of each run, full covariances, free weights, reg_covar=0"
    return [
        _below("EM: Σ γ over components, largest difference from 1", "equal", float(max(sums)), note),
        _below("EM: Σ π, largest difference from 1", "equal, and π ≥ 0", float(max(totals)), note),
        *(_below(f"EM, {name}", "equal", float(max(values)), note) for name, values in differences.items()),
    ]


def _bounds(X: Floats, runs: list[Both], rng: np.random.Generator) -> list[Row]:
    """Check how the steps of EM change lower bound and log-likelihood [nats per point]; return a row for each
    statement.
    """
    n = len(X)
    e_falls, m_falls, falls, library_falls, gaps, apart = ([0.0] for _ in range(6))
    jensen = [-np.inf]
    raised = tried = 0
    for run in runs:
        halves = run.formulas.bounds / n
        m_falls.append(max(halves[:, 0] - halves[:, 1]))
        e_falls.append(max(halves[:-1, 1] - halves[1:, 0]))
        likelihoods = np.array([slides.log_likelihood(X, at) for at in run.formulas.parameters]) / n
        falls.append(-np.diff(likelihoods).min())
        library_falls.append(-np.diff(run.bounds).min())
        gaps.append(np.abs(likelihoods[:-1] - halves[:, 0]).max())
        apart.append(np.abs(run.bounds - likelihoods[: len(run.bounds)]).max())
        parameters = run.formulas.parameters
        for t, gamma in enumerate(run.formulas.responsibilities):
            for scale in 10 ** rng.uniform(-3, 0, _TRIALS):
                other = (1 - scale) * gamma + scale * rng.dirichlet(np.ones(gamma.shape[1]), n)
                jensen.append(slides.lower_bound(X, other, parameters[t]) / n - likelihoods[t])
                changed = _changed(parameters[t + 1], scale / 2, rng)
                raised += slides.lower_bound(X, gamma, changed) / n > halves[t, 1]
            tried += _TRIALS
    return [
        _below("EM: log-likelihood less its lower bound at q = γ, largest", "equal", float(max(gaps))),
        _below("EM: lower bound at other q less log-likelihood, largest", "≤ 0", float(max(jensen)), f"{tried:,} q"),
        _below("EM: largest fall of the lower bound in an E-step", "none", float(max(e_falls))),
        _below("EM: largest fall of the lower bound in an M-step", "none", float(max(m_falls))),
        _count("M-step: changes of π, μ and Σ that raise the lower bound", raised, tried, "random changes of all"),
        _below("EM: largest fall of the log-likelihood in a cycle", "none", float(max(falls))),
        _below("EM: the same, as GaussianMixture's F", "none", float(max(library_falls))),
        _below("EM: F of GaussianMixture, largest difference from the formula's L", "equal", float(max(apart))),
    ]


def _changed(at: Parameters, scale: float, rng: np.random.Generator) -> Parameters:
    """Return randomly changed weights, means and covariances."""
    K, D = at.means.shape
    weights = at.weights * np.exp(scale * rng.standard_normal(K))
    turn = np.eye(D) + scale * rng.standard_normal((K, D, D)) / 2
    return Parameters(
        weights / weights.sum(),
        at.means + scale * rng.standard_normal((K, D)),
        turn @ at.covariances @ turn.transpose(0, 2, 1),
    )


def _hard_limit(X: Floats, starts: list[Floats], context: Context) -> tuple[list[Row], dict[str, Any]]:
    """Check the limit of hard assignment (one variance that shrinks to 0) and C′ = 1; return rows and data for JSON."""
    differences = np.zeros((len(starts), len(_VARIANCES)))
    moved = points = 0
    centers = []
    for row, start in zip(differences, starts, strict=True):
        K, D = start.shape
        options: dict[str, Any] = {"search": "full", "tol": 0.0, "max_iter": 300, "n_threads": context.n_threads}
        hard = GaussianMixture(
            K, covariance_type="tied_spherical", weights="equal", assignment="hard", means_init=start, **options
        ).fit(X)
        k_means = KMeans(K, init=start, **options).fit(X)
        moved += int((hard.labels_ != k_means.labels_).sum())
        points += len(X)
        centers.append(np.abs(hard.means_ - k_means.cluster_centers_).max())
        for i, variance in enumerate(_VARIANCES):
            at = Parameters(
                np.full(K, 1 / K), k_means.cluster_centers_.astype(np.float64), np.tile(variance * np.eye(D), (K, 1, 1))
            )
            row[i] = np.abs(slides.e_step(X, at) - slides.one_hot(k_means.labels_, K)).max()
    largest = differences.max(axis=0)
    rows = [
        _below(
            f"hard limit: largest |γ − z| at π = 1/K, Σ = σ²I, σ² = {_VARIANCES[-1]:.0e}",
            "0 as σ² → 0",
            float(largest[-1]),
            f"{_ROUNDED}; at the centers of k-means. It is {largest[0]:.2g} at σ² = 1",
        ),
        _count("hard EM: points not in the cluster of k-means", moved, points, "equal weights, one variance for all"),
        _below("hard EM: means, largest difference from k-means", "equal", float(max(centers))),
    ]
    return rows, {"variances": list(_VARIANCES), "largest": largest.tolist()}


def _record(run: Both) -> dict[str, Any]:
    """Return the run of the panels in types that JSON can represent."""
    return {
        "responsibilities": {str(t): run.formulas.responsibilities[t - 1].round(4) for t in _SHOWN},
        "formulas": [at._asdict() for at in run.formulas.parameters],
        "library": [
            {"weights": model.weights, "means": model.centers, "covariances": model.attributes()["covariances_"]}
            for model in run.models
        ],
        "bounds": run.formulas.bounds,
        "library_bounds": run.bounds,
    }


def draw(result: Result, figure: Figure) -> None:
    """Draw two cycles of k-means and J by half-step; below, EM after 0, 1, 2 and 5 cycles and its lower bound."""
    from reproduction.figures import slides as drawing

    drawing.draw(result.data, figure)


ENTRY = Entry(
    "slides-em",
    "k-means and EM of a general mixture on Old Faithful, step by step",
    "Lecture slides on k-means and Gaussian mixtures, ETH Zürich 2020",
    20,
    compute,
    draw,
)
