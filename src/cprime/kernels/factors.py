"""Costs, searches and moments of factor analyzers with H factors: O(D·H) time for a row and a component."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime._utils.threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.measures import Floats

Doubles = NDArray[np.float64]
Ids = NDArray[np.int32]


class FactorAnalysers(NamedTuple):
    """Parameters of C factor analyzers x = μ_c + Λ_c z + noise, in the form that kernels take.

    z are H factors, Λ_c loadings, ψ_c the variances of the noise. The cost of x is offset_c + Σ_d y_d²/ψ_cd − ‖U_c y‖²,
    where y = x − μ_c and U = RᵀΛᵀΨ⁻¹; the factors z have the mean E[z | x] = R_c U_c y.
    means (C, D) and loadings Λᵀ (C, H, D) are of the data's dtype, the others float64: precisions (C, D): 1/ψ
    roots (C, H, H): R = L⁻ᵀ, where LLᵀ = I + ΛᵀΨ⁻¹Λ, upper triangular    offsets (C,)
    """

    means: Floats
    precisions: Doubles
    loadings: Floats
    roots: Doubles
    offsets: Doubles


def factor_costs(X: CoreRows, factors: FactorAnalysers, ids: Ids, *, n_threads: int | None = None) -> Floats:
    """Return the cost of each row under m given factor analyzers: (n, m) of X's dtype, clipped to its largest number.

    A cost is −2 log p(c, x) up to a constant; `FactorAnalysers` has the formula.
    ids (n, m): components for each row; for −1 the cost is infinite
    """
    given = _checked(factors, X)
    ids = check.array(ids, "ids", np.int32, len(X), -1)
    out = np.empty(ids.shape, dtype=X.dtype)
    try:
        X.kernels.factor_costs(X.core, *given, ids, out, resolve_threads(n_threads))
    except ValueError:
        check.ids(len(given.means), ids=(ids, -1))
        raise
    return out


def top_k_factors(
    X: CoreRows, factors: FactorAnalysers, lists: Ids, previous: Ids, n_kept: int, *, n_threads: int | None = None
) -> tuple[Ids, Floats]:
    """Find for each row the `n_kept` components of least cost among its candidates.

    The candidates of row n are its active set K(n), and the neighbor list of the first component in K(n).
    factors: parameters of C factor analyzers    previous (n, H′): active sets K(n), best first
    lists (C, G): G neighbors of each component
    ->  ids and costs (n, n_kept), sorted by (cost, id), padded with −1 and infinity
    """
    given, n_kept = _checked(factors, X), check.count(n_kept, "n_kept")
    n, C = len(X), len(given.means)
    lists, previous = check.array(lists, "lists", np.int32, C, -1), check.array(previous, "previous", np.int32, n, -1)
    if not previous.shape[1]:
        raise ValueError("previous must have at least one column, got none")
    kept, costs = np.empty((n, n_kept), dtype=np.int32), np.empty((n, n_kept), dtype=X.dtype)
    try:
        X.kernels.top_k_factors(X.core, *given, lists, previous, kept, costs, resolve_threads(n_threads))
    except ValueError:
        check.ids(C, lists=(lists, -1), previous=(previous, -1))
        check.ids(C, previous=(previous[:, :1], 0))
        raise
    return kept, costs


def factor_moments(
    X: CoreRows,
    means: Floats,
    precisions: Doubles | None,
    loadings: Floats,
    roots: Doubles | None,
    kept: Ids,
    responsibilities: Doubles | None = None,
    sample_weight: Floats | None = None,
    *,
    n_threads: int | None = None,
) -> tuple[Doubles, Doubles, Doubles, Doubles, Doubles, Doubles]:
    """Return sums over points of 1 (C,), y (C, D), y² (C, D), z yᵀ (C, H, D), z (C, H), z zᵀ (C, H, H) per component.

    Here y = x − μ_c, and z = R Rᵀ ΛᵀΨ⁻¹ y are the expected factors. Weights are sample weight · responsibility q.
    means (C, D): μ    precisions (C, D): 1/ψ    roots (C, H, H): R, upper triangular
    If precisions and roots are None, z is Λᵀy instead.
    loadings: matrices Λᵀ (C, H, D), or (1, H, D) if common to all components
    kept (n, m): the m components of each point    responsibilities (n, m): q, or None for ones
    """
    means = check.matrix(means, "means", X, 1)
    C, D = means.shape
    loadings = check.contiguous(loadings, X.dtype)
    precisions, roots = (None if part is None else check.contiguous(part, np.float64) for part in (precisions, roots))
    H = loadings.shape[1]
    kept = check.array(kept, "kept", np.int32, len(X), -1)
    responsibilities = check.array(responsibilities, "responsibilities", np.float64, *kept.shape)
    weights = check.array(sample_weight, "sample_weight", np.float64, len(X))
    counts, first, second = np.zeros(C), np.zeros((C, 2 * D + H + H * H)), np.zeros((C, H * D))
    shares, sums = (kept, responsibilities, weights), (counts, first, second)
    try:
        X.kernels.factor_moments(X.core, means, precisions, loadings, roots, *shares, *sums, resolve_threads(n_threads))
    except ValueError:
        check.ids(C, kept=(kept, 0))
        raise
    of_rows, of_squares, of_factors, outer = np.split(first, [D, 2 * D, 2 * D + H], axis=1)
    return counts, of_rows, of_squares, second.reshape(C, H, D), of_factors, outer.reshape(C, H, H)


def _checked(factors: FactorAnalysers, X: CoreRows) -> FactorAnalysers:
    means, loadings = check.matrix(factors.means, "means", X, 1), check.contiguous(factors.loadings, X.dtype)
    precisions, roots, offsets = (
        check.contiguous(array, np.float64) for array in (factors.precisions, factors.roots, factors.offsets)
    )
    return FactorAnalysers(means, precisions, loadings, roots, offsets)
