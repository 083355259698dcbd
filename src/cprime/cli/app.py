"""Definition of all commands and their arguments. Each command imports its implementation only when it is called."""

from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from cprime import __version__
from cprime.cli import options as opt
from cprime.cli.bound import bound
from cprime.cli.combine import combine
from cprime.cli.errors import one_line_errors
from cprime.cli.options import PATH, data_option, model_option, output_file, output_option, search_option
from cprime.cli.panels import Group, NumberOr, WholeNumber, array_shape, cluster_counts, image_shape, size_bound


@click.group(
    cls=Group,
    help="k-means, Gaussian mixtures and everything between them, at any number of clusters.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80, "show_default": True},
)
@click.version_option(
    __version__, prog_name="cprime", message="%(prog)s %(version)s", help="Print the version and exit."
)
def app() -> None:
    pass


@app.command()
@opt.data_argument
@opt.n_components
@opt.mixture
@opt.penalty
@opt.searching
@opt.starting
@opt.n_init
@opt.seed
@opt.threads
@opt.reading
@opt.identifier
@opt.weighting
@opt.exposure
@opt.missing
@opt.scale
@opt.dtype
@opt.output
@output_option(
    "--checkpoint",
    type=PATH,
    metavar="DIR",
    help="Store the state of the fit in this folder, new or empty. `cprime resume DIR` continues an interrupted fit.",
)
@opt.spill
@opt.max_memory
@output_option("--keep-partial", is_flag=True, help="On Ctrl-C or SIGTERM, write the current model.")
@output_option("--bounds", is_flag=True, help="Also compute the exact log-likelihood, in one more pass.")
@opt.as_json
@opt.verbose
@opt.quiet
@one_line_errors
def fit(
    data: tuple[str, ...],
    k: int | None,
    output: Path,
    checkpoint: Path | None,
    bounds: bool,
    keep_partial: bool,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Fit a model to DATA and write it to a file."""
    opt.check_model(given | {"k": k, "checkpoint": checkpoint})
    if isinstance(given["n_active"], int) and k is not None and given["n_active"] > k:
        raise click.BadParameter(
            f"{given['n_active']} is more than the {k} components of -k.", param_hint="'--n-active'"
        )
    from cprime.cli.files import Request
    from cprime.cli.fit import FitOptions
    from cprime.cli.fit import fit as run

    options = FitOptions.from_options(given, k=k or 1, checkpoint=checkpoint)
    flags = {"bounds": bounds, "keep_partial": keep_partial, "as_json": as_json, "quiet": quiet}
    run(data, Request.from_options(given), options, output, **flags)


@app.command()
@opt.data_argument_of(f"{opt.DATA_HELP} Not with --shape.", "[DATA...]", required=False)
@data_option("--shape", type=array_shape, metavar="ROWSxCOLUMNS", help="Shape of an array, instead of DATA.")
@model_option("-k", "--n-components", "k", required=True, type=WholeNumber(1), help="Number of clusters C.")
@opt.mixture
@opt.searching
@opt.starting
@opt.n_init
@opt.seed
@opt.threads
@opt.reading
@opt.identifier
@opt.weighting
@opt.missing
@opt.dtype
@opt.spill
@opt.max_memory
@opt.as_json
@one_line_errors
def plan(data: tuple[str, ...], shape: tuple[int, int] | None, k: int, as_json: bool, **given: Any) -> None:
    """Estimate memory and time of a fit, and what reduces them."""
    opt.check_model(given)
    if given["model"] not in opt.PLANNED:
        expected = f"there are plans for {', '.join(opt.PLANNED)}, got {given['model']}."
        raise click.BadParameter(expected, param_hint="'--model'")
    from cprime.cli.files import Request
    from cprime.cli.fit import FitOptions
    from cprime.cli.fit import plan as run

    run(data, shape, Request.from_options(given), FitOptions.from_options(given, k=k), as_json=as_json)


@app.command()
@click.argument("folder", metavar="DIR", type=PATH, help="Folder given to `cprime fit --checkpoint DIR`.")
@opt.threads
@opt.output_of_checkpoint
@opt.spill
@opt.as_json
@opt.verbose
@opt.quiet
@one_line_errors
def resume(
    folder: Path, output: Path | None, threads: int | None, spill: Path | None, as_json: bool, quiet: bool
) -> None:
    """Continue an interrupted fit.

    The model is the same as without the interruption.
    """
    from cprime.cli.fit import resume as run

    run(folder, output, threads, spill, as_json=as_json, quiet=quiet)


@app.command()
@opt.model_argument
@opt.data_argument
@model_option(
    "-k", "--n-components", "k", type=WholeNumber(1), show_default="that of MODEL", help="New number of clusters."
)
@model_option("--batch", is_flag=True, help="DATA are only new rows, which change the clusters by one step.")
@opt.reading
@opt.weighting
@opt.missing_of_model
@opt.threads
@opt.output
@opt.as_json
@opt.verbose
@opt.quiet
@one_line_errors
def update(
    model: Path,
    data: tuple[str, ...],
    k: int | None,
    batch: bool,
    output: Path,
    threads: int | None,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Continue the fit of MODEL on changed DATA.

    Clusters keep their numbers.
    """
    if batch and k is not None:
        raise click.UsageError("-k is for a fit to all rows: it cannot be given with --batch.")
    from cprime.cli.files import Request
    from cprime.cli.fit import update as run

    request = Request.from_options(given)
    run(model, data, request, k, output, threads, batch=batch, as_json=as_json, quiet=quiet)


@app.command()
@opt.model_argument
@opt.data_argument
@opt.reading
@opt.identifier
@opt.exposure
@opt.missing_of_model
@opt.threads
@opt.by_cluster
@output_option(
    "--proba",
    is_flag=True,
    help="mixtures: also write probabilities; if C′ < C, the C′ active components of each row and their probabilities.",
)
@output_option(
    "--distance", is_flag=True, help="Also write the distance to the center; mixtures: the Mahalanobis distance."
)
@output_option("--score", is_flag=True, help="mixtures: also write the log-likelihood of each row.")
@output_option(
    "--nearest", type=WholeNumber(1), help="kmeans: also write the N nearest clusters and the distances to them."
)
@output_option("--size-max", type=size_bound, metavar="N|1.2x", help="kmeans: most rows of a cluster.")
@output_option("--size-min", type=size_bound, metavar="N|0.5x", help="kmeans: fewest rows of a cluster.")
@opt.as_json
@opt.quiet
@one_line_errors
def predict(
    model: Path,
    data: tuple[str, ...],
    output: str | None,
    folder: Path | None,
    threads: int | None,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Assign each row of DATA to a component of MODEL.

    A table must have the columns to which the model was fitted.
    """
    if output is None and folder is None:
        raise click.UsageError("Missing option '-o' / '--output', or '--partition-by-cluster'.")
    from cprime.cli.files import Request
    from cprime.cli.predict import PredictOptions
    from cprime.cli.predict import predict as run

    request, wanted = Request.from_options(given), PredictOptions.from_options(given, folder)
    run(model, data, request, wanted, output, threads, as_json=as_json, quiet=quiet)


@app.command()
@opt.model_argument
@opt.data_argument_of("Rows to assign to clusters; required for mixtures.", "[DATA...]", required=False)
@model_option(
    "-n",
    "--n-clusters",
    type=WholeNumber(1),
    show_default="chosen from the merge tree",
    help="Number of clusters after merging.",
)
@model_option(
    "--criterion",
    type=click.Choice(["auto", "entropy", "ward"]),
    default="auto",
    help="Merge the components that overlap most (entropy, mixtures) or increase J least (ward, kmeans).",
)
@model_option(
    "--n-active",
    metavar="C′|auto",
    type=NumberOr(WholeNumber(1), "auto"),
    default="auto",
    help="entropy: components considered per row; auto is C′ of the model, but 5 to 16.",
)
@opt.reading
@opt.identifier
@opt.weighting
@opt.missing_of_model
@opt.threads
@opt.rows_output
@output_option("--components", is_flag=True, help="Write the cluster of each component even if DATA is given.")
@opt.as_json
@opt.quiet
@one_line_errors
def merge(
    model: Path, data: tuple[str, ...], output: str, threads: int | None, as_json: bool, quiet: bool, **given: Any
) -> None:
    """Merge the components of MODEL into clusters.

    Writes the cluster of each row of DATA, or of each component without DATA.
    """
    from cprime.cli.files import Request
    from cprime.cli.merge import MergeOptions, merge_model

    asked = MergeOptions(given["n_clusters"], given["criterion"], given["n_active"], given["components"])
    merge_model(model, data, Request.from_options(given), asked, output, threads, as_json=as_json, quiet=quiet)


app.add_command(combine)
app.add_command(bound)


@app.command()
@opt.data_argument_of("Model file, data, or checkpoint folder.", "MODEL|DIR|DATA...", name="paths")
@opt.reading
@opt.as_json
@one_line_errors
def info(paths: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Describe a model, data, or a checkpoint."""
    from cprime.cli.files import Request
    from cprime.cli.info import info as run

    run(paths, Request.from_options(given), as_json=as_json)


@app.command()
@opt.model_argument
@opt.data_argument
@opt.reading
@opt.weighting
@opt.missing_of_model
@opt.threads
@output_file("Page to write, .html.", default=Path("report.html"))
@model_option("--compare", type=PATH, metavar="MODEL", help="Another model of the same columns, for comparison.")
@data_option("--image-shape", type=image_shape, metavar="H,W[,3]", help="Show rows as images of this height and width.")
@data_option(
    "--profile",
    type=PATH,
    metavar="FILE",
    help="Describe the clusters by all columns of this table, .csv, .parquet or .feather, with the same rows as DATA.",
)
@output_option("--title", metavar="TEXT", help="Heading of the page.")
@data_option(
    "--max-rows",
    type=WholeNumber(1),
    show_default="as many as take a few seconds",
    help="Number of random rows to examine.",
)
@opt.as_json
@opt.quiet
@one_line_errors
def report(
    model: Path,
    data: tuple[str, ...],
    output: Path,
    compare: Path | None,
    threads: int | None,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Write a page that shows the results of MODEL on DATA."""
    from cprime.cli.files import Request
    from cprime.cli.report import report as run

    page = {"image_shape": given["image_shape"], "title": given["title"], "max_rows": given["max_rows"] or "auto"}
    page["profile"] = given["profile"]
    run(model, data, Request.from_options(given), output, page, compare, threads, as_json=as_json, quiet=quiet)


@app.command()
@opt.data_argument
@model_option(
    "-k",
    "--n-components",
    "counts",
    required=True,
    type=cluster_counts,
    metavar="LIST",
    help="Numbers of clusters: a list 10,20,50, a range 2:50, or with a step 2:50:4.",
)
@opt.several_covariances
@opt.mixture
@opt.searching
@search_option(
    "--n-init", type=WholeNumber(1), show_default="3, or 12 for several covariances", help="Starts of each number."
)
@opt.seed
@opt.threads
@opt.reading
@opt.weighting
@opt.missing
@opt.scale
@opt.dtype
@model_option(
    "--criterion",
    type=click.Choice(["bic", "icl", "aic", "free_energy_bic", "held_out"]),
    default="bic",
    help="Criterion for the best number; held_out is the likelihood of a fifth of the rows, which are not fitted.",
)
@output_file("Write the best model to this .safetensors file.")
@opt.as_json
@opt.verbose
@opt.quiet
@one_line_errors
def sweep(
    data: tuple[str, ...],
    counts: tuple[int, ...],
    output: Path | None,
    criterion: str,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Fit DATA with several numbers of clusters; report the best."""
    opt.check_model(given)
    if given["model"] == "dp-means":
        raise click.BadParameter("dp-means finds the number of clusters: use cprime fit.", param_hint="'--model'")
    from cprime.cli.files import Request
    from cprime.cli.fit import FitOptions
    from cprime.cli.sweep import sweep as run

    request = Request.from_options(given)
    families = given["covariance_type"]
    if families == "all" or isinstance(families, tuple):
        given["covariance_type"] = None
    else:
        families = None
    fits = FitOptions.from_options(given, k=counts[-1])
    run(data, request, fits, counts, families, criterion, output, as_json=as_json, quiet=quiet)


@app.command()
@output_file("Folder to write to; it is created if it does not exist.", metavar="DIR", default=Path("demo"))
@data_option("--small", is_flag=True, help="Use one small photograph and 64 clusters.")
@opt.threads
@opt.as_json
@one_line_errors
def demo(output: Path, small: bool, threads: int | None, as_json: bool) -> None:
    """Cluster the half million patches of two photographs."""
    from cprime.cli.demo import demo as run

    run(output, small=small, threads=threads, as_json=as_json)


@app.command(hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("names", metavar="NAME…", nargs=-1, help="Not used.")
@one_line_errors
def reproduce(names: tuple[str, ...]) -> None:
    """Report where the tables and figures of the papers are computed."""
    raise ValueError("reproduce has moved: in a copy of the source code, call `python -m reproduction list`")


@app.command()
@click.argument(
    "shell",
    metavar="bash|zsh|fish",
    type=click.Choice(("bash", "zsh", "fish")),
    help='Shell. In ~/.bashrc: eval "$(cprime completion bash)"',
)
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script with which a shell completes commands."""
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(app, {}, "cprime", "_CPRIME_COMPLETE").source())
