"""Base of sources of arrays that are stored in chunks of rows, such as HDF5 and Zarr."""

from abc import abstractmethod
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime.sources.base import Source

SLAB_BYTES = 16 * 2**20


class ChunkedSource(Source):
    """Base of sources of an array that is stored in chunks of rows, such as HDF5.

    The array is read in slices that end at borders of stored chunks, so no chunk is decompressed twice for a block of
    rows.
    """

    _keeps_narrow = True

    @abstractmethod
    def _array(self) -> Any:
        """Return the stored array: `array[a:b]` are its rows, `array.chunks` is the shape of a stored chunk or None."""

    def _fill(self, begin: int, end: int, out: NDArray) -> None:
        array = self._array()
        as_stored = self._chosen is None and array.ndim == 2 and array.dtype == out.dtype and out.flags.c_contiguous
        if as_stored and hasattr(array, "read_direct"):  # This method of h5py makes no temporary copy.
            array.read_direct(out, np.s_[begin:end])
            return
        step = self._span()
        step *= max(1, SLAB_BYTES // (step * len(self._kinds) * array.dtype.itemsize))
        edges = [begin, *range(begin - begin % step + step, end, step), end]
        for a, b in pairwise(edges):
            block = np.asarray(array[a:b]).reshape(b - a, -1)
            out[a - begin : b - begin] = self._pick(block)

    def _span(self) -> int:
        chunks = self._array().chunks
        return int(chunks[0]) if chunks else super()._span()
