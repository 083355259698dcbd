"""`cprime demo`: k-means and k-means-C′ on patches of photographs, compared in a table and in pictures."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from cprime import GaussianMixture, KMeans, kernels
from cprime._files import writable_target
from cprime.callbacks import ProgressBar
from cprime.cli.outputs import print_json
from cprime.cli.summary import centers
from cprime.datasets import patches
from cprime.estimators.quality import certificate_text
from cprime.seeding import seed

_SIZE = 8
_SEED = 0
_PEAK = 255.0


@dataclass(frozen=True)
class Scale:
    """How large a demonstration is: clusters, and the iterations after which L is computed, the last too."""

    n_clusters: int
    checkpoints: tuple[int, ...]


FULL = Scale(1000, (1, 2, 4, 8, 14, 20))
SMALL = Scale(64, (1, 2, 4, 8, 14, 20))


@dataclass(frozen=True)
class Run:
    """A finished fit with its history by iteration, and L after the checkpoints."""

    name: str
    file: str
    estimator: Any
    log_likelihood: list[float]
    kl_gap: list[float]
    quantization_error: float

    @property
    def label(self) -> str:
        """Its name in pictures."""
        return f"{self.name} (C′ = {self.estimator.n_active_})"

    @property
    def figures(self) -> dict[str, Any]:
        """What the table says of it."""
        F, L = self.estimator.lower_bound_, self.log_likelihood[-1]  # after the last iteration
        return {
            "name": self.name,
            "n_active": self.estimator.n_active_,
            "quantization_error": self.quantization_error,
            "free_energy": F,
            "log_likelihood": L,
            "kl_gap": L - F,
            "seconds": float(self.estimator.history_["seconds"].sum()),
        }


def demo(output: Path, *, small: bool, threads: int | None, as_json: bool) -> None:
    """Run the command: fit both, write models and pictures to the folder `output`, print the table."""
    begin = perf_counter()
    _require_extras()
    output.mkdir(parents=True, exist_ok=True)
    writable_target(output / "kmeans.safetensors")

    scale = SMALL if small else FULL
    data = patches(_half(patches(size=1).images[0]) if small else None, size=_SIZE)
    X, C = data.data, scale.n_clusters
    start = perf_counter()
    first = seed(X, C, "afk-mc2", random_state=_SEED, n_threads=threads)
    seconds_seeding = perf_counter() - start
    common: dict[str, Any] = {"tol": 0.0, "n_threads": threads, "random_state": _SEED}
    mixture = GaussianMixture(
        C, covariance_type="tied_spherical", weights="equal", n_active=3, means_init=first, momentum=False, **common
    )
    runs = [
        _run("k-means", "kmeans", KMeans(C, init=first, **common), X, scale),
        _run("k-means-C′", "kmeans-c3", mixture, X, scale),
    ]
    others = _others(X, C, first, scale.checkpoints[-1], threads)
    psnr = _write(output, runs, X, data.images[0], scale)

    rows = [{**run.figures, "psnr": decibels} for run, decibels in zip(runs, psnr, strict=True)]
    figures = {
        "n_samples": len(X),
        "n_features": X.shape[1],
        "n_components": C,
        "n_iter": scale.checkpoints[-1],
        "seconds_seeding": seconds_seeding,
        "seconds_total": perf_counter() - begin,
        "output": output,
        "runs": rows,
        "others": others,
    }
    if as_json:
        print_json(figures)
    else:
        _print(figures, sorted(path.name for path in output.iterdir()))


def _require_extras() -> None:
    for module, package in (("matplotlib", "matplotlib"), ("PIL", "pillow")):
        if find_spec(module) is None:
            raise ImportError(f'the demo needs {package}, which is missing: pip install "cprime[plots,images]"')


def _half(image: np.ndarray) -> np.ndarray:
    """A photograph at half its size: the means of 2 × 2 pixels."""
    height, width = (length // 2 for length in image.shape)
    return image[: 2 * height, : 2 * width].reshape(height, 2, width, 2).mean(axis=(1, 3))


def _run(name: str, file: str, estimator: Any, X: np.ndarray, scale: Scale) -> Run:
    """Fit for a fixed number of iterations; L is exact, on all points, after each of the checkpoints."""
    likelihoods: list[float] = []
    gaps: list[float] = []

    def watch(row: dict[str, Any], standing: Any) -> None:
        if row["iteration"] in scale.checkpoints:
            bounds = standing.bounds(X)  # F and L of the same parameters
            likelihoods.append(bounds.log_likelihood)
            gaps.append(bounds.kl_gap)

    bar = ProgressBar(name, transient=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.set_params(max_iter=scale.checkpoints[-1], callbacks=[bar, watch]).fit(X)
    return Run(name, file, estimator, likelihoods, gaps, _quantization_error(estimator, X))


def _others(X: np.ndarray, C: int, first: np.ndarray, n_iter: int, threads: int | None) -> list[dict[str, Any]]:
    """To compare with: scikit-learn's k-means from the same start, and this library's along lists, from its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = []
        for name, estimator in (
            ("scikit-learn", SklearnKMeans(C, init=first, n_init=1, max_iter=n_iter, tol=0)),
            ("by lists", KMeans(C, search="graph", n_threads=threads, random_state=_SEED)),
        ):
            start = perf_counter()
            with threadpool_limits(threads):
                estimator.fit(X)
            seconds = perf_counter() - start
            figures = {"name": name, "quantization_error": float(estimator.inertia_), "seconds": seconds}
            found.append({**figures, "n_iter": estimator.n_iter_, "certificate": certificate_text(estimator)})
    return found


