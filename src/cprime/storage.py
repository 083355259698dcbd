"""Model files: an estimator as safetensors, its arrays as tensors and the rest as JSON in the header.

Owns the file format and the atomic replacement of files. Knows no estimator: classes that can be stored call
`register`, and `load` finds them by name. Nothing in a file is ever executed or unpickled.

The header's metadata (all strings): ``format`` "cprime", ``format_version``, ``cprime_version``, ``class``,
``params`` (constructor parameters) and ``fitted`` (attributes ending in an underscore), the last two as
JSON. A value is stored as it is where JSON has it; else as an object with one key that says what it is:
``tensor`` and ``numpy_scalar`` (the name of a tensor), ``strings`` (an array of text), ``record`` (a
structured array, field by field), ``float`` (nan or an infinity), ``search`` (its class and options),
``list``, ``tuple`` and ``dict``.
"""

import inspect
import json
import logging
import math
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from cprime import __version__
from cprime.search import Bounded, Full, Graph, Papers

__all__ = ["FORMAT_VERSION", "load", "read_header", "register", "replacing", "save", "writable_target"]

FORMAT_VERSION = 1
_METADATA_KEYS = ("format_version", "cprime_version", "class", "params", "fitted")
_SEARCHES: dict[str, Any] = {cls.__name__: cls for cls in (Full, Bounded, Graph, Papers)}
_classes: dict[str, type[BaseEstimator]] = {}
_logger = logging.getLogger(__name__)

E = TypeVar("E", bound=type[BaseEstimator])


def register(cls: E) -> E:
    """Make an estimator class known to `load` under its own name; usable as a class decorator.

    Parameters
    ----------
    cls : type
        A subclass of `sklearn.base.BaseEstimator`.

    Returns
    -------
    cls : type
        The same class.
    """
    _classes[cls.__name__] = cls
    return cls


def save(estimator: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a safetensors file, whole or not at all.

    The file holds the constructor parameters and every attribute whose name ends in an underscore and does
    not begin with one. An estimator given as a parameter (as a start, for example) is stored as the array of
    its centers. A function or a random generator cannot be stored: the parameter's default takes its place,
    with a logged warning.

    Parameters
    ----------
    estimator : BaseEstimator
        A fitted estimator of a registered class: `KMeans` or `GaussianMixture`.
    path : path-like
        Where to write; an existing file is replaced once the new one is complete.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    TypeError
        If its class is not registered, or a parameter or attribute has a type that the format
        does not have.
    OSError
        If the file cannot be written.
    """
    check_is_fitted(estimator)
    name = type(estimator).__name__
    if _classes.get(name) is not type(estimator):
        raise TypeError(f"estimator must be of a registered class, got {type(estimator)!r}")
    tensors: dict[str, np.ndarray] = {}
    params = {key: _encode(value, f"params.{key}", tensors) for key, value in _storable_params(estimator).items()}
    fitted = {
        key: _encode(value, key, tensors)
        for key, value in sorted(vars(estimator).items())
        if key.endswith("_") and not key.startswith("_")
    }
    metadata = {
        "format": "cprime",
        "format_version": str(FORMAT_VERSION),
        "cprime_version": __version__,
        "class": name,
        "params": json.dumps(params, allow_nan=False),
        "fitted": json.dumps(fitted, allow_nan=False),
    }
    with replacing(path) as temporary:
        save_file(tensors, temporary, metadata=metadata)


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that `save` wrote.

    Parameters
    ----------
    path : path-like
        A file written by `save`.

    Returns
    -------
    estimator : BaseEstimator
        Of the class that was saved, with the same parameters and fitted attributes: its predictions are the
        same bit for bit, and `sklearn.base.clone` works on it.

    Raises
    ------
    ValueError
        If the file is not a cprime model, is damaged, or has a newer format than this version reads.
    OSError
        If the file cannot be read.
    """
    path = Path(path)
    metadata, tensors = _read(path, with_tensors=True)
    cls = _classes.get(metadata["class"])
    if cls is None:
        raise ValueError(f"{path} holds a {metadata['class']!r}, which is none of {', '.join(_classes)}")
    try:
        params = {key: _decode(node, tensors) for key, node in json.loads(metadata["params"]).items()}
        fitted = {key: _decode(node, tensors) for key, node in json.loads(metadata["fitted"]).items()}
        estimator = cls(**params)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} is not a valid cprime model: {type(error).__name__}: {error}") from error
    for key, value in fitted.items():
        if not key.endswith("_") or key.startswith("_"):
            raise ValueError(f"{path} is not a valid cprime model: {key!r} is not a fitted attribute")
        setattr(estimator, key, value)
    return estimator


