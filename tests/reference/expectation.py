"""Responsibilities: of Gaussians, of factor analysers and of t distributions."""

import numpy as np

from cprime.kernels import arguments as check
from cprime.kernels.tables import least_of
from reference.distances import costs_of
from reference.sums import table_moments

# Upper limit of log(1 + δ/ν), for squared Mahalanobis distances δ and degrees of freedom ν. With it, results are finite
# even if a cost is infinite.
_MOST_LOG = 1e4


def _latent(roots, products):
    """Return the expected factors R Rᵀ v (n, H), from v = ΛᵀΨ⁻¹y (n, H) and one root R, or a root for every row."""
    return np.einsum("...ij,...kj,...k->...i", roots, roots, products)


def posterior(values, scale, responsibilities, log_sum, mean, n_threads):
    """Compute responsibilities ∝ exp(scale · values) of every row in NumPy; write them to `responsibilities` (n, H).

    Also write the logarithm of the sum of exp(scale · values) of each row to `log_sum`, and the mean of its values,
    weighted by the responsibilities, to `mean`. The greatest exponent of each row is subtracted to prevent overflow.
    """
    a = scale * values.astype(np.float64)
    highest = a.max(axis=1, keepdims=True)
    scaled = np.exp(a - highest)
    total = scaled.sum(axis=1, keepdims=True)
    responsibilities[:] = scaled / total
    log_sum[:] = (highest + np.log(total))[:, 0]
    mean[:] = (responsibilities * np.where(responsibilities > 0, values, 0)).sum(axis=1)


def expect_all(X, centers, variance, sample_weight, counts, sums, least, excess, log_sum, n_threads):
    """Compute an exact E-step with one variance in NumPy, from an (n, C) table of squared distances.

    Let d be the distances of a row to all centers, m the least d², and r the responsibilities. Weighted sums of r and
    of r x over rows x are added to `counts` (C,) and `sums` (C, D). For every row, m is written to `least`,
    Σ_c r (d² − m) to `excess`, and log Σ_c exp((m − d²)/2σ²) to `log_sum`, (n,) each.
    """
    r, squared = log_sum_exp(X, centers, variance, least, log_sum, n_threads)
    w = r if sample_weight is None else sample_weight[:, None] * r
    counts += w.sum(axis=0)
    sums += w.T @ X.astype(np.float64)
    excess[:] = (r * (squared - least[:, None])).sum(axis=1)


def log_sum_exp(X, centers, variance, least, log_sum, n_threads):
    """Write log Σ_c exp((m_n − d²_nc)/2σ²) of every row to `log_sum`, and m_n = min_c d²_nc to `least`.

    d_nc is the distance of row n to center c. Return responsibilities and squared distances, (n, C) each. Because
    exponents are relative to the nearest component, results stay finite for σ² → 0.
    """
    squared = costs_of(X, centers)
    least[:] = squared.min(axis=1)
    with np.errstate(over="ignore"):
        shares = np.exp((least[:, None] - squared) / (2 * variance))
    total = shares.sum(axis=1)
    log_sum[:] = np.log(total)
    return shares / total[:, None], squared


def respond(
    X,
    means,
    factors,
    offsets,
    dof,
    sample_weight,
    labels,
    log_sum,
    mean,
    counts,
    first,
    second,
    responsibilities,
    tails,
    row_weights,
    n_threads,
):
    """Compute an exact E-step of Gaussians or t distributions in NumPy, from an (n, C) table of costs.

    The components have `means` (C, D), `offsets` (C,) (costs at the means), factors A of the precisions AᵀA, and
    degrees of freedom `dof` (None for Gaussians). X (n, D): rows, of weights `sample_weight` (n,)
    For every row, the best component is written to `labels`, log Σ_c exp(−cost/2) to `log_sum`, the mean cost to `mean`
    and, unless None, all responsibilities to `responsibilities` (n, C). Unless None, sums per component are added to
    `counts`, `first` and `second`. For t distributions, the sums `shares` and `logs` are added to the two rows of
    `tails` (2, C), and a sum for each row to `row_weights` (n,). The sums are defined in the class `Responses`.
    """
    cost = costs_of(X, means, factors, offsets, dof)
    least = cost.min(axis=1, keepdims=True)
    r = np.exp((least - cost) / 2)
    total = r.sum(axis=1, keepdims=True)
    r /= total
    labels[:] = cost.astype(X.dtype).argmin(axis=1)
    log_sum[:] = (np.log(total) - least / 2)[:, 0]
    mean[:] = (r * np.where(r > 0, cost, 0)).sum(axis=1)
    if responsibilities is not None:
        responsibilities[:] = r
    if counts is not None and first is not None and second is not None:
        w = r if sample_weight is None else sample_weight[:, None] * r
        if tails is not None and dof is not None:
            nu, D = dof.astype(np.float64), X.shape[1]
            log_u = np.log1p(D / nu) - (cost - offsets) / (nu + D)
            tails += w.sum(axis=0), (w * log_u).sum(axis=0)
            w = w * np.exp(log_u)
        if row_weights is not None:
            row_weights += w.sum(axis=1)
        table_moments(X, means, w, counts, first, second)


