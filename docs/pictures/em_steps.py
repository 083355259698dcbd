"""docs/_static/em-steps.gif: E-steps and M-steps in turn, of a mixture of three Gaussians.

In an E-step the points take the colours of the components, mixed by the responsibilities; in an M-step each component
moves to the mean and the covariance of what it is responsible for. Beside it the log-likelihood L, which never falls.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from film import GREY, INK, Frame, canvas, mixed, save, snapshot
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Ellipse

from cprime import GaussianMixture
from cprime._utils.style import BLUE, ORANGE, PURPLE
from cprime.plots import StepsDisplay

OUTPUT = Path(__file__).parents[1] / "_static" / "em-steps.gif"
COLORS = np.array([to_rgb(color) for color in (BLUE, ORANGE, PURPLE)])
START = np.array([[-1.6, 1.6], [1.0, 0.4], [-0.4, 1.0]])
START_VARIANCE = 1.5
MOVING = (0.15, 0.35, 0.6, 0.85, 1.0)  # where on the way of an M-step frames are drawn
DEVIATIONS = (1, 2)


def points() -> np.ndarray:
    """Three elongated Gaussians (n, 2)."""
    rng = np.random.default_rng(1)
    parts = (
        ((-2.2, -0.5), ((0.5, 0.6), (0.6, 1.6)), 220),
        ((1.8, -1.2), ((2.2, -0.6), (-0.6, 0.4)), 260),
        ((1.2, 1.9), ((0.9, 0.5), (0.5, 0.6)), 200),
    )
    return np.vstack([rng.multivariate_normal(mean, covariance, size) for mean, covariance, size in parts])


def fit(X: np.ndarray) -> GaussianMixture:
    C = len(START)
    precisions = np.stack([np.eye(2) / START_VARIANCE] * C)
    return GaussianMixture(
        C, n_active=None, means_init=START, weights_init=np.full(C, 1 / C), precisions_init=precisions, tol=2e-3
    ).fit(X)


class Stage:
    """The plane with points, centers and ellipses, and beside it the curve of L with what is being done."""

    def __init__(self, X: np.ndarray, n_iterations: int, heights: tuple[float, float]) -> None:
        self.figure = canvas(1000, 500)
        plane, curve = self.figure.subplots(1, 2, width_ratios=(1.55, 1))
        self.figure.subplots_adjust(left=0.01, right=0.97, top=0.98, bottom=0.1, wspace=0.1)
        low, high = np.vstack([X, START]).min(axis=0), np.vstack([X, START]).max(axis=0)
        plane.set(xlim=(low[0] - 0.3, high[0] + 0.3), ylim=(low[1] - 0.3, high[1] + 0.5), aspect="equal")
        plane.axis("off")
        self.points = plane.scatter(X[:, 0], X[:, 1], s=26, c=GREY, linewidths=0)
        self.centers = plane.scatter(
            START[:, 0], START[:, 1], s=220, c=COLORS * 0.55, marker="X", edgecolors="white", linewidths=2, zorder=4
        )
        self.ellipses = [
            (plane.add_patch(Ellipse((0, 0), 0, 0, fill=False, edgecolor=color * 0.75, linewidth=2.6)), r)
            for r in DEVIATIONS
            for color in COLORS
        ]
        self._prepare(curve, n_iterations, heights)

    def _prepare(self, curve: Axes, n_iterations: int, heights: tuple[float, float]) -> None:
        curve.spines[["top", "right"]].set_visible(False)
        curve.spines[["left", "bottom"]].set_color(GREY)
        (low, high), margin = heights, 0.05 * (heights[1] - heights[0])
        curve.spines["left"].set_bounds(low - margin, high + margin)
        curve.set(xticks=[], yticks=[], xlim=(-0.5, n_iterations + 1), ylim=(low - margin, high + 22 * margin))
        curve.set_xlabel("iterations", fontsize=14, color=INK, loc="right")
        curve.set_ylabel("log-likelihood L", fontsize=14, color=INK, loc="bottom")
        self.line = curve.plot([], [], color=BLUE, linewidth=3, marker="o", markersize=6)[0]
        self.step = curve.text(0.03, 0.98, "", transform=curve.transAxes, va="top", fontsize=24, fontweight="bold")
        self.says = curve.text(0.03, 0.83, "", transform=curve.transAxes, va="top", fontsize=15, color=INK)

    def tell(self, step: str, says: str) -> None:
        self.step.set_text(step)
        self.says.set_text(says)

    def place(self, means: np.ndarray, covariances: np.ndarray) -> None:
        """Components of means (C, 2) and covariances (C, 2, 2)."""
        self.centers.set_offsets(means)
        variances, vectors = np.linalg.eigh(covariances)
        for k, (ellipse, r) in enumerate(self.ellipses):
            c = k % len(means)
            ellipse.set_center(means[c])
            ellipse.set_width(2 * r * np.sqrt(variances[c, 1]))
            ellipse.set_height(2 * r * np.sqrt(variances[c, 0]))
            ellipse.set_angle(np.degrees(np.arctan2(vectors[c, 1, 1], vectors[c, 0, 1])))


def film(X: np.ndarray, mixture: GaussianMixture) -> Iterator[Frame]:
    """The start, then an E-step and an M-step for each iteration."""
    cycles = StepsDisplay.from_estimator(mixture, X, cycles=range(1, mixture.n_iter_)).cycles
    bounds = mixture.lower_bounds_  # of exact EM F is L; each is of the parameters that the iteration began with
    stage = Stage(X, len(cycles), (bounds[0], bounds[-1]))
    stage.place(*cycles[0].before)
    stage.tell("Start", "three Gaussians somewhere")
    yield snapshot(stage.figure, 1200)
    for i, cycle in enumerate(cycles):
        stage.points.set_facecolors(mixed(cycle.responsibilities, COLORS))
        stage.line.set_data(np.arange(i + 1), bounds[: i + 1])
        stage.tell(f"E-step {cycle.number}", "Which component does each\npoint belong to, and how much?")
        yield snapshot(stage.figure, 550)
        stage.tell(f"M-step {cycle.number}", "Each becomes the mean and\nthe covariance of its points.")
        for share in MOVING:
            means, covariances = (
                (1 - share) * before + share * after for before, after in zip(cycle.before, cycle.after, strict=True)
            )
            stage.place(means, covariances)
            yield snapshot(stage.figure, 380 if share == 1 else 50)


def main() -> None:
    X = points()
    frames = list(film(X, fit(X)))
    save(OUTPUT, [*frames[:-1], frames[-1]._replace(duration=2000)])


if __name__ == "__main__":
    main()
