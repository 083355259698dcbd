"""`cprime bound`: how much better than a model's clustering any other one can be, by a lower bound of J."""

from pathlib import Path
from typing import Any

import click

from cprime.cli import options as opt
from cprime.cli.errors import one_line_errors
from cprime.cli.options import output_file, search_option
from cprime.cli.panels import Command, Number, memory_size


@click.command(cls=Command)
@opt.model_argument
@opt.data_argument_of("The training data; all rows are read into memory.")
@search_option(
    "--time-limit",
    type=Number(0),
    default=60.0,
    metavar="SECONDS",
    help="Seconds after which the best bound so far is the result.",
)
@search_option("--tol", type=Number(0), default=1e-4, help="Gap between J and the bound at which the computation ends.")
@search_option(
    "--max-memory",
    type=memory_size,
    metavar="BYTES",
    help="Memory for matrices, such as 1GB. With less memory, the data are divided into more parts.",
)
@opt.seed
@opt.threads
@opt.reading
@opt.weighting
@opt.missing_of_model
@output_file("Write the model with its bound to this .safetensors file; `cprime report` shows it.")
@opt.as_json
@opt.quiet
@one_line_errors
def bound(
    model: Path,
    data: tuple[str, ...],
    time_limit: float,
    tol: float,
    max_memory: str | None,
    seed: int,
    threads: int | None,
    output: Path | None,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Compute a lower bound of J of all clusterings of DATA.

    It says how much better than MODEL, a k-means model, any other clustering can be.
    """
    from time import perf_counter

    from cprime.cli.files import Request, hinted, load_model, opened
    from cprime.cli.outputs import MODEL_SUFFIXES, check_output, save_model
    from cprime.cli.summary import MODEL_NAMES, print_summary
    from cprime.theory import lower_bound

    if output is not None:
        check_output(output, MODEL_SUFFIXES, tuple(map(Path, data)))
    start = perf_counter()
    estimator = load_model(model)
    kind = MODEL_NAMES.get(type(estimator).__name__, type(estimator).__name__)
    if kind != "kmeans":
        raise ValueError(f"{model} is a model of kind {kind}; lower bounds are for k-means")
    source = opened(data, Request.from_options(given), estimator).source
    with hinted(fills=False):
        found = lower_bound(
            source,
            estimator,
            time_limit=time_limit,
            tol=tol,
            max_memory=max_memory,
            n_threads=threads,
            random_state=seed,
        )
    if output is not None:
        save_model(estimator, output)
    figures = {
        "n_samples": source.n_rows,
        "n_components": len(estimator.cluster_centers_),
        "quantization_error": found.inertia,
        "bound": found.value,
        "gap": found.gap,
        "method": found.method,
        "parts": found.parts,
        "seconds": {"bound": perf_counter() - start},
        "output": output,
    }
    print_summary(figures, as_json=as_json, quiet=quiet)
