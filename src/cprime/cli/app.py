"""The commands and their arguments. The work of each lies in a module that is imported when it is called."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cprime import __version__
from cprime.cli.errors import one_line_errors


class Model(StrEnum):
    """What -m names."""

    KMEANS = "kmeans"
    GMM = "gmm"


class Precision(StrEnum):
    """What --dtype names."""

    FLOAT32 = "float32"
    FLOAT64 = "float64"


app = typer.Typer(
    name="cprime",
    help="k-means, Gaussian mixtures and everything between them, at any number of clusters.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

DataPath = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help=(
            "A row per point: .npy, .npz, .csv, .parquet, .feather, .arrow, .zarr, .h5, .fvecs, .bvecs, .fbin; or a "
            "folder of such files. Larger data are read chunk by chunk."
        ),
    ),
]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A file written by `cprime fit`.")]
Key = Annotated[
    str | None,
    typer.Option(help="The array of an .npz, .zarr or .h5 file; not needed if it is X or the only matrix."),
]
Columns = Annotated[
    str | None, typer.Option(metavar="A,B,…", help="Use these columns only (of an array: numbers from 0).")
]
Drop = Annotated[str | None, typer.Option(metavar="A,B,…", help="Leave these columns out.")]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether a .csv file begins with names.", show_default="as it looks"),
]
Dtype = Annotated[
    Precision | None,
    typer.Option(help="Compute in this precision.", show_default="float32 if it holds the data exactly"),
]
ChunkRows = Annotated[
    int | None,
    typer.Option(min=1, help="Rows that are read and computed at a time.", show_default="as fit in 128 MiB"),
]
Threads = Annotated[
    int | None, typer.Option(min=1, help="Threads to use.", show_default="all that the process may use")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no table.")]
Output = Annotated[Path, typer.Option("-o", "--output", help="Where to write the model: a .safetensors file.")]


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"cprime {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end."),
    ] = False,
) -> None:
    """Options of `cprime` itself."""


@app.command()
@one_line_errors
def fit(
    data: DataPath,
    k: Annotated[int, typer.Option("-k", "--n-components", min=1, help="Number of clusters C.")],
    output: Output,
    model: Annotated[Model, typer.Option("-m", "--model", help="k-means, or a Gaussian mixture.")] = Model.KMEANS,
    n_active: Annotated[
        str | None,
        typer.Option(
            metavar="C′|all|auto", help="gmm: components a point keeps; all is exact EM.", show_default="auto"
        ),
    ] = None,
    covariance_type: Annotated[
        str | None,
        typer.Option(
            metavar="full|tied|diag|spherical|tied_spherical", help="gmm: shape of a component.", show_default="full"
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(metavar="free|equal", help="gmm: weights of the components.", show_default="free"),
    ] = None,
    assignment: Annotated[
        str | None,
        typer.Option(metavar="soft|hard|posterior", help="gmm: what kept components are given.", show_default="soft"),
    ] = None,
    search: Annotated[str | None, typer.Option(help="Which components a point looks at.", show_default="auto")] = None,
    init: Annotated[
        str | None,
        typer.Option(
            help="k-means++, random, afk-mc2, two-level, or a file of centers.",
            show_default="auto: two-level for many clusters, else k-means++",
        ),
    ] = None,
    max_iter: Annotated[
        int | None,
        typer.Option(min=1, help="Most iterations of a start.", show_default="kmeans 300, gmm 100"),
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Stop below this change: kmeans relative, of J; gmm absolute, of F.",
            show_default="kmeans 1e-4, gmm 1e-3",
        ),
    ] = None,
    n_init: Annotated[
        int | None, typer.Option(min=1, help="Number of starts; the best is kept.", show_default="1")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the random numbers.")] = 0,
    threads: Threads = None,
    key: Key = None,
    columns: Columns = None,
    drop: Drop = None,
    sample_weight: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A weight for each row: a column, another array of the file, or a file."),
    ] = None,
    header: Header = None,
    dtype: Dtype = None,
    chunk_rows: ChunkRows = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep the state of the fit in this folder, new or empty: `cprime resume` goes on from there.",
        ),
    ] = None,
    bounds: Annotated[
        bool,
        typer.Option("--bounds", help="Compute the exact log-likelihood too: one pass over all components."),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model to DATA and write it to a file."""
    if model is Model.KMEANS:
        for name, value in (
            ("n-active", n_active),
            ("covariance-type", covariance_type),
            ("weights", weights),
            ("assignment", assignment),
        ):
            if value is not None:
                raise typer.BadParameter("needs -m gmm (k-means has none)", param_hint=f"--{name}")
    from cprime.cli.files import Request
    from cprime.cli.fit import FitOptions
    from cprime.cli.fit import fit as run

    request = Request(key, _names(columns), _names(drop) or (), sample_weight, dtype, header, chunk_rows)
    options = FitOptions(
        model,
        k,
        n_active,
        covariance_type,
        weights,
        assignment,
        search,
        init,
        max_iter,
        tol,
        n_init,
        seed,
        threads,
        checkpoint,
        bounds,
    )
    run(data, request, options, output, as_json=as_json, quiet=quiet)


