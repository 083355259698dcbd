"""Lower bounds of the k-means objective J that hold in exact arithmetic: dual values of Peng and Wei's relaxation.

Let U be the rows times the roots s of their weights, G = U Uᵀ, and Z the matrix of a partition into C clusters:
Z_ij = s_i s_j / W_c if rows i and j are in the same cluster c of weight W_c, otherwise 0. Then

    J = tr G − <G, Z>,    Z ≥ 0,  Z s = s,  tr Z = C,  0 ⪯ Z ⪯ I.

For any B ≥ 0, any y, and a nonnegative sum A of matrices with <A, Z> ≤ 0 for all partitions,

    <G, Z> ≤ <G + B − A, Z> = <N, Z> + 2 yᵀs ≤ Λ(N) + 2 yᵀs,    N = G + B − A − y sᵀ − s yᵀ,

where Λ(N) is the sum of the C largest eigenvalues. So tr G − Λ(N) − 2 yᵀs is a lower bound for all multipliers. Errors
of the arithmetic are bounded as in Higham, "Accuracy and stability of numerical algorithms", chapter 3; the eigenvalues
are verified by a Cholesky factorization (Rump, "Verification of positive definiteness", BIT 46, 2006).
"""

from dataclasses import dataclass
from math import fsum, inf, sqrt

import numpy as np
from scipy import linalg

from cprime.theory.cuts import Cuts
from cprime.theory.mixtures import Floats

UNIT = float(np.finfo(np.float64).eps) / 2  # unit roundoff u: |fl(a ∘ b) − a ∘ b| <= u |a ∘ b|
# Bounds of rounding errors are multiplied by this factor, because these bounds themselves have rounding errors.
_WIDER = 1.01
# Maximum number of trials of a Cholesky factorization, each with a shift of the diagonal ten times the last one.
_TRIES = 12


@dataclass(frozen=True)
class Multipliers:
    """Multipliers of the semidefinite relaxation: of Z >= 0, and of inequalities (cuts) between entries of Z.

    Z (n, n) is the matrix of a partition. entries (n, n): multipliers B >= 0 of Z >= 0, symmetric
    cuts: the inequalities    factors (n_cuts,): their multipliers, >= 0
    """

    entries: Floats
    cuts: Cuts
    factors: Floats


def growth(n: int) -> float:
    """Return the bound γ_n = n u / (1 − n u) of the relative error of a sum of n terms, with the unit roundoff u."""
    return n * UNIT / (1 - n * UNIT)


def sum_of_squares(values: Floats) -> float:
    """Return the sum of the squares of all values, with a relative error of at most twice the unit roundoff."""
    return fsum(np.square(values).ravel().tolist())


def greatest_sum(N: Floats, k: int) -> tuple[float, float]:
    """Return (θ, r) such that N ⪯ θ I + S in exact arithmetic for a matrix S ⪰ 0 of trace r.

    So <N, Q> <= k θ + r for all matrices 0 ⪯ Q ⪯ I of trace k, and k θ + r exceeds the sum of the k largest eigenvalues
    of N by little more than rounding errors.

    N (n, n): symmetric    k: at least 1 and below n
    """
    n = len(N)
    values, vectors = linalg.eigh(N, subset_by_index=[n - k - 1, n - 1], check_finite=False)
    theta = float(values[0])
    factor = vectors[:, 1:] * np.sqrt(np.maximum(values[1:] - theta, 0.0))
    remaining = factor @ factor.T - N
    diagonal = remaining.diagonal().copy()
    squares, size = sum_of_squares(factor), float(linalg.norm(N))
    shift = 4 * n * UNIT * max(abs(theta), abs(float(values[-1])), UNIT * size)
    for _ in range(_TRIES):
        np.fill_diagonal(remaining, diagonal + (theta + shift))
        try:
            linalg.cholesky(remaining, lower=True, check_finite=False)
        except linalg.LinAlgError:
            shift *= 10
            continue
        trace = float(remaining.diagonal().sum())
        rounding = growth(k + 4) * squares + 8 * UNIT * (size + sqrt(n) * (abs(theta) + shift))
        rounding += growth(n + 2) * trace / (1 - growth(n + 2))
        return theta + shift + _WIDER * rounding, squares * (1 + 4 * UNIT)
    return inf, 0.0


def dual_value(U: Floats, roots: Floats, n_clusters: int, given: Multipliers) -> float:
    """Return a lower bound of J = tr(U Uᵀ (I − Z)) for all partitions Z into C clusters; −∞ if it cannot be verified.

    given: multipliers of the relaxation, from which the bound is computed
    U (n, D): rows times square roots of weights; numbers of the order of 1, taken as exact
    roots (n,): square roots of the weights, rounded    n_clusters: C, at least 1 and below n
    """
    D = U.shape[1]
    total = sum_of_squares(U)
    gram = U @ U.T
    cut_sum, cut_sizes, most_terms = given.cuts.combination(given.factors, roots)
    M = gram + given.entries
    M -= cut_sum
    M = (M + M.T) / 2
    weight = float(roots @ roots)
    products = M @ roots
    square = float(roots @ products)
    # y is such that N has the eigenvector s (`roots`) with the norm of M as eigenvalue, which is one of the C largest.
    ahead = float(linalg.norm(M))
    y = (products - roots * (square / (2 * weight) + ahead / 2)) / weight
    N = M - np.outer(y, roots) - np.outer(roots, y)
    N = (N + N.T) / 2
    level, rest = greatest_sum(N, n_clusters)
    terms = y * roots
    sizes = float(linalg.norm(gram) + linalg.norm(given.entries) + linalg.norm(cut_sum) + linalg.norm(M))
    sizes += 2 * float(linalg.norm(y) * linalg.norm(roots))
    error = 8 * UNIT * sizes + growth(most_terms + 16) * float(linalg.norm(cut_sizes))
    slack = _WIDER * (sqrt(n_clusters) * error + growth(D + 4) * total + 8 * UNIT * float(np.abs(terms).sum()))
    parts = (total, -2 * fsum(terms.tolist()), -n_clusters * level, -rest, -slack)
    return fsum(parts) - 8 * UNIT * fsum(map(abs, parts))


def spectral_value(U: Floats, roots: Floats, n_clusters: int) -> float:
    """Return the spectral lower bound of J = tr(U Uᵀ (I − Z)) for all partitions Z into C clusters; −∞ if not verified.

    It is the total scatter minus the C − 1 largest eigenvalues of Uᵀ U (Zha, He, Ding, Gu & Simon, 2001).
    U (n, D): rows, whose weighted mean is nearly 0, times square roots of weights    roots (n,): these roots
    n_clusters: C >= 1
    """
    n, D = U.shape
    total, k = sum_of_squares(U), n_clusters - 1
    weight = float(roots @ roots)
    sums = np.abs(U.T @ roots) + growth(n + 4) * (np.abs(U).T @ roots)
    mean_part = _WIDER * float(sums @ sums) / weight
    if k >= min(n, D):
        return 0.0
    level, rest = (0.0, 0.0) if k == 0 else greatest_sum(U.T @ U, k)
    parts = (total, -mean_part, -k * max(level, 0.0), -rest, -_WIDER * k * growth(n + 4) * total)
    return fsum(parts) - 8 * UNIT * fsum(map(abs, parts))
