from typing import Any

import numpy as np
from numpy.typing import NDArray

# Of the dtype of the data, float32 or float64, the same in all arguments; outputs are written to.
_Floats = NDArray[np.floating[Any]]
# Of sparse rows values, columns, where each begins, and the number of columns.
_Rows = _Floats | tuple[_Floats, NDArray[np.int32], NDArray[np.int64], int]

def instruction_set() -> str: ...
def exchange_arithmetic(mode: bytes | None, /) -> bytes: ...
def extent(X: _Floats, origin: _Floats, n_threads: int, /) -> tuple[float, float]: ...
def nearest(
    X: _Rows,
    centers: _Floats,
    hint: NDArray[np.int32] | None,
    kept: NDArray[np.int32],
    distances: _Floats,
    n_threads: int,
    /,
) -> None: ...
def assign(
    X: _Rows,
    centers: _Floats,
    before: NDArray[np.int32] | None,
    sample_weight: NDArray[np.float64] | None,
    kept: NDArray[np.int32],
    distances: _Floats,
    counts: NDArray[np.float64],
    sums: NDArray[np.float64],
    members: NDArray[np.int64],
    n_threads: int,
    /,
) -> int: ...
def nearest_bounded(
    X: _Floats,
    centers: _Floats,
    drift: _Floats,
    reach: _Floats,
    spread: _Floats,
    distances: _Floats,
    labels: NDArray[np.int32],
    others: NDArray[np.int32],
    lows: _Floats,
    rest: _Floats,
    n_threads: int,
    /,
) -> int: ...
def distances(X: _Rows, candidates: _Floats, current: _Floats | None, out: _Floats, n_threads: int, /) -> None: ...
def potentials(
    squares: _Floats,
    candidates: NDArray[np.int64] | None,
    closest: _Floats,
    sample_weight: NDArray[np.float64] | None,
    out: NDArray[np.float64],
    n_threads: int,
    /,
) -> None: ...
def weighted_sum(values: _Floats, sample_weight: NDArray[np.float64] | None, /) -> float: ...
def posterior(
    values: _Floats,
    scale: float,
    responsibilities: NDArray[np.float64],
    log_sum: NDArray[np.float64],
    mean: NDArray[np.float64],
    n_threads: int,
    /,
) -> None: ...
def top_k(
    X: _Floats,
    centers: _Floats,
    lists: NDArray[np.int32],
    previous: NDArray[np.int32],
    kept: NDArray[np.int32],
    distances: _Floats,
    n_threads: int,
    /,
) -> None: ...
def accumulate(
    X: _Rows,
    kept: NDArray[np.int32],
    responsibilities: NDArray[np.float64] | None,
    sample_weight: NDArray[np.float64] | None,
    rows: NDArray[np.int64] | None,
    counts: NDArray[np.float64],
    sums: NDArray[np.float64],
    onto: bool,
    n_threads: int,
    /,
) -> None: ...
def along(
    X: _Rows,
    centers: _Floats,
    directions: _Floats,
    labels: NDArray[np.int32],
    out: NDArray[np.float64],
    n_threads: int,
    /,
) -> None: ...
def means(
    counts: NDArray[np.float64],
    sums: NDArray[np.float64],
    centers: _Floats,
    origin: NDArray[np.float64] | None,
    out: _Floats,
    squares: NDArray[np.float64],
    n_threads: int,
    /,
) -> None: ...
def jump(
    X: _Rows,
    sample_weight: NDArray[np.float64] | None,
    centers: _Floats,
    n_tries: int,
    n_iterations: int,
    tol: float,
    n_threads: int,
    /,
) -> float: ...
def plus_plus_many(
    X: _Floats,
    offsets: NDArray[np.int64],
    sample_weight: NDArray[np.float64] | None,
    order: NDArray[np.int64],
    uniform: NDArray[np.float64],
    n_trials: int,
    n_proposed: NDArray[np.int64],
    chosen: NDArray[np.int64],
    n_threads: int,
    /,
) -> None: ...
def lloyd(
    X: _Rows,
    sample_weight: NDArray[np.float64] | None,
    centers: _Floats,
    max_iter: int,
    tol: float,
    least_shift: float | None,
    keep_empty: bool,
    labels: NDArray[np.int32],
    squares: _Floats,
    counts: NDArray[np.float64],
    errors: NDArray[np.float64],
    n_moved: NDArray[np.int64],
    n_threads: int,
    /,
) -> tuple[int, bool]: ...
def lloyd_many(
    X: _Floats,
    offsets: NDArray[np.int64],
    sample_weight: NDArray[np.float64] | None,
    centers: _Floats,
    max_iter: int,
    tol: float,
    least_shift: float | None,
    labels: NDArray[np.int32],
    squares: _Floats,
    errors: NDArray[np.float64],
    n_iterations: NDArray[np.int64],
    n_threads: int,
    /,
) -> None: ...
def spread_out(
    candidates: _Rows,
    offsets: NDArray[np.int64],
    weights: NDArray[np.float64],
    n_chosen: NDArray[np.int64],
    uniform: NDArray[np.float64],
    chosen: NDArray[np.int64],
    n_threads: int,
    /,
) -> None: ...
def expect_all(
    X: _Floats,
    centers: _Floats,
    variance: float,
    sample_weight: NDArray[np.float64] | None,
    counts: NDArray[np.float64],
    sums: NDArray[np.float64],
    least: NDArray[np.float64],
    excess: NDArray[np.float64],
    log_sum: NDArray[np.float64],
    n_threads: int,
    /,
) -> None: ...
def log_sum_exp(
    X: _Floats,
    centers: _Floats,
    variance: float,
    least: NDArray[np.float64],
    log_sum: NDArray[np.float64],
    n_threads: int,
    /,
) -> None: ...
def reassign(
    X: _Rows,
    centers: _Floats,
    lists: NDArray[np.int32],
    inside: _Floats | None,
    outside: _Floats | None,
    share: float,
    active: NDArray[np.uint8] | None,
    labels: NDArray[np.int32],
    new_labels: NDArray[np.int32],
    distances: _Floats,
    n_threads: int,
    /,
) -> None: ...
def best_in_lists(
    X: _Rows,
    centers: _Floats,
    lists: NDArray[np.int32],
    previous: NDArray[np.int32],
    extra: NDArray[np.int32],
    kept: NDArray[np.int32],
    distances: _Floats,
    counts: NDArray[np.int32],
    evidence: bool,
    sample_weight: NDArray[np.float64] | None,
    factors: _Floats | None,
    offsets: _Floats | None,
    dof: _Floats | None,
    n_threads: int,
    /,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]] | None: ...
