"""Vectors as FAISS uses them, float32 rows: arrays, or sources, which are read chunk by chunk."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime._utils.messages import require
from cprime.sources import Source, array_of, is_source_like, open_data

Vectors = NDArray[np.float32] | Source


def checked(X: Any, d: int, name: str = "X") -> Vectors:
    """Return X as a finite float32 array (n, d) in C order, or as a source with d columns.

    name: name of the argument    Raises ValueError if there are not d columns, or a number is not finite.
    """
    if is_source_like(X):
        source = open_data(X).as_type(np.float32)
        found, shape = source.n_features, source.shape
    else:
        with np.errstate(over="ignore"):
            X = np.ascontiguousarray(array_of(X, name, np.float32))
        if not np.isfinite(X).all():
            raise ValueError(f"{name} must be finite numbers of float32, got NaN or infinity.")
        found, shape = X.shape[1] if X.ndim == 2 else -1, X.shape
        source = X
    if found != d:
        raise ValueError(f"{name} must have shape (n, d={d}), got {shape}.")
    return source


def rows(X: Vectors, ids: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return a copy of the rows of X (array or source) with the given indices: an array (m, d)."""
    return X.take(ids) if isinstance(X, Source) else X[ids]


def drawn(n: int, m: int, seed: int) -> NDArray[np.int64]:
    """Return the ascending indices (m,) of m rows drawn at random from n rows; all n indices if m ≥ n."""
    if m >= n:
        return np.arange(n)
    generator = np.random.default_rng(seed if seed >= 0 else None)
    return np.sort(generator.choice(n, m, replace=False))


def directions(X: Vectors, weights: NDArray | None) -> tuple[Vectors, NDArray[np.float64]]:
    """Return vectors X and weights (n,) for spherical k-means: each weight is multiplied by the length of its vector.

    Then the sum of weighted cosines, which `KMeans` maximizes, equals the sum of inner products, which FAISS maximizes:
    Σ w x·μ = Σ w ‖x‖ cos(x, μ), with centers μ. Vectors of length 0 are accepted, as in FAISS: their weight becomes 0,
    and in an array they are replaced by an arbitrary direction.
    """
    lengths = np.empty(len(X))
    step = X.chunk_rows if isinstance(X, Source) else max(1, 2**24 // X.shape[1])
    for begin in range(0, len(X), step):
        block = X.read(begin, min(begin + step, len(X))) if isinstance(X, Source) else X[begin : begin + step]
        lengths[begin : begin + step] = np.sqrt(np.einsum("nd,nd->n", block, block, dtype=np.float64))
    if not isinstance(X, Source) and not lengths.all():
        X = X.copy()
        X[lengths == 0, 0] = 1.0
    return X, lengths if weights is None else lengths * weights


faiss: Any = require("faiss", "cprime.faiss")
