"""Validation of the arguments of the public seeding functions, with their errors and warnings.

This module is not used during a fit, because estimators validate their input themselves and call private functions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cprime._utils.arguments import check_integer
from cprime._utils.messages import warn_if_few
from cprime._utils.number_types import check_largest
from cprime._utils.random import check_random_state
from cprime.kernels import Rows, as_rows
from cprime.sources.checked import check_weights, checked

MOST_DRAWS = 2**16  # most rows that a method may draw for one center


def check_data(
    X: ArrayLike,
    n_clusters: int,
    sample_weight: ArrayLike | None,
    random_state: int | np.random.RandomState | np.random.Generator | None,
) -> tuple[Rows, NDArray | None, np.random.RandomState]:
    """Check the common arguments of seeding functions; return X, weights (float64 or None) and a `RandomState`.

    X is returned as float32 or float64.
    """
    data = as_rows(checked(X, accept_sparse="csr", dtype=[np.float64, np.float32]))
    check_largest(data.extent()[0], data.dtype, data.shape[1], "X")
    check_integer(n_clusters, "n_clusters", 1)
    if len(data) < n_clusters:
        raise ValueError(f"n_samples={len(data)} should be >= n_clusters={n_clusters}.")
    rng = check_random_state(random_state)
    return data, check_weights(sample_weight, data.given()), rng


def rows_at(data: Rows, indices: NDArray) -> NDArray:
    """Return the rows with the given indices as an array (m, D), and warn if some of these rows are equal."""
    rows = data[indices].dense()
    warn_if_few(len(np.unique(rows, axis=0)), len(rows))
    return rows
