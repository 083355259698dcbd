"""Run many threads at once: `python -m reliability load --minutes 10 --threads 16 --seed 0`.

Each thread repeats jobs in its own random order: fits with all searches and covariances, on shared arrays and files,
and predictions of shared estimators, with one, two or three threads of the library. Every result must be bit-identical
to that of the job run alone with one thread before.

Memory: the resident set of the process is sampled all the time. The first quarter of the run is warm-up; the median of
the last quarter must be at most 5 % above that of the second one. This is checked in runs of a minute or more.
"""

import argparse
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from cprime import GaussianMixture, KMeans, load, open_data

Job = Callable[[int], bytes]  # takes a number of threads, returns the digest of its results

JUDGED = 60  # least seconds of a run for which its memory is checked
GROWTH = 1.05
SEARCHES = ("full", "bounded", "graph")
COVARIANCES = ("tied_spherical", "spherical", "diag", "tied", "full")


def digest(arrays: Sequence[Any]) -> bytes:
    """Return a digest of the types, shapes and bits of these arrays."""
    found = blake2b(digest_size=16)
    for array in map(np.ascontiguousarray, arrays):
        found.update(repr((array.dtype, array.shape)).encode())
        found.update(array.tobytes())
    return found.digest()


def data(seed: int, n: int = 3000, D: int = 6) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    places = 5 * rng.standard_normal((30, D))
    return places[rng.integers(30, size=n)] + rng.standard_normal((n, D))


def k_means(search: str, n_threads: int) -> KMeans:
    return KMeans(25, search=search, max_iter=8, tol=0, random_state=1, n_threads=n_threads)


def mixture(covariance: str, n_threads: int, n_active: int | None = None) -> GaussianMixture:
    return GaussianMixture(
        8, covariance_type=covariance, n_active=n_active, max_iter=4, tol=0, random_state=1, n_threads=n_threads
    )


def fitted_k_means(X: Any, search: str, n_threads: int) -> bytes:
    model = k_means(search, n_threads).fit(X)
    return digest([model.cluster_centers_, model.labels_, model.inertia_, model.lower_bound_])


def fitted_mixture(X: Any, covariance: str, n_active: int | None, n_threads: int) -> bytes:
    model = mixture(covariance, n_threads, n_active).fit(X)
    return digest([model.means_, model.covariances_, model.weights_, model.lower_bound_])


def online(X: NDArray, n_threads: int) -> bytes:
    model = k_means("full", n_threads)
    for batch in np.array_split(X, 5):
        model.partial_fit(batch)
    return digest([model.cluster_centers_, model.counts_])


def loaded(path: Path, X: NDArray, n_threads: int) -> bytes:
    return digest([load(path).set_params(n_threads=n_threads).predict(X)])


def asked(shared: dict[int, Any], method: str, X: NDArray, n_threads: int) -> bytes:
    return digest([getattr(shared[n_threads], method)(X)])


def jobs(seed: int, folder: Path) -> dict[str, Job]:
    """Return the jobs by name; they share the data, the files and the fitted estimators."""
    X = data(seed)
    inputs = {"float64": X, "float32": X.astype(np.float32), "strided": np.asfortranarray(X)[::2]}
    np.save(folder / "data.npy", X)
    mapped = np.load(folder / "data.npy", mmap_mode="r")
    chunks = open_data(folder / "data.npy", chunk_rows=700)
    out: dict[str, Job] = {}
    for search in SEARCHES:
        for name, given in inputs.items():
            out[f"fit KMeans {search}, {name}"] = partial(fitted_k_means, given, search)
        out[f"fit KMeans {search}, mapped"] = partial(fitted_k_means, mapped, search)
        out[f"fit KMeans {search}, file"] = lambda n, search=search: fitted_k_means(
            open_data(folder / "data.npy", chunk_rows=700), search, n
        )
        models = {n: k_means(search, n).fit(X) for n in (1, 2, 3)}
        for method in ("predict", "transform", "score"):
            out[f"{method} KMeans {search}"] = partial(asked, models, method, X)
    for covariance in COVARIANCES:
        out[f"fit GaussianMixture {covariance}"] = partial(fitted_mixture, X, covariance, None)
        out[f"fit GaussianMixture {covariance}, truncated"] = partial(fitted_mixture, X, covariance, 3)
        mixtures = {n: mixture(covariance, n).fit(X) for n in (1, 2, 3)}
        for method in ("predict", "predict_proba", "score_samples"):
            out[f"{method} GaussianMixture {covariance}"] = partial(asked, mixtures, method, X)
    out["partial_fit KMeans"] = partial(online, X)
    k_means("graph", 1).fit(X).save(folder / "model.safetensors")
    out["load and predict KMeans"] = partial(loaded, folder / "model.safetensors", X)
    out["predict KMeans, shared file"] = lambda n: asked(models, "predict", chunks, n)
    return out


def resident() -> int:
    """Return the resident bytes of this process; without /proc, the peak so far."""
    import resource

    if sys.platform == "linux":
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class Workers:
    """Threads that repeat random jobs during the context."""

    def __init__(self, expected: dict[str, bytes], all_jobs: dict[str, Job], seed: int, n: int):
        self.done: Counter[str] = Counter()
        self.failures: list[str] = []
        self._expected, self._jobs, self._seed = expected, all_jobs, seed
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._threads = [threading.Thread(target=self._work, args=(i,), name=f"load-{i}") for i in range(n)]

    def __enter__(self) -> "Workers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _work(self, number: int) -> None:
        rng, names = np.random.default_rng([self._seed, number]), sorted(self._jobs)
        while not self._stop.is_set():
            name, n_threads = names[rng.integers(len(names))], int(rng.integers(1, 4))
            try:
                same = self._jobs[name](n_threads) == self._expected[name]
                failure = "" if same else "other bits than alone"
            except Exception:
                failure = traceback.format_exc()
            with self._lock:
                self.done[name] += 1
                if failure:
                    self.failures.append(f"{name}, {n_threads} threads: {failure}")


def growth(samples: Sequence[int]) -> float:
    """Return the median memory of a run's last quarter over that of its second; NaN for fewer than four samples."""
    quarter = len(samples) // 4
    if not quarter:
        return float("nan")
    return float(np.median(samples[-quarter:]) / np.median(samples[quarter : 2 * quarter]))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m reliability load", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    seconds = 60 * options.minutes
    warnings.simplefilter("ignore", ConvergenceWarning)  # from fits that are short on purpose
    with tempfile.TemporaryDirectory(prefix="cprime-load-") as folder:
        every = jobs(options.seed, Path(folder))
        expected = {name: job(1) for name, job in every.items()}
        samples, begin = [resident()], time.perf_counter()
        with Workers(expected, every, options.seed, options.threads) as workers:
            while time.perf_counter() - begin < seconds:
                time.sleep(min(5.0, seconds / 40))
                samples.append(resident())
        seconds = time.perf_counter() - begin
    for name in sorted(every):
        print(f"{workers.done[name]:7d}  {name}")
    for failure in workers.failures[:10]:
        print(failure)
    grown = growth(samples)
    judged = seconds >= JUDGED
    print(
        f"load: seed {options.seed}, {options.threads} threads, {workers.done.total()} jobs of {len(every)} kinds in "
        f"{seconds:.0f} s; failures: {len(workers.failures)}; memory {samples[-1] / 2**20:.0f} MiB, last quarter by "
        f"second: {grown:.3f} ({f'at most {GROWTH}' if judged else 'not judged: too short'})"
    )
    failed = workers.failures or not workers.done or (judged and grown > GROWTH)
    return 1 if failed else 0