def class_of(name: str) -> type[BaseEstimator]:
    """The registered class of a name; ValueError if there is none."""
    if name not in _classes:
        raise ValueError(f"there is no estimator {name!r} that can be stored, only {', '.join(_classes)}")
    return _classes[name]


def read_header(path: str | os.PathLike[str]) -> dict[str, str]:
    """The metadata of a model file: format and cprime version, class, parameters and fitted values as JSON.

    Parameters
    ----------
    path : path-like
        A file written by `save`.

    Returns
    -------
    metadata : dict of str to str

    Raises
    ------
    ValueError
        If the file is not a cprime model, is damaged, or has a newer format than this version reads.
    OSError
        If the file cannot be read.
    """
    return _read(Path(path), with_tensors=False)[0]


def writable_target(path: str | os.PathLike[str]) -> Path:
    """The file that `path` stands for, symbolic links followed, checked to be one that can be replaced.

    Parameters
    ----------
    path : path-like
        A file to create or replace.

    Returns
    -------
    target : pathlib.Path
        Its real path.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written, or `path` is a folder, a device or a read-only
        file.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(f"{path} exists and is not a regular file")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(f"{path} exists and is read-only")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder of {path} does not exist")
    try:
        tempfile.TemporaryFile(dir=target.parent).close()
    except OSError as error:
        raise OSError(f"no file can be created in the folder of {path}: {error.strerror}") from error
    return target


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file whole or not at all: yields a temporary path beside it, which replaces it at the end.

    The temporary file exists and is empty when it is yielded, is flushed to the disk before it is renamed,
    and is removed when anything fails. A symbolic link is followed, and a replaced file keeps its
    permissions.

    Parameters
    ----------
    path : path-like
        The file to create or replace.

    Yields
    ------
    temporary : pathlib.Path
        Where to write, in the same folder and with the same suffix.

    Raises
    ------
    OSError
        As `writable_target` says, or if writing fails.
    """
    target = writable_target(path)
    temporary = target.with_name(f".{target.stem}.{secrets.token_hex(8)}{target.suffix}")
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    mode = (target if target.exists() else temporary).stat().st_mode & 0o7777
    try:
        yield temporary
        _flush(temporary, os.O_RDWR)
        os.chmod(temporary, mode)  # a library may have put a file of its own in place of the temporary one
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    if hasattr(os, "O_DIRECTORY"):
        _flush(target.parent, os.O_RDONLY | os.O_DIRECTORY)


