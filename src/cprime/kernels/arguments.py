"""Checks of kernel arguments. Errors name the argument, its value or shape, and what is expected."""

import math
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cprime._utils.number_types import MOST_COLUMNS
from cprime.kernels.measures import Floats, GaussianParameters, Measure


class CoreRows(Protocol):
    """Protocol of n rows of D numbers, with the attributes and methods that the Python functions around kernels use."""

    takes_gaussians: ClassVar[bool]  # whether kernels compare these rows with Gaussians, and not only with centers

    @property
    def core(self) -> Any:
        """Return the compiled object through which kernels read these rows."""
        ...

    @property
    def kernels(self) -> Any:
        """Return the namespace of kernels: the compiled ones, or their NumPy twins under the same names."""
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


def contiguous(array: NDArray, dtype: DTypeLike | None = None) -> NDArray:
    """Return the array in C-contiguous and aligned form, as compiled kernels need it, without a copy if possible."""
    own = isinstance(array, np.ndarray) and (dtype is None or array.dtype == dtype)
    if own and array.flags.c_contiguous and array.flags.aligned:
        return array  # shortcut, because checks take a notable part of a small fit's time
    return np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED"])


_FLOATS = frozenset([np.dtype(np.float32), np.dtype(np.float64)])


def matrix(array: Floats, name: str, like: CoreRows | Floats | None = None) -> Floats:
    """Check that an array is a float matrix, and return it with contiguous rows.

    name: name of the argument in error messages
    like: array or rows that must have the same number of columns and the same dtype, or None
    """
    if isinstance(array, np.ndarray) and array.ndim == 2 and array.dtype in _FLOATS and array.size > 0:
        flags, fits = array.flags, like is None or (array.dtype == like.dtype and array.shape[1] == like.shape[1])
        if flags.c_contiguous and flags.aligned and fits and array.shape[1] <= MOST_COLUMNS:
            return array  # shortcut for valid arrays, because the checks below take time
    if not isinstance(array, np.ndarray) or array.dtype not in (np.float32, np.float64):
        raise TypeError(
            f"{name} must be a NumPy array of float32 or float64, got {getattr(array, 'dtype', type(array))}"
        )
    if array.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional, got {array.ndim} dimension(s)")
    if like is not None:
        if array.dtype != like.dtype:
            raise TypeError(f"{name} must have the dtype of X, {like.dtype}, got {array.dtype}")
        if array.shape[1] != like.shape[1]:
            raise ValueError(f"{name} must have the {like.shape[1]} columns of X, got {array.shape[1]}")
    if array.shape[1] > MOST_COLUMNS:
        raise ValueError(f"{name} must have at most {MOST_COLUMNS} columns, got {array.shape[1]}")
    if not len(array):  # an array without rows may have strides of 0
        return np.empty((1, array.shape[1]), dtype=array.dtype)[:0]
    gaps = array.shape[1] > 1 and array.strides[1] != array.itemsize
    if gaps or array.strides[0] % array.itemsize or not array.flags.aligned:
        array = contiguous(array)
    return array


def centers(array: Floats, X: CoreRows | Floats) -> Floats:
    """Check that centers are a float matrix like X with at least one row; return them with contiguous rows."""
    array = matrix(array, "centers", X)
    if not len(array):
        raise ValueError("centers must have at least one row, got none")
    return array


def gaussians(components: GaussianParameters, X: CoreRows | Floats) -> GaussianParameters:
    """Check the shapes and types of the parameters of C Gaussians; return these as contiguous arrays of X's dtype."""
    means = matrix(components.means, "means", X)
    C, D = means.shape
    if not C:
        raise ValueError("means must have at least one row, got none")
    factors = contiguous(components.factors, X.dtype)
    if factors.shape not in ((C, D), (C, D, D)):
        raise ValueError(f"factors must have shape ({C}, {D}) or ({C}, {D}, {D}), got {factors.shape}")
    offsets = contiguous(components.offsets, X.dtype)
    if offsets.shape != (C,):
        raise ValueError(f"offsets must have shape ({C},), got {offsets.shape}")
    dof = None if components.dof is None else contiguous(components.dof, X.dtype)
    if dof is not None and (dof.shape != (C,) or not (dof > 0).all()):
        raise ValueError(f"dof must be {C} numbers > 0, got {components.dof}")
    return GaussianParameters(means, factors, offsets, dof, components.exact)


def measure(components: Measure, X: CoreRows) -> tuple[Any, ...]:
    """Check components (centers or Gaussians); return the tuple of arrays that compiled kernels take.

    The result is (centers,), or (means, factors, offsets, dof) for Gaussians and t distributions: the fields of
    `GaussianParameters`, where dof are degrees of freedom (None for Gaussians).
    """
    if not isinstance(components, GaussianParameters):
        return (centers(components, X),)
    if not X.takes_gaussians:
        raise TypeError(f"{X!r} are compared with centers alone, by squared distances, got Gaussians")
    return tuple(gaussians(components, X)[:4])


