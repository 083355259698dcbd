"""`python -m benchmarks.sparse_text`: compare k-means of sparse documents with scikit-learn's.

It shows the seconds of an iteration over all centers from the same start, those of whole fits with the defaults of
both libraries, and J of each.
"""

import argparse
from time import perf_counter
from typing import Any

import numpy as np
import sklearn
import sklearn.cluster

import cprime
from benchmarks.text import documents
from cprime._utils.threads import resolve_threads


def _timed(estimator: Any, X: Any) -> tuple[Any, float]:
    begin = perf_counter()
    return estimator.fit(X), perf_counter() - begin


def _iteration(make: Any, X: Any, n: int) -> tuple[float, float]:
    """Return the seconds of an iteration, from fits with n + 1 iterations and with 1, and J after n + 1 iterations."""
    make(1).fit(X)  # allocates memory that later fits reuse
    (_, one), (fitted, more) = _timed(make(1), X), _timed(make(n + 1), X)
    return (more - one) / n, float(fitted.inertia_)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sparse_text", description=__doc__)
    parser.add_argument("--documents", type=int, default=200_000, help="rows (default: 200,000)")
    parser.add_argument("--words", type=int, default=30_000, help="columns (default: 30,000)")
    parser.add_argument("-C", "--clusters", type=int, default=1000, help="clusters (default: 1000)")
    parser.add_argument("--iterations", type=int, default=2, help="iterations that are timed (default: 2)")
    parser.add_argument("--only", choices=("iteration", "fit"), help="one of the two")
    parser.add_argument("--without-peer", action="store_true", help="cprime alone")
    options = parser.parse_args()
    X, C = documents(options.documents, options.words), options.clusters
    threads = resolve_threads(None)
    print(f"{X.shape[0]} x {X.shape[1]}, {X.nnz / X.shape[0]:.1f} entries a row, C = {C}, {threads} threads")
    start = X[np.sort(np.random.default_rng(0).choice(X.shape[0], C, replace=False))].toarray()
    exact: dict[str, Any] = {
        f"cprime {cprime.__version__}": lambda n: cprime.KMeans(C, search="full", init=start, max_iter=n, tol=0),
        f"scikit-learn {sklearn.__version__}": lambda n: sklearn.cluster.KMeans(C, init=start, max_iter=n, tol=0),
    }
    whole: dict[str, Any] = {
        f"cprime {cprime.__version__}": cprime.KMeans(C, random_state=0),
        f"scikit-learn {sklearn.__version__}": sklearn.cluster.KMeans(C, n_init=1, random_state=0),
    }
    peers = [name for name in exact if name.startswith("cprime") or not options.without_peer]
    for name in peers if options.only != "fit" else ():
        seconds, J = _iteration(exact[name], X, options.iterations)
        print(f"{name}: {seconds:.2f} s an iteration, J = {J:.7g} after {options.iterations + 1}", flush=True)
    for name in peers if options.only != "iteration" else ():
        fitted, seconds = _timed(whole[name], X)
        print(f"{name}: {seconds:.1f} s a fit, J = {fitted.inertia_:.7g}, {fitted.n_iter_} iterations", flush=True)


if __name__ == "__main__":
    main()
