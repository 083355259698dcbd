"""Generated directions: rows of length 1 like embeddings, in the data types in which such rows are stored."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_PIECE = 8192  # rows that are rotated, scaled or rounded at a time


def directions(n: int, D: int, C: int, falling: float = 0.0, common: float = 0.0) -> NDArray[np.float32]:
    """Return unit vectors (n, D) in groups of different sizes and widths, whose centers form larger groups.

    falling: the standard deviation along the i-th of D random orthogonal directions is proportional to i^−falling; with
    0
    all directions are alike
    common: the length of the mean shared by all rows, relative to that of a center of groups
    """
    rng = np.random.default_rng(0)
    topics = rng.standard_normal((C // 20 + 1, D), dtype=np.float32)
    centers = topics[rng.integers(len(topics), size=C)] + rng.standard_normal((C, D), dtype=np.float32)
    group = rng.choice(C, size=n, p=rng.dirichlet(np.full(C, 2.0)))
    X = rng.standard_normal((n, D), dtype=np.float32)
    X *= rng.uniform(0.3, 1.0, C).astype(np.float32)[group, np.newaxis]
    if common:
        centers += common * rng.standard_normal(D, dtype=np.float32)
    X += centers[group]
    if falling:
        scale = np.arange(1, D + 1, dtype=np.float32) ** -falling
        turned = scale[:, np.newaxis] * np.linalg.qr(rng.standard_normal((D, D), dtype=np.float32))[0].T
        for begin in range(0, n, _PIECE):
            X[begin : begin + _PIECE] = X[begin : begin + _PIECE] @ turned
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X


def _signed(X: NDArray[np.float32]) -> NDArray[np.int8]:
    """Round to int8 symmetrically about zero, so that angles are preserved: the largest absolute value becomes 127."""
    return _rounded(X, 127 / max(X.max(), -X.min()), 0.0, np.int8)


def _unsigned(X: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Round to uint8 from the least to the greatest value: ratios of distances are preserved, angles are not."""
    scale = 255 / (X.max() - X.min())
    return _rounded(X, scale, -scale * X.min(), np.uint8)


def _rounded(X: NDArray[np.float32], scale: float, offset: float, dtype: type) -> NDArray:
    out = np.empty(X.shape, dtype)
    for begin in range(0, len(X), _PIECE):
        out[begin : begin + _PIECE] = np.rint(scale * X[begin : begin + _PIECE] + offset)
    return out


STORED: dict[str, Callable[[NDArray[np.float32]], NDArray]] = {
    "float32": lambda X: X,
    "float16": lambda X: X.astype(np.float16),
    "int8": _signed,
    "uint8": _unsigned,
}
