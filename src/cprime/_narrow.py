"""Types of numbers that are narrower than float32, which holds all of them: rows that are stored so stay so."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_CODES = {np.dtype(np.uint8): 1, np.dtype(bool): 1, np.dtype(np.int8): 2, np.dtype(np.float16): 3}  # the core's
_BFLOAT16 = 4
NAMES = "uint8, int8, bool, float16, bfloat16"


def code_of(dtype: Any) -> int | None:
    """The number that the core has for a narrow type; None of any other."""
    return _BFLOAT16 if is_bfloat16(dtype) else _CODES.get(dtype) if isinstance(dtype, np.dtype) else None


def is_narrow(dtype: Any) -> bool:
    return code_of(dtype) is not None


def is_bfloat16(dtype: Any) -> bool:
    """Whether it is the type of this name, which NumPy itself does not have."""
    return isinstance(dtype, np.dtype) and dtype.name == "bfloat16"


def bits_of(array: NDArray) -> NDArray:
    """The same memory as the core takes it: floats of 16 bits as integers, truths as bytes."""
    if array.dtype.kind in "iu":
        return array
    return array.view(np.uint8 if array.dtype.itemsize == 1 else np.uint16)