def grouped_order(
    labels: NDArray[np.int32], n_components: int, order: NDArray[np.int64], n_threads: int, /
) -> None: ...
def changed(
    after: NDArray[np.int32],
    before: NDArray[np.int32],
    n_columns: int,
    out: NDArray[np.bool_],
    n_threads: int,
    /,
) -> None: ...
def gather(X: _Floats, order: NDArray[np.int64], out: _Floats, n_threads: int, /) -> None: ...
def normalized(
    X: _Floats,
    order: NDArray[np.int64] | None,
    least: float,
    out: _Floats,
    lengths: NDArray[np.float64],
    n_threads: int,
    /,
) -> None: ...
def products(X: _Floats, B: _Floats, shift: _Floats | None, out: _Floats, n_threads: int, /) -> None: ...
def best(
    X: _Floats,
    means: _Floats,
    factors: _Floats,
    offsets: _Floats,
    dof: _Floats | None,
    kept: NDArray[np.int32],
    costs: _Floats,
    n_threads: int,
    /,
) -> None: ...
def top_k_gaussians(
    X: _Floats,
    means: _Floats,
    factors: _Floats,
    offsets: _Floats,
    dof: _Floats | None,
    lists: NDArray[np.int32],
    previous: NDArray[np.int32],
    kept: NDArray[np.int32],
    costs: _Floats,
    n_threads: int,
    /,
) -> None: ...
def respond(
    X: _Floats,
    means: _Floats,
    factors: _Floats,
    offsets: _Floats,
    dof: _Floats | None,
    sample_weight: NDArray[np.float64] | None,
    labels: NDArray[np.int32],
    log_sum: NDArray[np.float64],
    mean: NDArray[np.float64],
    counts: NDArray[np.float64] | None,
    first: NDArray[np.float64] | None,
    second: NDArray[np.float64] | None,
    responsibilities: NDArray[np.float64] | None,
    tails: NDArray[np.float64] | None,
    n_threads: int,
    /,
) -> None: ...
def scaled_responsibilities(
    kept: NDArray[np.int32],
    costs: _Floats,
    responsibilities: NDArray[np.float64] | None,
    sample_weight: NDArray[np.float64] | None,
    offsets: _Floats,
    dof: _Floats,
    n_features: int,
    scaled: NDArray[np.float64],
    tails: NDArray[np.float64],
    n_threads: int,
    /,
) -> None: ...
def moments(
    X: _Floats,
    means: _Floats,
    kept: NDArray[np.int32],
    responsibilities: NDArray[np.float64] | None,
    sample_weight: NDArray[np.float64] | None,
    counts: NDArray[np.float64],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    n_threads: int,
    /,
) -> None: ...
def factor_costs(
    X: _Floats,
    means: _Floats,
    precisions: NDArray[np.float64],
    loadings: _Floats,
    roots: NDArray[np.float64],
    offsets: NDArray[np.float64],
    ids: NDArray[np.int32],
    costs: _Floats,
    n_threads: int,
    /,
) -> None: ...
def top_k_factors(
    X: _Floats,
    means: _Floats,
    precisions: NDArray[np.float64],
    loadings: _Floats,
    roots: NDArray[np.float64],
    offsets: NDArray[np.float64],
    lists: NDArray[np.int32],
    previous: NDArray[np.int32],
    kept: NDArray[np.int32],
    costs: _Floats,
    n_threads: int,
    /,
) -> None: ...
def factor_moments(
    X: _Floats,
    means: _Floats,
    precisions: NDArray[np.float64] | None,
    loadings: _Floats,
    roots: NDArray[np.float64] | None,
    kept: NDArray[np.int32],
    responsibilities: NDArray[np.float64] | None,
    sample_weight: NDArray[np.float64] | None,
    counts: NDArray[np.float64],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    n_threads: int,
    /,
) -> None: ...
def cut_line(
    values: NDArray[np.float64], weights: NDArray[np.float64], starts: NDArray[np.int64], n_threads: int, /
) -> None: ...
def assign_bounded(
    ids: NDArray[np.int32],
    costs: _Floats,
    lower: NDArray[np.int64],
    upper: NDArray[np.int64],
    accuracy: float,
    limit: float,
    prices: NDArray[np.float64],
    labels: NDArray[np.int32],
    /,
) -> bool: ...

class _CenterCells:
    def __init__(self, centers: _Floats, begins: NDArray[np.int64], between: _Floats, n_threads: int, /) -> None: ...
    def find(
        self, X: _Floats, n_searched: int, kept: NDArray[np.int32], squares: _Floats, n_threads: int, /
    ) -> int: ...

class _StoredRows:
    """Narrow numbers as the kernels take them in place of X."""

    def __init__(
        self,
        array: NDArray[Any],
        stored: int,
        order: NDArray[np.int64] | None,
        lengths: _Floats | None,
        /,
    ) -> None: ...
    def widen(self, out: _Floats, n_threads: int, /) -> None: ...

class StoredRows32(_StoredRows): ...
class StoredRows64(_StoredRows): ...
class CenterCells32(_CenterCells): ...
class CenterCells64(_CenterCells): ...
