"""`cprime info`: description of a model file, of data, or of the folder of a checkpoint."""

import math
from collections.abc import Sequence
from pathlib import Path

from cprime import load
from cprime.cli.errors import say
from cprime.cli.files import STDIN, Request, chunk_figures, load_model, opened
from cprime.cli.summary import MODEL_NAMES, print_summary, summary
from cprime.estimators.covariances import family_of
from cprime.persistence import checkpoints
from cprime.persistence.model_files import read_header
from cprime.sources.opening import SUFFIXES


def info(names: Sequence[str], request: Request, *, as_json: bool) -> None:
    """Run `cprime info` for a file or folder, or for several of data.

    A folder is described as a checkpoint or as data. A file is described as data if it has the suffix of a data format,
    else as a model.
    """
    path = Path(names[0])
    if len(names) == 1 and (path / checkpoints.FIT).exists():
        figures = _of_checkpoint(path)
    elif len(names) > 1 or names[0] == STDIN or path.is_dir() or path.suffix.lower() in SUFFIXES:
        figures = _of_data(names, request)
    else:
        figures = _of_model(path)
    print_summary(figures, as_json=as_json)


def _of_data(data: Sequence[str], request: Request) -> dict[str, object]:
    source = opened(data, request).source
    return {
        "n_samples": source.n_rows,
        "n_features": source.n_features,
        "n_chunks": len(source.sizes),
        "chunk_rows": source.chunk_rows,
        "chunk_bytes": chunk_figures(source)["chunk_bytes"],
        "dtype": source.dtype.name,
        "columns": source.columns,
        "bytes": source.n_bytes,
    }


def _of_model(path: Path) -> dict[str, object]:
    estimator = load_model(path)
    params = estimator.get_params(deep=False)
    for name, value in params.items():
        if not isinstance(value, bool | int | float | str | None):
            params[name] = f"array {value.shape}" if hasattr(value, "shape") else repr(value)
    return {
        **summary(estimator),
        "cprime_version": read_header(path)["cprime_version"],
        "params": params,
        "bytes": path.stat().st_size,
    }


def _of_checkpoint(path: Path) -> dict[str, object]:
    """Return the description of a checkpoint: of its model if the fit has ended, else of the progress of the fit."""
    description = checkpoints.read(path)
    about = {
        "n_samples": sum(description["chunks"]),
        "n_chunks": len(description["chunks"]),
        "columns": description["features"],
        "cprime_version": description["cprime_version"],
        "bytes": sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
    }
    if (path / checkpoints.MODEL).exists():
        return {**summary(load(path / checkpoints.MODEL)), **about, "ended": True}
    params = {name.removeprefix("parameter "): v for name, v in description.items() if name.startswith("parameter ")}
    n_states, runs = checkpoints.standing(path)
    fit = None if runs is None else runs.fit or runs.best
    unreadable = n_states > 0 and runs is None
    if unreadable:
        say("warning", f"none of the states of {path} can be read, so how far its fit had come is not known")
    return {
        "model": MODEL_NAMES.get(description["estimator"], description["estimator"]),
        "n_components": params.get("n_clusters", params.get("n_components")),
        "covariance_type": family_of(params.get("covariance_type")),
        **about,
        "ended": False,
        "n_states": n_states,
        "resumes_to": description["output"],
        "start": None if unreadable else 1 if runs is None else min(runs.run + 1, params["n_init"]),
        "n_iter": None if unreadable else 0 if fit is None else len(fit.rows),
        "quantization_error": None if fit is None or math.isnan(fit.error) else fit.error,
        "free_energy": None if fit is None else fit.bound,
    }
