"""Options shared by several commands, and their values."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from cprime.cli.panels import Amount, Argument, Bytes, ColumnNames, CountOr, Option, SizeBound, StartName, WholeNumber

# Copies of values that the estimators accept, so that a help page need not import the estimators.
MODELS = ("kmeans", "gmm", "student-t")
MODELS_OF = {  # For each option that only some models have: these models.
    **dict.fromkeys(("n_active", "covariance_type", "weights", "assignment"), ("gmm", "student-t")),
    **dict.fromkeys(("metric", "size_max", "size_min"), ("kmeans",)),
    "n_factors": ("gmm",),
    "dof": ("student-t",),
}
SEARCHES = ("auto", "full", "bounded", "graph", "exact", "estimated")
STARTS = {
    "kmeans": ("auto", "k-means++", "k-means||", "random", "afk-mc2", "two-level", "jumps"),
    **dict.fromkeys(MODELS[1:], ("auto", "kmeans", "k-means++", "random", "random_from_data", "afk-mc2", "two-level")),
}
COVARIANCES = ("full", "tied", "diag", "spherical", "tied_spherical", "factors", "ppca")
PATH = click.Path(path_type=Path)
DATA_HELP = (
    "One row per point: a .npy, .npz, .csv, .tsv, .jsonl, .parquet, .feather, .arrow, .zarr, .lance, .h5, .fvecs, "
    ".bvecs or .fbin file, also compressed (.gz, .zst); a folder of such files; or - for standard input. Large data "
    "are read chunk by chunk."
)

Decorator = Callable[[Any], Any]


def option(*names: str, panel: str, **kwargs: Any) -> Decorator:
    """Return a decorator that adds an option to a command, in a panel (titled group) of the help.

    The metavar, which stands for the value in the help, lists the choices, or is N for other types.
    """
    kind = kwargs.get("type")
    if kwargs.get("default") is not None:
        kwargs.setdefault("otherwise", str(kwargs["default"]))
    if "metavar" not in kwargs and kind is not None:
        kwargs["metavar"] = "|".join(kind.choices) if isinstance(kind, click.Choice) else "N"
    return click.option(*names, cls=Option, panel=panel, **kwargs)


def argument(name: str, **kwargs: Any) -> Decorator:
    return click.argument(name, cls=Argument, **kwargs)


def together(*decorators: Decorator) -> Decorator:
    """Combine several options into one decorator, in the order in which the help shows them."""

    def decorate(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


data_argument = argument("data", metavar="DATA", type=str, explained=DATA_HELP)
model_argument = argument("model", metavar="MODEL", type=PATH, explained="A file written by `cprime fit`.")


def _only_one(context: click.Context, option: click.Parameter, names: tuple[str, ...]) -> str | None:
    if len(names) > 1:
        raise click.BadParameter(f"needs one column, got {len(names)}: {', '.join(names)}.")
    return names[0] if names else None


key = option(
    "--key", panel="Data", metavar="NAME", help="Array of an .npz, .zarr or .h5 file; default X or the only matrix."
)
reading = together(
    key,
    option(
        "--column",
        "column",
        panel="Data",
        metavar="NAME",
        multiple=True,
        help="Use this column. Can be repeated; the name may contain commas.",
    ),
    option(
        "--columns",
        panel="Data",
        metavar="A,B,…",
        type=ColumnNames(),
        multiple=True,
        help="Use these columns; those of an array are numbered from 0.",
    ),
    option("--drop", panel="Data", metavar="A,B,…", type=ColumnNames(), multiple=True, help="Omit these columns."),
    option("--numeric", panel="Data", is_flag=True, help="Use the numeric columns only, and list the others."),
    option(
        "--header/--no-header",
        panel="Data",
        default=None,
        otherwise="detected",
        help="Whether the first line of a .csv or .tsv file contains column names.",
    ),
    option(
        "--separator",
        panel="Data",
        metavar="CHAR",
        default=None,
        otherwise="detected",
        help="Character that separates the values of a line.",
    ),
    option(
        "--chunk-rows",
        panel="Data",
        type=WholeNumber(1),
        otherwise="all of a file of at most 512 MiB, else as many as fit in 128 MiB",
        help="Number of rows that are read and processed together.",
    ),
)
identifier = option(
    "--id",
    "identifier",
    panel="Data",
    metavar="NAME",
    multiple=True,
    callback=_only_one,
    help="Column of row identifiers: not used as data, copied to the output.",
)
weighting = option(
    "--sample-weight",
    panel="Data",
    metavar="NAME",
    help="Weights of the rows: a column, another array of the file, or a file.",
)
missing = option(
    "--missing",
    panel="Data",
    type=click.Choice(["error", "drop", "mean", "marginal"]),
    default="error",
    help="Treatment of missing values: error; drop leaves out such rows; mean inserts the column means, also in "
    "`predict`; marginal fits the observed values.",
)
missing_of_model = option(
    "--missing",
    panel="Data",
    type=click.Choice(["error", "drop"]),
    default="error",
    help="Treatment of missing values: error, or drop such rows. A model fitted with --missing mean inserts its means.",
)
scale = option(
    "--scale",
    panel="Data",
    is_flag=True,
    help="Scale every column to mean 0 and variance 1. The scaling is stored in the model, and `predict` applies it.",
)
dtype = option(
    "--dtype",
    panel="Data",
    type=click.Choice(["float32", "float64"]),
    otherwise="float32 if it represents the data exactly",
    help="Floating-point type of the computation.",
)

mixture = together(
    option(
        "-m",
        "--model",
        panel="Model",
        type=click.Choice(MODELS),
        default="kmeans",
        help="Model: k-means, a Gaussian mixture (gmm), or a mixture of t distributions.",
    ),
    option(
        "--metric",
        panel="Model",
        type=click.Choice(["euclidean", "cosine"]),
        otherwise="euclidean",
        help="kmeans: distance.",
    ),
    option("--size-max", panel="Model", type=SizeBound(), metavar="N|1.2x", help="kmeans: most points of a cluster."),
    option("--size-min", panel="Model", type=SizeBound(), metavar="N|0.5x", help="kmeans: fewest points of a cluster."),
    option(
        "--n-active",
        panel="Model",
        metavar="C′|all|auto",
        type=CountOr(1, "all", "auto"),
        otherwise="auto",
        help="mixtures: number of active components per point, C′; all is exact EM.",
    ),
    option(
        "--covariance-type",
        panel="Model",
        type=click.Choice(COVARIANCES),
        otherwise="full",
        help="mixtures: form of the covariance matrices.",
    ),
    option(
        "--n-factors",
        panel="Model",
        metavar="H|auto",
        type=CountOr(0, "auto"),
        otherwise="5",
        help="gmm: number of factors per component, for factors and ppca.",
    ),
    option(
        "--dof",
        panel="Model",
        metavar="NUMBER|estimate",
        type=Amount("estimate"),
        otherwise="estimate",
        help="student-t: degrees of freedom of the components.",
    ),
    option(
        "--weights",
        panel="Model",
        type=click.Choice(["free", "equal"]),
        otherwise="free",
        help="mixtures: whether mixing weights are estimated (free) or 1/C (equal).",
    ),
    option(
        "--assignment",
        panel="Model",
        type=click.Choice(["soft", "hard", "sampled"]),
        otherwise="soft",
        help="mixtures: responsibilities of the active components: soft as in EM, hard, or drawn from the posterior.",
    ),
)
searching = together(
    option(
        "--search",
        panel="Search",
        type=click.Choice(SEARCHES),
        otherwise="auto",
        help="Candidates for each point: all components (full, bounded) or neighbors of its best ones.",
    ),
    option(
        "--n-neighbors",
        panel="Search",
        metavar="G|auto",
        type=CountOr(2, "auto"),
        otherwise="auto",
        help="Length of the neighbor list of each component.",
    ),
    option(
        "--final-assignment",
        panel="Search",
        type=click.Choice(["auto", "exact", "found"]),
        otherwise="auto",
        help="Labels after a partial search: the best of all components (exact) or the best found.",
    ),
    option(
        "--max-iter",
        panel="Search",
        type=WholeNumber(1),
        otherwise="kmeans 300, mixtures 100",
        help="Maximum number of iterations of one start.",
    ),
    option(
        "--tol",
        panel="Search",
        type=Amount(),
        otherwise="kmeans 1e-4, mixtures 1e-3",
        help="Stop if the change is at most this: kmeans relative, of J; mixtures absolute, of F.",
    ),
)
starting = option(
    "--init",
    panel="Search",
    metavar="NAME|FILE",
    type=StartName(tuple(dict.fromkeys((*STARTS["kmeans"], *STARTS["gmm"])))),
    otherwise="auto",
    help="Initialization: k-means++, random, afk-mc2, two-level; kmeans also k-means|| and jumps, mixtures also "
    "kmeans; or a file with centers.",
)
n_init = option(
    "--n-init",
    panel="Search",
    type=WholeNumber(1),
    otherwise="1",
    help="Number of starts; the best result is returned.",
)
seed = option(
    "--seed",
    panel="Search",
    type=WholeNumber(0, 2**32 - 1),
    default=0,
    help="Seed of the random numbers.",
)
threads = option(
    "--threads",
    panel="Search",
    type=WholeNumber(1),
    otherwise="all processors of the process",
    help="Number of threads.",
)

output = option(
    "-o",
    "--output",
    panel="Output",
    required=True,
    type=PATH,
    metavar="FILE",
    help="Model file to write, .safetensors.",
)
rows_output = option(
    "-o",
    "--output",
    panel="Output",
    required=True,
    type=str,
    metavar="FILE",
    help="File to write: .npy, .csv, .tsv, .parquet or .feather, or - for CSV on standard output.",
)
by_cluster = together(
    option(
        "-o",
        "--output",
        panel="Output",
        type=str,
        metavar="FILE",
        help="File to write: .npy, .csv, .tsv, .parquet or .feather, or - for CSV on standard output.",
    ),
    option(
        "--partition-by-cluster",
        "folder",
        panel="Output",
        type=PATH,
        metavar="DIR",
        help="Write one Parquet file per cluster, such as cluster=17/part-0.parquet, in DIR, which must be new or "
        "empty. Columns: the row's --id or number, and its distance.",
    ),
    option("--with-data", panel="Output", is_flag=True, help="Also write the data columns there."),
)
output_of_checkpoint = option(
    "-o",
    "--output",
    panel="Output",
    type=PATH,
    metavar="FILE",
    otherwise="the file given to `cprime fit`",
    help="Model file to write, .safetensors.",
)
spill = option(
    "--spill",
    panel="Output",
    type=PATH,
    metavar="DIR",
    help="Store active sets between iterations in files of this folder instead of memory.",
)
max_memory = option(
    "--max-memory",
    panel="Output",
    type=Bytes(),
    metavar="BYTES",
    help="Limit of memory, such as 8GB. Chunks become smaller if necessary; if that does not suffice, the error says "
    "what would help.",
)
as_json = option("--json", "as_json", panel="Output", is_flag=True, help="Print one JSON object instead of a table.")
quiet = option("-q", "--quiet", panel="Output", is_flag=True, help="Print no progress bar and no table.")


def check_model(given: dict[str, Any]) -> None:
    """Raise click.BadParameter for options that the chosen model does not have."""
    for name, models in MODELS_OF.items():
        if given[name] is not None and given["model"] not in models:
            raise click.BadParameter(f"needs -m {' or '.join(models)}.", param_hint=f"'--{name.replace('_', '-')}'")
    if given["missing"] == "marginal" and given["model"] == "student-t":
        raise click.BadParameter("'marginal' needs -m kmeans or gmm.", param_hint="'--missing'")
    init = given.get("init")
    starts = STARTS[given["model"]]
    if init is not None and init not in starts and not Path(init).suffix:
        raise click.BadParameter(
            f"{init!r} is no start of -m {given['model']}: {', '.join(starts)}.", param_hint="'--init'"
        )
