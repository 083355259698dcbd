"""Rows of narrow types, and a record of how many of them are converted at once."""

import ml_dtypes
import numpy as np

from cprime.kernels import NarrowRows

TYPES = {"uint8": np.uint8, "int8": np.int8, "bool": bool, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def numbers(dtype, n=1500, D=5, seed=0):
    rng = np.random.default_rng(seed)
    X = 30 + 20 * rng.standard_normal((40, D))[rng.integers(40, size=n)] + 4 * rng.standard_normal((n, D))
    return X > 30 if dtype is bool else np.clip(X, 1, 120).astype(dtype)


def recorded(monkeypatch):
    """Return a list of the numbers of rows converted at once; short rows are not treated differently."""
    found, dense = [0], NarrowRows.dense
    monkeypatch.setattr("cprime.kernels.narrow._SHORT", 0)
    monkeypatch.setattr("cprime.kernels.narrow._PIECE_BYTES", 1)
    monkeypatch.setattr(NarrowRows, "dense", lambda X: found.append(len(X)) or dense(X))
    return found
