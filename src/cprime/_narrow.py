"""Narrow types: number types of 8 and 16 bits whose values float32 can represent, such as uint8 and float16.

Rows of these types are not converted as a whole, so no copy of them is made.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_CODES = {np.dtype(np.uint8): 1, np.dtype(bool): 1, np.dtype(np.int8): 2, np.dtype(np.float16): 3}  # codes in the core
_BFLOAT16 = 4
NAMES = "uint8, int8, bool, float16, bfloat16"


def code_of(dtype: Any) -> int | None:
    """Return the number that identifies a narrow type in the C++ core; None for any other type."""
    return _BFLOAT16 if is_bfloat16(dtype) else _CODES.get(dtype) if isinstance(dtype, np.dtype) else None


def is_narrow(dtype: Any) -> bool:
    return code_of(dtype) is not None


def is_bfloat16(dtype: Any) -> bool:
    """Return whether a type is bfloat16, which other packages add to NumPy."""
    return isinstance(dtype, np.dtype) and dtype.name == "bfloat16"


def bits_of(array: NDArray) -> NDArray:
    """Return a view of an array's memory as integers, for the C++ core: 16-bit floats as uint16, bool as uint8."""
    if array.dtype.kind in "iu":
        return array
    return array.view(np.uint8 if array.dtype.itemsize == 1 else np.uint16)
