"""`python -m benchmarks.predictions`: compare approximate with exact predictions for many clusters.

It times rows of the fit, other rows, and calls with few rows (the least of some calls). It also shows how many rows get
their nearest center, and by how much J exceeds that of nearest centers. For a mixture (`--covariance-type`), after a
few iterations, it compares labels and truncated posteriors: how many have the same components.
"""

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from timeit import repeat

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import cprime
from benchmarks.data import load
from cprime._utils.threads import resolve_threads
from cprime.kernels import instruction_set

REPETITIONS = 5
_MIXTURE = {"n_active": 3, "max_iter": 5, "random_state": 0}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.predictions", description=__doc__)
    parser.add_argument("--data", default="sift", metavar="NAME|FILE", help="the data (default: sift)")
    parser.add_argument("-C", "--clusters", type=int, default=65_536, help="clusters (default: 65,536)")
    parser.add_argument("--held-out", type=int, default=40_000, help="rows that no fit sees (default: 40,000)")
    parser.add_argument("--covariance-type", help="of a mixture, in place of k-means")
    parser.add_argument("--reg-covar", type=float, default=1e-6, help="of a mixture (default: 1e-6)")
    options = parser.parse_args()
    X = np.random.default_rng(0).permutation(load(options.data).X)
    seen, others = X[: -options.held_out], X[-options.held_out :]
    print(f"{options.data}, C = {options.clusters}, {resolve_threads(None)} threads, {instruction_set()}")
    if options.covariance_type:
        settings = {"covariance_type": options.covariance_type, "reg_covar": options.reg_covar}
        mixture(cprime.GaussianMixture(options.clusters, **settings, **_MIXTURE), seen, others)
    else:
        k_means(cprime.KMeans(options.clusters, random_state=0).fit(seen), seen, others)


def k_means(model: cprime.KMeans, seen: NDArray[np.float32], others: NDArray[np.float32]) -> None:
    rows = {"rows of the fit": seen[: len(others)], "others": others, "1000": others[:1000], "100": others[:100]}
    for name, Y in rows.items():
        exact, near = (partial(model.predict, Y, approximate=approximate) for approximate in (False, True))
        wanted, found = exact(), near()
        slow, fast = map(_seconds, (exact, near))
        J, least = (((Y - model.cluster_centers_[labels]) ** 2).sum(dtype=np.float64) for labels in (found, wanted))
        print(
            f"{name}: exact {slow:.4f} s, approximate {fast:.4f} s, {slow / fast:.1f} times as fast; "
            f"nearest for {(found == wanted).mean():.4f}, J {J / least - 1:+.2%}",
            flush=True,
        )


def mixture(model: cprime.GaussianMixture, seen: NDArray[np.float32], others: NDArray[np.float32]) -> None:
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.fit(seen)
    for verb, more in (("predict", {}), ("predict_proba", {"sparse": True})):
        exact, near = (partial(getattr(model, verb), others, **more, approximate=a) for a in (False, True))
        wanted, found = exact(), near()
        if more:
            same = (wanted.indices.reshape(len(others), -1) == found.indices.reshape(len(others), -1)).all(axis=1)
        else:
            same = wanted == found
        slow, fast = map(_seconds, (exact, near))
        print(
            f"{verb}: exact {slow:.4f} s, approximate {fast:.4f} s, {slow / fast:.1f} times as fast; "
            f"the same for {same.mean():.4f}",
            flush=True,
        )
    print(f"shortfall of F: {model.certify(others)['shortfall']:.4f} nats a row")


def _seconds(call: Callable[[], object]) -> float:
    """Return the least seconds of some calls."""
    return min(repeat(call, number=1, repeat=REPETITIONS))


if __name__ == "__main__":
    main()
