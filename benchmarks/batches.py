"""`python -m benchmarks.batches`: compare default and exact search in `KMeans.partial_fit` of many clusters.

Both process the same mini-batches in one process, from the same start. Shown are the seconds of whole calls, and J of
rows that were in no batch, by exact assignment.
"""

import argparse
from time import perf_counter

import numpy as np

import cprime
from benchmarks.data import load, random_start
from benchmarks.rounds import median
from cprime._utils.threads import resolve_threads


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batches", description=__doc__)
    parser.add_argument("--data", default="sift", metavar="NAME|FILE", help="the data (default: sift)")
    parser.add_argument("-C", "--clusters", type=int, default=65_536, help="clusters (default: 65,536)")
    parser.add_argument("--rows", type=int, default=10_000, help="of a batch (default: 10,000)")
    parser.add_argument("--batches", type=int, default=20, help="after the first one (default: 20)")
    parser.add_argument("--held-out", type=int, default=10_000, help="rows that J is of (default: 10,000)")
    options = parser.parse_args()
    C, n = options.clusters, options.rows
    X = np.random.default_rng(0).permutation(load(options.data).X)
    first, held_out = X[:C], X[-options.held_out :]
    batches = [X[begin : begin + n] for begin in range(C, len(X) - options.held_out - n + 1, n)][: options.batches]
    print(f"{options.data}, C = {C}, {len(batches)} batches of {n} rows, {resolve_threads(None)} threads")
    start = random_start(first, C, 0)
    models = {search: cprime.KMeans(C, init=start, search=search, random_state=0) for search in ("full", "auto")}
    seconds: dict[str, list[float]] = {search: [] for search in models}
    for batch in (first, *batches):
        for search, model in models.items():
            begin = perf_counter()
            model.partial_fit(batch)
            seconds[search].append(perf_counter() - begin)
    exact = models["full"].score(held_out)
    for search, model in models.items():
        begin, times = seconds[search][0], seconds[search][1:]
        share, excess = median(times) / median(seconds["full"][1:]), model.score(held_out) / exact - 1
        print(
            f"search={search!r}: {median(times):.3f} s a batch (at most {max(times):.3f}, all {sum(times):.1f}), "
            f"{share:.3f} of the exact search's; first batch {begin:.1f} s; J {excess:+.2%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
