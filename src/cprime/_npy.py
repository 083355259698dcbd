"""Writing of a .npy file block by block; dtype and width are those of the first block."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class NpyWriter:
    """Writer that appends blocks of rows, all of one dtype and width, to an open file; n_rows: total number of rows."""

    def __init__(self, file: Any, n_rows: int) -> None:
        self._file, self._n_rows, self._begun = file, n_rows, False

    def write(self, rows: NDArray) -> None:
        """Append rows (n, …)."""
        if not self._begun:
            header = {
                "descr": np.lib.format.dtype_to_descr(rows.dtype),
                "fortran_order": False,
                "shape": (self._n_rows, *rows.shape[1:]),
            }
            np.lib.format.write_array_header_1_0(self._file, header)
            self._begun = True
        self._file.write(np.ascontiguousarray(rows).data)
