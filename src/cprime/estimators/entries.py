"""Values of the components that points keep, as the N×C array that is asked for."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array


def kept_entries(
    kept: NDArray[np.int32], values: NDArray[np.float64], n_components: int, sparse: bool
) -> NDArray[np.float64] | csr_array:
    """An (n, C) array of the values (n, H) at the components kept (n, H), distinct: CSR, or with zeros elsewhere."""
    n, H = kept.shape
    if sparse:
        result = csr_array((values.ravel(), kept.ravel(), np.arange(0, n * H + 1, H)), shape=(n, n_components))
        result.sort_indices()
        return result
    dense = np.zeros((n, n_components))
    np.put_along_axis(dense, kept.astype(np.intp), values, axis=1)
    return dense
