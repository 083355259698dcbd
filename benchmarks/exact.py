"""The exact half: Lloyd, k-means-C′ and EM per iteration, small data and seeding, each against a peer.

Every figure is a ratio of medians in one run; the J that a competitor reports is recomputed exactly.
"""

import resource
import subprocess
import sys
import warnings
from time import perf_counter

import faiss
import numpy as np
import sklearn.cluster
import sklearn.mixture
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from benchmarks.data import load, random_start
from benchmarks.timing import interleaved, medians, sgemm_rate
from cprime import GaussianMixture, KMeans, kernels, seeding

CASES = (("kdd", 2000), ("msd", 2000), ("sift", 4096), ("patches", 1000))
ISOTROPIC = {"covariance_type": "tied_spherical", "weights": "equal"}


def inertia(X: np.ndarray, centers: np.ndarray) -> float:
    return float(kernels.nearest(X, np.ascontiguousarray(centers, dtype=X.dtype))[1].sum(dtype=np.float64))


def faiss_centers(X: np.ndarray, start: np.ndarray, iterations: int) -> np.ndarray:
    kmeans = faiss.Kmeans(X.shape[1], len(start), niter=iterations, max_points_per_centroid=len(X), seed=1)
    kmeans.train(X, init_centroids=start)
    return kmeans.centroids


