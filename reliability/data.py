"""Arrays of a case: rows in their type and memory layout, weights, and initial centers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliability.space import Points

_INTEGERS = ("int8", "uint8", "int16", "int32", "int64", "uint64")


def values(points: Points) -> NDArray:
    """Return the rows (n, D) of a case in their type, in C order."""
    rng = np.random.default_rng([points.seed, points.n, points.D])
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        X = _MAKERS[points.kind](rng, points.n, points.D)
        if points.offset is not None:
            X += 10.0**points.offset * rng.choice([-1.0, 1.0], points.D)
        X *= 10.0**points.scale
        if points.bad is not None:
            X[rng.integers(points.n), rng.integers(points.D)] = float(points.bad)
        if points.gaps is not None:
            X[_GAPS[points.gaps](rng, *X.shape, points.missing / 100)] = np.nan
        return _typed(X, points.dtype)


def _typed(X: NDArray, dtype: str) -> NDArray:
    if dtype in _INTEGERS:
        info = np.iinfo(dtype)
        return np.nan_to_num(X * 10).clip(max(info.min, -(2.0**53)), min(info.max, 2.0**53)).astype(dtype)
    return X > 0 if dtype == "bool" else X.astype(dtype)


def _clusters(rng: np.random.Generator, n: int, D: int) -> NDArray:
    places = 5 * rng.standard_normal((int(rng.integers(2, 9)), D))
    return places[rng.integers(len(places), size=n)] + rng.standard_normal((n, D))


def _few(rng: np.random.Generator, n: int, D: int) -> NDArray:
    rows = rng.standard_normal((int(rng.integers(1, 5)), D))
    return rows[rng.integers(len(rows), size=n)]


def _flat(rng: np.random.Generator, n: int, D: int) -> NDArray:
    X = rng.standard_normal((n, D))
    X[:, rng.random(D) < 0.5] = rng.standard_normal()
    return X


def _outlier(rng: np.random.Generator, n: int, D: int) -> NDArray:
    X = rng.standard_normal((n, D))
    X[rng.integers(n)] *= 10.0 ** rng.integers(2, 13)
    return X


_MAKERS: dict[str, Callable[[np.random.Generator, int, int], NDArray]] = {
    "normal": lambda rng, n, D: rng.standard_normal((n, D)),
    "clusters": _clusters,
    "lattice": lambda rng, n, D: rng.integers(-3, 4, (n, D)).astype(float),
    "few": _few,
    "equal": lambda rng, n, D: np.tile(rng.standard_normal(D), (n, 1)),
    "flat": _flat,
    "line": lambda rng, n, D: rng.standard_normal((n, 1)) * rng.standard_normal(D),
    "heavy": lambda rng, n, D: rng.standard_normal((n, D)) * 10 ** rng.uniform(-6, 6, (n, 1)),
    "columns": lambda rng, n, D: rng.standard_normal((n, D)) * 10 ** rng.uniform(-6, 6, D),
    "outlier": _outlier,
    "groups": lambda rng, n, D: rng.standard_normal((n, D)) + rng.choice([-1e6, 1e6], (n, 1)),
    "sparse": lambda rng, n, D: rng.standard_normal((n, D)) * (rng.random((n, D)) < 0.2),
}


def _blocks(rng: np.random.Generator, n: int, D: int, share: float) -> NDArray:
    """Return a mask of missing values in which groups of columns are missing together, as in a questionnaire."""
    page = rng.integers(0, 3, D)
    return (rng.random((n, 3)) < share)[:, page]


def _nearly_columns(rng: np.random.Generator, n: int, D: int, share: float) -> NDArray:
    """Return a mask of missing values in which some columns are missing in all rows but one or two."""
    gaps = np.tile(rng.random(D) < share, (n, 1))
    gaps[rng.integers(n, size=2)] = False
    return gaps


# Functions that return a mask (n, D) of missing values with about the given share.
_GAPS: dict[str, Callable[[np.random.Generator, int, int, float], NDArray]] = {
    "anywhere": lambda rng, n, D, share: rng.random((n, D)) < share,
    "columns": lambda rng, n, D, share: (rng.random((n, D)) < share) & (rng.random(D) < 0.5),
    "rows": lambda rng, n, D, share: (rng.random((n, D)) < share) & (rng.random((n, 1)) < 0.5),
    "whole rows": lambda rng, n, D, share: np.repeat(rng.random((n, 1)) < share, D, axis=1),
    "nearly columns": _nearly_columns,
    "blocks": _blocks,
}


def chunk_rows(n: int) -> int:
    """Return the chunk size that divides n rows into about three chunks."""
    return max(1, n // 3)


def laid_out(X: NDArray, layout: str, folder: Path, rows: int | None = None) -> Any:
    """Return the same values as an array of another layout, a list, a table, a file or a source.

    rows: rows per chunk, if there are chunks
    """
    n, D = X.shape
    rows = chunk_rows(n) if rows is None else rows
    if layout == "F":
        return np.asfortranarray(X)
    if layout == "rows":
        return np.repeat(X, 2, axis=0)[::2]
    if layout == "columns":
        return np.repeat(X, 3, axis=1)[:, ::3]
    if layout == "back rows":
        return X[::-1].copy()[::-1]
    if layout == "back columns":
        return X[:, ::-1].copy()[:, ::-1]
    if layout == "read-only":
        X = X.copy()
        X.flags.writeable = False
        return X
    if layout == "unaligned" and X.dtype != object:
        raw = np.empty(X.nbytes + 1, np.uint8)
        out = np.ndarray(X.shape, X.dtype, raw, 1)
        out[...] = X
        return out
    if layout == "swapped" and X.dtype != object:
        return X.astype(X.dtype.newbyteorder())
    if layout == "list":
        return X.tolist()
    if layout == "frame":
        import pandas as pd

        return pd.DataFrame(X, columns=[f"x{j}" for j in range(D)])
    if layout in ("memmap", "memmap F") and X.dtype != object:
        order: Any = "F" if layout.endswith("F") else "C"
        out = np.memmap(folder / "x.bin", X.dtype, "w+", shape=(n, D), order=order)
        out[...] = X
        return out
    if layout in ("chunks", "source", "path") and X.dtype != object:
        from cprime import open_data

        if layout == "chunks":
            return open_data(X, chunk_rows=rows)
        np.save(folder / "x.npy", X)
        path = str(folder / "x.npy")
        return path if layout == "path" else open_data(path, chunk_rows=rows)
    return X


def weights(kind: str | None, n: int, seed: int) -> Any:
    """Return n weights, or an invalid value in place of weights."""
    rng = np.random.default_rng([seed, n, 7])
    if kind is None:
        return None
    if kind == "short":
        return np.ones(n + 1)
    if kind == "matrix":
        return np.ones((n, 2))
    return {
        "ones": lambda: np.ones(n),
        "equal 3": lambda: np.full(n, 3.0),
        "integers": lambda: rng.integers(0, 4, n).astype(np.int64),
        "zeros": lambda: rng.random(n) * (rng.random(n) < 0.5),
        "1e15": lambda: np.where(rng.random(n) < 0.2, 1e15, rng.random(n)),
        "1e-15": lambda: np.where(rng.random(n) < 0.2, 1e-15, rng.random(n)),
        "wide": lambda: 10 ** rng.uniform(-30, 30, n),
        "one": lambda: (np.arange(n) == rng.integers(n)).astype(float),
        "float32": lambda: rng.random(n, dtype=np.float32) + np.float32(0.1),
        "list": lambda: (rng.random(n) + 0.1).tolist(),
        "negative": lambda: np.where(np.arange(n) == rng.integers(n), -1.0, 1.0),
        "nan": lambda: np.where(np.arange(n) == rng.integers(n), np.nan, 1.0),
        "all zero": lambda: np.zeros(n),
    }[kind]()


def start(kind: Any, X: NDArray, C: int, seed: int) -> Any:
    """Return centers (C, D) for an argument that starts with @; else the argument itself."""
    if kind == "@function":
        return first_rows
    rng = np.random.default_rng([seed, C, 3])
    rows = rng.permutation(len(X))[:C] if kind == "@different rows" else rng.integers(len(X), size=C)
    X = X.real if X.dtype.kind == "c" else X
    if X.dtype == object:
        X = X.astype(np.float64)
    if X.dtype.kind == "f":
        X = np.where(np.isnan(X), X.dtype.type(0), X)
    if kind in ("@rows", "@different rows"):
        return X[rows].copy()
    if kind == "@far":
        out = np.nan_to_num(X[rows].astype(np.float64), posinf=0.0, neginf=0.0)
        with np.errstate(over="ignore"):
            out[-1] += 1e3 * (1 + np.abs(out).max())
        return out
    return kind


def first_rows(X: Any, n_clusters: int, random_state: Any = None) -> NDArray:
    """Return the first rows as centers: an initialization given as a function."""
    return np.array(X[:n_clusters])
