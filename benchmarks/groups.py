"""Data sets with few clusters and a known or almost known best k-means, generated like the standard test sets.

The true centers are known, and Lloyd's algorithm from them usually ends in the optimum. If `centers` is None, the best
fit of any library replaces it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cprime import datasets

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Groups:
    """X (N, D), the number C of clusters, and the true centers (C, D) or None."""

    X: Floats
    n_clusters: int
    centers: Floats | None


def _apart(C: int, D: int, least: float, rng: np.random.Generator) -> Floats:
    """Return random points of the unit cube, no two nearer than `least`, which is reduced by a tenth if no space is
    left.
    """
    found: list[Floats] = []
    failures = 0
    while len(found) < C:
        point = rng.random(D)
        if all(np.linalg.norm(point - other) > least for other in found):
            found.append(point)
        else:
            failures += 1
            if failures == 20_000:
                least, failures = 0.9 * least, 0
    return np.array(found)


def _around(centers: Floats, spread: float | Floats, sizes: int | NDArray, rng: np.random.Generator) -> Groups:
    """Return points of spherical Gaussians around the centers, in random order."""
    C = len(centers)
    spreads, counts = np.broadcast_to(spread, C), np.broadcast_to(sizes, C)
    X = np.repeat(centers, counts, axis=0)
    X = X + np.repeat(spreads, counts)[:, np.newaxis] * rng.standard_normal(X.shape)
    return Groups(rng.permutation(X), C, centers)


def _overlapping(spread: float) -> Callable[[np.random.Generator], Groups]:
    """Return a generator of fifteen Gaussians of about 330 points, like S1 to S4: more overlap with larger spread."""
    return lambda rng: _around(_apart(15, 2, 0.17, rng), spread, rng.integers(300, 367, 15), rng)


def _many(C: int) -> Callable[[np.random.Generator], Groups]:
    """Return a generator of C Gaussians of 150 points, like A1 to A3."""
    return lambda rng: _around(_apart(C, 2, 0.75 / C**0.5, rng), 0.18 / C**0.5, 150, rng)


def _small(rng: np.random.Generator) -> Groups:
    """Return 31 Gaussians of 100 points, like D31."""
    return _around(_apart(31, 2, 0.12, rng), 0.023, 100, rng)


def _unbalanced(rng: np.random.Generator) -> Groups:
    """Return three dense clusters of 2000 points close together and five of 100 far away, like Unbalance."""
    dense, few = np.array([[0.10, 0.10], [0.15, 0.12], [0.12, 0.17]]), _apart(5, 2, 0.3, rng)
    centers = np.concatenate([dense, [0.525, 0.325] + 0.35 * few])
    return _around(centers, np.r_[np.full(3, 0.012), np.full(5, 0.015)], np.r_[np.full(3, 2000), np.full(5, 100)], rng)


def _grid(rng: np.random.Generator) -> Groups:
    """Return 100 Gaussians on a grid, 100,000 points, like Birch1."""
    data = datasets.birch(10, n_per_cluster=1000, random_state=int(rng.integers(2**31)))
    return Groups(data.data, 100, data.centers)


def _sine(rng: np.random.Generator) -> Groups:
    """Return 100 Gaussians along a sine curve, 100,000 points, like Birch2."""
    t = np.arange(100.0)
    return _around(np.column_stack([t, 10 * np.sin(t / 8)]), 0.2, 1000, rng)


def _ten(rng: np.random.Generator) -> Groups:
    """Return ten well separated clusters of different sizes in ten dimensions."""
    return _around(_apart(10, 10, 0.9, rng), 0.08, rng.integers(100, 1000, 10), rng)


def _nested(rng: np.random.Generator) -> Groups:
    """Return twelve small dense clusters, each within a wide one."""
    wide = _apart(12, 2, 0.2, rng)
    centers = np.concatenate([wide, wide + 0.05 * rng.standard_normal(wide.shape)])
    return _around(
        centers, np.r_[np.full(12, 0.06), np.full(12, 0.006)], np.r_[np.full(12, 300), np.full(12, 400)], rng
    )


def _heavy_tailed(rng: np.random.Generator) -> Groups:
    """Return twenty clusters of Student's t distribution with three degrees of freedom."""
    centers = _apart(20, 5, 0.5, rng)
    X = np.repeat(centers, 250, axis=0)
    return Groups(X + 0.05 * rng.standard_t(3, X.shape), 20, None)


def _uniform(rng: np.random.Generator) -> Groups:
    """Return 10,000 points of the unit cube in eight dimensions, without clusters, for a fit with 32 centers."""
    return Groups(rng.random((10_000, 8)), 32, None)


GROUPS: dict[str, Callable[[np.random.Generator], Groups]] = {
    "overlap-1": _overlapping(0.025),
    "overlap-2": _overlapping(0.035),
    "overlap-3": _overlapping(0.05),
    "overlap-4": _overlapping(0.06),
    "many-20": _many(20),
    "many-35": _many(35),
    "many-50": _many(50),
    "small": _small,
    "unbalanced": _unbalanced,
    "grid": _grid,
    "sine": _sine,
    "ten": _ten,
    "nested": _nested,
    "heavy-tailed": _heavy_tailed,
    "uniform": _uniform,
}
