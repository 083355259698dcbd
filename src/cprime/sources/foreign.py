"""Conversion of other libraries' objects to arrays and tables; no library is imported to recognize them."""

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.sparse import issparse

from cprime._utils.arguments import naming
from cprime._utils.number_types import is_bfloat16
from cprime.sources.kinds import first_non_number, is_path, library_of, without_index
from cprime.sources.tables import has_lists, matrix_of_lists, numbers_of, refuse_nested, table_of

_FRAMES = ("pandas", "polars", "pyarrow")


def plain(data: Any, name: str = "X", narrow: bool = False) -> Any:
    """Convert data of other libraries to a NumPy array or a table; return lists of paths and all other data unchanged.

    Tensors and arrays of the array API or DLPack in main memory are not copied if NumPy has their type. Narrow floats
    that NumPy lacks become float32; bfloat16 only if `narrow` is False. A lazy frame of polars is computed, an AnnData
    object becomes its matrix `X`. Structured arrays, tables of astropy (without units), data sets of Hugging Face and
    Arrow streams become tables of pyarrow. A table or series whose values are lists of numbers becomes the matrix of
    these lists. A pandas index in a pyarrow table is left out. Masked values become NaN, as they are missing.

    Parameters
    ----------
    data : object
        Data from the caller.
    name : str, default="X"
        Name of the data in messages.
    narrow : bool, default=False
        Whether bfloat16 is not converted; a tensor of it then becomes an array of the type in ml_dtypes, if that is
        installed.

    Raises
    ------
    TypeError
        If the data are not in main memory, or are not one matrix; the message names the conversion to call.
    ValueError
        If a list has masked values.
    """
    if type(data) is np.ndarray and data.dtype.kind in "biuf" and data.dtype.isbuiltin == 1:
        return data
    library, table = library_of(data), table_of(data)
    if table is not None:
        table = without_index(table, name)
        if has_lists(table):
            return matrix_of_lists(table)
        table = numbers_of(table, name)
        return data if len(getattr(data, "shape", (0, 0))) == 1 and library in _FRAMES else table
    if isinstance(data, np.ndarray):
        return _of_numpy(_stacked(nan_for_masked(data), name), narrow, name)
    # NumPy makes an array of one object of these; sparse matrices of SciPy may be dicts.
    if isinstance(data, set | frozenset | dict | Iterator) and library != "scipy":
        raise TypeError(f"{name} must be an array, a list or a table of numbers, got {type(data).__name__}.")
    if is_path(data):
        return data
    if isinstance(data, list | tuple):
        with naming(name):
            array = np.asarray(unmasked(data, name))
        # NumPy converts numbers to text if there is text among them.
        return _of_numpy(array if array.dtype.kind not in "SU" else np.asarray(data, dtype=object), False, name)
    if library in ("dask", "scipy", "builtins", *_FRAMES) or issparse(data):
        return data
    if library == "torch" and hasattr(data, "detach"):
        return _of_torch(data, name, narrow)
    if library == "anndata":
        return plain(data.X, name, narrow) if hasattr(data, "X") else data.to_memory()
    if library == "xarray":
        if type(data).__name__ == "Dataset":
            raise TypeError(f"{name} is an xarray.Dataset: give one DataArray of it, or {name}.to_dataframe().")
        return plain(data.data, name, narrow)
    if hasattr(data, "__array_namespace__") or (hasattr(data, "__dlpack__") and not hasattr(data, "__array__")):
        return _of_numpy(_exchanged(data, name), narrow, name)
    return data


def _stacked(array: np.ndarray, name: str) -> np.ndarray:
    """Return an array whose elements are arrays or lists (a pandas column) as a matrix; any other array unchanged."""
    if array.dtype != object or array.ndim != 1 or not len(array) or np.ndim(array[0]) != 1:
        return array
    shapes = [np.shape(row) for row in array]
    other = next((n for n, shape in enumerate(shapes) if shape != shapes[0]), None)
    if other is not None:
        raise ValueError(
            f"{name}: row {other} has the shape {shapes[other]}, expected {shapes[0]} as those before it have"
        )
    return np.stack(array.tolist())


def _refuse_objects(array: np.ndarray, name: str) -> None:
    """Raise for the first object in an array that is not a number: ValueError for text, else TypeError."""
    values = array.ravel()
    n = first_non_number(values)
    if n is None:
        return
    place = np.unravel_index(n, array.shape)
    where = f"row {place[0]}, column {place[1]}" if array.ndim == 2 else f"position {tuple(map(int, place))}"
    what = f"{name} must hold numbers, got {str(values[n])[:40]!r} in {where}"
    if isinstance(values[n], str | bytes):
        raise ValueError(f"{what}: leave that column out, or encode its text as numbers.")
    kind = type(values[n]).__name__
    raise TypeError(f"{what}: float() argument must be a string or a real number, not {kind!r}; leave that column out.")


