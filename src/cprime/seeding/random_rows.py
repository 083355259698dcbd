"""Seeding by random rows: C distinct rows, drawn with probability proportional to weight (Forgy's initialization)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cprime._utils.random import Key
from cprime.execution import Data, local
from cprime.seeding.keys import FindSmallestKeys
from cprime.seeding.sampling import draw_distinct
from cprime.seeding.validation import check_data, rows_at


def random_rows(
    X: ArrayLike,
    n_clusters: int,
    *,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
) -> tuple[NDArray, NDArray]:
    """Choose distinct rows of X at random as starting centers.

    Rows are drawn one after another without replacement. With weights, the probability of a row is
    proportional to its weight among the remaining rows; rows of weight zero are chosen only if all others are.

    Parameters
    ----------
    X : array-like or sparse array of shape (n_samples, n_features)
        The data. float32 and float64 are used as they are, memory maps included; anything else becomes
        float64.
    n_clusters : int
        Number of centers C, at most n_samples.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights; None means equal ones.
    random_state : int, RandomState, Generator or None, default=None
        An int makes the choice reproducible.

    Returns
    -------
    centers : ndarray of shape (n_clusters, n_features)
        The chosen rows, in the dtype of X.
    indices : ndarray of shape (n_clusters,), int64
        Row indices of the centers: ``centers == X[indices]``.

    Raises
    ------
    ValueError
        If X is empty, not two-dimensional or not finite, n_clusters is not in 1 … n_samples, or a weight is
        negative or all are zero.
    TypeError
        If n_clusters is not an integer.

    Warns
    -----
    ConvergenceWarning
        If some of the chosen rows are equal.

    Examples
    --------
    >>> from cprime.datasets import birch
    >>> from cprime.seeding import random_rows
    >>> X = birch(3, random_state=0).data
    >>> centers, indices = random_rows(X, 9, random_state=0)
    >>> len(set(indices.tolist()))
    9
    """
    data, weights, rng = check_data(X, n_clusters, sample_weight, random_state)
    indices = draw_rows(local(data, weights), n_clusters, rng)
    return rows_at(data, indices), indices


def draw_rows(data: Data, n_rows: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    """Draw distinct rows of any `Data`, with probability proportional to weight; return indices (n_rows,)."""
    if data.weighted:
        return data.each(FindSmallestKeys(Key(int(rng.randint(2**31))), n_rows)).rows
    return draw_distinct(data.n_points, n_rows, None, rng)
