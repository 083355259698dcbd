"""Checks of kernel arguments. Errors name the argument, its value or shape, and what is expected."""

import math
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cprime._utils.number_types import MOST_COLUMNS
from cprime.kernels.measures import Floats, GaussianParameters, Measure


class CoreRows(Protocol):
    """Protocol of n rows of D numbers, with the attributes and methods that the Python functions around kernels use.

    takes_gaussians: whether kernels can compute the costs of Gaussians for these rows, not only distances to centers
    searches_cells: whether `CenterCells` can search near centers of these rows
    """

    takes_gaussians: ClassVar[bool]
    searches_cells: ClassVar[bool]

    @property
    def core(self) -> Any:
        """Return the compiled object through which kernels read these rows."""
        ...

    @property
    def kernels(self) -> Any:
        """Return the namespace of kernels: compiled ones, or functions of the same names."""
        ...

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def observed(self) -> NDArray[np.bool_] | None:
        """Return the mask (n, D) of values that are not missing; None if no value is missing."""
        ...

    @property
    def dtype(self) -> np.dtype:
        """Return the type of results and centers: float32 or float64."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice | NDArray, /) -> Self:
        """Return some of the rows, in the given order: by a slice, by indices >= 0, or by a mask."""
        ...

    def dense(self) -> Floats:
        """Return the rows as a contiguous array (n, D); meant for a few rows."""
        ...

    def first(self) -> Floats: ...

    def times(self, factors: Floats) -> "CoreRows":
        """Return the rows with every column multiplied by its factor (D,), in the same dtype."""
        ...


def contiguous(values: NDArray, dtype: DTypeLike | None = None) -> NDArray:
    """Return an array in C-contiguous and aligned form, as compiled kernels need it, without a copy if possible."""
    return np.require(values, dtype, ["C_CONTIGUOUS", "ALIGNED"])


def array(values: Any, name: str, dtype: DTypeLike, *shape: int) -> Any:
    """Check the type and the shape of an argument; return it as a contiguous array of a dtype, or None if it is None.

    Floats are converted to the dtype, and integers to int64. Component ids must be int32 already.

    name: name of the argument in error messages    shape: length of each axis, where −1 allows any length
    """
    if values is None:
        return None
    found = values if isinstance(values, np.ndarray) else np.asarray(values)
    converted = found.dtype != dtype
    if converted and dtype is np.int32:
        raise TypeError(f"{name} must be int32, got {found.dtype}")
    if converted and dtype is np.int64 and found.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got {found.dtype}")
    if found.shape != shape:
        fits = found.ndim == len(shape)
        for length, expected in zip(found.shape, shape, strict=False):
            fits &= expected in (-1, length)
        if not fits:
            raise ValueError(f"{name} must have shape {str(shape).replace('-1', 'any')}, got {found.shape}")
    flags = found.flags
    return contiguous(found, dtype) if converted or not (flags.c_contiguous and flags.aligned) else found


def output(out: NDArray | None, name: str, dtype: DTypeLike, *shape: int) -> NDArray:
    """Return the array to which kernels write: `out` after a check of its type and shape, or a new one for None."""
    if out is None:
        return np.empty(shape, dtype=dtype)
    if out.dtype != dtype or out.shape != shape or not out.flags.carray:
        raise ValueError(
            f"{name} must be contiguous, writeable {np.dtype(dtype)} of shape {shape}, got {out.dtype} of {out.shape}"
        )
    return out


_FLOATS = frozenset([np.dtype(np.float32), np.dtype(np.float64)])


def matrix(array: Floats, name: str, like: CoreRows | Floats | None = None, least: int = 0) -> Floats:
    """Check that an array is a float matrix, and return it with contiguous rows.

    name: name of the argument in error messages
    like: array or rows that must have the same number of columns and the same dtype, or None
    least: least number of rows, 0 or 1
    """
    if not isinstance(array, np.ndarray) or array.dtype not in _FLOATS:
        raise TypeError(
            f"{name} must be a NumPy array of float32 or float64, got {getattr(array, 'dtype', type(array))}"
        )
    if array.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional, got {array.ndim} dimension(s)")
    n, D = array.shape
    if like is not None:
        if array.dtype != like.dtype:
            raise TypeError(f"{name} must have the dtype of X, {like.dtype}, got {array.dtype}")
        if like.shape[1] != D:
            raise ValueError(f"{name} must have the {like.shape[1]} columns of X, got {D}")
    if D > MOST_COLUMNS:
        raise ValueError(f"{name} must have at most {MOST_COLUMNS} columns, got {D}")
    if n < least:
        raise ValueError(f"{name} must have at least one row, got none")
    if not n:  # an array without rows may have strides of 0
        return np.empty((1, D), dtype=array.dtype)[:0]
    gaps = D > 1 and array.strides[1] != array.itemsize
    return contiguous(array) if gaps or array.strides[0] % array.itemsize or not array.flags.aligned else array


def gaussians(components: GaussianParameters, X: CoreRows | Floats) -> GaussianParameters:
    """Check the arrays of C Gaussians (means, factors, offsets, dof); return them contiguous and of X's dtype."""
    means = matrix(components.means, "means", X, 1)
    C, D = means.shape
    shape = (C, D, D) if np.ndim(components.factors) == 3 else (C, D)
    factors = array(components.factors, "factors", X.dtype, *shape)
    offsets, dof = array(components.offsets, "offsets", X.dtype, C), array(components.dof, "dof", X.dtype, C)
    if dof is not None and not (dof > 0).all():
        raise ValueError(f"dof must be {C} numbers > 0, got {components.dof}")
    return GaussianParameters(means, factors, offsets, dof, components.exact)


