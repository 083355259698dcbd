"""Options shared by several commands, and their values."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from cprime.cli.panels import PANELS, Number, NumberOr, Option, WholeNumber, column_names, memory_size, size_bound

# Copies of values that the estimators accept, so that a help page need not import the estimators.
PLANNED = ("kmeans", "gmm", "student-t")  # models whose memory is known before the fit
CONTINUOUS = (*PLANNED, "bayesian", "laplace", "dp-means")  # models of columns that may be filled and scaled
MIXTURES = ("gmm", "student-t", "bayesian", "laplace", "von-mises-fisher", "poisson", "categorical", "mixed")
MODELS = ("kmeans", *MIXTURES, "dp-means")
WITH_TEXT = ("categorical", "mixed")  # models of columns of text
MODELS_OF = {  # For each option that only some models have: these models.
    **dict.fromkeys(("n_active", "assignment"), MIXTURES),
    **dict.fromkeys(("k", "n_init", "checkpoint", "spill"), MODELS[:-1]),
    **dict.fromkeys(("metric", "size_max", "size_min"), ("kmeans",)),
    "weights": tuple(name for name in MIXTURES if name != "bayesian"),
    "max_memory": PLANNED,
    "scale": CONTINUOUS,
    "covariance_type": ("gmm", "student-t", "bayesian", "laplace"),
    "n_factors": ("gmm",),
    "dof": ("student-t",),
    "exposure": ("poisson",),
    "penalty": ("dp-means",),
}
MODELS_OF_MISSING = {
    "mean": CONTINUOUS,
    "marginal": tuple(name for name in MODELS if name not in ("von-mises-fisher", "dp-means")),
}
SEARCHES = ("auto", "full", "bounded", "graph", "exact", "estimated")
STARTS = {
    "kmeans": ("auto", "k-means++", "k-means||", "random", "afk-mc2", "two-level", "jumps"),
    "dp-means": ("auto",),
    **dict.fromkeys(MIXTURES, ("auto", "kmeans", "k-means++", "random", "random_from_data", "afk-mc2", "two-level")),
}
COVARIANCES = (
    *("full", "tied", "diag", "spherical", "tied_spherical", "tied_diag", "factors", "ppca"),
    *("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV"),
)
PATH = click.Path(path_type=Path)
DATA_HELP = (
    "One row per point: a .npy, .npz, .csv, .tsv, .jsonl, .parquet, .feather, .arrow, .zarr, .lance, .h5, .fvecs, "
    ".bvecs or .fbin file, also compressed (.gz, .zst); a folder of such files; several of these, whose rows are "
    "joined in this order; or - for standard input. Large data are read chunk by chunk."
)

Decorator = Callable[[Any], Any]


def option(*names: str, panel: str, **kwargs: Any) -> Decorator:
    """Return a decorator that adds an option to a command, in a panel of the help, which shows numbers as N."""
    if isinstance(kwargs.get("type"), WholeNumber | Number):
        kwargs.setdefault("metavar", "N")
    return click.option(*names, cls=Option, panel=panel, **kwargs)


data_option, model_option, search_option, output_option = (partial(option, panel=panel) for panel in PANELS)


def output_file(help: str, type: Any = PATH, metavar: str = "FILE", **kwargs: Any) -> Decorator:
    """Return a decorator that adds the option for the file that a command writes."""
    return output_option("-o", "--output", type=type, metavar=metavar, help=help, **kwargs)


def together(*decorators: Decorator) -> Decorator:
    """Combine several options into one decorator, in the order in which the help shows them."""

    def decorate(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def data_argument_of(help: str, metavar: str = "DATA...", required: bool = True, name: str = "data") -> Decorator:
    """Return a decorator that adds an argument for data: one path or several."""
    return click.argument(name, metavar=metavar, nargs=-1, required=required, type=str, help=help)


data_argument = data_argument_of(DATA_HELP)
model_argument = click.argument(
    "model", metavar="MODEL", type=PATH, help="A file written by `cprime fit`, or - for standard input."
)


def _complete_start(context: click.Context, option: click.Parameter, begin: str) -> list[CompletionItem]:
    """Return the names of starts that begin with the typed text; if there are none, files."""
    found = [CompletionItem(name) for name in {**dict.fromkeys(STARTS["kmeans"]), **dict.fromkeys(STARTS["gmm"])}]
    return [item for item in found if item.value.startswith(begin)] or [CompletionItem(begin, type="file")]


def _only_one(context: click.Context, option: click.Parameter, names: tuple[str, ...]) -> str | None:
    if len(names) > 1:
        raise click.BadParameter(f"needs one column, got {len(names)}: {', '.join(names)}.")
    return names[0] if names else None


key = data_option("--key", metavar="NAME", help="Array of an .npz, .zarr or .h5 file; default X or the only matrix.")
reading = together(
    key,
    data_option(
        "--column", metavar="NAME", multiple=True, help="Use this column. Can be repeated; the name may contain commas."
    ),
    data_option(
        "--columns",
        metavar="A,B,…",
        type=column_names,
        multiple=True,
        help="Use these columns; those of an array are numbered from 0.",
    ),
    data_option("--drop", metavar="A,B,…", type=column_names, multiple=True, help="Omit these columns."),
    data_option("--numeric", is_flag=True, help="Use the numeric columns only, and list the others."),
    data_option(
        "--header/--no-header",
        default=None,
        show_default="detected",
        help="Whether the first line of a .csv or .tsv file contains column names.",
    ),
    data_option(
        "--separator", metavar="CHAR", show_default="detected", help="Character that separates the values of a line."
    ),
    data_option(
        "--chunk-rows",
        type=WholeNumber(1),
        show_default="all of a file of at most 512 MiB, else as many as fit in 128 MiB",
        help="Number of rows that are read and processed together.",
    ),
)
identifier = data_option(
    "--id",
    "identifier",
    metavar="NAME",
    multiple=True,
    callback=_only_one,
    help="Column of row identifiers: not used as data, copied to the output.",
)
weighting = data_option(
    "--sample-weight", metavar="NAME", help="Weights of the rows: a column, another array of the file, or a file."
)
missing = data_option(
    "--missing",
    type=click.Choice(["error", "drop", "mean", "marginal"]),
    default="error",
    help="Treatment of missing values: error; drop leaves out such rows; mean inserts the column means, also in "
    "`predict`; marginal fits the observed values.",
)
missing_of_model = data_option(
    "--missing",
    type=click.Choice(["error", "drop"]),
    default="error",
    help="Treatment of missing values: error, or drop such rows. A model fitted with --missing mean inserts its means.",
)
exposure = data_option(
    "--exposure",
    metavar="NAME",
    help="poisson: column of times, areas or numbers for which the rows were observed.",
)
n_components = model_option(
    "-k", "--n-components", "k", type=WholeNumber(1), help="Number of clusters C. Required, but not for dp-means."
)
penalty = model_option(
    "--penalty", type=Number(0, min_open=True), help="dp-means: cost of a cluster, a squared distance. Required."
)
scale = data_option(
    "--scale",
    is_flag=True,
    help="Scale every column to mean 0 and variance 1. The scaling is stored in the model, and `predict` applies it.",
)
dtype = data_option(
    "--dtype",
    type=click.Choice(["float32", "float64"]),
    show_default="float32 if it represents the data exactly",
    help="Floating-point type of the computation.",
)

mixture = together(
    model_option(
        "-m",
        "--model",
        metavar="MODEL",
        type=click.Choice(MODELS),
        default="kmeans",
        help="kmeans; mixtures of Gaussians: gmm, or bayesian with a prior of every parameter; other mixtures: "
        "student-t, laplace, von-mises-fisher (directions), poisson (counts), categorical (integers or text), mixed "
        "(columns of several kinds); or dp-means, k-means that finds the number of clusters.",
    ),
    model_option(
        "--metric", type=click.Choice(["euclidean", "cosine"]), show_default="euclidean", help="kmeans: distance."
    ),
    model_option("--size-max", type=size_bound, metavar="N|1.2x", help="kmeans: most points of a cluster."),
    model_option("--size-min", type=size_bound, metavar="N|0.5x", help="kmeans: fewest points of a cluster."),
    model_option(
        "--n-active",
        metavar="C′|all|auto",
        type=NumberOr(WholeNumber(1), "all", "auto"),
        show_default="auto",
        help="mixtures: number of active components per point, C′; all is exact EM.",
    ),
    model_option(
        "--covariance-type",
        metavar="FAMILY",
        type=click.Choice(COVARIANCES),
        show_default="full",
        help=f"mixtures: form of the covariances: {', '.join(COVARIANCES[:8])}, or mclust's name, EII to VVV.",
    ),
    model_option(
        "--n-factors",
        metavar="H|auto",
        type=NumberOr(WholeNumber(0), "auto"),
        show_default="5",
        help="gmm: number of factors per component, for factors and ppca.",
    ),
    model_option(
        "--dof",
        metavar="NUMBER|estimate|shared",
        type=NumberOr(Number(0), "estimate", "shared"),
        show_default="estimate",
        help="student-t: degrees of freedom of the components.",
    ),
    model_option(
        "--weights",
        type=click.Choice(["free", "equal"]),
        show_default="free",
        help="mixtures: whether mixing weights are estimated (free) or 1/C (equal).",
    ),
    model_option(
        "--assignment",
        type=click.Choice(["soft", "hard", "sampled"]),
        show_default="soft",
        help="mixtures: responsibilities of the active components: soft as in EM, hard, or drawn from the posterior.",
    ),
)


class CovarianceTypes(click.ParamType):
    """A covariance type, as text; several types separated by commas, as a tuple; or "all"."""

    name = "covariance types"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "all" or not isinstance(value, str):
            return value
        names = tuple(click.Choice(COVARIANCES).convert(name, param, ctx) for name in value.split(","))
        return names if len(names) > 1 else names[0]


def several_covariances(command: Any) -> Any:
    """Let the option --covariance-type of a command accept several types; apply this above the decorator `mixture`."""
    for option in command.__click_params__:
        if option.name == "covariance_type":
            option.type, option.metavar = CovarianceTypes(), "FAMILY|LIST|all"
            option.help += " Several with commas between them, or all, are compared."
    return command


searching = together(
    search_option(
        "--search",
        type=click.Choice(SEARCHES),
        show_default="auto",
        help="Candidates for each point: all components (full, bounded) or neighbors of its best ones.",
    ),
    search_option(
        "--n-neighbors",
        metavar="G|auto",
        type=NumberOr(WholeNumber(2), "auto"),
        show_default="auto",
        help="Length of the neighbor list of each component.",
    ),
    search_option(
        "--final-assignment",
        type=click.Choice(["auto", "exact", "found"]),
        show_default="auto",
        help="Labels after a partial search: the best of all components (exact) or the best found.",
    ),
    search_option(
        "--max-iter",
        type=WholeNumber(1),
        show_default="kmeans, poisson and mixed 300, categorical 1000, others 100",
        help="Maximum number of iterations of one start.",
    ),
    search_option(
        "--tol",
        type=Number(0),
        show_default="kmeans and dp-means 1e-4, poisson 1e-6, categorical and mixed 1e-5, others 1e-3",
        help="Stop if the change is at most this: kmeans relative, of J; mixtures absolute, of F.",
    ),
)
starting = search_option(
    "--init",
    metavar="NAME|FILE",
    shell_complete=_complete_start,
    show_default="auto",
    help="Initialization: k-means++, random, afk-mc2, two-level; kmeans also k-means|| and jumps, mixtures also "
    "kmeans; or a file with centers, or a model: its centers, or all parameters of a mixture of the same kind.",
)
n_init = search_option(
    "--n-init",
    type=WholeNumber(1),
    show_default="1, categorical and mixed 10",
    help="Number of starts; the best result is returned.",
)
seed = search_option("--seed", type=WholeNumber(0, 2**32 - 1), default=0, help="Seed of the random numbers.")
threads = search_option(
    "--threads", type=WholeNumber(1), show_default="all processors of the process", help="Number of threads."
)

output = output_file("Model file to write, .safetensors, or - for standard output.", required=True)
rows_output = output_file(
    "File to write: .npy, .csv, .tsv, .parquet or .feather, or - for CSV on standard output.", required=True, type=str
)
by_cluster = together(
    output_file("File to write: .npy, .csv, .tsv, .parquet or .feather, or - for CSV on standard output.", type=str),
    output_option(
        "--partition-by-cluster",
        "folder",
        type=PATH,
        metavar="DIR",
        help="Write one Parquet file per cluster, such as cluster=17/part-0.parquet, in DIR, which must be new or "
        "empty. Columns: the row's --id or number, and its distance.",
    ),
    output_option("--with-data", is_flag=True, help="Also write all columns of DATA, except those of --drop."),
)
output_of_checkpoint = output_file(
    "Model file to write, .safetensors, or - for standard output.", show_default="the file given to `cprime fit`"
)
spill = output_option(
    "--spill",
    type=PATH,
    metavar="DIR",
    help="Store active sets between iterations in files of this folder instead of memory.",
)
max_memory = output_option(
    "--max-memory",
    type=memory_size,
    metavar="BYTES",
    help="Limit of memory, such as 8GB. Chunks become smaller if necessary; if that does not suffice, the error says "
    "what would help.",
)
as_json = output_option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
verbose = output_option("-v", "--verbose", is_flag=True, help="Write a line for each iteration to standard error.")
quiet = output_option("-q", "--quiet", is_flag=True, help="Print no progress bar and no table.")


def check_model(given: dict[str, Any]) -> None:
    """Raise click.BadParameter for options that the chosen model does not have."""
    for name, option in (("k", "'-k' / '--n-components'"), ("penalty", "'--penalty'")):
        if name in given and given[name] is None and given["model"] in MODELS_OF[name]:
            raise click.UsageError(f"Missing option {option}.")
    for name, models in MODELS_OF.items():
        if given.get(name) not in (None, False) and given["model"] not in models:
            option = "-k" if name == "k" else f"--{name.replace('_', '-')}"
            is_other = models == MODELS[:-1]
            reason = "cannot be given with -m dp-means." if is_other else f"needs -m {' or '.join(models)}."
            raise click.BadParameter(reason, param_hint=f"'{option}'")
    if given.get("exposure") is not None and given.get("checkpoint") is not None:
        raise click.BadParameter("cannot be given with --exposure.", param_hint="'--checkpoint'")
    models = MODELS_OF_MISSING.get(given["missing"], MODELS)
    if given["model"] not in models:
        raise click.BadParameter(f"{given['missing']!r} needs -m {' or '.join(models)}.", param_hint="'--missing'")
    init = given.get("init")
    starts = STARTS[given["model"]]
    if init is not None and init not in starts and not Path(init).suffix:
        raise click.BadParameter(
            f"{init!r} is no start of -m {given['model']}: {', '.join(starts)}.", param_hint="'--init'"
        )