def factor_costs(X, means, precisions, loadings, roots, offsets, ids, costs, n_threads):
    """Compute the costs of n rows under m factor analyzers each in NumPy, from residuals; write them to `costs` (n, m).

    A cost is ‖Ψ^−½(y − Λz)‖² + ‖z‖² + offset, with y = x − μ, loadings Λ, noise Ψ and factors z = E[z | x].
    ids (n, m): analyzers for each row, −1 for none    The parameters of the analyzers, from `means` to `offsets`, are
    the fields of `FactorAnalysers`.
    """
    check.ids(len(means), ids=(ids, -1))
    limit = float(np.finfo(X.dtype).max)
    for h in range(ids.shape[1]):
        c = np.maximum(ids[:, h], 0)
        y = X.astype(np.float64) - means[c].astype(np.float64)
        rows = loadings[c].astype(np.float64)
        z = _latent(roots[c], np.einsum("nid,nd->ni", rows, precisions[c] * y))
        rest = y - np.einsum("nid,ni->nd", rows, z)
        found = (np.square(rest) * precisions[c]).sum(axis=1) + np.square(z).sum(axis=1) + offsets[c]
        costs[:, h] = np.where(ids[:, h] < 0, np.inf, np.minimum(found, limit))


def top_k_factors(X, means, precisions, loadings, roots, offsets, lists, previous, kept, costs, n_threads):
    """Find each row's factor analyzers of least cost among its candidates, in NumPy.

    Candidates are the active set `previous` (n, H′) of a row, and the neighbor list, in `lists` (C, G), of its first
    component. Their ids are written to `kept` (n, n_kept), and their costs to `costs` of the same shape.
    The parameters of the C analyzers, from `means` to `offsets`, are the fields of `FactorAnalysers`.
    """
    check.ids(len(lists), lists=(lists, -1))
    check.ids(len(lists), previous=(previous[:, :1], 0))
    listed = np.where(np.minimum.accumulate(lists >= 0, axis=1), lists, np.int32(-1))[previous[:, 0]]
    offered = np.sort(np.column_stack([previous, listed]), axis=1)
    offered[:, 1:][offered[:, 1:] == offered[:, :-1]] = -1
    every, factors = np.empty(offered.shape, dtype=X.dtype), (precisions, loadings, roots, offsets)
    factor_costs(X, means, *factors, offered, every, n_threads)
    kept[:], costs[:] = least_of(offered, every, kept.shape[1])


def factor_moments(
    X, means, precisions, loadings, roots, kept, responsibilities, sample_weight, counts, first, second, n_threads
):
    """Compute the weighted sums of `factor_moments` in NumPy, component by component.

    These are sums over points x of 1, y = x − μ_c, the expected factors z, and their products. The weights are sample
    weights times responsibilities of the m components `kept` (n, m) of each point. The sums are added in place to these
    arrays: counts (C,), of 1; first (C, 2 D + H + H²), of y, y², z and z zᵀ; second (C, H D), of z yᵀ, as flat rows.
    """
    C, H, D = len(means), loadings.shape[1], X.shape[1]
    check.ids(C, kept=(kept, 0))
    w = np.ones(kept.shape) if responsibilities is None else responsibilities
    w = w if sample_weight is None else w * sample_weight[:, None]
    for c in range(C):
        n, h = np.nonzero(kept == c)
        share = w[n, h]
        y = X[n].astype(np.float64) - means[c].astype(np.float64)
        own = loadings[c if len(loadings) == C else 0].astype(np.float64)
        z = y @ own.T if precisions is None or roots is None else _latent(roots[c], (y * precisions[c]) @ own.T)
        counts[c] += share.sum()
        weighted = share[:, None] * z
        outer = (weighted.T @ z).ravel()
        first[c] += np.concatenate([share @ y, share @ np.square(y), weighted.sum(axis=0), outer])
        second[c] += (weighted.T @ y).ravel()
    assert second.shape[1] == H * D


def scaled_responsibilities(
    kept, costs, responsibilities, sample_weight, offsets, dof, n_features, scaled, tails, n_threads
):
    """Compute the weights q u of rows in M-steps of t distributions in NumPy, and write them to `scaled` (n, H).

    q are responsibilities, and u = (ν + D)/(ν + δ) for degrees of freedom ν and squared Mahalanobis distances δ.
    The sums Σ w q and Σ w q log u over rows of sample weight w are added to `tails` (2, C).
    kept, costs (n, H): components of each row, and their costs, from which δ is computed    offsets (C,): costs at the
    means    dof (C,): ν    n_features: D
    """
    check.ids(len(dof), kept=(kept, 0))
    nu, offset = dof.astype(np.float64)[kept], offsets.astype(np.float64)[kept]
    log_u = np.log1p(n_features / nu) - np.clip((costs.astype(np.float64) - offset) / (nu + n_features), 0, _MOST_LOG)
    q = np.ones(kept.shape) if responsibilities is None else responsibilities
    scaled[:] = q * np.exp(log_u)
    w = q if sample_weight is None else q * sample_weight[:, None]
    np.add.at(tails[0], kept, w)
    np.add.at(tails[1], kept, w * log_u)
