"""Options shared by several commands, and their values."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from cprime.cli.panels import Amount, Argument, Bytes, ColumnNames, CountOr, Option, StartName, WholeNumber

# Copies of values that the estimators accept, so that a help page need not import the estimators.
MODELS = ("kmeans", "gmm", "student-t")
MODELS_OF = {  # for each option that not all models have: the models that have it
    **dict.fromkeys(("n_active", "covariance_type", "weights", "assignment"), ("gmm", "student-t")),
    "metric": ("kmeans",),
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
    "A row per point: .npy, .npz, .csv, .tsv, .jsonl, .parquet, .feather, .arrow, .zarr, .lance, .h5, .fvecs, .bvecs, "
    ".fbin, these with .gz or .zst behind; a folder of such files; or - for standard input. Larger data are read chunk "
    "by chunk."
)

Decorator = Callable[[Any], Any]


def option(*names: str, panel: str, **kwargs: Any) -> Decorator:
    """Return a decorator for an option in a panel of the help; the default metavar follows from its type."""
    kind = kwargs.get("type")
    if kwargs.get("default") is not None:
        kwargs.setdefault("otherwise", str(kwargs["default"]))
    if "metavar" not in kwargs and kind is not None:
        kwargs["metavar"] = "|".join(kind.choices) if isinstance(kind, click.Choice) else "N"
    return click.option(*names, cls=Option, panel=panel, **kwargs)


def argument(name: str, **kwargs: Any) -> Decorator:
    return click.argument(name, cls=Argument, **kwargs)


def choice(*values: str) -> click.Choice:
    return click.Choice(values)


def together(*decorators: Decorator) -> Decorator:
    """Combine several options into one decorator, in the order in which the help shows them."""

    def decorate(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def data_argument(name: str = "data") -> Decorator:
    return argument(name, metavar="DATA", type=str, explained=DATA_HELP)


model_argument = argument("model", metavar="MODEL", type=PATH, explained="A file written by `cprime fit`.")

key = option(
    "--key", panel="Data", metavar="NAME", help="The array of an .npz, .zarr or .h5 file; X or the only matrix."
)
reading = together(
    key,
    option(
        "--column",
        "column",
        panel="Data",
        metavar="NAME",
        multiple=True,
        help="Use this column; may come several times, and its name may have commas.",
    ),
    option(
        "--columns",
        panel="Data",
        metavar="A,B,…",
        type=ColumnNames(),
        multiple=True,
        help="Use these columns (of an array: numbers from 0).",
    ),
    option("--drop", panel="Data", metavar="A,B,…", type=ColumnNames(), multiple=True, help="Leave these columns out."),
    option("--numeric", panel="Data", is_flag=True, help="Use the columns that are numeric, and say which are not."),
    option(
        "--header/--no-header",
        panel="Data",
        default=None,
        otherwise="as it looks",
        help="Whether a .csv or .tsv file begins with names.",
    ),
    option(
        "--separator",
        panel="Data",
        metavar="CHAR",
        default=None,
        otherwise="as it looks",
        help="What stands between the values of a line.",
    ),
    option(
        "--chunk-rows",
        panel="Data",
        type=WholeNumber(1),
        otherwise="as fit in 128 MiB",
        help="Rows that are read and computed at a time.",
    ),
)
identifier = option(
    "--id",
    "identifier",
    panel="Data",
    metavar="NAME",
    help="A column that names the rows: no data, and kept for the output.",
)
weighting = option(
    "--sample-weight",
    panel="Data",
    metavar="NAME",
    help="A weight for each row: a column, another array of the file, or a file.",
)
missing = option(
    "--missing",
    panel="Data",
    type=choice("error", "drop", "mean", "marginal"),
    default="error",
    help="What to do about missing values: end, leave such rows out, put the column's mean, which the model keeps, or "
    "fit what is there.",
)
missing_of_model = option(
    "--missing",
    panel="Data",
    type=choice("error", "drop"),
    default="error",
    help="What to do about missing values: end, or leave such rows out; a model of --missing mean puts its means.",
)
scale = option(
    "--scale",
    panel="Data",
    is_flag=True,
    help="Give every column mean 0 and variance 1; the model keeps how, and `predict` does it too.",
)
dtype = option(
    "--dtype",
    panel="Data",
    type=choice("float32", "float64"),
    otherwise="float32 if it holds the data exactly",
    help="Compute in this precision.",
)

mixture = together(
    option(
        "-m",
        "--model",
        panel="Model",
        type=choice(*MODELS),
        default="kmeans",
        help="k-means, or a mixture of Gaussians or of t distributions.",
    ),
    option(
        "--metric",
        panel="Model",
        type=choice("euclidean", "cosine"),
        otherwise="euclidean",
        help="kmeans: what is near.",
    ),
    option(
        "--n-active",
        panel="Model",
        metavar="C′|all|auto",
        type=CountOr(1, "all", "auto"),
        otherwise="auto",
        help="mixtures: components a point keeps; all is exact EM.",
    ),
    option(
        "--covariance-type",
        panel="Model",
        type=choice(*COVARIANCES),
        otherwise="full",
        help="mixtures: shape of a component.",
    ),
    option(
        "--n-factors",
        panel="Model",
        metavar="H|auto",
        type=CountOr(0, "auto"),
        otherwise="5",
        help="gmm: directions of a component of factors and ppca.",
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
        type=choice("free", "equal"),
        otherwise="free",
        help="mixtures: weights of the components.",
    ),
    option(
        "--assignment",
        panel="Model",
        type=choice("soft", "hard", "posterior"),
        otherwise="soft",
        help="mixtures: what kept components are given.",
    ),
)
searching = together(
    option(
        "--search",
        panel="Search",
        type=choice(*SEARCHES),
        otherwise="auto",
        help="Which components a point looks at.",
    ),
    option(
        "--n-neighbors",
        panel="Search",
        metavar="G|auto",
        type=CountOr(2, "auto"),
        otherwise="auto",
        help="Length of a component's list of neighbors.",
    ),
    option(
        "--final-assignment",
        panel="Search",
        type=choice("auto", "exact", "found"),
        otherwise="auto",
        help="What labels are of after a partial search: the nearest of all, or the nearest found.",
    ),
    option(
        "--max-iter",
        panel="Search",
        type=WholeNumber(1),
        otherwise="kmeans 300, gmm 100",
        help="Most iterations of a start.",
    ),
    option(
        "--tol",
        panel="Search",
        type=Amount(),
        otherwise="kmeans 1e-4, gmm 1e-3",
        help="Stop below this change: kmeans relative, of J; gmm absolute, of F.",
    ),
)
starting = option(
    "--init",
    panel="Search",
    metavar="NAME|FILE",
    type=StartName(tuple(dict.fromkeys((*STARTS["kmeans"], *STARTS["gmm"])))),
    otherwise="auto",
    help="Where to start: k-means++, random, afk-mc2, two-level, of k-means also k-means|| and jumps, of gmm kmeans; "
    "or a file of centers.",
)
n_init = option(
    "--n-init", panel="Search", type=WholeNumber(1), otherwise="1", help="Number of starts; the best is kept."
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
    otherwise="all that the process may use",
    help="Threads to use.",
)

output = option(
    "-o",
    "--output",
    panel="Output",
    required=True,
    type=PATH,
    metavar="FILE",
    help="Where to write the model: a .safetensors file.",
)
rows_output = option(
    "-o",
    "--output",
    panel="Output",
    required=True,
    type=str,
    metavar="FILE",
    help="Where to write: a .npy, .csv, .tsv, .parquet or .feather file, or - for .csv on standard output.",
)
by_cluster = together(
    option(
        "-o",
        "--output",
        panel="Output",
        type=str,
        metavar="FILE",
        help="Where to write: a .npy, .csv, .tsv, .parquet or .feather file, or - for .csv on standard output.",
    ),
    option(
        "--partition-by-cluster",
        "folder",
        panel="Output",
        type=PATH,
        metavar="DIR",
        help="Write the rows of each cluster to a Parquet file of its own, cluster=17/part-0.parquet in DIR, new or "
        "empty: --id or the number of the row, and the distance.",
    ),
    option("--with-data", panel="Output", is_flag=True, help="Write the data of the rows there too."),
)
output_of_checkpoint = option(
    "-o",
    "--output",
    panel="Output",
    type=PATH,
    metavar="FILE",
    otherwise="that of `cprime fit`, if it began there",
    help="Where to write the model: a .safetensors file.",
)
spill = option(
    "--spill",
    panel="Output",
    type=PATH,
    metavar="DIR",
    help="Have what points keep between iterations in files of this folder, in place of memory.",
)
max_memory = option(
    "--max-memory",
    panel="Output",
    type=Bytes(),
    metavar="BYTES",
    help="Take no more memory than this, such as 8GB, by chunks of another size; or say what would.",
)
as_json = option("--json", "as_json", panel="Output", is_flag=True, help="Print one JSON object instead of a table.")
quiet = option("-q", "--quiet", panel="Output", is_flag=True, help="No progress bar and no table.")


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
