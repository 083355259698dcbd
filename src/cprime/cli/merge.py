"""`cprime merge`: join the components of a stored model to clusters, and write the cluster of each row of the data."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from cprime import load
from cprime.cli.files import InputData, Request, hinted, opened
from cprime.cli.outputs import ROWS_SUFFIXES, STDOUT, Columns, check_output, rows_writer
from cprime.cli.predict import identifiers
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

    def check(self, estimator: Any, path: str | None, request: Request) -> None:
        """Raise ValueError if the model cannot be merged with these options, or an option would have no effect."""
        C = len(centers(estimator))
        if self.n_clusters is not None and self.n_clusters > C:
            raise ValueError(f"-n {self.n_clusters} is more than the {C} components of the model")
        if path is None and resolve_criterion(self.criterion, estimator) == "entropy":
            raise ValueError(
                "joins by entropy need rows: give DATA, or --criterion ward, which joins by centers and sizes"
            )
        if path is None and request != Request():
            raise ValueError("options of data need DATA, which was not given")
        if self.components and request.identifier is not None:
            raise ValueError("--id names rows, and --components writes none")


def merge_model(
    model: Path,
    path: str | None,
    request: Request,
    asked: MergeOptions,
    output: str,
    threads: int | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run `cprime merge`: write the cluster of each row of the data, or of each component of the model.

    The clusters of components are written if there are no data (`path` is None), or for the option --components.
    """
    if output != STDOUT:
        check_output(Path(output), ROWS_SUFFIXES, (model, *([] if path is None else [Path(path)])))
    estimator = load(model)
    asked.check(estimator, path, request)
    if threads is not None:
        estimator.set_params(n_threads=threads)
    found = None if path is None else opened(path, request, getattr(estimator, "feature_names_in_", None))
    start = perf_counter()
    with hinted(fills=False):
        tree = merge(
            estimator,
            None if found is None else found.source,
            criterion=asked.criterion,
            n_active=asked.n_active,
        )
    suggested = tree.elbow()
    n_clusters = asked.n_clusters or suggested
    if n_clusters is None:
        raise ValueError("no number of clusters stands out among the joins: give one with -n")
    clusters = tree.cut(n_clusters)
    by_rows = found is not None and not asked.components
    n_rows = found.source.n_rows if by_rows and found is not None else tree.n_components
    with rows_writer(output, n_rows) as write:
        if by_rows and found is not None:
            for rows in _rows(tree, n_clusters, found, request):
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


def _rows(tree: MergeTree, n_clusters: int, found: InputData, request: Request) -> Iterator[Columns]:
    """Yield the columns of the output for each chunk of rows: identifiers, if requested, and labels (clusters)."""
    clusters = tree.cut(n_clusters).astype(np.int32)
    assert tree.components is not None
    named = identifiers(found, request)
    for begin, end in pairwise(accumulate(found.source.sizes, initial=0)):
        yield {**named(begin, end), "label": clusters[tree.components[begin:end]]}
