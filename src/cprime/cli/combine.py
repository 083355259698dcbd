"""`cprime combine`: combine model files, fitted to different parts of a data set, into one model file."""

import re
from pathlib import Path
from typing import Any

import click

from cprime.cli import options as opt
from cprime.cli.errors import one_line_errors
from cprime.cli.options import PATH, model_option
from cprime.cli.panels import Command, WholeNumber


@click.command(cls=Command)
@click.argument(
    "models",
    metavar="MODELS",
    type=PATH,
    nargs=-1,
    required=True,
    help="Files written by `cprime fit`: all of k-means, or all of Gaussian mixtures, of the same columns.",
)
@model_option(
    "-n",
    "--n-clusters",
    type=WholeNumber(1),
    show_default="that of the first model",
    help="Number of clusters of the combined model.",
)
@opt.seed
@opt.threads
@opt.output
@opt.as_json
@opt.quiet
@one_line_errors
def combine(
    models: tuple[Path, ...],
    n_clusters: int | None,
    seed: int,
    threads: int | None,
    output: Path,
    as_json: bool,
    quiet: bool,
) -> None:
    """Combine models of shards to one model, without the data."""
    from time import perf_counter

    from cprime.cli.outputs import MODEL_SUFFIXES, check_output, save_model
    from cprime.cli.summary import print_summary, summary

    check_output(output, MODEL_SUFFIXES, models)
    start = perf_counter()
    combined = _combined(models, n_clusters, seed, threads)
    save_model(combined, output)
    seconds = {"combine": perf_counter() - start}
    print_summary({**summary(combined), "seconds": seconds, "output": output}, as_json=as_json, quiet=quiet)


def _combined(paths: tuple[Path, ...], n_clusters: int | None, seed: int, threads: int | None) -> Any:
    """Return the combined model of the model files `paths`.

    Raise ValueError with the path of the file if a model cannot be combined.
    """
    from cprime import combine as combine_models
    from cprime import load

    try:
        return combine_models([load(path) for path in paths], n_clusters, random_state=seed, n_threads=threads)
    except (ValueError, TypeError) as error:
        text = re.sub(r"models\[(\d+)\]", lambda found: str(paths[int(found[1])]), str(error))
        raise ValueError(text) from error
