"""The binding of kernels to NumPy: arrays are used without a copy, or refused."""

import numpy as np
import pytest
from kernel_calls import native as kernels
from kernel_data import clustered

from cprime import _core
from cprime.kernels import arguments as check

N, C, D = 40, 5, 3
X = clustered(N, D, np.float32)
CENTERS = clustered(C, D, np.float32, seed=2)


def outputs(dtype=np.float32, layout="C"):
    """Return output arrays of `nearest` for two centers per row, filled with −7."""
    kept = np.full((N, 2), -7, dtype=np.int32, order=layout)
    return kept, np.full((N, 2), -7, dtype=dtype, order=layout)


def nearest(kept, distances, X=X, centers=CENTERS):
    _core.nearest(X, centers, None, kept, distances, 1)


def test_outputs_are_filled_in_place():
    kept, distances = outputs()
    nearest(kept, distances)
    assert (kept >= 0).all()
    assert (distances >= 0).all()


@pytest.mark.parametrize("given", [{"dtype": np.float64}, {"layout": "F"}])
def test_outputs_of_another_dtype_or_layout_are_refused_not_filled_in_a_copy(given):
    kept, distances = outputs(**given)
    with pytest.raises(TypeError):
        nearest(kept, distances)


def test_read_only_outputs_are_refused():
    kept, distances = outputs()
    kept.setflags(write=False)
    with pytest.raises(TypeError):
        nearest(kept, distances)


def test_inputs_of_another_dtype_are_refused_not_copied():
    kept, distances = outputs()
    with pytest.raises(TypeError):
        nearest(kept, distances, centers=CENTERS.astype(np.float64))
    with pytest.raises(TypeError):
        _core.nearest(X, CENTERS, CENTERS.mean(axis=0), np.zeros((N, 2), dtype=np.int64), kept, distances, 1)


def test_columns_beyond_the_kernels_integers_are_refused():
    """2³² + 3 columns must not be taken for 3. A row with strides of 0 needs no memory."""
    wide = np.lib.stride_tricks.as_strided(np.zeros(1, dtype=np.float32), (2, 2**32 + D), (0, 4))
    with pytest.raises(ValueError, match="columns"):
        _core.distances(wide, wide[:1], None, np.zeros((1, 2), dtype=np.float32), 1)
    with pytest.raises(ValueError, match="X must have at most 16777216 columns, got 4294967299"):
        kernels.distances(wide, wide[:1])


def test_lists_too_wide_to_count_are_refused():
    """Candidates of a row are counted in 32 bits: 2^16 ids with 2^16 neighbors each must not overflow to 0."""
    many = np.lib.stride_tricks.as_strided(np.zeros(1, dtype=np.int32), (1, 2**16), (0, 0))
    lists = np.broadcast_to(np.int32(0), (C, 2**16))
    kept, distances, counts = np.zeros((1, 1), np.int32), np.zeros((1, 1), np.float32), np.zeros(1, np.int32)
    extra = np.zeros((1, 0), dtype=np.int32)
    with pytest.raises(ValueError, match=r"more than 2\^29 candidates"):
        _core.best_in_lists(
            X[:1],
            CENTERS,
            np.ascontiguousarray(lists),
            np.ascontiguousarray(many),
            extra,
            kept,
            distances,
            counts,
            False,
            None,
            None,
            None,
            None,
            1,
        )


def unaligned(array):
    """Return the same numbers at an address that is off by one byte from the alignment of their type."""
    memory = np.empty(array.nbytes + 1, dtype=np.uint8)
    out = memory[1:].view(array.dtype).reshape(array.shape)
    out[...] = array
    return out


def test_unaligned_arrays_are_copied_before_the_core_reads_them():
    values, ids = unaligned(np.arange(6.0)), unaligned(np.arange(6, dtype=np.int32))
    assert not values.flags.aligned
    assert not ids.flags.aligned
    read = {
        "matrix": check.matrix(values.reshape(2, 3), "X"),
        "vector": check.array(values, "values", np.float64, 6),
        "kept": check.array(ids.reshape(2, 3), "kept", np.int32, 2, -1),
        "rows": check.array(unaligned(np.arange(6)), "rows", np.int64, -1),
    }
    for name, array in read.items():
        assert array.flags.aligned, name
        np.testing.assert_array_equal(array.ravel(), np.arange(6), name)
    with pytest.raises(ValueError, match="sums must be contiguous, writeable float64"):
        check.output(values.reshape(2, 3), "sums", np.float64, 2, 3)
