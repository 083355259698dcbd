"""`cprime predict`: the component of each row of DATA by a stored model, chunk by chunk."""

from itertools import accumulate, pairwise
from pathlib import Path
from time import perf_counter

import numpy as np

from cprime import load
from cprime.callbacks import RowsProgress
from cprime.cli.files import Request, opened
from cprime.cli.outputs import LABEL_SUFFIXES, check_output, label_writer, print_json
from cprime.cli.summary import centers
from cprime.sources import ahead


def predict(model: Path, path: Path, request: Request, output: Path, threads: int | None, *, as_json: bool) -> None:
    """Run the command. A table is read in the columns of the model, and all data in its precision."""
    check_output(output, LABEL_SUFFIXES, (model, path))
    estimator = load(model)
    # The columns are matched here; the estimator is then given plain arrays, as it would be of a .npy file.
    columns = estimator.__dict__.pop("feature_names_in_", None)
    if threads is not None:
        estimator.set_params(n_threads=threads)

    source = opened(path, request, None if columns is None else tuple(columns)).as_type(centers(estimator).dtype)
    if source.n_features != estimator.n_features_in_:
        raise ValueError(
            f"{path} has {source.n_features} columns of data, but the model {model} expects {estimator.n_features_in_}"
        )
    start = perf_counter()
    counts = np.zeros(len(centers(estimator)), dtype=np.int64)
    ranges = list(pairwise(accumulate(source.sizes, initial=0)))
    with RowsProgress(source.n_rows) as progress, label_writer(output, source.n_rows) as write:
        for (begin, _), X in zip(ranges, ahead(source.watched(progress.rows), ranges), strict=True):
            source.check_finite(X, begin)
            labels = estimator.predict(X)
            write(labels)
            counts += np.bincount(labels, minlength=len(counts))
        source.verify()
    seconds = perf_counter() - start
    if as_json:
        print_json(
            {
                "n_samples": source.n_rows,
                "n_components": len(counts),
                "n_components_used": int(np.count_nonzero(counts)),
                "seconds": {"predict": seconds},
                "output": output,
            }
        )
