"""`cprime resume`: continue a failed or interrupted fit from its checkpoint, and write the model."""

from pathlib import Path
from time import perf_counter

from cprime import load
from cprime.cli.fit import fitted, report
from cprime.cli.outputs import MODEL_SUFFIXES, check_output
from cprime.cli.summary import summary
from cprime.loading import data_of, unfitted
from cprime.persistence import checkpoints


def resume(
    folder: Path, output: Path | None, threads: int | None, spill: Path | None, *, as_json: bool, quiet: bool
) -> None:
    """Run `cprime resume`; without an output, the model is written to the path stored in the checkpoint.

    If the fit has already ended, its model is read from the checkpoint folder.
    """
    description = checkpoints.read(folder)
    if output is None:
        if description["output"] is None:
            raise ValueError(f"the checkpoint {folder} names no output: say with -o FILE where to write the model")
        output = Path(description["output"])
    check_output(output, MODEL_SUFFIXES, (), folder)
    if (folder / checkpoints.MODEL).exists():
        estimator = load(folder / checkpoints.MODEL)
        figures = {"n_samples": sum(description["chunks"]), **summary(estimator)}
    else:
        start = perf_counter()
        estimator = unfitted(folder, description).set_params(n_threads=threads, spill=spill)
        X, weights = data_of(folder, description)
        seconds = {"read": perf_counter() - start}
        figures = fitted(estimator, X, weights, folder, output, quiet=quiet)
        figures["seconds"] = seconds | figures["seconds"]
    estimator.save(output)
    report(figures | {"output": output}, as_json=as_json, quiet=quiet)
