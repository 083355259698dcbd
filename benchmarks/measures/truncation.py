"""Truncated mixtures against exact EM: held-out log-likelihood per row, and seconds, both with default settings.

Of at most `--points` rows four fifths are fitted, and the others are held out. `exact` evaluates all components in
every pass (`n_active=C`); the default evaluates the neighbors of each row's best components.
"""

import argparse
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.measures import options as given
from benchmarks.records import Record
from benchmarks.tables import grouped, table
from cprime import GaussianMixture

TITLE = "Truncated mixtures"
_TOLERANCE = 0.02  # accepted difference of the log-likelihood per row [nats]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    given.add_data(parser, ["msd-standard", "kdd-20", "sift", "clusters-small", "noise-falling"])
    parser.add_argument("--points", type=given.positive, default=60_000, help="rows of each data set (default: 60,000)")


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    for data, _, common in given.cases(options, "truncation"):
        if data is None:
            yield [common]
            continue
        X = np.random.default_rng(0).permutation(data.X)[: options.points]
        fitted, held_out = np.split(X, [len(X) * 4 // 5])
        records = []
        for family in ("spherical", "diag"):
            for C in (options.clusters,) if options.clusters else (50, 150):
                exact: dict[str, Any] = {"n_active": C, "search": "full"}
                for name, chosen in (("exact", exact), ("default", {})):
                    model = GaussianMixture(
                        C, covariance_type=family, random_state=0, n_threads=options.threads, **chosen
                    )
                    begin = perf_counter()
                    model.fit(fitted)
                    found = {"seconds": [perf_counter() - begin], "value": [float(model.score(held_out))]}
                    case = {**common, "N": len(fitted), "C": C, "family": family, "peer": name}
                    records.append({**case, **found, "n_iter": model.n_iter_, "n_active": model.n_active_})
        yield records


def report(records: list[Record]) -> str:
    done = [record for record in records if "value" in record]
    rows, n_near = [], 0
    for exact, default in grouped(done, "data", "family", "C"):
        difference = default["value"][0] - exact["value"][0]
        n_near += difference > -_TOLERANCE
        rows.append(
            [
                exact["data"],
                exact["family"],
                exact["C"],
                f"{exact['value'][0]:.3f}",
                f"{difference:+.3f}",
                f"{exact['seconds'][0]:.2f}",
                f"{default['seconds'][0]:.2f}",
                f"{exact['n_iter']}, {default['n_iter']}",
            ]
        )
    heading = ["data", "covariances", "C", "exact EM, nats", "difference", "exact, s", "default, s", "iterations"]
    found = f"{n_near} of {len(rows)} are at most {_TOLERANCE} nats below exact EM, or above it."
    return f"{table(heading, rows)}\n\n{found}"


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
