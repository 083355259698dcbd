"""The evidence of `best_in_lists`: sums of distances to candidates, by nearest center and candidate."""

import numpy as np
import pytest
from kernel_calls import reference
from kernel_data import DTYPES, assert_evidence, clustered, looked_at, rounding, weights


def searched(n, C, width, length, dtype, n_extra=1):
    """Return X (n, 6), centers (C, 6), and ids with −1 and repetitions.

    The ids are lists (C, length), sets (n, width) and extra (n, n_extra).
    """
    rng = np.random.default_rng(n)
    ids = [rng.integers(-1, C, size=size).astype(np.int32) for size in ((C, length), (n, width), (n, n_extra))]
    return clustered(n, 6, dtype), clustered(C, 6, dtype, seed=1), *ids


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("n", "C", "width", "length"), [(0, 3, 2, 2), (1, 1, 1, 0), (50, 5, 5, 5), (700, 40, 3, 7), (300, 301, 2, 20)]
)
def test_sums_are_those_of_the_definition(kernels, n, C, width, length, weighted, dtype):
    X, centers, lists, previous, extra = searched(n, C, width, length, dtype)
    w = weights(n) if weighted else None
    found = kernels.search_lists(X, centers, lists, previous, 2, extra, evidence=True, sample_weight=w)
    distances = np.sqrt(reference.distances(X.astype(np.float64), centers.astype(np.float64)).T)
    looked = looked_at(lists, previous, extra)
    assert_evidence(found.evidence, distances, looked, found.kept[:, 0], w, rtol=rounding(dtype, 6))
