"""`python -m benchmarks.certificates`: how often the intervals of certificates hold, and how wide they are.

Fits with a partial search, from different seeds, are compared with an exact search of all rows. The number of rows is
256 for each cluster, and there are 25 iterations, as in codebooks of FAISS.
"""

import argparse
import warnings

import numpy as np

import cprime
from benchmarks.data import load
from cprime.search import Graph

N_ITERATIONS = 25
ROWS_PER_CLUSTER = 256


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.certificates", description=__doc__)
    parser.add_argument("--data", nargs="+", default=["sift", "kdd", "msd"], metavar="NAME|FILE", help="the data")
    parser.add_argument("-C", "--clusters", type=int, default=256, help="clusters (default: 256)")
    parser.add_argument("-G", "--n-neighbors", type=int, default=8, help="length of the lists (default: 8)")
    parser.add_argument("--seeds", type=int, default=100, help="number of fits (default: 100)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # fits that do not converge, and poor searches, are what is measured
    print("| data | excess of J | estimate | lower limit | upper limit | limits that held |\n|---|---|---|---|---|---|")
    for name in options.data:
        rows = np.random.default_rng(0).permutation(load(name).X)[: ROWS_PER_CLUSTER * options.clusters]
        fit = cprime.KMeans(
            options.clusters, search=Graph(options.n_neighbors, final_assignment="found"), max_iter=N_ITERATIONS
        )
        found = np.array([measured(fit.set_params(random_state=seed), rows) for seed in range(options.seeds)])
        n_held = int(((found[:, 2] <= found[:, 0]) & (found[:, 0] <= found[:, 3])).sum())
        means = " | ".join(f"{value:.2%}" for value in found.mean(axis=0))
        print(f"| {name} | {means} | {n_held} of {options.seeds} |", flush=True)


def measured(fit: cprime.KMeans, X: np.ndarray) -> tuple[float, float, float, float]:
    """Fit, and return the true excess of J, its estimate, and the limits of its interval."""
    found = fit.fit(X).certificate_
    assert found is not None
    excess = fit.inertia_ / -fit.score(X) - 1
    return excess, found["relative_excess"], *found["relative_excess_interval"]


if __name__ == "__main__":
    main()
