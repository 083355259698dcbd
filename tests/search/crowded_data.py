"""Sets of centers of which most lie close together, or whose distances have every scale."""

import numpy as np


def normal(C, D, rng):
    return rng.standard_normal((C, D))


def clump(C, D, rng):
    """Return centers (C, D): nine of ten within a thousandth of one point, the others far away."""
    points = 100 * rng.standard_normal((C, D))
    points[: C * 9 // 10] = 1 + 1e-3 * rng.standard_normal((C * 9 // 10, D))
    return rng.permutation(points)


def coincident(C, D, rng):
    return np.ones((C, D))


def mostly_coincident(C, D, rng):
    points = rng.standard_normal((C, D))
    points[: C * 9 // 10] = 1
    return rng.permutation(points)


def line(C, D, rng):
    points = np.zeros((C, D))
    points[:, 0] = rng.permutation(C)
    return points


def scales(C, D, rng):
    return rng.standard_normal((C, D)) * 2.0 ** -rng.integers(0, 50, size=(C, 1))


def heavy_tails(C, D, rng):
    return rng.standard_cauchy((C, D)) ** 3


KINDS = [normal, clump, coincident, mostly_coincident, line, scales, heavy_tails]
