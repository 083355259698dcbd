"""`cprime predict`: the component of each row of DATA by a stored model."""

from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np

from cprime import load
from cprime.cli.files import TABLE_SUFFIXES, Request, read
from cprime.cli.outputs import LABEL_SUFFIXES, check_output, print_json, write_labels
from cprime.cli.summary import centers


def predict(model: Path, source: Path, request: Request, output: Path, threads: int | None, *, as_json: bool) -> None:
    """Run the command. A table is read in the columns of the model, and all data in its precision."""
    check_output(output, LABEL_SUFFIXES, (model, source))
    estimator = load(model)
    # The columns are matched here; the estimator is then given plain arrays, as it would be of a .npy file.
    columns = estimator.__dict__.pop("feature_names_in_", None)
    if columns is not None and source.suffix.lower() in TABLE_SUFFIXES and request.columns is None:
        request = replace(request, columns=tuple(columns))
    if request.dtype is None:
        request = replace(request, dtype=centers(estimator).dtype.name)
    if threads is not None:
        estimator.set_params(n_threads=threads)

    data = read(source, request)
    if data.X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"{source} has {data.X.shape[1]} columns of data, but the model {model} expects {estimator.n_features_in_}"
        )
    start = perf_counter()
    labels = estimator.predict(data.X)
    seconds = perf_counter() - start
    write_labels(output, labels)
    if as_json:
        counts = np.bincount(labels, minlength=len(centers(estimator)))
        print_json(
            {
                "n_samples": len(labels),
                "n_components": len(counts),
                "n_components_used": int(np.count_nonzero(counts)),
                "seconds": {"predict": seconds},
                "output": output,
            }
        )
