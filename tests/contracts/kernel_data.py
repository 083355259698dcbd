"""Inputs, tolerances and assertions that the tests of kernels share."""

from pathlib import Path

import numpy as np
import pytest
from kernel_calls import reference

from cprime.kernels import DistanceBounds, GaussianParameters, Moves
from reference.distances import costs_of

DTYPES = (np.float32, np.float64)
LAYOUTS = ("C", "fortran", "padded rows", "strided", "reversed", "unaligned", "read-only memmap")
THREADS = (1, 3, 8)
SIZES = [(1, 1, 1), (7, 1, 3), (33, 2, 17), (40, 17, 33), (70, 19, 5), (25, 64, 20), (9, 130, 7), (65, 3, 300)]
every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_shape = pytest.mark.parametrize("full", [False, True], ids=["diag", "full"])


def clustered(n, D, dtype, seed=0, n_clusters=12):
    """Return points (n, D) around a few random centers, in units of the clusters' standard deviation."""
    rng = np.random.default_rng(seed)
    places = 4 * rng.standard_normal((n_clusters, D))
    return (places[rng.integers(n_clusters, size=n)] + rng.standard_normal((n, D))).astype(dtype)


def sixteenths(n, D, dtype, seed=0, span=64):
    """Return points on multiples of 1/16, whose differences are exact, even after 1e6 is added in float32."""
    return (np.random.default_rng(seed).integers(-span, span, size=(n, D)) / 16).astype(dtype)


def packed_beside_outliers(n, dtype):
    """Return points (n, 6) in tight clusters and their 80 centers; some points and two centers are at 1e8."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((80, 6))
    X = centers[rng.integers(80, size=n)] + 0.01 * rng.standard_normal((n, 6))
    X[::50] = 1e8 * rng.standard_normal((n // 50, 6))
    centers[[3, 77]] = 1e8 * rng.standard_normal((2, 6))
    return X.astype(dtype), centers.astype(dtype)


def packed_far_away(offset):
    """Return float32 points (300, 8) about an offset, and 90 centers whose distances to some of them are rounding."""
    X = (clustered(300, 8, np.float64) + offset).astype(np.float32)
    return X, X[:90] + (offset * 1e-7 * np.random.default_rng(1).standard_normal((90, 8))).astype(np.float32)


def weights(n, seed=1):
    """Return weights (n,) float64, some of which are zero."""
    rng = np.random.default_rng(seed)
    return rng.exponential(size=n) * (rng.random(n) > 0.2)


def arrange(array, layout, folder: Path):
    """Return the same numbers in another memory layout, with NaN or large numbers in the memory between its entries."""
    if array.ndim == 1:
        return arrange(array[:, np.newaxis], layout, folder)[:, 0]
    if array.ndim == 3:
        return array.transpose(0, 2, 1).copy().transpose(0, 2, 1) if layout == "fortran" else array
    n, D = array.shape
    poison = np.nan if array.dtype.kind == "f" else 10**6
    if layout == "C":
        return np.ascontiguousarray(array)
    if layout == "fortran":
        return np.asfortranarray(array)
    if layout == "padded rows":
        wide = np.full((n, D + 3), poison, dtype=array.dtype)
        wide[:, 1 : D + 1] = array
        return wide[:, 1 : D + 1]
    if layout == "strided":
        wide = np.full((2 * n, 3 * D), poison, dtype=array.dtype)
        wide[::2, ::3] = array
        return wide[::2, ::3]
    if layout == "reversed":
        return np.ascontiguousarray(array[::-1])[::-1]
    if layout == "unaligned":
        shifted = np.frombuffer(b"\0" + array.tobytes(), dtype=array.dtype, offset=1).reshape(n, D)
        assert not shifted.flags.aligned or array.itemsize == 1
        return shifted
    if layout == "read-only memmap":
        path = folder / f"data-{np.random.default_rng().integers(2**60)}.npy"
        np.save(path, array)
        mapped = np.load(path, mmap_mode="r")
        assert isinstance(mapped, np.memmap)
        assert not mapped.flags.writeable
        return mapped
    raise AssertionError(layout)


def rounding(dtype, D):
    """Return a bound of the relative error of ‖x − μ‖² summed from D squared differences in the given dtype."""
    return (D + 8) * np.finfo(dtype).eps


def assert_moments(found, expected, X, means, kept, q, w):
    """Check moments; diagonals are compared in the data's precision, counts and matrices in double precision."""
    count, _, second = reference.moments(X, means, kept, None if q is None else np.abs(q), w, full=False)
    share = 1e-11 if expected[2].ndim == 3 else 64 * float(np.finfo(X.dtype).eps)
    most = second if expected[2].ndim == 2 else np.sqrt(second[:, :, np.newaxis] * second[:, np.newaxis])
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-11, atol=1e-10)
    for a, b, size in zip(found[1:], expected[1:], (np.sqrt(count[:, np.newaxis] * second), most), strict=True):
        assert (np.abs(a - b) <= share * size + 1e-10).all()


