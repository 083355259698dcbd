"""Source for the plan of a fit, if only the shape of the data is known; reading it returns random numbers."""

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cprime.sources import Source


class ShapeSource(Source):
    """Rows of a given shape and type, as one chunk (as if in memory) or in chunks (as if in a file)."""

    _keeps_narrow = True

    def __init__(self, shape: tuple[int, int], dtype: DTypeLike, resident: bool) -> None:
        super().__init__("X", shape[0], (np.dtype(dtype),) * shape[1])
        self.in_memory = resident

    def _fill(self, begin: int, end: int, out: NDArray) -> None:
        drawn = np.random.default_rng(begin).standard_normal(out.shape)
        out[...] = (40 * np.abs(drawn)).clip(max=127) if out.dtype.kind in "biu" else drawn

    def _default_chunk_rows(self) -> int:
        return max(1, self.n_rows) if self.in_memory else super()._default_chunk_rows()
