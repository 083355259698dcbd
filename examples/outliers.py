"""Outliers by density

Points are drawn from 30 stretched and turned Gaussians, and outliers are planted among them, uniformly in a box around
all. Mixtures are fitted to everything, and the points of least log-density, `score_samples`, are taken for outliers;
beside them is scikit-learn's `IsolationForest` with its default settings. Who was planted serves to judge alone. With
enough components the clusters are described, and a broad one takes up the outliers, at low density.

The second data set warns. In scikit-learn's handwritten digits some are turned by a right angle. These are alike, and
with many components they have dense ones of their own. There a single Gaussian, which is the Mahalanobis distance from
the mean, does best.
"""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score, roc_curve

from cprime import GaussianMixture
from cprime._style import BLUE, GREEN, ORANGE, VERMILION, frame, name_curve
from examples.result import table, write

SHARE = 0.03
MIXTURES = {f"mixture, C = {C}": C for C in (1, 5, 30)}
LARGEST = [*MIXTURES][-1]
COLORS = dict(zip((*MIXTURES, "IsolationForest"), (GREEN, ORANGE, VERMILION, BLUE), strict=True))


def main(output: Path, small: bool = False) -> None:
    """All detectors on both data sets."""
    rng = np.random.default_rng(0)
    data = {"stretched clusters": plane(rng, 1500 if small else 12_000), "digits": digits(rng)}
    lines, curves, fitted = [], {}, {}
    for name, (X, planted) in data.items():
        detectors = {
            name: GaussianMixture(C, reg_covar=1e-3, n_init=3, max_iter=300, random_state=0)
            for name, C in MIXTURES.items()
        }
        detectors["IsolationForest"] = IsolationForest(random_state=0)
        scores = {detector: estimator.fit(X).score_samples(X) for detector, estimator in detectors.items()}
        k = int(planted.sum())
        rows = [
            (
                detector,
                f"{roc_auc_score(planted, -score):.3f}",
                f"{planted[score.argsort()[:k]].mean():.3f}",
                f"{apart(detectors[detector].predict(X), planted):.3f}" if detector in MIXTURES else "",
            )
            for detector, score in scores.items()
        ]
        lines += [f"{name}: {len(X):,} points in {X.shape[1]} dimensions, {k} planted"]
        lines += table(("", "area under the ROC", f"planted among the {k} lowest", "planted, apart"), rows)
        curves[name] = {detector: roc_curve(planted, -score)[:2] for detector, score in scores.items()}
        fitted[name] = detectors[LARGEST]
    lines.append("Planted, apart: the share of them in components that hold more planted points than others.")
    plane_name = next(iter(data))
    write(output, __name__, draw(*data[plane_name], fitted[plane_name], curves), lines)


def plane(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 2) around 30 centers, and which of them were planted (n,)."""
    centers = rng.uniform(0, 40, (30, 2))
    factors = rng.standard_normal((30, 2, 2)) * np.array([1.5, 0.3])
    owners = rng.integers(0, 30, n)
    X = centers[owners] + np.einsum("nij,nj->ni", factors[owners], rng.standard_normal((n, 2)))
    planted = rng.random(n) < SHARE
    X[planted] = rng.uniform(X.min(axis=0), X.max(axis=0), (planted.sum(), 2))
    return X, planted


def digits(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of digits on their 20 principal directions, and which of them were turned."""
    images = load_digits().images.copy()
    planted = rng.random(len(images)) < SHARE
    images[planted] = np.rot90(images[planted], axes=(1, 2))
    return PCA(20, random_state=0).fit_transform(images.reshape(len(images), -1)), planted


def apart(labels: np.ndarray, planted: np.ndarray) -> float:
    """The share of the planted points that are in clusters in which they are the majority."""
    counts, held = np.bincount(labels), np.bincount(labels, planted)
    return float(held[2 * held > counts].sum() / planted.sum())


def draw(X: np.ndarray, planted: np.ndarray, mixture: GaussianMixture, curves: dict[str, dict]) -> Figure:
    """The density in the plane with who was found, and the ROC of both data sets."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    density, *rocs = figure.subplots(1, 3, width_ratios=(1.2, 1, 1))
    draw_density(density, X, planted, mixture)
    for i, (detector, color) in enumerate(COLORS.items()):
        name_curve(rocs[0], detector, (0.5, 0.34 - 0.09 * i), color)
    for ax, (name, found) in zip(rocs, curves.items(), strict=True):
        frame(ax, name, "false positive rate", "true positive rate")
        for detector, (false, true) in found.items():
            ax.plot(false, true, color=COLORS[detector], linewidth=1.5)
        ax.plot((0, 1), (0, 1), ":", color="0.5", linewidth=1)
    return figure


def draw_density(ax: Axes, X: np.ndarray, planted: np.ndarray, mixture: GaussianMixture) -> None:
    """Contours of log p, and the points that were planted, filled where they are among the lowest."""
    frame(ax, "log-density (C = 30) and the planted")
    sides = [np.linspace(low, high, 200) for low, high in zip(X.min(axis=0), X.max(axis=0), strict=True)]
    grid = np.stack(np.meshgrid(*sides), axis=-1)
    values = mixture.score_samples(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    ax.contourf(*sides, np.maximum(values, -14), levels=12, cmap="Blues")
    low = np.argsort(mixture.score_samples(X))[: planted.sum()]
    found = np.isin(np.arange(len(X)), low)
    ax.plot(*X[planted & found].T, "o", color=VERMILION, markersize=3)
    ax.plot(*X[planted & ~found].T, "o", color=VERMILION, markersize=3, fillstyle="none")
    ax.set_xticks([])
    ax.set_yticks([])
