"""Weighted draws of rows, used by all seeding methods.

The functions convert random numbers and weights to row indices. They do not use distances or centers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.random import sample_without_replacement


def draw(cumulative: NDArray, uniform: NDArray) -> NDArray:
    """Return indices drawn with probability proportional to given weights, from uniform numbers in [0, 1).

    cumulative (n,) float64: cumulative sums of the weights, last entry > 0. Returns indices in the shape of `uniform`;
    an index of zero weight is never drawn.
    """
    total = cumulative[-1]
    indices = np.searchsorted(cumulative, uniform * total, side="right")
    # If the product of a uniform number and the total is rounded up to the total, the last positive weight is drawn.
    return np.minimum(indices, np.searchsorted(cumulative, total, side="left"))


def draw_first(n_rows: int, sample_weight: NDArray | None, rng: np.random.RandomState) -> int:
    """Draw one of n_rows rows with probability proportional to `sample_weight` (None: equal); return its index."""
    if sample_weight is None:
        return int(rng.randint(n_rows))
    return int(draw(np.cumsum(sample_weight), rng.uniform(size=1))[0])


def draw_distinct(n_rows: int, n_draws: int, sample_weight: NDArray | None, rng: np.random.RandomState) -> NDArray:
    """Draw n_draws distinct rows of n_rows, each with probability proportional to its weight among those that remain.

    Rows of weight zero come last, in random order. Returns indices (n_draws,) int64. The method takes the rows with the
    smallest E_n / w_n, with weights w_n and standard exponential E_n (Efraimidis & Spirakis 2006, algorithm A).
    """
    if sample_weight is None:
        indices = sample_without_replacement(n_rows, n_draws, random_state=rng)
        rng.shuffle(indices)
        return indices.astype(np.int64, copy=False)
    with np.errstate(divide="ignore"):
        log_key = np.log(rng.standard_exponential(n_rows)) - np.log(sample_weight)
    weightless = np.flatnonzero(sample_weight == 0)
    n_weighted = min(n_draws, n_rows - len(weightless))
    first = np.argpartition(log_key, n_weighted - 1)[:n_weighted] if n_weighted else weightless[:0]
    first = first[np.argsort(log_key[first], kind="stable")]
    rest = rng.permutation(weightless)[: n_draws - n_weighted]
    return np.concatenate([first, rest]).astype(np.int64, copy=False)


def complete(
    chosen: NDArray, n_rows: int, n_clusters: int, sample_weight: NDArray | None, rng: np.random.RandomState
) -> NDArray:
    """Return n_clusters distinct row indices (n_clusters,) int64: `chosen` (k,), followed by random other rows.

    Seeding methods call this function if all rows that are not chosen equal chosen rows.
    """
    if sample_weight is None:
        drawn = draw_distinct(n_rows, n_clusters, None, rng)
        return np.concatenate([chosen, drawn[~np.isin(drawn, chosen)][: n_clusters - len(chosen)]])
    free = np.delete(np.arange(n_rows), chosen)
    return np.concatenate([chosen, free[draw_distinct(len(free), n_clusters - len(chosen), sample_weight[free], rng)]])