def measure(components: Measure, X: CoreRows) -> tuple[Any, ...]:
    """Check components (centers or Gaussians); return the tuple of arrays that compiled kernels take.

    The result is (centers, None, None, None), or (means, factors, offsets, dof) for Gaussians and t distributions, of
    cost offset + ‖A (x − mean)‖² for a factor A. The last, dof, are degrees of freedom (None for Gaussians).
    """
    if not isinstance(components, GaussianParameters):
        return matrix(components, "centers", X, 1), None, None, None
    if not X.takes_gaussians:
        raise TypeError(f"{X!r} are compared with centers alone, by squared distances, got Gaussians")
    return tuple(gaussians(components, X)[:4])


def scaled_weights(sample_weight: Floats | None, n: int) -> tuple[NDArray[np.float64] | None, float]:
    """Return the weights of n rows divided by a power of two, and this power.

    The power of two is near the largest weight, so the quotients are in the range of float32.
    """
    found = array(sample_weight, "sample_weight", np.float64, n)
    largest = 0.0 if found is None else float(np.abs(found).max(initial=0.0))
    if found is None or not 0 < largest < math.inf:
        return found, 1.0
    unit = 2.0 ** math.floor(math.log2(largest))
    return found / unit, unit


def count(value: int, name: str) -> int:
    """Check that an argument is an integer >= 1, and return it as int."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return int(value)


def variance(variance: float) -> float:
    """Check that a variance is finite and > 0, and return it as float."""
    if not 0 < variance < math.inf:
        raise ValueError(f"variance must be > 0 and finite, got {variance!r}")
    return float(variance)


def ids(n_components: int, **arrays: tuple[NDArray[np.int32], int]) -> None:
    """Raise ValueError that names the argument if a component id is out of range.

    Wrappers call this function after a compiled kernel has raised an error, because kernels do not name the argument.

    n_components: number of components; valid ids are less than this number
    arrays: maps an argument's name to a pair: its array of component ids, and the least id that the array may contain
    """
    for name, (array, least) in arrays.items():
        if array.size and (array.min() < least or array.max() >= n_components):
            raise ValueError(
                f"{name} must have components from {least} to {n_components - 1}, got {array.min()} to {array.max()}"
            )
