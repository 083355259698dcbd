"""Values of the components that points keep, as the N×C array that is asked for."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cprime.kernels import Floats


def kept_entries(kept: NDArray[np.int32], values: Floats, n_components: int, sparse: bool) -> Floats | csr_array:
    """Values (n, H) at the components kept (n, H), distinct, as (n, C) of their dtype: CSR, or with zeros elsewhere."""
    n, H = kept.shape
    if sparse:
        begins = np.arange(0, n * H + 1, H, dtype=np.int32 if n * H < 2**31 else np.int64)
        result = csr_array((values.ravel(), kept.ravel(), begins), shape=(n, n_components))
        result.sort_indices()
        return result
    dense = np.zeros((n, n_components), dtype=values.dtype)
    np.put_along_axis(dense, kept.astype(np.intp), values, axis=1)
    return dense
