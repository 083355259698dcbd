"""Conversion of values for the H best components of each row, (n, H), to a dense or sparse array for all C, (n, C)."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cprime.kernels import Floats


def kept_entries(kept: NDArray[np.int32], values: Floats, n_components: int, sparse: bool) -> Floats | csr_array:
    """Return an array (n, C) that is zero except for H entries in each row; CSR if `sparse`, otherwise dense.

    kept (n, H): column index of each entry, distinct in each row    values (n, H): value of each entry
    """
    n, H = kept.shape
    if sparse:
        begins = np.arange(0, n * H + 1, H, dtype=np.int32 if n * H < 2**31 else np.int64)
        result = csr_array((values.ravel(), kept.ravel(), begins), shape=(n, n_components))
        result.sort_indices()
        return result
    dense = np.zeros((n, n_components), dtype=values.dtype)
    np.put_along_axis(dense, kept.astype(np.intp), values, axis=1)
    return dense
