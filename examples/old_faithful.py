"""Old Faithful by k-means, k-means-C′ and EM

Four fits of the geyser's eruptions, standardised. The first three have one model, six components of equal weight with
one variance σ², and one start; they differ in how many components a point keeps: one in k-means, two in k-means-C′, all
six in EM. Each raises a free energy F below the log-likelihood L of its parameters, and L − F is what it leaves out by
keeping fewer. The fourth is EM with two components that have weights and covariance matrices of their own. Lines are
drawn at one and two standard deviations.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from cprime import GaussianMixture, KMeans
from cprime._style import frame
from cprime.datasets import old_faithful
from cprime.plots import ClustersDisplay
from cprime.seeding import kmeans_plusplus
from examples.result import table, write

C = 6
PAPERS = {"covariance_type": "tied_spherical", "weights": "equal", "tol": 1e-6, "max_iter": 1000}


def main(output: Path, small: bool = False) -> None:
    """Fit, compare, draw; `small` changes nothing, the data are small."""
    X = old_faithful().data
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    start, _ = kmeans_plusplus(X, C, random_state=0)
    fits = {
        "k-means": KMeans(C, init=start).fit(X),
        "k-means-C′": GaussianMixture(C, **PAPERS, n_active=2, init_params=start).fit(X),
        "EM": GaussianMixture(C, **PAPERS, n_active=None, init_params=start).fit(X),
        "EM, full covariances": GaussianMixture(2, n_active=None, tol=1e-6, random_state=0).fit(X),
    }
    rows = []
    for name, fit in fits.items():
        F, L, gap, _ = fit.bounds(X)
        rows.append((name, f"{len(centers(fit))}", f"{fit.n_active_}", f"{F:.4f}", f"{L:.4f}", f"{abs(gap):.4f}"))
    lines = [*table(("", "C", "C′", "F", "L", "L − F"), rows), "In nats a point, of standardised data."]
    write(output, __name__, draw(X, fits), lines)


def centers(fit: KMeans | GaussianMixture) -> np.ndarray:
    return fit.cluster_centers_ if isinstance(fit, KMeans) else fit.means_


def draw(X: np.ndarray, fits: dict[str, KMeans | GaussianMixture]) -> Figure:
    figure = Figure(figsize=(7, 7), layout="constrained")
    for ax, (name, fit) in zip(figure.subplots(2, 2, sharex=True, sharey=True).flat, fits.items(), strict=True):
        ClustersDisplay.from_estimator(fit, X, ellipses=True, ax=ax, numbers=False)
        frame(ax, f"{name}: C = {len(centers(fit))}, C′ = {fit.n_active_}")
        ax.set_aspect("equal", adjustable="box")
    figure.supxlabel("duration of the eruption, standardised", fontsize=9)
    figure.supylabel("time to the next, standardised", fontsize=9)
    return figure
