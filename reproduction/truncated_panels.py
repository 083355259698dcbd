"""Content of the panels of Lücke & Forster's figures, as dictionaries that JSON can represent.

A panel by iteration has "iterations", and curves with mean, standard error and the best run.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.base import Context, standard_error
from reproduction.truncated_runs import (
    BIRCH_ACTIVE,
    KDD_ACTIVE,
    Runs,
    birch_data,
    birch_runs,
    kdd_runs,
    log_likelihood,
    missed,
)

_SHOWN = 3
_AGREE = 1e-5


def k_means(kind: str, context: Context) -> dict[str, Any]:
    """Return L and F of k-means: the mean, and one run for each of the smallest numbers of missed clusters.

    "best" is the run of largest F, "gap" has the final L − F by the number of missed clusters, "truth" is L of the
    generating parameters.
    """
    known, runs = birch_data(kind, context.random_state), birch_runs(kind, 1, context)
    counts = np.array([missed(found, known.centers) for found in runs.centers])
    gap = runs.gap()
    kinds, first = np.unique(counts, return_index=True)

    def example(run: int) -> dict[str, Any]:
        curves = {measure: runs.curves[measure][run].tolist() for measure in ("log_likelihood", "free_energy")}
        return {"run": int(run), "missed": int(counts[run])} | curves

    return {
        "iterations": list(runs.iterations),
        "examples": [example(run) for run in first[:_SHOWN]],
        "best": example(best_run(runs, "free_energy")),
        "mean": {measure: runs.curves[measure].mean(axis=0).tolist() for measure in ("log_likelihood", "free_energy")},
        "truth": log_likelihood(known.data, known.centers, 1.0, context),
        "missed": counts.tolist(),
        "gap": {str(count): mean_and_error(gap[counts == count]) for count in kinds},
        "mean_gap": mean_and_error(gap),
    }


def mean_and_error(values: NDArray[np.float64]) -> dict[str, Any]:
    """Return the number of independent runs, their mean and its standard error."""
    return {"runs": len(values), "mean": float(values.mean()), "standard_error": standard_error(values.tolist())}


def best_run(runs: Runs, measure: str) -> int:
    """Return the index of the run with the best final value; for purity and NMI, that with their largest sum."""
    if measure in ("purity", "nmi"):
        values = runs.final("purity") + runs.final("nmi")
    else:
        values = runs.final(measure) * (-1 if measure == "quantization_error" else 1)
    return int(np.isclose(values, values.max(), rtol=_AGREE, atol=0).argmax())


def by_active(kind: str, measure: str, context: Context) -> dict[str, Any]:
    """Return one measure on BIRCH data for several C′."""
    runs = {n_active: birch_runs(kind, n_active, context) for n_active in BIRCH_ACTIVE}
    return {
        "iterations": list(runs[1].iterations),
        "curves": {str(n): each.summary(measure, best_run(each, measure)) for n, each in runs.items()},
    }


def kdd(measures: tuple[str, ...], context: Context) -> dict[str, Any]:
    """Return measures on KDD for several C′, and the final L − F.  Raises `Missing` if the data do not exist."""
    runs = {}
    for n_active in KDD_ACTIVE:
        context.report(f"KDD, C′ = {n_active}")
        runs[n_active] = kdd_runs(n_active, context)
    return {
        "iterations": list(runs[1].iterations),
        "runs": len(runs[1].centers),
        "curves": {
            measure: {str(n): each.summary(measure, best_run(each, measure)) for n, each in runs.items()}
            for measure in measures
        },
        "gap": {str(n): mean_and_error(each.gap()) for n, each in runs.items()},
    }


def found_centers(kind: str, n_active: int, context: Context) -> dict[str, Any]:
    """Return the centers of the run with the largest L, and the true ones."""
    known, runs = birch_data(kind, context.random_state), birch_runs(kind, n_active, context)
    best = best_run(runs, "log_likelihood")
    return {
        "n_active": n_active,
        "truth": known.centers.tolist(),
        "found": runs.centers[best].tolist(),
        "log_likelihood": float(runs.final("log_likelihood")[best]),
    }
