"""How the compiled kernels run, and the kinds of rows by what they are made of."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from scipy.sparse import issparse

from cprime._threads import limited
from cprime.kernels.compiled import _core
from cprime.kernels.rows import Dense, Rows
from cprime.kernels.sparse import SparseRows


def as_rows(X: Any) -> Rows:
    """Rows of an array of float32 or float64, or of a CSR one of SciPy; rows as they are."""
    if isinstance(X, Dense | SparseRows):
        return X
    return SparseRows.of(X) if issparse(X) else Dense(X)


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
