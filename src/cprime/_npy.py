"""Writing of a .npy file block by block; the first block determines dtype and number of columns."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class NpyWriter:
    """Writer that appends blocks of rows to an open .npy file. All blocks must have the same dtype and columns.

    n_rows: total number of rows of all blocks, which the header of the file states
    """

    def __init__(self, file: Any, n_rows: int) -> None:
        self._file, self._n_rows, self._begun = file, n_rows, False

    def write(self, rows: NDArray) -> None:
        """Append a block of rows, an array of shape (n, …), to the file."""
        if not self._begun:
            header = {
                "descr": np.lib.format.dtype_to_descr(rows.dtype),
                "fortran_order": False,
                "shape": (self._n_rows, *rows.shape[1:]),
            }
            np.lib.format.write_array_header_1_0(self._file, header)
            self._begun = True
        self._file.write(np.ascontiguousarray(rows).data)
