"""Several starts of a mixture: log-likelihood per row of `n_init` starts, and of EM from Ward's partitions.

mclust starts EM from a hierarchical partition. The references here are EM runs of scikit-learn's `GaussianMixture` from
Ward's partitions of the rows, of columns of equal variance and of whitened columns, without `reg_covar`. A reference
that is singular is left out. A case is reached if the log-likelihood per row is at most 0.01 nats lower.
"""

import argparse
from collections.abc import Iterator
from time import perf_counter

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.datasets import load_iris, load_wine
from sklearn.mixture import GaussianMixture as SklearnMixture

from benchmarks.measures import options as given
from benchmarks.records import Record
from benchmarks.tables import grouped, table
from cprime import GaussianMixture
from cprime.datasets import old_faithful

TITLE = "Starts of mixtures"
_DATA = {"iris": load_iris, "faithful": old_faithful, "wine": load_wine}
_FAMILIES = ("spherical", "diag", "tied", "full")
_TOLERANCE = 0.01
_SINGULAR = 1e6  # greatest variance of a column, relative to the least conditional variance of a component


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--starts", type=given.positive, default=10, help="n_init of cprime (default: 10)")
    parser.add_argument("--most", type=given.positive, default=9, help="greatest number of components (default: 9)")


class _FromLabels(SklearnMixture):
    """scikit-learn's mixture whose EM starts from given labels."""

    labels: NDArray[np.int32]

    def _initialize_parameters(self, X: NDArray, random_state: object, **given: object) -> None:
        self._initialize(X, np.eye(self.n_components)[self.labels], **given)


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    for name, load in _DATA.items():
        X = np.asarray(load().data, dtype=np.float64)
        Y = (X - X.mean(axis=0)) / X.std(axis=0)
        spaces = (X, Y, Y @ np.linalg.inv(np.linalg.cholesky(np.cov(Y.T))).T)
        trees = [linkage(space, "ward") for space in spaces]
        for family in _FAMILIES:
            for C in range(2, options.most + 1):
                references = [reference(X, family, fcluster(tree, C, "maxclust") - 1, C) for tree in trees]
                begin = perf_counter()
                model = GaussianMixture(
                    C,
                    covariance_type=family,
                    n_init=options.starts,
                    random_state=0,
                    tol=1e-5,
                    max_iter=1000,
                    n_threads=options.threads,
                ).fit(X)
                yield [
                    {
                        "measure": "starts",
                        "data": name,
                        "family": family,
                        "C": C,
                        "starts": options.starts,
                        "value": [float(model.score(X))],
                        "reference": max(references),
                        "seconds": [perf_counter() - begin],
                        "collapsed": bool(model._parameters().n_collapsed),
                    }
                ]


def reference(X: NDArray, family: str, labels: NDArray[np.int32], C: int) -> float:
    """Return the log-likelihood per row of EM from these labels; −inf if EM ends in an almost singular covariance."""
    model = _FromLabels(C, covariance_type=family, reg_covar=0, tol=1e-7, max_iter=3000)
    model.labels = labels
    try:
        found = float(model.fit(X).score(X))
    except ValueError:
        return -np.inf
    precisions = model.precisions_cholesky_
    largest = np.diagonal(precisions, 0, -2, -1) if family in ("tied", "full") else precisions
    return -np.inf if np.square(largest).max() * X.var(axis=0).max() > _SINGULAR else found


def report(records: list[Record]) -> str:
    rows = []
    for group in grouped(records, "data", "family"):
        known = [record for record in group if np.isfinite(record["reference"])]
        short = [record["reference"] - record["value"][0] for record in known]
        rows.append(
            [
                group[0]["data"],
                group[0]["family"],
                f"{sum(s <= _TOLERANCE for s in short)} of {len(short)}",
                f"{max(short):.3f}" if short else "",
                sum(record["collapsed"] for record in group),
                f"{sum(record['seconds'][0] for record in group):.2f}",
            ]
        )
    columns = ["data", "family", "reached", "nats per row below Ward's, most", "collapsed", "seconds"]
    return f"### {records[0]['starts']} starts\n\n{table(columns, rows)}"


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
