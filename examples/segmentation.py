"""A photograph in segments

Every pixel is a point of five numbers, colour and position, and a segment is a component. The clusters of k-means are
round and of a like size in the units that are chosen; mixtures with full covariance matrices find regions that are
stretched, turned and of unlike size, and their likelihood prefers the same ones in any units. All three fits have the
same start. Fitted softly, a pixel belongs to several segments by its responsibilities, whose entropy shows where it is
undecided; fitted hard (classification EM), it counts for the best one only.
"""

from pathlib import Path

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from scipy import ndimage
from scipy.stats import entropy
from sklearn.datasets import load_sample_image
from sklearn.metrics import adjusted_rand_score

from cprime import GaussianMixture, KMeans
from cprime._style import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, YELLOW
from examples.result import table, write

C = 8


def main(output: Path, small: bool = False) -> None:
    """k-means and two mixtures of the same C, from the same start."""
    image = load_sample_image("china.jpg")[:: 8 if small else 2, :: 8 if small else 2] / 255
    X = features(image)
    km = KMeans(C, n_init=5, random_state=0).fit(X)
    soft = GaussianMixture(C, n_active=None, init_params=km, reg_covar=1e-4, max_iter=300).fit(X)
    hard = GaussianMixture(C, assignment="hard", init_params=km, reg_covar=1e-4, max_iter=300).fit(X)
    fits = {"k-means": km, "mixture, hard": hard, "mixture, soft": soft}
    rows = []
    for name, fit in fits.items():
        F, L, gap, _ = fit.bounds(X)
        agreement = adjusted_rand_score(soft.labels_, fit.labels_)
        pieces = f"{n_pieces(fit.labels_.reshape(image.shape[:2]))}"
        rows.append((name, pieces, f"{agreement:.3f}", f"{F:.4f}", f"{L:.4f}", f"{abs(gap):.4f}"))
    lines = table((f"C = {C}", "connected pieces", "Rand index with soft", "F", "L", "L − F"), rows)
    R = soft.predict_proba(X)
    undecided = (R.max(axis=1) < 0.9).mean()
    lines += [
        "F ≤ L in nats a pixel, of standardised features; the Rand index is adjusted for chance.",
        f"{undecided:.1%} of the pixels give no segment of the soft fit as much as 0.9.",
    ]
    write(output, __name__, draw(image, fits, R), lines)


def features(image: np.ndarray) -> np.ndarray:
    """(height · width, 5) float32: red, green, blue, row and column, each of mean 0 and variance 1."""
    places = np.moveaxis(np.indices(image.shape[:2]), 0, -1)
    X = np.concatenate([image, places], axis=2).reshape(-1, 5)
    return ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)


def n_pieces(labels: np.ndarray) -> int:
    """Connected regions of equal label in (height, width)."""
    return sum(ndimage.label(labels == c)[1] for c in np.unique(labels))


def draw(image: np.ndarray, fits: dict[str, KMeans | GaussianMixture], R: np.ndarray) -> Figure:
    """Segments in colours of their own, then the soft ones mixed: alike numbers have begun at the same center."""
    own = np.array([to_rgb(color) for color in (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, YELLOW, BLACK)])
    means = R.T @ image.reshape(-1, 3) / R.sum(axis=0)[:, np.newaxis]
    pictures = {"the photograph": image}
    pictures |= {name: own[fit.labels_] for name, fit in fits.items()}
    pictures["soft: mean colours, mixed"] = (R @ means).clip(0, 1)
    figure = Figure(figsize=(9, 4.4), layout="constrained")
    axes = figure.subplots(2, 3)
    for ax, (title, pixels) in zip(axes.flat, pictures.items(), strict=False):
        ax.imshow(pixels.reshape(image.shape), interpolation="nearest")
        ax.set_title(title, fontsize=10, loc="left")
    last = axes.flat[-1]
    bits = last.imshow(entropy(R, base=2, axis=1).reshape(image.shape[:2]), cmap="cividis", interpolation="nearest")
    last.set_title("soft: entropy of a pixel", fontsize=10, loc="left")
    figure.colorbar(bits, ax=last, label="bits", shrink=0.8)
    for ax in axes.flat:
        ax.set_axis_off()
    return figure
