"""Choosing C

How many clusters are there? A sweep fits k-means for a range of C and asks each fit for BIC, AIC, BIC with the free
energy in place of the likelihood, the likelihood of points held out, and the elbow of J. X-means and G-means find C by
themselves, splitting and merging. The data are unit Gaussians on a grid of 5 × 5 (BIRCH), so the answer is known, and
it is an easy one: real data may have no such C, and there the criteria may differ.
"""

import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from cprime import KMeans
from cprime._style import BLUE, VERMILION, frame
from cprime.datasets import birch
from cprime.selection import GMeans, SelectionDisplay, Sweep, XMeans, sweep
from examples.result import table, write


def main(output: Path, small: bool = False) -> None:
    """A sweep and both estimators."""
    n_side, numbers = (3, range(4, 15)) if small else (5, range(10, 41))
    grid = birch(n_side, random_state=0)
    X = grid.data
    begin = time.perf_counter()
    found = sweep(KMeans(), X, numbers, random_state=0)
    lines = [f"{len(X):,} points in {n_side**2} clusters; C from {numbers[0]} to {numbers[-1]} in {since(begin)}"]
    names = {"bic": "BIC", "free_energy_bic": "BIC of F", "aic": "AIC", "held_out": "held out"}
    rows = [(name, f"{found.best_n_components(criterion)}") for criterion, name in names.items()]
    rows.append(("elbow of J", f"{found.elbow()}"))
    ways = []
    for estimator in (XMeans(), GMeans()):
        begin = time.perf_counter()
        name = type(estimator).__name__
        estimator.fit(X)
        rows.append((name, f"{estimator.n_clusters_}"))
        ways.append(f"{name}: from one cluster, in {estimator.n_rounds_} rounds and {since(begin)}")
    lines += [*table(("found by", "C"), rows), *ways]
    write(output, __name__, draw(X, grid.centers, found), lines)


def since(begin: float) -> str:
    return f"{time.perf_counter() - begin:.2f} s"


def draw(X: np.ndarray, centers: np.ndarray, found: Sweep) -> Figure:
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.3))
    best = found.best("bic")
    frame(left, f"k-means with C = {best.n_clusters}, by BIC")
    left.scatter(*X.T, s=3, color="0.7", linewidths=0)
    left.plot(*centers.T, "s", color=BLUE, markersize=7, fillstyle="none")
    left.plot(*best.cluster_centers_.T, "X", color=VERMILION, markersize=5, markeredgewidth=0)
    left.set_aspect("equal")
    SelectionDisplay.from_sweep(found, ax=right)
    return figure