def weights(sample_weight: Floats | None, n: int) -> NDArray[np.float64] | None:
    """Check the weights of n rows, and return them as contiguous float64; None means weights of 1."""
    return None if sample_weight is None else vector(sample_weight, "sample_weight", n)


def scaled_weights(sample_weight: Floats | None, n: int) -> tuple[NDArray[np.float64] | None, float]:
    """Return the weights of n rows divided by a power of two, and this power.

    The power of two is near the largest weight, so the quotients are in the range of float32.
    """
    found = weights(sample_weight, n)
    largest = 0.0 if found is None else float(np.abs(found).max(initial=0.0))
    if found is None or not 0 < largest < math.inf:
        return found, 1.0
    unit = 2.0 ** math.floor(math.log2(largest))
    return found / unit, unit


def vector(array: Floats, name: str, n: int) -> NDArray[np.float64]:
    """Check that an array has n entries, and return it as contiguous float64."""
    out: NDArray[np.float64] = contiguous(array, np.float64)
    if out.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {out.shape}")
    return out


def sums(array: NDArray[np.float64], name: str, n_components: int, like: CoreRows | Floats) -> NDArray[np.float64]:
    """Check that kernels can add sums to an array in place, with one row for each component; return the array."""
    shape = (n_components, like.shape[1])
    if array.dtype != np.float64 or array.shape != shape or not array.flags.carray:
        raise ValueError(
            f"{name} must be contiguous, writeable float64 of shape {shape}, got {array.dtype} of {array.shape}"
        )
    return array


def kept(kept: NDArray[np.int32], name: str, shape: tuple[int, ...]) -> NDArray[np.int32]:
    """Check that component ids are int32 and have the given shape; return them as a contiguous array."""
    kept = contiguous(kept)
    if kept.dtype != np.int32:
        raise TypeError(f"{name} must be int32, got {kept.dtype}")
    if kept.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {kept.shape}")
    return kept


def responsibilities(q: NDArray[np.float64], kept: NDArray[np.int32]) -> NDArray[np.float64]:
    """Check that responsibilities have the shape of the component ids `kept`; return them as contiguous float64."""
    q = contiguous(q, np.float64)
    if q.shape != kept.shape:
        raise ValueError(f"responsibilities must have shape {kept.shape}, got {q.shape}")
    return q


def positions(rows: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    """Check that an array is one-dimensional and has integers; return it as contiguous int64."""
    rows = contiguous(rows)
    if rows.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got {rows.dtype}")
    if rows.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got {rows.ndim} dimensions")
    return rows.astype(np.int64, copy=False)


def count(value: int, name: str) -> int:
    """Check that an argument is an integer >= 1, and return it as int."""
    if type(value) is int and value >= 1:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return int(value)


def width(ids: NDArray[np.int32], name: str) -> int:
    """Check that an array is two-dimensional, and return its number of columns."""
    shape = ids.shape if isinstance(ids, np.ndarray) else np.shape(ids)
    if len(shape) != 2:
        raise ValueError(f"{name} must be two-dimensional, got {len(shape)} dimension(s)")
    return int(shape[1])


def factor(factor: Floats, name: str, like: CoreRows | Floats, n: int) -> Floats:
    """Check that n factors are finite and >= 0; return them as a contiguous array of the dtype of `like`."""
    factor = contiguous(factor, like.dtype)
    if factor.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {factor.shape}")
    if not (np.isfinite(factor) & (factor >= 0)).all():
        raise ValueError(f"{name} must be >= 0 and finite")
    return factor


class naming:
    """Context manager for a kernel call: if a component id is out of range, the error names the argument and the range.

    n_components: number of components; a valid id is less
    ids: maps an argument's name to a pair: its array of component ids, and the least id that the array may contain
    """

    def __init__(self, n_components: int, **ids: tuple[NDArray[np.int32], int]):
        self.n_components = n_components
        self.ids = ids

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: object, trace: object) -> None:
        if kind is not ValueError:
            return
        for name, (array, least) in self.ids.items():
            if array.size and (array.min() < least or array.max() >= self.n_components):
                raise ValueError(
                    f"{name} must have components from {least} to {self.n_components - 1}, "
                    f"got {array.min()} to {array.max()}"
                )


def variance(variance: float) -> float:
    """Check that a variance is finite and > 0, and return it as float."""
    if not 0 < variance < math.inf:
        raise ValueError(f"variance must be > 0 and finite, got {variance!r}")
    return float(variance)


def inside(ids: NDArray, least: int, end: int) -> None:
    """Raise ValueError if a component id is less than `least`, or not less than `end`, as compiled kernels do."""
    if ids.size and not (ids.min() >= least and ids.max() < end):
        raise ValueError(f"expected {least} to {end - 1}, got {ids.min()} to {ids.max()}")