def looked_at(lists, previous, extra=None):
    """Return a mask (n, C) of the candidates: K(n) ∪ ⋃_{c ∈ K(n)} G_c ∪ extra(n), with −1 for no component."""
    there = np.zeros((len(previous), len(lists) + 1), dtype=bool)  # the last column is for index −1
    for n, kept in enumerate(previous):
        there[n, kept] = there[n, lists[kept[kept >= 0]]] = True
        there[n, () if extra is None else extra[n]] = True
    return there[:, :-1]


def assert_evidence(evidence, values, looked, winners, w=None, rtol=1e-12, atol=0.0):
    """Check, for each best component, the sums over its points of w_n · value (n, C) and w_n of each candidate.

    looked (n, C): mask of candidates; winners (n,): best components, −1 for none.
    """
    C = values.shape[1]
    w = np.ones(len(values)) if w is None else w
    expected, dense = np.zeros((2, C, C)), np.zeros((2, C, C))
    for n in np.flatnonzero((winners >= 0) & (w > 0)):
        expected[0, winners[n]] += w[n] * np.where(looked[n], values[n], 0)
        expected[1, winners[n]] += w[n] * looked[n]
    assert evidence.indptr.shape == (C + 1,)
    for c in range(C):
        here = slice(evidence.indptr[c], evidence.indptr[c + 1])
        assert (np.diff(evidence.indices[here]) > 0).all()
        dense[0, c, evidence.indices[here]] = evidence.sums[here]
        dense[1, c, evidence.indices[here]] = evidence.weights[here]
    assert len(evidence.indices) == np.count_nonzero(expected[1])
    np.testing.assert_allclose(dense[1], expected[1], rtol=1e-12)
    np.testing.assert_allclose(dense[0], expected[0], rtol=rtol, atol=atol * max(1.0, expected[1].max(initial=0)))


def same_bits(left, right):
    """Return whether arrays, floats or tuples of them are bit-identical."""
    if left is None or right is None:
        return left is right
    if isinstance(left, tuple):
        return len(left) == len(right) and all(same_bits(a, b) for a, b in zip(left, right, strict=True))
    left, right = np.asarray(left), np.asarray(right)
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


def gaussians(C, D, dtype, full, seed=0):
    """Return Gaussians around clustered means; factors (C, D, D) lower triangular if full, else (C, D)."""
    rng = np.random.default_rng(seed)
    means = clustered(C, D, dtype, seed)
    if full:
        factors = np.tril(rng.standard_normal((C, D, D))) / np.sqrt(D)
        factors[:, np.arange(D), np.arange(D)] = rng.uniform(0.3, 2, (C, D))
    else:
        factors = rng.uniform(0.2, 2, (C, D))
    return GaussianParameters(means, factors.astype(dtype), rng.uniform(-5, 5, C).astype(dtype))


def exact_gaussians(C, D, dtype, full, seed=1, span=9, twins=0):
    """Return Gaussians whose costs of `sixteenths` are exact, also in float32; the last `twins` copy the first ones."""
    rng = np.random.default_rng(seed)
    means = sixteenths(C, D, dtype, seed, span)
    factors = rng.integers(-4, 5, (C, D, D) if full else (C, D)) / 4
    offsets = rng.integers(-64, 65, C) / 16
    if full:
        factors = np.tril(factors)
    for array in (means, factors, offsets):
        array[C - twins :] = array[:twins]
    return GaussianParameters(means, factors.astype(dtype), offsets.astype(dtype))


