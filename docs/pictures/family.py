"""docs/_static/family.gif: k-means, C′ = 3 and EM from one start on one data set, iteration by iteration.

The model is the same in all three panels, Gaussians of one variance and equal weights; only C′, how many components a
point keeps, differs. Points have the colours of the components that they keep, mixed by the responsibilities. Below,
the free energy F that all three raise, and the log-likelihood L that it bounds, of the same parameters.
"""

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from film import GREY, INK, Frame, canvas, mixed, save, snapshot
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

from cprime import GaussianMixture
from cprime._utils.style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION

OUTPUT = Path(__file__).parents[1] / "_static" / "family.gif"
N_ITERATIONS = 20
SIZES = (360, 200, 360, 240, 300, 240)
COLORS = np.array([to_rgb(color) for color in (VERMILION, PURPLE, BLUE, GREEN, ORANGE, SKY)])  # around, and within
C = len(SIZES)
START = np.array([[-1.60, 1.44], [-2.41, 1.91], [-1.59, -2.80], [1.69, -1.66], [1.63, 0.51], [1.14, -1.47]])
MEMBERS = (("k-means", "C′ = 1", 1), ("truncated EM", "C′ = 3", 3), ("EM", f"C′ = C = {C}", C))
MOVING = (0.3, 0.65, 0.9)  # where between two iterations frames are drawn


class State(NamedTuple):
    """The parameters after an iteration: centers (C, 2), responsibilities (n, C), F and L in nats per point."""

    centers: np.ndarray
    responsibilities: np.ndarray
    free_energy: float
    log_likelihood: float


def points() -> np.ndarray:
    """Five overlapping Gaussians around a sixth, of one width and unlike sizes (n, 2)."""
    rng = np.random.default_rng(4)
    angles = 2 * np.pi * np.arange(5) / 5 + 0.3
    means = np.vstack([3 * np.column_stack([np.cos(angles), np.sin(angles)]), [[0.0, 0.0]]])
    return np.vstack([rng.normal(mean, 1.0, (size, 2)) for mean, size in zip(means, SIZES, strict=True)])


def fit(X: np.ndarray, n_active: int) -> list[State]:
    """The states after 1, 2 … iterations."""
    states: list[State] = []

    def watch(_: dict[str, Any], standing: GaussianMixture) -> None:
        bounds = standing.bounds(X)
        states.append(
            State(standing.means_.copy(), standing.predict_proba(X), bounds.free_energy, bounds.log_likelihood)
        )

    mixture = GaussianMixture(
        C, covariance_type="tied_spherical", weights="equal", n_active=n_active, means_init=START, momentum=False,
        max_iter=N_ITERATIONS, tol=0, callbacks=watch,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture.fit(X)
    return states


class Panel:
    """One member of the family: the data in the plane, and F and L below."""

    def __init__(self, plane: Axes, curves: Axes, titles: tuple[str, str], X: np.ndarray, states: list[State]) -> None:
        self.states = states
        middle, half = (X.max(axis=0) + X.min(axis=0)) / 2, 0.52 * np.ptp(X, axis=0).max()
        plane.set_xlim(middle[0] - half, middle[0] + half)
        plane.set_ylim(middle[1] - half, middle[1] + half)
        plane.set_aspect("equal")
        plane.axis("off")
        plane.text(0, 1.03, titles[0], transform=plane.transAxes, fontsize=17, fontweight="bold", color=INK)
        plane.text(1, 1.03, titles[1], transform=plane.transAxes, fontsize=15, color=INK, ha="right")
        self.points = plane.scatter(X[:, 0], X[:, 1], s=11, c=GREY, linewidths=0)
        self.centers = plane.scatter(
            START[:, 0], START[:, 1], s=190, c=COLORS * 0.55, marker="X", edgecolors="white", linewidths=1.8
        )
        curves.spines[["top", "right"]].set_visible(False)
        curves.spines[["left", "bottom"]].set_color(GREY)
        curves.set(xticks=[], yticks=[])
        self.free_energy = curves.plot([], [], color=VERMILION, linewidth=3)[0]
        self.log_likelihood = curves.plot([], [], color=BLUE, linewidth=3, zorder=1)[0]
        self.names = [
            curves.text(0, np.nan, name, color=color, fontsize=15, fontweight="bold", va=va)
            for name, color, va in (("F", VERMILION, "top"), ("L", BLUE, "bottom"))
        ]
        self.gap = curves.text(
            0.985, 0.08, "", transform=curves.transAxes, ha="right", va="bottom", fontsize=14, color=INK
        )

    def move(self, iteration: int, share: float) -> None:
        """Put the centers so far on the way from an iteration, 0 is the start, to the next."""
        before = self.states[iteration - 1].centers if iteration else START
        self.centers.set_offsets(before + share * (self.states[iteration].centers - before))

    def arrive(self, iteration: int) -> None:
        """Show what holds after so many iterations."""
        state = self.states[iteration - 1]
        self.centers.set_offsets(state.centers)
        self.points.set_facecolors(mixed(state.responsibilities, COLORS))
        done = np.arange(1, iteration + 1)
        self.free_energy.set_data(done, [s.free_energy for s in self.states[:iteration]])
        self.log_likelihood.set_data(done, [s.log_likelihood for s in self.states[:iteration]])
        self.gap.set_text(f"L − F = {max(state.log_likelihood - state.free_energy, 0):.3f}")
        for name, height in ((self.names[0], state.free_energy), (self.names[1], state.log_likelihood)):
            name.set_position((iteration + 0.4, height))


def stage(X: np.ndarray, fits: list[list[State]]) -> tuple[Figure, list[Panel]]:
    """The figure of all members, at the start."""
    figure = canvas(1000, 540)
    grid = figure.add_gridspec(
        2, len(fits), height_ratios=(3, 1), left=0.04, right=0.99, top=0.925, bottom=0.07, hspace=0.02, wspace=0.08
    )
    low = min(states[0].free_energy for states in fits)
    high = max(states[-1].log_likelihood for states in fits)
    panels = []
    for k, ((name, kept, _), states) in enumerate(zip(MEMBERS, fits, strict=True)):
        curves = figure.add_subplot(grid[1, k])
        curves.set(xlim=(0.5, N_ITERATIONS + 2), ylim=(low - 0.02, high + 0.08 * (high - low)))
        curves.set_xlabel("iterations", fontsize=13, color=INK, loc="right", labelpad=3)
        if k == 0:
            curves.set_ylabel("nats a point", fontsize=13, color=INK)
        panels.append(Panel(figure.add_subplot(grid[0, k]), curves, (name, kept), X, states))
    return figure, panels


def film(figure: Figure, panels: list[Panel]) -> list[Frame]:
    """The start, the iterations, and a while at the end."""
    frames = [snapshot(figure, 900)]
    for iteration in range(N_ITERATIONS):
        for share in MOVING:
            for panel in panels:
                panel.move(iteration, share)
            frames.append(snapshot(figure, 60))
        for panel in panels:
            panel.arrive(iteration + 1)
        frames.append(snapshot(figure, 200))
    return [*frames[:-1], frames[-1]._replace(duration=2500)]


def main() -> None:
    X = points()
    figure, panels = stage(X, [fit(X, n_active) for *_, n_active in MEMBERS])
    save(OUTPUT, film(figure, panels))


if __name__ == "__main__":
    main()