def lloyd(iterations: int = 5, repetitions: int = 3) -> None:
    """Seconds an iteration of Lloyd's algorithm and of k-means-C′ with C′ = 5, from the same random rows."""
    print(f"\nLloyd and k-means-C′: seconds of a whole fit by its {iterations} iterations (medians of {repetitions})")
    print(
        "| data | C | cprime | faiss | scikit-learn | cprime / faster peer | of sgemm | "
        "Lloyd, an iteration | C′=5, an iteration | ratio | J / J(peer) − 1 |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    peak = sgemm_rate()
    for name, C in CASES:
        X = load(name)
        if X is None:
            print(f"| {name} | {C} | skipped: no file |")
        else:
            print(_lloyd_row(name, X, C, iterations, repetitions, peak), flush=True)


def _lloyd_row(name: str, X: np.ndarray, C: int, iterations: int, repetitions: int, peak: float) -> str:
    start = random_start(X, C)
    fitted: dict[str, np.ndarray] = {}

    steps: dict[str, list[float]] = {"Lloyd": [], "five": []}  # seconds of each iteration, as the fits record them

    def ours() -> None:
        model = KMeans(C, init=start, search="full", max_iter=iterations, tol=0).fit(X)
        fitted["cprime"] = model.cluster_centers_
        steps["Lloyd"] += model.history_["seconds"][1:].tolist()

    def five() -> None:
        model = GaussianMixture(C, **ISOTROPIC, search="full", n_active=5, means_init=start, max_iter=iterations, tol=0)
        steps["five"] += model.fit(X).history_["seconds"][1:].tolist()

    def by_faiss() -> None:
        fitted["faiss"] = faiss_centers(X, start, iterations)

    def by_sklearn() -> None:
        model = sklearn.cluster.KMeans(C, init=start, n_init=1, max_iter=iterations, tol=0, algorithm="lloyd")
        fitted["scikit-learn"] = model.fit(X).cluster_centers_

    runs = {"cprime": ours, "five": five, "faiss": by_faiss, "scikit-learn": by_sklearn}
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        t = {who: s / iterations for who, s in medians(interleaved(runs, repetitions)).items()}
    peer = min("faiss", "scikit-learn", key=t.__getitem__)
    J = {who: inertia(X, centers) for who, centers in fitted.items()}
    excess = ", ".join(f"{J['cprime'] / J[who] - 1:+.1e} ({who})" for who in ("faiss", "scikit-learn"))
    seconds = " | ".join(f"{t[who]:.3f}" for who in ("cprime", "faiss", "scikit-learn"))
    share = 2 * X.size * C / t["cprime"] / peak
    lloyd_step, five_step = np.median(steps["Lloyd"]), np.median(steps["five"])
    ratios = (
        f"{t['cprime'] / t[peer]:.2f} | {share:.2f} | {lloyd_step:.3f} | {five_step:.3f} | {five_step / lloyd_step:.2f}"
    )
    return f"| {name} | {C} | {seconds} | {ratios} | {excess} |"


def em(iterations: int = 5, repetitions: int = 3) -> None:
    """Exact EM on KDD, C = 200, against scikit-learn's spherical mixture from the same means; peak memory of each."""
    X = load("kdd")
    if X is None:
        print("\nEM: skipped, no file for kdd")
        return
    rows = {}
    for who in ("cprime", "scikit-learn"):
        seconds, peaks = [], []
        for _ in range(repetitions):
            command = [sys.executable, "-m", "benchmarks.exact", "em-child", who, str(iterations)]
            second, peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            seconds.append(float(second))
            peaks.append(float(peak))
        rows[who] = np.median(seconds) / iterations, np.median(peaks)
    ratio = rows["scikit-learn"][0] / rows["cprime"][0]
    print(f"\nEM, KDD (float32), C = 200, {iterations} iterations (medians of {repetitions} processes)")
    print("| | seconds an iteration | peak memory above the loaded data, MB |\n|---|---|---|")
    for who, (second, peak) in rows.items():
        print(f"| {who} | {second:.3f} | {peak:.0f} |")
    print(f"cprime is {ratio:.1f} times faster an iteration")


def em_child(who: str, iterations: int) -> None:
    X = load("kdd")
    assert X is not None
    start = random_start(X, 200)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = perf_counter()
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        if who == "cprime":
            GaussianMixture(200, **ISOTROPIC, n_active=None, means_init=start, max_iter=iterations, tol=1e-300).fit(X)
        else:
            sklearn.mixture.GaussianMixture(
                200,
                covariance_type="spherical",
                means_init=start,
                weights_init=np.full(200, 1 / 200),
                precisions_init=np.full(200, X.shape[1] * len(X) / inertia(X, start)),
                init_params="random_from_data",
                max_iter=iterations,
                tol=0,
            ).fit(X)
    seconds = perf_counter() - begin
    print(seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


def small(repetitions: int = 51) -> None:
    """KMeans(3) on iris: what a call costs."""
    X = load_iris().data
    runs = {
        "cprime": lambda: KMeans(3, random_state=0).fit(X),
        "scikit-learn": lambda: sklearn.cluster.KMeans(3, random_state=0, n_init=1).fit(X),
    }
    t = medians(interleaved(runs, repetitions))
    print(
        f"\niris, KMeans(3).fit: cprime {t['cprime'] * 1e3:.2f} ms, scikit-learn {t['scikit-learn'] * 1e3:.2f} ms, "
        f"ratio {t['cprime'] / t['scikit-learn']:.2f}"
    )


def afk_mc2(C: int = 2000, peer_C: int = 50, repetitions: int = 3) -> None:
    """AFK-MC² (m = 20) on MSD against k-means++: seconds, and J after seeding against plain (not greedy) k-means++.

    scikit-learn's k-means++ is timed at a smaller number of clusters and scaled: its time grows at least linearly.
    """
    X = load("msd")
    if X is None:
        print("\nAFK-MC²: skipped, no file for msd")
        return
    runs = {
        "afk-mc2": lambda: seeding.afk_mc2(X, C, chain_length=20, random_state=0),
        "scikit-learn": lambda: sklearn.cluster.kmeans_plusplus(X, peer_C, random_state=0),
        "greedy": lambda: seeding.kmeans_plusplus(X, peer_C, random_state=0),
    }
    t = medians(interleaved(runs, repetitions))
    scale = C / peer_C
    seeds = range(2)
    J = np.mean([inertia(X, seeding.afk_mc2(X, C, chain_length=20, random_state=s)[0]) for s in seeds])
    plain = np.mean([inertia(X, seeding.kmeans_plusplus(X, C, n_local_trials=1, random_state=s)[0]) for s in seeds])
    print(
        f"\nAFK-MC², MSD, C = {C}: {t['afk-mc2']:.2f} s; scikit-learn's k-means++ at C = {peer_C}: "
        f"{t['scikit-learn']:.2f} s, so at least {t['scikit-learn'] * scale:.0f} s, ratio "
        f"{t['afk-mc2'] / (t['scikit-learn'] * scale):.4f} (k-means++ here: {t['greedy'] / t['scikit-learn']:.2f} of "
        f"scikit-learn's time); J against plain k-means++, mean of {len(seeds)}: {J / plain - 1:+.1%}"
    )


def main() -> None:
    small()
    afk_mc2()
    em()
    lloyd()


if __name__ == "__main__":
    if sys.argv[1:2] == ["em-child"]:
        em_child(sys.argv[2], int(sys.argv[3]))
    else:
        main()
