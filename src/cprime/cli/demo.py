"""`cprime demo`: k-means compared with scikit-learn's on patches of photographs, and mixtures with C′ = 1 and 3."""

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

from cprime import GaussianMixture, KMeans
from cprime._utils.files import writable_target
from cprime.callbacks import ProgressBar
from cprime.cli.outputs import print_json
from cprime.datasets import assembled, patches
from cprime.estimators.fitted import centers_of
from cprime.estimators.quality import certificate_text
from cprime.seeding import seed
from cprime.theory import posterior_mean

_SIZE = 8
_SEED = 0
_PEAK = 255.0
_NOISE = 20.0  # standard deviation of the added noise, in gray levels


@dataclass(frozen=True)
class Scale:
    """Size of a demonstration.

    n_clusters: number of clusters of the k-means fits    n_iter: their number of iterations, if it is fixed
    n_components: number of components of the mixtures    n_train: number of training patches of the first photograph
    n_held_out: number of patches of the second photograph, on which free energy F and log-likelihood L are computed
    """

    n_clusters: int
    n_iter: int
    n_components: int
    n_train: int
    n_held_out: int


FULL = Scale(1000, 10, 100, 100_000, 20_000)
SMALL = Scale(64, 20, 16, 20_000, 5_000)


@dataclass(frozen=True)
class KMeansRun:
    """Result of a k-means fit.

    course: elapsed seconds and squared error J after each iteration, two arrays of shape (n_iter,); of shape (1,), with
    the values after the last iteration, for scikit-learn
    """

    name: str
    estimator: Any
    seconds: float
    course: tuple[np.ndarray, np.ndarray]

    @property
    def figures(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "n_iter": self.estimator.n_iter_,
            "seconds": self.seconds,
            "quantization_error": float(self.estimator.inertia_),
            "certificate": certificate_text(getattr(self.estimator, "certificate_", None)),
        }


@dataclass(frozen=True)
class PatchModel:
    """Fitted model of image patches, with its free energy and log-likelihood on held-out patches.

    restored: the second photograph, denoised by the model    psnr: its peak signal-to-noise ratio [decibels]
    """

    name: str
    estimator: Any
    seconds: float
    iterations: list[int]
    free_energy: list[float]
    log_likelihood: list[float]
    restored: np.ndarray
    psnr: float

    @property
    def kl_gaps(self) -> list[float]:
        """Return a list of the gaps L − F of log-likelihood and free energy [nats per point] after each iteration."""
        return [L - F for F, L in zip(self.free_energy, self.log_likelihood, strict=True)]

    @property
    def figures(self) -> dict[str, Any]:
        estimator = self.estimator
        F, L = self.free_energy[-1], self.log_likelihood[-1]
        return {
            "name": self.name,
            "n_components": len(centers_of(estimator)),
            "n_active": estimator.n_active_,
            "seconds": self.seconds,
            "free_energy": F,
            "log_likelihood": L,
            "kl_gap": L - F,
            "kl_gaps": self.kl_gaps,
            "psnr": self.psnr,
        }


def demo(output: Path, *, small: bool, threads: int | None, as_json: bool) -> None:
    """Run `cprime demo`: fit the models, write models, pictures and a report to the folder `output`, print tables."""
    begin = perf_counter()
    _require_extras()
    output.mkdir(parents=True, exist_ok=True)
    writable_target(output / "kmeans.safetensors")

    scale = SMALL if small else FULL
    photographs = patches(size=1).images
    if small:
        photographs = [_half(image) for image in photographs]
    X = patches(photographs, size=_SIZE).data
    fits = _k_means(X, scale, threads)
    clean = photographs[1]
    noisy = clean + np.random.default_rng(_SEED).normal(0, _NOISE, clean.shape)
    models = _models(photographs, noisy, scale, threads)
    figures = {
        "n_samples": len(X),
        "n_features": X.shape[1],
        "n_clusters": scale.n_clusters,
        "k_means": [fit.figures for fit in fits],
        "n_train": scale.n_train,
        "n_held_out": scale.n_held_out,
        "noise": _NOISE,
        "psnr_noisy": _psnr(noisy, clean),
        "models": [model.figures for model in models],
        "output": output,
    }
    _write(output, figures, fits, models, (clean, noisy), X)
    figures["seconds_total"] = perf_counter() - begin
    if as_json:
        print_json(figures)
    else:
        _print(figures, sorted(path.name for path in output.iterdir() if path.suffix != ".html"))


