"""Sums over the rows of each component: counts, sums and moments."""

import numpy as np

from cprime.kernels import arguments as check
from reference.distances import best


def table_moments(X, means, w, counts, first, second):
    """Add moments of rows about the means to arrays, in place: counts (C,), first (C, D), and second.

    w (n, C): weight of each row for each mean    second (C, D) or (C, D, D)
    """
    rows = np.ascontiguousarray(X, dtype=np.float64)
    counts += w.sum(axis=0)
    for c, mean in enumerate(means.astype(np.float64)):
        own = np.flatnonzero(w[:, c])
        d, share = rows[own] - mean, w[own, c]
        first[c] += share @ d
        second[c] += share @ np.square(d) if second.ndim == 2 else (share[:, None] * d).T @ d


def weighted_sum(values, sample_weight):
    """Return the sum of all values (n,), times their weights if these are given."""
    return float((values if sample_weight is None else sample_weight * values).sum(dtype=np.float64))


def assign(X, centers, before, sample_weight, kept, costs, counts, sums, members, n_threads):
    """Compute the E-step of k-means: the nearest center of every row, and the sums over the rows of each center.

    The results are written to these arrays: kept (n, 1), nearest centers; costs (n, 1), squared distances to them; and
    for each center counts (C,), sum of weights; sums (C, D), sum of weighted rows; members (C,), number of rows of
    positive weight.
    before (n, 1): previous nearest centers, or None    sample_weight (n,): weights, or None
    Returns the number of rows of positive weight whose nearest center changed; None for `before` counts all rows.
    """
    best(X, centers, None, None, None, kept, costs, n_threads)
    accumulate(X, kept, None, sample_weight, None, counts, sums, False, n_threads)
    heavy = np.ones(len(kept), dtype=bool) if sample_weight is None else sample_weight > 0
    members[:] = np.bincount(kept[heavy, 0], minlength=len(centers))
    return int(np.count_nonzero(heavy if before is None else heavy & (kept != before)[:, 0]))


def accumulate(X, kept, responsibilities, sample_weight, rows, counts, sums, onto, n_threads):
    """Compute the sums of weights (C,) and of weighted rows (C, D) of all components in NumPy.

    kept, responsibilities (n, H): components of each row, and responsibilities, which multiply the weights
    The sums of weights are written to `counts`. The sums of rows are written to `sums`, or added to it if `onto`.
    """
    weights = np.ones(len(X)) if sample_weight is None else sample_weight
    if rows is not None:
        if rows.size and not (rows.min() >= 0 and rows.max() < len(X)):
            raise ValueError("rows has a row outside X")
        X, weights = X[rows], weights[rows]
    if kept.size and not (kept.min() >= 0 and kept.max() < len(counts)):
        raise ValueError("kept has a component outside its range")
    counts[:] = 0
    if not onto:
        sums[:] = 0
    for h in range(kept.shape[1]):
        mass = weights if responsibilities is None else responsibilities[:, h] * weights
        np.add.at(counts, kept[:, h], mass)
        np.add.at(sums, kept[:, h], mass[:, None] * X.astype(np.float64))


def moments(X, means, kept, responsibilities, sample_weight, counts, first, second, n_threads):
    """Compute counts, first and second moments about the means in NumPy, from an (n, C) table of weights w q.

    w are sample weights, q responsibilities. The results are written to `counts`, `first` and `second`.
    """
    check.ids(len(means), kept=(kept, 0))
    w = np.zeros((len(X), len(means)))
    for h in range(kept.shape[1]):
        w[np.arange(len(X)), kept[:, h]] += 1 if responsibilities is None else responsibilities[:, h]
    table_moments(X, means, w if sample_weight is None else sample_weight[:, None] * w, counts, first, second)


def along(X, centers, directions, labels, out, n_threads):
    """Write projections (x_n − m_c)·v_c of points X on directions to `out` (n,); c = labels[n], m_c are the centers."""
    check.ids(len(centers), labels=(labels, 0))
    differences = X.astype(np.float64) - centers.astype(np.float64)[labels]
    out[:] = np.einsum("nd,nd->n", differences, directions.astype(np.float64)[labels])


def means(counts, sums, centers, origin, out, squares, n_threads):
    """Write means sums / counts to `out` (C, D), and squared distances to `origin` to `squares` (C,), in NumPy."""
    held = counts > 0
    new = np.where(held[:, None], sums / np.where(held, counts, 1)[:, None], centers)
    out[:] = new.astype(centers.dtype)
    squares[:] = np.square(new - (centers if origin is None else origin)).sum(axis=1)


def grouped_order(labels, n_components, order, n_threads):
    """Sort points by their components `labels` with NumPy's stable sort; write the indices (n,) to `order`."""
    check.ids(n_components, labels=(labels, 0))
    order[:] = np.argsort(labels, kind="stable")
