"""Many clusters: KMeans with its default settings against faiss's Kmeans after 25 iterations.

Time is everything after the data are in memory, the start included for both. Quality is the exact J of the centres
that a competitor returns, as a share of faiss's. faiss starts from random rows and is given all points, not a sample.
"""

from time import perf_counter

import faiss
import numpy as np

from benchmarks.data import load
from benchmarks.exact import inertia
from benchmarks.timing import interleaved, medians
from cprime import KMeans

CASES = (("kdd", 2000, 3), ("msd", 2000, 3), ("sift", 4096, 2), ("sift", 16384, 1), ("patches", 4096, 2))


def row(name: str, X: np.ndarray, C: int, repetitions: int) -> str:
    """One line of the table: both fits in turn, `repetitions` times."""
    fitted: dict[str, np.ndarray] = {}
    models: list[KMeans] = []

    def ours() -> None:
        models.append(KMeans(C, random_state=len(models)).fit(X))

    def by_faiss() -> None:
        kmeans = faiss.Kmeans(X.shape[1], C, niter=25, max_points_per_centroid=len(X), seed=len(models))
        kmeans.train(X)
        fitted["faiss"] = kmeans.centroids

    t = medians(interleaved({"cprime": ours, "faiss": by_faiss}, repetitions))
    reference = inertia(X, fitted["faiss"])
    J = float(np.median([inertia(X, model.cluster_centers_) for model in models]))
    model = models[-1]
    evaluations = model.history_["n_distances"].sum() / len(X)
    certificate = model.certificate_ or {"agreement": 1.0, "relative_excess": 0.0}
    return (
        f"| {name} {X.shape[0]:,} × {X.shape[1]} | {C} | {t['cprime']:.2f} | {t['faiss']:.2f} | "
        f"{t['faiss'] / t['cprime']:.1f}× | {J / reference - 1:+.2%} | {model.n_iter_} | {model.neighbors_.shape[1]} | "
        f"{evaluations:,.0f} | {25 * C:,} | {certificate['agreement']:.3f} | {certificate['relative_excess']:.2%} |"
    )


def main() -> None:
    begin = perf_counter()
    print("\nKMeans(n_clusters=C), default settings, against 25 iterations of faiss (medians)")
    print(
        "| data | C | cprime s | faiss s | speed-up | J against faiss | iterations | G | evaluations a point | "
        "faiss's | agreement | excess of J |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name, C, repetitions in CASES:
        X = load(name)
        if X is None:
            print(f"| {name} | {C} | skipped: no file |")
        else:
            print(row(name, X, C, repetitions), flush=True)
    print(f"{perf_counter() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
