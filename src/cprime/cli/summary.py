"""Summary of a model and its fit, as a dictionary for JSON and as a table for reading."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from cprime import (
    BayesianGaussianMixture,
    CategoricalMixture,
    DPMeans,
    GaussianMixture,
    KMeans,
    LaplaceMixture,
    MixedMixture,
    PoissonMixture,
    StudentTMixture,
    VonMisesFisherMixture,
)
from cprime._utils.values import fitted_centers
from cprime.cli.outputs import STDOUT, print_json
from cprime.estimators.opening import stored_columns_of
from cprime.estimators.quality import advice, certificate_text, objective_bound_text

ESTIMATORS = {  # by the value of --model
    "kmeans": KMeans,
    "gmm": GaussianMixture,
    "student-t": StudentTMixture,
    "bayesian": BayesianGaussianMixture,
    "laplace": LaplaceMixture,
    "von-mises-fisher": VonMisesFisherMixture,
    "poisson": PoissonMixture,
    "categorical": CategoricalMixture,
    "mixed": MixedMixture,
    "dp-means": DPMeans,
}
MODEL_NAMES = {kind.__name__: name for name, kind in ESTIMATORS.items()}

_ROWS = {
    "model": "model",
    "cprime_version": "written by cprime",
    "n_samples": "points N",
    "n_features": "dimensions D",
    "n_components": "components C",
    "covariance_type": "covariances",
    "n_chunks": "chunks",
    "chunk_rows": "rows of a chunk",
    "chunk_bytes": "bytes of a chunk",
    "dtype": "computed as",
    "n_active": "kept per point C′",
    "ended": "fit has ended",
    "n_states": "states",
    "resumes_to": "resumed, written to",
    "start": "start",
    "n_iter": "iterations",
    "converged": "converged",
    "quantization_error": "sum of squared distances J",
    "objective": "objective",
    "objective_bound": "lower bound of J",
    "bound": "lower bound of J of all clusterings",
    "gap": "gap between J and the bound, relative",
    "method": "method",
    "parts": "parts of the rows",
    "variance": "variance σ²",
    "free_energy": "free energy F (nats/point)",
    "log_likelihood": "log-likelihood L (nats/point)",
    "kl_gap": "gap L − F (nats/point)",
    "entropy": "entropy of posteriors (nats/point)",
    "n_components_used": "of these, used",
    "criterion": "joined by",
    "n_clusters": "clusters",
    "n_suggested": "joins suggest",
    "n_new": "new clusters",
    "sizes": "sizes of clusters",
    "n_displaced": "points not with their nearest center",
    "size_cost": "excess of J by bounded sizes",
    "search_quality": "search",
    "final_assignment": "labels",
    "advice": "advice",
    "prepared": "data are",
    "columns": "columns",
    "bytes": "stored bytes",
    "seconds": "seconds",
    "output": "written to",
    "partitions": "by cluster in",
}


def summary(estimator: Any) -> dict[str, Any]:
    """Return figures of a fitted estimator by name: sizes, convergence, J, σ², F …; None for figures that it lacks.

    J is the sum of squared distances to the centers, σ² the variance, F the free energy.
    A mixture has no `inertia_`; its J is that of the last iteration, if known.
    """

    def found(name: str) -> Any:
        return getattr(estimator, name, None)

    family = found("covariance_type_")
    inertia, model = found("inertia_"), MODEL_NAMES.get(type(estimator).__name__, type(estimator).__name__)
    return {
        "model": model,
        "n_features": estimator.n_features_in_,
        "n_components": len(centers(estimator)),
        "covariance_type": None if family in (model.replace("-", "_"), "product") else family,
        "n_active": found("n_active_"),
        "n_iter": found("n_iter_"),
        "converged": found("converged_"),
        "quantization_error": _last_error(found("history_")) if inertia is None else inertia,
        "objective": found("objective_"),
        "objective_bound": objective_bound_text(estimator),
        "variance": found("variance_"),
        "free_energy": found("lower_bound_"),
        "certificate": found("certificate_"),
        "search_quality": certificate_text(getattr(estimator, "certificate_", None)),
        "final_assignment": found("final_assignment_"),
        "advice": advice(estimator),
        "sizes": sizes(found("counts_")),
        "n_displaced": found("n_displaced_"),
        "size_cost": found("size_cost_"),
        "prepared": _prepared(found("preparation_")),
        "columns": stored_columns_of(estimator),
    }


def _last_error(history: Any) -> Any:
    """Return the squared error J of the last iteration; None if there is no history or it lacks J."""
    error = None if history is None else history["quantization_error"][-1]
    return None if error is None or np.isnan(error) else error


def centers(estimator: Any) -> np.ndarray:
    """Return the centers (C, D) of a fitted k-means or mixture; raise ValueError if it has none."""
    found: np.ndarray | None = fitted_centers(estimator)
    if found is None:
        raise ValueError(f"the {type(estimator).__name__} has no centers: it was fitted to dissimilarities")
    return found


def sizes(counts: Any) -> dict[str, Any] | None:
    """Return the least, median and greatest of the cluster sizes `counts` (C,), and the number of empty clusters.

    The keys are least, median, greatest and empty. The result is None if `counts` is None.
    """
    if counts is None:
        return None
    least, median, greatest = (float(value) for value in np.quantile(counts, (0, 0.5, 1)))
    return {"least": least, "median": median, "greatest": greatest, "empty": int(np.count_nonzero(counts == 0))}


def _prepared(preparation: Mapping[str, Any] | None) -> str | None:
    """Return how a model fills and scales rows, as text. preparation: its values by name; None if there is none"""
    if preparation is None:
        return None
    done = {"fill": "missing values filled with means", "scale": "scaled to variance 1"}
    return ", ".join(text for name, text in done.items() if preparation[name] is not None)


def print_summary(figures: dict[str, Any], *, as_json: bool, quiet: bool = False) -> None:
    """Print the figures of a command as a JSON object or, unless `quiet`, as a table in a fixed order.

    The table has no figures that are None. It is printed to stderr if the output of the command is stdout.
    """
    if as_json:
        print_json(figures)
    if as_json or quiet:
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key, label in _ROWS.items():
        if figures.get(key) is not None:
            table.add_row(label, _shown(figures[key]))
    Console(stderr=str(figures.get("output")) == STDOUT).print(table, highlight=False, markup=False)


def _shown(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, float | np.floating):
        return f"{value:.8g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item:,.4g}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)
