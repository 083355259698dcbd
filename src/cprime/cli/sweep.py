"""`cprime sweep`: fit a model for several numbers of clusters, and select the best number by a criterion."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from cprime import selection
from cprime.cli.files import Request, for_fit, hinted
from cprime.cli.fit import FitOptions, estimator_of
from cprime.cli.outputs import MODEL_SUFFIXES, STDOUT, check_output, print_json, save_model

_COLUMNS = {
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
    criterion: str,
    output: Path | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run `cprime sweep`: fit the numbers of clusters `counts` in increasing order, and print their criteria.

    Each fit starts from new initializations and from the fit of the previous number. criterion: name of the one that
    selects the best number    output: path of the model file for the best number, or None
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
        sample_weight=weights,
        criteria=criteria,
        holdout=0.2 if criterion == "held_out" else None,
        n_init=options.n_init or 3,
        random_state=options.seed,
    )
    best = found.best_n_components(criterion)
    if output is not None:
        save_model(found.estimators[list(found.n_components).index(best)], output)
    columns = {name: getattr(found, name) for name in _COLUMNS}
    columns = {name: values for name, values in columns.items() if not np.isnan(values).all()}
    if as_json:
        rows = {name: values.tolist() for name, values in columns.items()}
        print_json(
            {"best": best, "criterion": criterion, **rows, "seconds_total": perf_counter() - start, "output": output}
        )
    elif not quiet:
        _print(columns, best, criterion, output)


def _print(columns: dict[str, np.ndarray], best: int, criterion: str, output: Path | None) -> None:
    table = Table(box=SIMPLE_HEAD)
    for name in columns:
        table.add_column(_COLUMNS[name], justify="right", no_wrap=True)
    for values in zip(*columns.values(), strict=True):
        cells = [f"{value:,}" if isinstance(value, np.integer) else f"{value:.6g}" for value in values]
        table.add_row(*cells, style="bold" if values[0] == best else None)
    console = Console(stderr=str(output) == STDOUT)
    console.print(table, highlight=False, markup=False)
    written = "" if output is None else f"; its model is written to {output}"
    console.print(f"best by {_COLUMNS[criterion]}: C = {best}{written}", highlight=False, markup=False)
