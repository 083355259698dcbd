"""`python -m benchmarks.predictions`: approximate predictions of many clusters beside the exact ones.

For rows that the fit has seen, for others, and for calls of a few rows: the least of some seconds of a call, how many
rows get their nearest center, and how far J is above that of nearest centers.
"""

import argparse
from functools import partial
from timeit import repeat

import numpy as np

import cprime
from benchmarks.data import load
from cprime._threads import resolve_threads
from cprime.kernels import instruction_set

REPETITIONS = 5


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.predictions", description=__doc__)
    parser.add_argument("--data", default="sift", metavar="NAME|FILE", help="the data (default: sift)")
    parser.add_argument("-C", "--clusters", type=int, default=65_536, help="clusters (default: 65,536)")
    parser.add_argument("--held-out", type=int, default=40_000, help="rows that no fit sees (default: 40,000)")
    options = parser.parse_args()
    X = np.random.default_rng(0).permutation(load(options.data).X)
    seen, others = X[: -options.held_out], X[-options.held_out :]
    model = cprime.KMeans(options.clusters, random_state=0).fit(seen)
    print(f"{options.data}, C = {options.clusters}, {resolve_threads(None)} threads, {instruction_set()}")
    rows = {"rows of the fit": seen[: len(others)], "others": others, "1000": others[:1000], "100": others[:100]}
    for name, Y in rows.items():
        exact, near = (partial(model.predict, Y, approximate=approximate) for approximate in (False, True))
        wanted, found = exact(), near()
        slow, fast = (min(repeat(call, number=1, repeat=REPETITIONS)) for call in (exact, near))
        J, least = (((Y - model.cluster_centers_[labels]) ** 2).sum(dtype=np.float64) for labels in (found, wanted))
        print(
            f"{name}: exact {slow:.4f} s, approximate {fast:.4f} s, {slow / fast:.1f} times as fast; "
            f"nearest for {(found == wanted).mean():.4f}, J {J / least - 1:+.2%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
