"""`cprime merge`: join the components of a stored model into clusters, and write the cluster of each row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from cprime.cli.files import InputData, Request, hinted, load_model, opened
from cprime.cli.outputs import ROWS_SUFFIXES, Columns, check_output, is_text, rows_writer
from cprime.cli.predict import joined
from cprime.cli.summary import centers, print_summary, sizes
from cprime.selection import MergeTree, merge
from cprime.selection.merging.merge import resolve_criterion


@dataclass(frozen=True)
class MergeOptions:
    """Options of `cprime merge`. n_clusters: number of clusters; None is the number that the merge tree suggests."""

    n_clusters: int | None
    criterion: str
    n_active: int | str
    components: bool

    def check(self, estimator: Any, data: Sequence[str], request: Request) -> None:
        """Raise ValueError if the model cannot be merged with these options, or an option would have no effect."""
        C = len(centers(estimator))
        if self.n_clusters is not None and self.n_clusters > C:
            raise ValueError(f"-n {self.n_clusters} is more than the {C} components of the model")
        if not data and resolve_criterion(self.criterion, estimator) == "entropy":
            raise ValueError(
                "joins by entropy need rows: give DATA, or --criterion ward, which joins by centers and sizes"
            )
        if not data and request != Request():
            raise ValueError("options of data need DATA, which was not given")
        if self.components and request.identifier is not None:
            raise ValueError("--id names rows, and --components writes none")


def merge_model(
    model: Path,
    data: Sequence[str],
    request: Request,
    asked: MergeOptions,
    output: str,
    threads: int | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run `cprime merge`: write the cluster of each row of the data, or of each component of the model.

    The clusters of components are written if there are no data, or for the option --components.
    """
    check_output(Path(output), ROWS_SUFFIXES, (model, *map(Path, data)))
    estimator = load_model(model)
    asked.check(estimator, data, request)
    if threads is not None:
        estimator.set_params(n_threads=threads)
    found = opened(data, request, estimator) if data else None
    X, weights = (None, None) if found is None else found.training_data()
    start = perf_counter()
    with hinted(fills=False):
        tree = merge(estimator, X, sample_weight=weights, criterion=asked.criterion, n_active=asked.n_active)
    suggested = tree.elbow()
    n_clusters = asked.n_clusters or suggested
    if n_clusters is None:
        raise ValueError("no number of clusters stands out among the joins: give one with -n")
    clusters = tree.cut(n_clusters)
    by_rows = found is not None and not asked.components
    n_rows = found.source.n_rows if by_rows and found is not None else tree.n_components
    with rows_writer(output, n_rows) as write:
        if by_rows and found is not None:
            for rows in _rows(tree, n_clusters, found, request, is_text(output)):
                write(rows)
        else:
            components = np.arange(tree.n_components, dtype=np.int32)
            write({"component": components, "label": clusters.astype(np.int32)})
    figures = {
        "n_samples": None if found is None else found.source.n_rows,
        "n_components": tree.n_components,
        "criterion": tree.criterion,
        "n_clusters": n_clusters,
        "n_suggested": suggested,
        "sizes": sizes(np.bincount(clusters, weights=tree.weights)),
        "seconds": {"merge": perf_counter() - start},
        "output": output,
    }
    print_summary(figures, as_json=as_json, quiet=quiet)


def _rows(tree: MergeTree, n_clusters: int, found: InputData, request: Request, as_text: bool) -> Iterator[Columns]:
    """Yield the columns of the output for each chunk of rows: identifiers, if requested, and labels (clusters)."""
    clusters = tree.cut(n_clusters).astype(np.int32)
    assert tree.components is not None
    read = found.reader(request, as_text=as_text)
    for begin, end in pairwise(accumulate(found.source.sizes, initial=0)):
        yield joined(read(begin, end), {"label": clusters[tree.components[begin:end]]})
