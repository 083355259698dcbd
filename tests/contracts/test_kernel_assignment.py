"""The E-step of k-means in one call is bit-identical to calls of the kernels that it combines."""

import numpy as np
import pytest
import scipy.sparse as sp

from cprime.kernels import as_rows, changed
from reference import Reference


def case(n, D, C, dtype, weighted):
    rng = np.random.default_rng(n + D)
    X = rng.standard_normal((n, D)).astype(dtype)
    before = rng.integers(0, C, (n, 1)).astype(np.int32)
    return X, X[:C] + dtype(0.1), before, rng.integers(0, 3, n).astype(np.float64) if weighted else None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "D", "C"), [(1, 1, 1), (5, 3, 2), (700, 4, 3), (20_000, 20, 30)])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_win_is_its_parts(n, D, C, dtype, weighted):
    X, centers, before, weight = case(n, D, C, dtype, weighted)
    rows = as_rows(X)
    for old in (None, before):
        found = rows.assign(centers, old, weight)
        kept, costs = rows.nearest(centers)
        counts, sums = rows.accumulate(kept, None, weight, n_components=C)
        heavy = np.ones(n, dtype=bool) if weight is None else weight > 0
        moved = heavy if old is None else heavy & changed(kept, old)
        expected = kept, costs, counts, sums, np.bincount(kept[heavy, 0], minlength=C)
        for name, one, other in zip(found._fields, found, expected, strict=False):
            assert one.dtype == other.dtype, name
            assert (one == other).all(), name
        assert found.n_moved == np.count_nonzero(moved)
        many = rows.assign(centers, old, weight, n_threads=3)
        assert all((one == other).all() for one, other in zip(found[:5], many[:5], strict=True))


def test_sparse_rows_and_the_twin_win_alike():
    X, centers, before, weight = case(300, 6, 4, np.float64, True)
    X[np.abs(X) < 0.8] = 0
    found = [rows.assign(centers, before, weight) for rows in (as_rows(X), as_rows(sp.csr_array(X)), Reference(X))]
    for other in found[1:]:
        assert (other.kept == found[0].kept).all()
        assert (other.members == found[0].members).all()
        assert other.n_moved == found[0].n_moved
        np.testing.assert_allclose(other.sums, found[0].sums, rtol=1e-12, atol=1e-12)


def test_what_a_win_refuses():
    X, centers, before, _ = case(20, 3, 4, np.float64, False)
    with pytest.raises(ValueError, match=r"before must have shape \(20, 1\), got \(19, 1\)"):
        as_rows(X).assign(centers, before[1:])
    with pytest.raises(ValueError, match="before"):
        as_rows(X).assign(centers, before + 4)
    with pytest.raises(ValueError, match="at least one row"):
        as_rows(X).assign(centers[:0])
