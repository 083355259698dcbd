"""`cprime sweep`: fit a model for several numbers of clusters, and select the best number by a criterion."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from cprime import selection
from cprime.cli.files import Request, for_fit, hinted
from cprime.cli.fit import FitOptions, estimator_of
from cprime.cli.outputs import MODEL_SUFFIXES, STDOUT, check_output, print_json, save_model

_COLUMNS = {
    "covariance_type": "covariances",
    "n_components": "C",
    "inertia": "J",
    "free_energy": "F",
    "bic": "BIC",
    "icl": "ICL",
    "aic": "AIC",
    "free_energy_bic": "BIC with F",
    "held_out": "held out",
    "seconds": "s",
}


def sweep(
    data: Sequence[str],
    request: Request,
    options: FitOptions,
    counts: tuple[int, ...],
    families: str | tuple[str, ...] | None,
    criterion: str,
    output: Path | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run `cprime sweep`: fit the numbers of clusters `counts` in increasing order, and print their criteria.

    Each fit starts from new initializations and from the fit of the previous number. families: covariance types to
    compare, "all", or None for that of the model    criterion: name of the one that selects the best fit
    output: path of the model file for the best fit, or None
    """
    if output is not None:
        check_output(output, MODEL_SUFFIXES, tuple(map(Path, data)))
    estimator = estimator_of(options)
    start = perf_counter()
    with hinted():
        X, weights = for_fit(data, request, options)
    criteria = ("free_energy_bic",) if criterion in ("free_energy_bic", "held_out") else (criterion, "free_energy_bic")
    found = selection.sweep(
        estimator,
        X,
        counts,
        covariance_type=families,
        sample_weight=weights,
        criteria=criteria,
        holdout=0.2 if criterion == "held_out" else None,
        n_init=options.n_init,
        random_state=options.seed,
    )
    best = found.best_n_components(criterion)
    if output is not None:
        save_model(found.best(criterion), output)
    columns = {name: getattr(found, name) for name in _COLUMNS if name != "covariance_type"}
    columns = {name: values for name, values in columns.items() if not np.isnan(values).all()}
    family = None
    if found.covariance_type is not None:
        family, columns = found.best_covariance_type(criterion), {"covariance_type": found.covariance_type, **columns}
    if as_json:
        rows = {name: values.tolist() for name, values in columns.items()}
        print_json(
            {
                "best": best,
                **({} if family is None else {"best_covariance_type": family}),
                "criterion": criterion,
                **rows,
                "seconds_total": perf_counter() - start,
                "output": output,
            }
        )
    elif not quiet:
        _print(columns, best, family, criterion, output)


def _print(columns: dict[str, np.ndarray], best: int, family: str | None, criterion: str, output: Path | None) -> None:
    table = Table(box=SIMPLE_HEAD)
    for name in columns:
        table.add_column(_COLUMNS[name], justify="right", no_wrap=True)
    which = [best] if family is None else [family, best]
    for values in zip(*columns.values(), strict=True):
        table.add_row(*map(_cell, values), style="bold" if list(values[: len(which)]) == which else None)
    console = Console(stderr=str(output) == STDOUT)
    console.print(table, highlight=False, markup=False)
    written = "" if output is None else f"; its model is written to {output}"
    named = f"{f'{family}, ' if family else ''}C = {best}"
    console.print(f"best by {_COLUMNS[criterion]}: {named}{written}", highlight=False, markup=False)


def _cell(value: Any) -> str:
    return str(value) if isinstance(value, str) else f"{value:,}" if isinstance(value, np.integer) else f"{value:.6g}"