def _quantization_error(estimator: Any, X: np.ndarray) -> float:
    """J of the fitted centers."""
    if isinstance(estimator, KMeans):
        return estimator.inertia_
    distances = kernels.nearest(X, centers(estimator), n_threads=estimator.n_threads)[1]
    return float(distances.sum(dtype=np.float64))


def _write(output: Path, runs: list[Run], X: np.ndarray, photograph: np.ndarray, scale: Scale) -> list[float]:
    """Models and pictures; returns the PSNR of each run's photograph in decibels."""
    from cprime.cli.pictures import Curve, draw_codebook, draw_curves, draw_photographs

    subject = f"{len(X):,} patches of {_SIZE} × {_SIZE} pixels, {scale.n_clusters:,} clusters"
    curves, images, titles, psnr = [], [_cropped(photograph)], ["before"], []
    for run in runs:
        estimator = run.estimator
        estimator.save(output / f"{run.file}.safetensors")
        history = estimator.history_
        curves.append(
            Curve(
                run.label,
                np.append(history["lower_bound"][1:], estimator.lower_bound_),
                np.append(history["quantization_error"][1:], run.quantization_error),
                scale.checkpoints,
                run.log_likelihood,
                run.kl_gap,
            )
        )
        counts = np.bincount(estimator.labels_, minlength=scale.n_clusters)
        draw_codebook(
            output / f"codebook-{run.file}.png",
            centers(estimator),
            counts,
            f"{scale.n_clusters:,} centers of {run.label}, those of most patches first",
        )
        images.append(_quantised(estimator, images[0]))
        psnr.append(10 * np.log10(_PEAK**2 / np.square(images[-1] - images[0], dtype=np.float64).mean()))
        titles.append(f"after {run.label}: PSNR {psnr[-1]:.2f} dB")
    draw_curves(output / "curves.png", curves, subject)
    draw_photographs(output / "photograph.png", images, titles)
    return psnr


def _cropped(image: np.ndarray) -> np.ndarray:
    """A photograph without the rows and columns that do not fill a patch."""
    height, width = (length - length % _SIZE for length in image.shape)
    return image[:height, :width]


def _quantised(estimator: Any, image: np.ndarray) -> np.ndarray:
    """A photograph in which each of the patches that tile it is replaced by its nearest center."""
    height, width = image.shape
    blocks = image.reshape(height // _SIZE, _SIZE, width // _SIZE, _SIZE).swapaxes(1, 2)
    labels = estimator.predict(blocks.reshape(-1, _SIZE * _SIZE))
    return centers(estimator)[labels].reshape(blocks.shape).swapaxes(1, 2).reshape(height, width)


def _print(figures: Mapping[str, Any], files: list[str]) -> None:
    """The table, and what was written where."""
    console = Console()
    table = Table(
        title=f"{figures['n_samples']:,} patches in {figures['n_features']} dimensions, "
        f"{figures['n_components']:,} clusters, {figures['n_iter']} iterations from one start",
        caption="J: sum of squared distances; F ≤ L: nats per point; s: E- and M-steps; dB: PSNR",
        box=SIMPLE_HEAD,
    )
    table.add_column("", no_wrap=True)
    for heading in ("C′", "J", "F", "L", "L−F", "s", "dB"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in figures["runs"]:
        table.add_row(
            row["name"],
            str(row["n_active"]),
            f"{row['quantization_error']:.5g}",
            f"{row['free_energy']:.3f}",
            f"{row['log_likelihood']:.3f}",
            f"{row['kl_gap']:.3f}",
            f"{row['seconds']:.1f}",
            f"{row['psnr']:.2f}",
        )
    for row in figures["others"]:
        J, seconds = f"{row['quantization_error']:.5g}", f"{row['seconds']:.1f}"
        table.add_row(row["name"], "1", J, "", "", "", seconds, "")
    console.print(table)
    for row in figures["others"]:
        if row["certificate"] is not None:
            console.print(f"{row['name']}: {row['n_iter']} iterations; {row['certificate']}", highlight=False)
    console.print(
        f"{figures['seconds_total']:.1f} s in all, {figures['seconds_seeding']:.1f} s of it for the start. "
        f"In {figures['output']}: {', '.join(files)}",
        highlight=False,
        markup=False,
    )