@app.command()
@one_line_errors
def resume(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of `cprime fit --checkpoint DIR`.")],
    output: Output,
    threads: Threads = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a fit that has died or was interrupted: the model is the same as if nothing had happened."""
    from cprime.cli.resume import resume as run

    run(folder, output, threads, as_json=as_json, quiet=quiet)


@app.command()
@one_line_errors
def predict(
    model: ModelPath,
    data: DataPath,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Where to write: a .npy, .csv, .parquet or .feather file.")
    ],
    threads: Threads = None,
    key: Key = None,
    columns: Columns = None,
    drop: Drop = None,
    header: Header = None,
    chunk_rows: ChunkRows = None,
    as_json: Json = False,
) -> None:
    """Write the component of each row of DATA. A table needs the columns that the model was fitted on."""
    from cprime.cli.files import Request
    from cprime.cli.predict import predict as run

    request = Request(key, _names(columns), _names(drop) or (), header=header, chunk_rows=chunk_rows)
    run(model, data, request, output, threads, as_json=as_json)


@app.command()
@one_line_errors
def info(
    path: Annotated[
        Path, typer.Argument(metavar="MODEL|DATA|DIR", help="A file written by `cprime fit`, data, or a checkpoint.")
    ],
    key: Key = None,
    columns: Columns = None,
    drop: Drop = None,
    header: Header = None,
    chunk_rows: ChunkRows = None,
    as_json: Json = False,
) -> None:
    """Say what is in a model file, in data (rows, columns, chunks) or in a checkpoint (how far its fit has come)."""
    from cprime.cli.files import Request
    from cprime.cli.info import info as run

    request = Request(key, _names(columns), _names(drop) or (), header=header, chunk_rows=chunk_rows)
    run(path, request, as_json=as_json)


@app.command()
@one_line_errors
def report(
    model: ModelPath,
    data: DataPath,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where to write the page: an .html file.")] = Path(
        "report.html"
    ),
    compare: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Another model of the same columns, to set beside this one.")
    ] = None,
    image_shape: Annotated[
        str | None, typer.Option(metavar="H,W[,3]", help="Rows are images of this height and width: show them so.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The heading of the page.")] = None,
    max_rows: Annotated[
        int | None,
        typer.Option(min=1, help="Rows to look at, at random.", show_default="as many as take a second or two"),
    ] = None,
    sample_weight: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A weight for each row: a column, another array of the file, or a file."),
    ] = None,
    threads: Threads = None,
    key: Key = None,
    columns: Columns = None,
    drop: Drop = None,
    header: Header = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a page that shows what a model came to on DATA: what to change, a map of the clusters, and more."""
    shape = None if image_shape is None else _integers(image_shape, "--image-shape")
    from cprime.cli.files import Request
    from cprime.cli.report import report as run

    request = Request(key, _names(columns), _names(drop) or (), sample_weight, header=header)
    page = {"image_shape": shape, "title": title, "max_rows": "auto" if max_rows is None else max_rows}
    run(model, data, request, output, page, compare, threads, as_json=as_json, quiet=quiet)


@app.command()
@one_line_errors
def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder to write to; made if it is missing.")] = Path(
        "demo"
    ),
    small: Annotated[bool, typer.Option("--small", help="One small photograph and 64 clusters.")] = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Half a million patches of two photographs in 1,000 clusters, by k-means and by k-means-C′."""
    from cprime.cli.demo import demo as run

    run(output, small=small, threads=threads, as_json=as_json)


@app.command()
@one_line_errors
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME…", help="Tables and figures; --list shows what there is.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    show: Annotated[bool, typer.Option("--list", help="Show the names, and end.")] = False,
    again: Annotated[
        bool, typer.Option("--redraw", help="Make pictures and page anew from the JSON in the folder, and end.")
    ] = False,
    runs: Annotated[
        int | None, typer.Option(min=1, help="Runs to make; of what takes long, fewer.", show_default="as the source")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder to write to; made if it is missing.")] = Path(
        "reproduction"
    ),
    random_state: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of the random numbers.")] = 0,
    threads: Threads = None,
) -> None:
    """Compute tables and figures of the papers anew, beside what was published."""
    from cprime.cli.reproduce import list_entries, redraw
    from cprime.cli.reproduce import reproduce as run
    from cprime.reproduction import ENTRIES

    if show:
        list_entries()
        return
    if again:
        if names or every:
            raise typer.BadParameter("--redraw takes all that the folder holds, and neither names nor --all")
        redraw(output)
        return
    if bool(names) == every:
        raise typer.BadParameter("give the names of tables and figures, or --all for all; --list shows them")
    for name in names or ():
        if name not in ENTRIES:
            raise typer.BadParameter(f"there is no {name!r}; --list shows what there is", param_hint="NAME")
    run(list(names or ENTRIES), output, runs=runs, random_state=random_state, threads=threads)


def _integers(text: str, option: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise typer.BadParameter(f"must be whole numbers such as 28,28, got {text!r}", param_hint=option) from error


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(text.split(","))