def _of_numpy(array: np.ndarray, narrow: bool, name: str) -> np.ndarray:
    """Return the array, with narrow floats of ml_dtypes converted to float32 (except bfloat16 if `narrow`).

    Raises ValueError or TypeError, with `name`, if the array holds text, dates or other objects that are not numbers.
    """
    if array.dtype.kind in "Mm":
        raise TypeError(f"{name} must hold numbers, got an array of type {array.dtype}: leave such columns out.")
    if array.dtype.kind == "c":
        raise ValueError(
            f"{name} must hold numbers, got values of type {array.dtype}, not real numbers: Complex data not supported."
        )
    if array.dtype.kind in "OSU":
        _refuse_objects(array.astype(object, copy=False), name)
    if array.dtype.type.__module__ != "ml_dtypes" or (narrow and is_bfloat16(array.dtype)):
        return array
    return array.astype(np.float32)


def nan_for_masked(array: Any) -> Any:
    """Return a masked array as a plain array, of a type with NaN if values are masked; anything else unchanged."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    if not np.ma.is_masked(array):
        return np.asarray(array)
    kind = np.result_type(array.dtype, np.float32) if array.dtype.kind in "biu" else array.dtype
    return np.ma.filled(array.astype(kind), np.nan)


def unmasked(array: Any, name: str) -> Any:
    """Return a masked array without masked values as a plain array, and anything else unchanged.

    Raises ValueError, with `name` in the message, if values are masked, because NumPy and scikit-learn would use the
    values under the mask. Arrays in a list or tuple are checked, too.
    """
    if isinstance(array, list | tuple):
        for item in array:
            if isinstance(item, np.ma.MaskedArray):
                unmasked(item, name)
    if not isinstance(array, np.ma.MaskedArray):
        return array
    n_masked = int(np.ma.count_masked(array))
    if n_masked:
        raise ValueError(
            f"{name} is a masked array with {n_masked} masked values, which would be taken for data: give "
            f"{name}.filled(value), or its rows without them."
        )
    return np.asarray(array)


def array_of(values: Any, name: str, dtype: Any = None) -> np.ndarray:
    """Return the value of an argument as a dense array of numbers, in the given dtype or its own.

    Raises ValueError or TypeError, with `name` in the message, if values are masked or no real numbers.
    """
    with naming(name):
        values = plain(unmasked(values, name), name)
        if issparse(values):
            raise TypeError(f"{name} must be a dense array, got a sparse one: give {name}.toarray().")
        array = np.asarray(values)
        if array.dtype.kind not in "biuf" and array.dtype.type.__module__ != "ml_dtypes":
            array = np.asarray(_of_numpy(array, False, name).tolist())  # integers if all objects are integers
            array = array.astype(np.float64) if array.dtype.kind not in "biuf" else array
        return array if dtype is None else array.astype(dtype, copy=False)


def as_matrix(data: Any, name: str = "X") -> Any:
    """Return a table or series of lists as a matrix, a table without its index, and anything else unchanged.

    Masked values become NaN. The function is called before other libraries check the data.
    """
    data = without_index(data, name)
    table = table_of(data)
    if table is None:
        return nan_for_masked(data)
    if has_lists(table):
        return matrix_of_lists(table)
    refuse_nested(table, name)
    return data


def _of_torch(tensor: Any, name: str, narrow: bool) -> np.ndarray:
    if tensor.device.type != "cpu":
        raise TypeError(f"{name} is a tensor on {tensor.device}: give {name}.cpu().")
    if str(tensor.layout) != "torch.strided":
        raise TypeError(f"{name} is a tensor of layout {tensor.layout}: give {name}.to_dense().")
    tensor = tensor.detach().resolve_conj()
    brain = str(tensor.dtype) == "torch.bfloat16"
    if brain and narrow and find_spec("ml_dtypes") is not None:
        bits = tensor.view(import_module("torch").int16).numpy()
        return bits.view(import_module("ml_dtypes").bfloat16)
    return (tensor.float() if brain or "float8" in str(tensor.dtype) else tensor).numpy()


def _exchanged(data: Any, name: str) -> np.ndarray:
    """Return another library's array as a NumPy array: by DLPack without a copy, or else by `__array__`."""
    try:
        return np.from_dlpack(data)
    except (BufferError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        reason = error
    try:
        if hasattr(data, "__array__"):
            return np.asarray(data)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name} cannot be read, it is a {type(data)}: {error}") from error
    raise TypeError(
        f"{name} cannot be read through DLPack, it is a {type(data)}: {reason}. A copy in the processor's memory can."
    ) from reason