def _flush(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path, *, with_tensors: bool) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """The checked metadata of a model file and, on demand, all its tensors."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a model file")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            _check_metadata(path, metadata)
            tensors = {key: file.get_tensor(key) for key in file.keys()} if with_tensors else {}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is not a cprime model, or is damaged: {error}") from error
    return metadata, tensors


def _check_metadata(path: Path, metadata: dict[str, str]) -> None:
    if metadata.get("format") != "cprime":
        raise ValueError(f"{path} is not a cprime model: it is a safetensors file of something else")
    missing = [key for key in _METADATA_KEYS if key not in metadata]
    if missing:
        raise ValueError(f"{path} is not a valid cprime model: its header lacks {', '.join(missing)}")
    stored = metadata["format_version"]
    if not stored.isdecimal():
        raise ValueError(f"{path} is not a valid cprime model: format_version is {stored!r}")
    if int(stored) > FORMAT_VERSION:
        raise ValueError(
            f"{path} has format {stored}, written by cprime {metadata['cprime_version']}; "
            f"this cprime reads formats up to {FORMAT_VERSION}: upgrade cprime"
        )


def _storable_params(estimator: BaseEstimator) -> dict[str, Any]:
    """The constructor parameters as things the format has."""
    defaults = inspect.signature(type(estimator)).parameters
    params = estimator.get_params(deep=False)
    for name, value in params.items():
        if isinstance(value, BaseEstimator):
            params[name] = _centers(value, name)
        elif isinstance(value, os.PathLike):
            params[name] = os.fspath(value)
        elif isinstance(value, np.random.RandomState | np.random.Generator) or callable(value):
            params[name] = defaults[name].default
            _logger.warning("%s=%r cannot be stored; %r is stored instead", name, value, params[name])
    return params


def _centers(estimator: BaseEstimator, name: str) -> np.ndarray:
    """What a fitted estimator stands for as a start."""
    for attribute in ("cluster_centers_", "means_"):
        if hasattr(estimator, attribute):
            return getattr(estimator, attribute)
    raise TypeError(f"{name} must be a fitted estimator with centers to be stored, got {estimator!r}")


def _encode(value: Any, name: str, tensors: dict[str, np.ndarray]) -> Any:
    """One value as JSON; its arrays go to `tensors` under `name` or names that begin with it."""
    if value is None or isinstance(value, bool | str):
        return value
    if type(value).__module__.partition(".")[0] == "dask":
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        return _encode_array(value, name, tensors)
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        tensors[name] = np.asarray(value)
        return {"numpy_scalar": name}
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else {"float": repr(number)}
    if isinstance(value, list | tuple):
        items = [_encode(item, f"{name}.{i}", tensors) for i, item in enumerate(value)]
        return {"list" if isinstance(value, list) else "tuple": items}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: _encode(item, f"{name}.{key}", tensors) for key, item in value.items()}}
    if _SEARCHES.get(type(value).__name__) is type(value):
        options = {key: _encode(item, f"{name}.{key}", tensors) for key, item in value.get_params().items()}
        return {"search": {"class": type(value).__name__, "options": options}}
    raise TypeError(f"{name} has a type that a model file cannot hold: {type(value)!r}")


def _encode_array(array: np.ndarray, name: str, tensors: dict[str, np.ndarray]) -> Any:
    if array.dtype.names is not None:
        fields = {field: _encode_array(array[field], f"{name}.{field}", tensors) for field in array.dtype.names}
        return {"record": fields}
    if array.dtype.kind in "biuf":
        tensors[name] = np.require(array, array.dtype.newbyteorder("="), "C")
        return {"tensor": name}
    items = array.ravel().tolist()
    if array.dtype.kind in "UO" and all(isinstance(item, str) for item in items):
        return {"strings": {"dtype": array.dtype.str, "shape": list(array.shape), "items": items}}
    raise TypeError(f"{name} has a type that a model file cannot hold: an array of {array.dtype}")


def _decode(node: Any, tensors: dict[str, np.ndarray]) -> Any:
    """The value that `_encode` stored as `node`."""
    if not isinstance(node, dict):
        return node
    ((kind, content),) = node.items()
    return _DECODERS[kind](content, tensors)


def _decode_strings(content: Any, tensors: dict[str, np.ndarray]) -> np.ndarray:
    dtype = np.dtype(content["dtype"])
    if dtype.kind not in "UO":
        raise ValueError(f"an array of text cannot have the dtype {dtype}")
    return np.array(content["items"], dtype=dtype).reshape(content["shape"])


def _decode_record(content: Any, tensors: dict[str, np.ndarray]) -> np.ndarray:
    fields = {field: _decode(node, tensors) for field, node in content.items()}
    shape = next(iter(fields.values())).shape
    record = np.empty(shape, dtype=[(field, values.dtype) for field, values in fields.items()])
    for field, values in fields.items():
        record[field] = values
    return record


def _decode_search(content: Any, tensors: dict[str, np.ndarray]) -> Any:
    name = content["class"]
    if name not in _SEARCHES:
        raise ValueError(f"there is no search {name!r}, only {', '.join(_SEARCHES)}")
    return _SEARCHES[name]().with_params(**_DECODERS["dict"](content["options"], tensors))


_DECODERS: dict[str, Callable[[Any, dict[str, np.ndarray]], Any]] = {
    "tensor": lambda name, tensors: tensors[name],
    "numpy_scalar": lambda name, tensors: tensors[name][()],
    "float": lambda text, tensors: float(text),
    "strings": _decode_strings,
    "record": _decode_record,
    "search": _decode_search,
    "list": lambda items, tensors: [_decode(item, tensors) for item in items],
    "tuple": lambda items, tensors: tuple(_decode(item, tensors) for item in items),
    "dict": lambda items, tensors: {key: _decode(item, tensors) for key, item in items.items()},
}
