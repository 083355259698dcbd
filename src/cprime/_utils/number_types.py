"""Number types narrower than float32, and checks of numbers: that squares of data neither overflow nor underflow.

Narrow types have 8 or 16 bits, such as uint8 and float16. All their values can be represented in float32. Data of these
types are not converted as a whole, so no copy of all rows is made.

The checks concern the greatest absolute value, and the greatest difference in a column. If data pass them, no squared
distance of two rows overflows, even after multiplication by factors and summation, and the largest squared distances do
not underflow.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

# Numbers that identify narrow types in the C++ core.
_CODES = {np.dtype(np.uint8): 1, np.dtype(bool): 1, np.dtype(np.int8): 2, np.dtype(np.float16): 3}
_BFLOAT16 = 4
NAMES = "uint8, int8, bool, float16, bfloat16"


def code_of(dtype: np.dtype) -> int | None:
    """Return the number that identifies a narrow type in the C++ core; None for any other type."""
    return _BFLOAT16 if is_bfloat16(dtype) else _CODES.get(dtype)


def is_narrow(dtype: Any) -> bool:
    """Return whether a type is narrower than float32, and kernels can read it."""
    return isinstance(dtype, np.dtype) and (dtype in _CODES or is_bfloat16(dtype))


def is_bfloat16(dtype: np.dtype) -> bool:
    """Return whether a type is bfloat16, which other packages add to NumPy."""
    return dtype.itemsize == 2 and dtype.name == "bfloat16"


def bits_of(array: NDArray) -> NDArray:
    """Return a view of an array's memory as integers, for the C++ core: 16-bit floats as uint16, bool as uint8."""
    if array.dtype.kind in "iu":
        return array
    return array.view(np.uint8 if array.dtype.itemsize == 1 else np.uint16)


# Data are rejected if an absolute value exceeds MOST, or if all rows differ by less than LEAST in every column.
# Within these bounds, sums of squares in float32, and of fourth powers in float64, neither overflow nor underflow.
# Fourth powers are needed for variances of estimates.
# The lower bound of variances can be smaller than LEAST²; it is computed in float64.
LEAST = {np.dtype(np.float32): 2.0**-51, np.dtype(np.float64): 2.0**-280}
MOST = {np.dtype(np.float32): 2.0**60, np.dtype(np.float64): 2.0**224}
MOST_WEIGHT = 2.0**160
# Maximum number of columns of data. The kernels store the number of columns, rounded up for SIMD vectors, in 32 bits.
MOST_COLUMNS = 2**24


def largest(dtype: DTypeLike, n_features: int) -> float:
    """Return the greatest absolute value of rows whose squared distances are sure not to overflow in the dtype."""
    return MOST[np.dtype(dtype)] / math.sqrt(max(n_features, 1))


def check_largest(found: float, dtype: DTypeLike, n_features: int, name: str) -> None:
    """Raise ValueError if squared distances of rows can overflow in the dtype.

    found: greatest absolute value in the rows    n_features: number of columns
    name: name of the data, for the message
    """
    dtype = np.dtype(dtype)
    limit = largest(dtype, n_features)
    if found > limit:
        fit = found < math.sqrt(float(np.finfo(dtype).max) / max(n_features, 1)) / 2
        note = " with room for their squares, of which the variances of estimates are made" if fit else ""
        raise ValueError(
            f"{name} has numbers up to {found:.3g}, whose squared distances {dtype} does not hold{note}: up to "
            f"{limit:.3g} are expected with {n_features} column(s). Divide {name} by a constant" + _or_wider(dtype)
        )


def check_spread(spread: float, dtype: DTypeLike, name: str) -> None:
    """Raise ValueError if rows differ so little that their squared distances underflow in the dtype.

    spread: greatest difference of two rows in a column    name: name of the data, for the message
    """
    dtype = np.dtype(dtype)
    if 0 < spread < LEAST[dtype]:
        raise ValueError(
            f"{name} has rows that differ by {spread:.3g} at most, whose squares {dtype} does not hold: differences "
            f"from {LEAST[dtype]:.3g} are expected. Multiply {name} by a constant" + _or_wider(dtype)
        )


def _or_wider(dtype: np.dtype) -> str:
    return ", or give it as float64." if dtype == np.float32 else "."


def check_total_weight(total: float) -> None:
    """Raise ValueError if weighted sums of squared distances can overflow or underflow; total: sum of the weights."""
    if not 1 / MOST_WEIGHT <= total <= MOST_WEIGHT:
        raise ValueError(
            f"sample_weight sums to {total:.3g}, expected between {1 / MOST_WEIGHT:.3g} and {MOST_WEIGHT:.3g}: "
            "multiply it by a constant."
        )
