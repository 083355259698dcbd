"""`evidence`: sums of what points have looked at, by their winner and by component."""

import numpy as np
import pytest
from kernel_data import DTYPES, THREADS, same_bits, weights


def looked_at(n, C, M, dtype, seed=0):
    """Winners (n,), components looked at (n, M) with the winner first and some missing, values (n, M)."""
    rng = np.random.default_rng(seed)
    evaluated = np.array([rng.permutation(C)[:M] for _ in range(n)], dtype=np.int32).reshape(n, M)
    evaluated[:, 1:][rng.random((n, M - 1)) < 0.3] = -1
    return evaluated[:, 0].copy(), evaluated, rng.exponential(size=(n, M)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "C", "M"), [(0, 3, 2), (1, 1, 1), (50, 5, 5), (700, 40, 7), (300, 301, 20)])
def test_sums_are_those_of_the_definition(kernels, n, C, M, weighted, dtype):
    winners, evaluated, values = looked_at(n, C, M, dtype)
    w = weights(n) if weighted else None
    found = kernels.evidence(winners, evaluated, values, w, n_components=C)
    expected = np.zeros((2, C, C))
    for i in range(n):
        for b, value in zip(evaluated[i], values[i], strict=True):
            if b >= 0:
                expected[:, winners[i], b] += (1.0 if w is None else w[i]) * np.array([value, 1.0], dtype=np.float64)
    dense = np.zeros((2, C, C))
    for c in range(C):
        here = slice(found.indptr[c], found.indptr[c + 1])
        assert (np.diff(found.indices[here]) > 0).all()
        dense[0, c, found.indices[here]], dense[1, c, found.indices[here]] = found.sums[here], found.weights[here]
    np.testing.assert_allclose(dense, expected, rtol=1e-12)
    assert len(found.indices) == np.count_nonzero(expected[1])
    assert found.indptr.shape == (C + 1,)


@pytest.mark.parametrize("n_threads", THREADS)
def test_threads_do_not_change_a_bit(kernels, n_threads):
    winners, evaluated, values = looked_at(2000, 300, 9, np.float32)
    given = (winners, evaluated, values, weights(2000))
    one = kernels.evidence(*given, n_components=300, n_threads=1)
    assert same_bits(tuple(one), tuple(kernels.evidence(*given, n_components=300, n_threads=n_threads)))


def test_what_is_no_component_is_refused(kernels):
    winners, evaluated, values = looked_at(20, 5, 3, np.float64)
    with pytest.raises(ValueError, match="values"):
        kernels.evidence(winners, evaluated, values[:, :2], n_components=5)
    with pytest.raises(ValueError, match="winners"):
        kernels.evidence(winners - 1, evaluated, values, n_components=5)
    with pytest.raises(ValueError, match="evaluated"):
        kernels.evidence(np.zeros_like(winners), np.where(evaluated == 4, 5, evaluated), values, n_components=5)
