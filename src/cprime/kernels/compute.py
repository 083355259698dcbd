"""How the compiled kernels run, and the kinds of rows by what they are made of."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from scipy.sparse import issparse

from cprime._narrow import is_narrow
from cprime._threads import limited
from cprime.kernels.compiled import _core
from cprime.kernels.rows import Dense, Rows
from cprime.kernels.sparse import SparseRows
from cprime.kernels.stored import StoredRows


def as_rows(X: Any) -> Rows:
    """Rows of an array of float32, float64 or a narrower type, or of a CSR one of SciPy; rows as they are."""
    if isinstance(X, Dense | SparseRows | StoredRows):
        return X
    if issparse(X):
        return SparseRows.of(X)
    return StoredRows(X) if is_narrow(getattr(X, "dtype", None)) else Dense(X)


def instruction_set() -> str:
    """The instruction set that the kernels run on: "baseline", "avx2", "avx512f", "avx512" (with VNNI) or "amx"."""
    return _core.instruction_set()


@contextmanager
def computing(n_threads: int | None) -> Iterator[None]:
    """While it lasts, calls of this context without a number of their own use so many threads; None is as before.

    Its thread rounds to nearest and keeps subnormal numbers, whatever it did before and does again afterwards.
    """
    with limited(n_threads):
        before = _core.exchange_arithmetic(None)
        try:
            yield
        finally:
            _core.exchange_arithmetic(before)