def cost_rounding(X, given):
    """Return a bound (n, C) of the rounding errors of costs.

    Products are computed relative to an origin among the means, so the bound includes the distance to it.
    """
    means = np.abs(given.means.astype(np.float64)).max(axis=0)
    reach = np.abs(X.astype(np.float64)) + 3 * means
    D = X.shape[1]
    out = np.empty((len(X), len(given.means)))
    for c, A in enumerate(np.abs(given.factors.astype(np.float64))):
        out[:, c] = np.square(reach * A if A.ndim == 1 else reach @ A.T).sum(axis=1)
    eps = float(np.finfo(X.dtype).eps)
    found = (D + 8) * eps * (out + np.abs(given.offsets.astype(np.float64)))
    if given.dof is not None:  # costs grow at most 1 + D/ν times as fast as squared distances
        dof = given.dof.astype(np.float64)
        found = (1 + D / dof) * found + 8 * eps * (dof + D) * np.log1p(out / dof)
    return found


def nothing(n, C, n_others, dtype):
    """Return trivial bounds, which exclude no center."""
    others = np.tile(np.arange(1, n_others + 1, dtype=np.int32), (n, 1))
    return DistanceBounds(np.zeros(n, dtype=np.int32), others, np.zeros((n, n_others), dtype), np.zeros(n, dtype))


def moves_between(before, after, n_listed=None):
    """Return bounds of changes in distance when centers move from `before` to `after`.

    The centers around each center are sorted by distance, all of them or the first `n_listed`.
    """
    C = len(after)
    old, new = before.astype(np.float64), after.astype(np.float64)
    drift = np.sqrt(np.square(new - old).sum(axis=1)) * (1 + 1e-6)
    between = np.sqrt(np.square(new[:, np.newaxis] - new).sum(axis=2)) * (1 - 1e-6)
    order = np.argsort(between, axis=1, kind="stable")[:, : n_listed or C]
    reach = np.column_stack([np.take_along_axis(between, order, axis=1), np.full(C, np.inf)])
    listed = np.where(order == np.arange(C)[:, np.newaxis], -np.inf, drift[order])
    spread = np.column_stack([np.full(C, -np.inf), np.maximum.accumulate(listed, axis=1)])
    spread[:, -1] = [np.delete(drift, c).max(initial=-np.inf) for c in range(C)]
    up = 1 + np.finfo(after.dtype).eps
    return Moves(
        *(
            (array * up).astype(after.dtype) if array is not reach else array.astype(after.dtype)
            for array in (drift, reach, spread)
        )
    )


def random_ids(n, width, n_components, seed=0, holes=0.2):
    """Return component ids (n, width) int32 with repetitions and −1 for none; the first of each row is not −1."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(n_components, size=(n, width)).astype(np.int32)
    ids[:, 1:][rng.random((n, max(width - 1, 0))) < holes] = -1
    return ids


def neighbours(C, length, seed=0):
    """Return neighbor lists (C, length) without the component itself.

    Some lists end early, with −1; entries after the −1 are arbitrary.
    """
    rng = np.random.default_rng(seed)
    length = min(length, C - 1)
    step = 1 + np.argsort(rng.random((C, max(C - 1, 0))), axis=1)[:, :length]
    lists = ((np.arange(C)[:, np.newaxis] + step) % C).astype(np.int32)
    if length:
        lists[::3, length // 2] = -1
    return lists


def whole_costs(X, given):
    return costs_of(X, *given[:4])


def assert_kept(kept, costs, X, given, expected):
    """Check active sets and their costs against the reference; sets may differ if costs tie within rounding."""
    assert kept.dtype == np.int32
    assert costs.dtype == X.dtype
    there = kept >= 0
    np.testing.assert_array_equal(there, expected[0] >= 0)
    at = np.maximum(kept, 0)
    slack = np.take_along_axis(cost_rounding(X, given), at, axis=1)
    widest = np.where(there, slack, 0).max(axis=1, initial=0, keepdims=True)
    truth = np.take_along_axis(whole_costs(X, given), at, axis=1)
    assert (costs[~there] == np.inf).all()
    assert (np.abs(costs[there] - truth[there]) <= slack[there]).all()
    apart = np.abs(costs[there] - expected[1][there].astype(np.float64))
    assert (apart <= 2 * np.broadcast_to(widest, kept.shape)[there]).all()
    with np.errstate(invalid="ignore"):
        step = np.diff(costs, axis=1)
    assert not (step < 0).any(), "costs do not ascend"
    assert (np.diff(kept, axis=1)[step == 0] > 0).all(), "a tie does not go to the lower id"
    assert all(len(set(row[row >= 0])) == (row >= 0).sum() for row in kept)