def _require_extras() -> None:
    for module, package in (("matplotlib", "matplotlib"), ("PIL", "pillow"), ("jinja2", "jinja2")):
        if find_spec(module) is None:
            raise ImportError(f"the demo needs {package}, which is missing: pip install {package}")


def _half(image: np.ndarray) -> np.ndarray:
    """Return a photograph at half its size: the means of 2 × 2 pixels."""
    height, width = (length // 2 for length in image.shape)
    return image[: 2 * height, : 2 * width].reshape(height, 2, width, 2).mean(axis=(1, 3))


def _k_means(X: np.ndarray, scale: Scale, threads: int | None) -> list[KMeansRun]:
    """Fit k-means to X three times and return the results.

    The fits are: scikit-learn's, cprime's from the same initial centers with as many iterations, and one with cprime's
    default arguments.
    """
    C, n_iter = scale.n_clusters, scale.n_iter
    first = seed(X, C, "afk-mc2", random_state=_SEED, n_threads=threads)
    peer = SklearnKMeans(C, init=first, n_init=1, max_iter=n_iter, tol=0)
    same = KMeans(C, init=first, search="bounded", max_iter=n_iter, tol=0, n_threads=threads)
    default = KMeans(C, n_threads=threads, random_state=_SEED)
    found = []
    for name, estimator in (("scikit-learn", peer), ("cprime, the same", same), ("cprime", default)):
        seconds = _timed(name, estimator, X, threads)
        if estimator is peer:
            course = np.array([seconds]), np.array([estimator.inertia_])
        else:
            history = estimator.history_
            course = np.cumsum(history["seconds"]), np.append(history["quantization_error"][1:], estimator.inertia_)
        found.append(KMeansRun(name, estimator, seconds, course))
    return found


def _timed(name: str, estimator: Any, X: np.ndarray, threads: int | None) -> float:
    """Fit an estimator to X, with a progress bar if it supports callbacks, and return the elapsed seconds."""
    if not isinstance(estimator, SklearnKMeans):
        bar = ProgressBar(name, transient=True)
        estimator.set_params(callbacks=[bar, *(estimator.callbacks or [])])
    start = perf_counter()
    with warnings.catch_warnings(), threadpool_limits(threads):
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(X)
    return perf_counter() - start


def _models(photographs: list[np.ndarray], noisy: np.ndarray, scale: Scale, threads: int | None) -> list[PatchModel]:
    """Fit k-means and mixtures with C′ = 1 and C′ = 3 to patches of the first photograph; return one result each.

    They are evaluated on patches of the second photograph. noisy: the second photograph with noise, to be denoised
    """
    rng = np.random.default_rng(_SEED)
    seen, unseen = (patches(image, size=_SIZE).data for image in photographs)
    train = seen[np.sort(rng.choice(len(seen), scale.n_train, replace=False))]
    held_out = unseen[np.sort(rng.choice(len(unseen), scale.n_held_out, replace=False))]
    Y = patches(noisy, size=_SIZE).data
    common: dict[str, Any] = {"random_state": _SEED, "n_threads": threads}
    # reg_covar is of the size of the rounding errors of gray levels, so it changes the covariances little.
    mixtures = [
        GaussianMixture(scale.n_components, n_active=n_active, max_iter=scale.n_iter, reg_covar=0.1, **common)
        for n_active in (1, 3)
    ]
    found = []
    for name, estimator in (("k-means", KMeans(scale.n_clusters, **common)), *(("mixture", m) for m in mixtures)):
        bounds: list[tuple[int, float, float]] = []

        def watch(row: Mapping[str, Any], standing: Any, bounds: list[tuple[int, float, float]] = bounds) -> None:
            now = standing.bounds(held_out)
            bounds.append((row["iteration"], now.free_energy, now.log_likelihood))

        estimator.set_params(callbacks=[watch])
        _timed(f"{name}, C′ = {getattr(estimator, 'n_active', 1)}", estimator, train, threads)
        now = estimator.bounds(held_out)
        bounds[-1] = (bounds[-1][0], now.free_energy, now.log_likelihood)
        if not hasattr(estimator, "predict_proba"):
            rows = estimator.cluster_centers_[estimator.predict(Y)]
        else:
            rows = posterior_mean(estimator, Y, _NOISE**2)
        restored = assembled(rows, noisy.shape)
        seconds = float(estimator.history_["seconds"].sum())
        iterations, F, L = (list(values) for values in zip(*bounds, strict=True))
        found.append(PatchModel(name, estimator, seconds, iterations, F, L, restored, _psnr(restored, photographs[1])))
    return found


def _psnr(image: np.ndarray, clean: np.ndarray) -> float:
    """Return the peak signal-to-noise ratio of an image compared with the clean one, in decibels."""
    return float(10 * np.log10(_PEAK**2 / np.square(image - clean, dtype=np.float64).mean()))


def _write(
    output: Path,
    figures: Mapping[str, Any],
    fits: list[KMeansRun],
    models: list[PatchModel],
    photographs: tuple[np.ndarray, np.ndarray],
    X: np.ndarray,
) -> None:
    """Write models, pictures, and the report of the k-means fit with default arguments to the folder `output`."""
    from cprime.cli.demo_pictures import Descent, GapCurve, draw_codebook, draw_curves, draw_photographs

    k_means, mixture = fits[-1].estimator, models[-1].estimator
    k_means.save(output / "kmeans.safetensors")
    mixture.save(output / "mixture.safetensors")
    k_means.report(X, image_shape=(_SIZE, _SIZE)).save(output / "report.html")
    draw_curves(
        output / "curves.png",
        [Descent(fit.name, *fit.course) for fit in fits],
        [GapCurve(f"C′ = {model.estimator.n_active_}", model.iterations, model.kl_gaps) for model in models[1:]],
        (
            f"k-means: {len(X):,} patches, {figures['n_clusters']:,} clusters",
            f"what C′ leaves of {mixture.n_components} Gaussians: patches not seen",
        ),
    )
    draw_codebook(output / "codebook.png", k_means, f"{figures['n_clusters']:,} centers, those of most patches first")
    draw_photographs(
        output / "photograph.png",
        [*photographs, models[0].restored, models[-1].restored],
        [
            "not seen by the models",
            f"with noise of {_NOISE:g} grey levels: {figures['psnr_noisy']:.2f} dB",
            f"nearest centers of k-means: {models[0].psnr:.2f} dB",
            f"posterior mean of the mixture, C′ = {mixture.n_active_}: {models[-1].psnr:.2f} dB",
        ],
    )


def _print(figures: Mapping[str, Any], files: list[str]) -> None:
    """Print the tables and the paths of the written files."""
    console = Console()
    console.print(_table_of_k_means(figures))
    certificate = figures["k_means"][-1]["certificate"]
    if certificate is not None:
        console.print(f"certificate: {certificate}\n", highlight=False)
    console.print(_table_of_models(figures))
    console.print(
        f"{figures['seconds_total']:.1f} s in all. The k-means as a page: {figures['output'] / 'report.html'}; beside "
        f"it {', '.join(files)}",
        highlight=False,
        markup=False,
    )


def _table_of_k_means(figures: Mapping[str, Any]) -> Table:
    rows = figures["k_means"]
    table = _table(
        f"k-means: {figures['n_samples']:,} patches in {figures['n_features']} dimensions, "
        f"{figures['n_clusters']:,} clusters",
        "the same: scikit-learn's start and number of iterations; ΔJ, speed: against it",
        ("iterations", "s", "J", "ΔJ", "speed"),
    )
    for row in rows:
        J, seconds = row["quantization_error"], row["seconds"]
        against = [f"{100 * (J / rows[0]['quantization_error'] - 1):+.2f} %", f"{rows[0]['seconds'] / seconds:.1f}×"]
        table.add_row(
            row["name"], str(row["n_iter"]), f"{seconds:.1f}", f"{J:.5g}", *(("", "") if row is rows[0] else against)
        )
    return table


def _table_of_models(figures: Mapping[str, Any]) -> Table:
    table = _table(
        f"learned from {figures['n_train']:,} patches of one photograph, judged by another",
        f"F ≤ L: nats a patch, on {figures['n_held_out']:,} of the other; dB: PSNR of it restored, "
        f"{figures['psnr_noisy']:.2f} with the noise",
        ("C", "C′", "s", "F", "L", "L − F", "dB"),
    )
    for row in figures["models"]:
        table.add_row(
            row["name"],
            f"{row['n_components']:,}",
            str(row["n_active"]),
            f"{row['seconds']:.1f}",
            *(f"{row[name]:.3f}" for name in ("free_energy", "log_likelihood", "kl_gap")),
            f"{row['psnr']:.2f}",
        )
    return table


def _table(title: str, caption: str, headings: tuple[str, ...]) -> Table:
    table = Table(title=title, caption=caption, box=SIMPLE_HEAD, title_justify="left", caption_justify="left")
    table.add_column("", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
