"""Data whose sizes exceed 32 bits, as sparse files that need no disk space and as sparse rows, with known results.

Sparse rows with more than 2³¹ entries would take 17 GB and are left out; tested are rows times columns beyond 2³².
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cprime import KMeans, open_data
from reliability.properties import Wrong


def _with_holes(path: Path, dtype: str, shape: tuple[int, int], rows: dict[int, int]) -> Path:
    """Write a .npy file of zeros without using disk space; rows: the value of each nonzero row. Return its path."""
    X = np.lib.format.open_memmap(path, "w+", np.dtype(dtype), shape)
    for row, value in rows.items():
        X[row] = value
    X.flush()
    return path


def _agree(found: object, expected: object, what: str) -> None:
    if not np.array_equal(np.asarray(found), np.asarray(expected)):
        raise Wrong(f"{what}: {found!r:.200}, where {expected!r:.200} was expected")


def rows_beyond_32_bits(folder: Path) -> str:
    """Check one column of 2³² + 3 bytes: rows at both ends can be taken, read, and clustered."""
    n = 2**32 + 3
    path = _with_holes(folder / "rows.npy", "uint8", (n, 1), {0: 1, 2**31: 3, 2**32: 5, n - 1: 7})
    source = open_data(path)
    _agree(source.n_rows, n, "rows")
    numbers = np.array([n - 1, 0, 2**31, 2**32, 2**31 - 1])
    _agree(source.take(numbers)[:, 0], [7, 1, 3, 5, 0], "rows that are taken")
    _agree(source.read(n - 4, n)[:, 0], [0, 5, 0, 7], "the last rows")
    model = KMeans(2, init=np.array([[0.0], [7.0]]), max_iter=1, n_threads=1).fit(source.subset(np.sort(numbers)))
    _agree(model.labels_, [0, 0, 0, 1, 1], "labels of a few rows")
    return f"{n} rows of a byte"


def _fitted(path: Path, n: int, D: int, marked: dict[int, int]) -> str:
    """Check a fit with two clusters, of zeros and of rows of 200, whose exact result is known; return a line of
    results.
    """
    start = np.array([np.zeros(D), np.full(D, 200.0)])
    model = KMeans(2, init=start, max_iter=3, n_threads=2, random_state=0).fit(str(path))
    expected = np.zeros(n, dtype=np.int32)
    expected[list(marked)] = 1
    _agree(model.labels_, expected, "labels")
    _agree(model.cluster_centers_, start, "centers")
    _agree(model.inertia_, 0.0, "inertia_")
    return f"{n} x {D} = {n * D / 2**32:.2f} * 2**32 values"


def many_rows_times_columns(folder: Path) -> str:
    """Check a fit of 2²⁴ + 3 rows of 260 columns, uint8."""
    n, D = 2**24 + 3, 260
    marked = dict.fromkeys((1, 2**23 + 1, 2**24, n - 1), 200)
    return _fitted(_with_holes(folder / "tall.npy", "uint8", (n, D), marked), n, D, marked)


def many_columns_times_rows(folder: Path) -> str:
    """Check a fit of 2¹⁶ + 5 rows of 2¹⁶ + 1 columns, float32: 17 GB in a sparse file."""
    n, D = 2**16 + 5, 2**16 + 1
    marked = dict.fromkeys((0, 2**15, n - 1), 200)
    return _fitted(_with_holes(folder / "wide.npy", "float32", (n, D), marked), n, D, marked)


def sparse_rows(folder: Path) -> str:
    """Check 2²⁰ + 1 sparse rows of 5000 columns in three groups without common columns, with 32- and 64-bit indices."""
    from scipy.sparse import csr_array

    n, D = 2**20 + 1, 5000
    group = np.arange(n) % 3
    columns = np.sort((group * 1500)[:, None] + np.array([0, 700, 1499]), axis=1)
    found: list[NDArray] = []
    for kind in (np.int32, np.int64):
        parts = np.ones(3 * n, np.float32), columns.ravel().astype(kind), np.arange(0, 3 * n + 1, 3).astype(kind)
        X = csr_array(parts, shape=(n, D))
        model = KMeans(3, init=X[:3].toarray(), max_iter=3, n_threads=2, random_state=0).fit(X)
        _agree(model.labels_, group, f"labels, {kind.__name__}")
        found.append(model.cluster_centers_)
    _agree(found[0], found[1], "centers")
    return f"{n} x {D} = {n * D / 2**32:.2f} * 2**32 places, {3 * n} entries"
