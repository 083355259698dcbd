"""Conversion of arrays to rows, and settings under which compiled kernels run (threads, arithmetic)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import issparse

from cprime import _core
from cprime._utils.number_types import is_narrow
from cprime._utils.threads import limited
from cprime.kernels.narrow import NarrowRows
from cprime.kernels.rows import Dense, Rows
from cprime.kernels.sparse import SparseRows


def as_rows(X: Any) -> Rows:
    """Convert an array of float32, float64 or a narrow type (uint8, float16), or a SciPy CSR array, to a `Rows` object.

    If X is a `Rows` object already, it is returned unchanged.
    """
    if isinstance(X, Rows):
        return X
    if issparse(X):
        return SparseRows.from_scipy(X)
    return NarrowRows(X) if is_narrow(getattr(X, "dtype", None)) else Dense(X)


def instruction_set() -> str:
    """Return the instruction set of the kernels: "baseline", "avx2", "avx512f", "avx512" (with VNNI) or "amx"."""
    return _core.instruction_set()


@contextmanager
def computing(n_threads: int | None) -> Iterator[None]:
    """Context manager that sets the number of threads and the floating-point arithmetic of the code that runs inside.

    Kernel calls in this context that are given no number of threads use `n_threads`; None keeps the current limit. The
    arithmetic rounds to nearest, keeps subnormal numbers, and handles floating-point errors as NumPy does by default,
    whatever `np.errstate` the caller has set. On exit the previous settings are restored.
    """
    with limited(n_threads), np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
        before = _core.exchange_arithmetic(None)
        try:
            yield
        finally:
            _core.exchange_arithmetic(before)
