"""Model files: estimators stored as safetensors, with arrays as tensors and all other values as JSON in the header.

This module defines the file format. Estimator classes call `register`, and `load` finds them by name. Nothing in a
file is executed or unpickled.

The header's metadata (all strings): ``format`` "cprime", ``format_version``, ``cprime_version``, ``class``,
``params`` (constructor parameters) and ``fitted`` (attributes ending in an underscore), the last two as
JSON; and ``checksum``, BLAKE2b of the whole file with zeros in place of the checksum's digits. Files of format 1 have
no checksum. An estimator that is a value of another one has the last three of these entries.
The encoding of values is that of `cprime._utils.storable`.
"""

import inspect
import io
import json
import logging
import os
import re
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, overload

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as tensor_bytes
from safetensors.numpy import save_file
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from cprime import __version__
from cprime._utils.arguments import check_file
from cprime._utils.files import checksum, read_whole, replacing
from cprime._utils.storable import add_type, decode, encode, gathered, strict_json
from cprime._utils.values import fitted_centers
from cprime.em import HISTORY

__all__ = ["FORMAT_VERSION", "class_of", "load", "read_header", "register", "save"]

FORMAT_VERSION = 3
_METADATA_KEYS = ("format_version", "cprime_version", "class", "params", "fitted")
# First parts of the names of classes of cprime whose objects may be constructor parameters.
_NAMESPACES = ("search", "seeding", "covariance", "memory")
_NOT_VALID = (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, SafetensorError)
_UNSEALED = "0" * len(checksum(()))
_OF_TRAINING_ROWS = ("labels_", "codes_")  # attributes with a value for each row of the training data
_SEAL = re.compile(rb'"checksum":"([0-9a-f]{%d})"' % len(_UNSEALED))
_MOST_HEADER = 100_000_000  # largest number of bytes of a header, which other readers of safetensors require, too
# Constructor parameters and their values in files of former versions, and the present ones with the same meaning.
_FORMER_NAMES = {"exchange": "jumps", "fixed_centers": "fixed"}
_FORMER_VALUES = {("semi_supervised", "auto"): False, ("assignment", "posterior"): "sampled"}
# Options that are now those of the search, with their former defaults, and the searches by their names in a parameter.
_OPTIONS_OF_SEARCH = {"n_neighbors": "auto", "certificate": 1000, "final_assignment": "auto"}
_SEARCHES = {"auto": "search.Auto", "full": "search.Full", "bounded": "search.Bounded", "graph": "search.Graph"}
_SEARCHES |= dict.fromkeys(("exact", "estimated"), "search.Papers")
_classes: dict[str, type[BaseEstimator]] = {}
_logger = logging.getLogger(__name__)

E = TypeVar("E", bound=type[BaseEstimator])
K = TypeVar("K")


def register(cls: E) -> E:
    """Register an estimator class under its own name, so that `load` finds it; usable as a class decorator.

    Parameters
    ----------
    cls : type
        A subclass of `sklearn.base.BaseEstimator`, with a method `_check_fitted` that raises ValueError if fitted
        attributes are missing or inconsistent. It may have a static method `_upgraded`, which converts the parameters
        in a file of an earlier version, given with the fitted attributes, to those of this version.

    Returns
    -------
    cls : type
        The same class.
    """
    _classes[cls.__name__] = cls
    return cls


def default_of(estimator: str, parameter: str) -> Any:
    """Return the default of a constructor parameter; None if the class is not registered or has no such parameter."""
    known = inspect.signature(_classes[estimator]).parameters if estimator in _classes else {}
    return known[parameter].default if parameter in known else None


def present_params(params: dict[str, Any]) -> dict[str, Any]:
    """Return constructor parameters of a file, maybe of a former version, with their present names and values.

    params: the values by name, encoded as JSON, here and in the result
    """
    params = dict(params)
    search = _options_of_search(params.get("search"))
    jumps = None if search is None else search.pop("exchange", None)
    if jumps is not None:
        params["exchange"] = jumps
    moved = {name: params.pop(name) for name in _OPTIONS_OF_SEARCH if name in params}
    changed = {name: value for name, value in moved.items() if value != _OPTIONS_OF_SEARCH[name]}
    if search is not None:
        search.update(changed)
    elif changed and params["search"] in _SEARCHES:
        short = params["search"]
        fields = changed | ({"lists": short} if short in ("exact", "estimated") else {})
        params["search"] = {"object": {"class": _SEARCHES[short], "fields": fields}}
    n_factors = params.pop("n_factors", "auto")
    if n_factors != "auto" and params["covariance_type"] in ("factors", "ppca"):
        fields = {"n_factors": n_factors, "isotropic": params["covariance_type"] == "ppca"}
        params["covariance_type"] = {"object": {"class": "covariance.Factors", "fields": fields}}
    if (spill := params.pop("spill", None)) is not None:
        fields = {"limit": params.get("max_memory"), "spill": spill}
        params["max_memory"] = {"object": {"class": "memory.Memory", "fields": fields}}
    if params.pop("shared_dof", False) and params["dof"] == "estimate":
        params["dof"] = "shared"
    named = {_FORMER_NAMES.get(name, name): value for name, value in params.items()}
    return {
        name: _FORMER_VALUES.get((name, value), value) if isinstance(value, str) else value
        for name, value in named.items()
    }


def present_history(history: Any) -> Any:
    """Return a convergence history with all columns of this version.

    In a file of a former version, n_between may be absent from a history of type `HISTORY`; it is −1 then.
    """
    names = HISTORY.names or ()
    if not isinstance(history, np.ndarray) or history.dtype.names != tuple(n for n in names if n != "n_between"):
        return history
    types = [(name, np.dtype(np.int64) if name == "n_between" else history.dtype[name]) for name in names]
    whole = np.empty(history.shape, dtype=types)
    for name in names:
        whole[name] = -1 if name == "n_between" else history[name]
    return whole


def _options_of_search(node: Any) -> dict[str, Any] | None:
    """Return the options of an encoded search object by name, or None if the value is another one."""
    if not isinstance(node, dict):
        return None
    ((kind, content),) = node.items()
    return content.get({"object": "fields", "search": "options"}.get(kind))


def save(estimator: BaseEstimator, path: str | os.PathLike[str] | BinaryIO, *, training_labels: bool = True) -> None:
    """Write a fitted estimator to a safetensors file, completely or not at all, or to an open binary file.

    The file contains the constructor parameters and every attribute whose name ends in an underscore and does not begin
    with an underscore. An estimator given as a parameter (such as `init`) is stored as the array of its centers, but
    the parameter `estimator` as an unfitted estimator. Fitted estimators in an attribute are stored without their
    values of training rows. A function or a random generator cannot be stored: the parameter's default is stored
    instead, and a warning is logged.

    Parameters
    ----------
    estimator : BaseEstimator
        A fitted estimator of a registered class: `KMeans`, `GaussianMixture` and the others of this package.
    path : path-like or binary file object
        Where to write; an existing file is replaced after the new one is complete.
    training_labels : bool, default=True
        Whether to store `labels_` and `codes_`, which have a value for each row of the training data.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    ValueError
        If fitted attributes are missing or inconsistent.
    TypeError
        If its class is not registered, or a parameter or attribute has a type that the format cannot store.
    OSError
        If the file cannot be written.
    """
    check_is_fitted(estimator)
    tensors: dict[str, np.ndarray] = {}
    content = _encode_estimator(estimator, "", tensors, training_labels)
    metadata = {
        "format": "cprime",
        "format_version": str(FORMAT_VERSION),
        "cprime_version": __version__,
        "class": content["class"],
        "params": json.dumps(content["params"], allow_nan=False),
        "fitted": json.dumps(content["fitted"], allow_nan=False),
        "checksum": _UNSEALED,
    }
    if not isinstance(path, str | os.PathLike):
        written = io.BytesIO(tensor_bytes(tensors, metadata=metadata))
        _seal(written)
        path.write(written.getbuffer())
        return
    with replacing(path) as temporary:
        try:
            save_file(tensors, temporary, metadata=metadata)
        except SafetensorError as error:
            number = re.search(r"os error (\d+)", str(error))
            raise OSError(*((int(number[1]), os.strerror(int(number[1]))) if number else (str(error),))) from error
        with open(temporary, "r+b") as file:
            _seal(file)


@overload
def load(path: str | os.PathLike[str] | BinaryIO) -> Any: ...


@overload
def load(path: str | os.PathLike[str] | BinaryIO, kind: type[K]) -> K: ...


def load(path: str | os.PathLike[str] | BinaryIO, kind: type | None = None) -> Any:
    """Read an estimator that `save` wrote.

    Parameters
    ----------
    path : path-like or binary file object
        A file written by `save`; an open one is read to its end.
    kind : type or None, default=None
        Class that the estimator must have, such as `KMeans`, which is then also known to type checkers. None accepts
        all.

    Returns
    -------
    estimator : BaseEstimator
        An instance of the class that was saved, with the same parameters and fitted attributes: its predictions are
        bit-identical, and `sklearn.base.clone` works on it.

    Raises
    ------
    ValueError
        If the file is not a cprime model, is damaged, has inconsistent values, has a newer format than this version
        reads, or has an estimator that is no `kind`.
    OSError
        If the file cannot be read, or is a folder, a device or a pipe.

    Examples
    --------
    >>> import tempfile
    >>> import cprime
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cprime.KMeans(2, random_state=0).fit(X).save(f"{folder}/model.safetensors")
    ...     km = cprime.load(f"{folder}/model.safetensors")
    >>> sorted(km.cluster_centers_[:, 0].tolist())
    [0.5, 9.5]
    """
    if kind is not None and not isinstance(kind, type):
        raise TypeError(f"kind must be a class or None, got {kind!r}.")
    name, metadata, content = _read(check_file(path, "path", "read"))
    cls = _classes.get(metadata["class"])
    if cls is None:
        raise ValueError(f"{name} holds a {metadata['class']!r}, which is none of {', '.join(_classes)}")
    if kind is not None and not issubclass(cls, kind):
        raise ValueError(f"{name} must hold an estimator of kind {kind.__name__}, got {cls.__name__}.")
    try:
        tensors = load_tensors(content)
        del content
        parts = {key: strict_json(metadata[key]) for key in ("params", "fitted")}
        estimator = _decode_estimator({"class": metadata["class"], **parts}, tensors, _NAMESPACES)
        if tensors:
            raise ValueError(f"nothing refers to the tensor {min(tensors)!r}")
        if not parts["fitted"]:
            estimator._check_fitted()
    except _NOT_VALID as error:
        reason = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
        raise ValueError(f"{name} is not a valid cprime model: {reason}") from error
    return estimator


def _encode_estimator(
    estimator: BaseEstimator, name: str, tensors: dict[str, np.ndarray], training_labels: bool = False
) -> dict[str, Any]:
    """Return the class, the parameters and the fitted attributes of an estimator, in the form of `encode`.

    name: prefix of the names of its arrays, which are added to `tensors`; "" for the whole file
    """
    kind, prefix = type(estimator).__name__, f"{name}." if name else ""
    if _classes.get(kind) is not type(estimator):
        raise TypeError(f"estimator must be of a registered class, got {type(estimator)!r}")
    whole = object.__new__(type(estimator))
    vars(whole).update({key: gathered(value) for key, value in vars(estimator).items()})
    attributes = {key: vars(whole)[key] for key in sorted(vars(whole)) if key.endswith("_") and not key.startswith("_")}
    if attributes:
        try:
            whole._check_fitted()
        except ValueError as error:
            raise ValueError(f"estimator must have the attributes that a fit sets: {error}") from None
    kept = {key: value for key, value in attributes.items() if training_labels or key not in _OF_TRAINING_ROWS}
    params = _storable_params(estimator).items()
    return {
        "class": kind,
        "params": {key: encode(value, f"{prefix}params.{key}", tensors) for key, value in params},
        "fitted": {key: encode(value, prefix + key, tensors) for key, value in kept.items()},
    }


def _decode_estimator(
    content: dict[str, Any], tensors: dict[str, np.ndarray], namespaces: tuple[str, ...]
) -> BaseEstimator:
    """Return the estimator that `_encode_estimator` stored, after a check of its fitted attributes if it has some."""
    nodes = present_params(content["params"])
    params = {key: decode(node, tensors, namespaces) for key, node in nodes.items()}
    fitted = {key: decode(node, tensors, namespaces) for key, node in content["fitted"].items()}
    estimator = class_of(content["class"])(**params)
    for key, value in fitted.items():
        if not key.endswith("_") or key.startswith("_"):
            raise ValueError(f"{key!r} is not a fitted attribute")
        setattr(estimator, key, value)
    if "history_" in fitted:
        estimator.history_ = present_history(fitted["history_"])
    if fitted:
        estimator._check_fitted()
    return estimator


add_type("estimator", BaseEstimator, _encode_estimator, _decode_estimator)


def class_of(name: str) -> type[BaseEstimator]:
    """Return the class registered under a name; raise ValueError if there is none."""
    if name not in _classes:
        raise ValueError(f"there is no estimator {name!r} that can be stored, only {', '.join(_classes)}")
    return _classes[name]


def read_header(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read the metadata of a model file: format and cprime version, class, parameters and fitted values as JSON.

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
    return _read(path)[1]


def _seal(file: Any) -> None:
    """Compute the checksum of an open safetensors file and write it into the file's header."""
    size = int.from_bytes(file.read(8), "little")
    if size > _MOST_HEADER:
        raise ValueError(f"the header of a model file can have at most {_MOST_HEADER} bytes, got {size}")
    place = 8 + _seal_of(file.read(size))
    file.seek(0)
    found = checksum(iter(lambda: file.read(2**20), b""))
    file.seek(place)
    file.write(found.encode())


def _seal_of(header: bytes) -> int:
    """Return the position of the checksum's digits in the header of a model file; −1 if there are none."""
    found = [match.start(1) for match in _SEAL.finditer(header)]
    if len(found) > 1:
        raise ValueError("it has more than one checksum")
    return found[0] if found else -1


def _read(file: Any) -> tuple[Any, dict[str, str], bytes]:
    """Return the name of a model file for messages, its checked metadata, and all its bytes.

    file: path or open file
    """
    if hasattr(file, "read"):
        path, content = getattr(file, "name", "the file object"), file.read()
    else:
        path, content = Path(file), read_whole(Path(file))
    try:
        size = int.from_bytes(content[:8], "little")
        if not 2 <= size <= min(len(content) - 8, _MOST_HEADER):
            raise ValueError(f"its header should have {size} bytes" if len(content) >= 8 else "it is too short")
        header = content[8 : 8 + size]
        place = _seal_of(header)
        if place >= 0:
            view, place = memoryview(content), 8 + place
            found = checksum((view[:place], _UNSEALED.encode(), view[place + len(_UNSEALED) :]))
            if found.encode() != content[place : place + len(_UNSEALED)]:
                raise ValueError("its checksum is not that of its content")
        metadata = strict_json(header).get("__metadata__", {})
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{path} is not a cprime model, or is damaged: {error}") from error
    _check_metadata(path, metadata)
    if ("checksum" in metadata) != (place >= 0):
        raise ValueError(f"{path} is not a cprime model, or is damaged: its checksum is not readable")
    return path, metadata, content


def _check_metadata(path: Any, metadata: Any) -> None:
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise ValueError(f"{path} is not a valid cprime model: its metadata must be text, by name")
    if metadata.get("format") != "cprime":
        raise ValueError(f"{path} is not a cprime model: it is a safetensors file of something else")
    missing = [key for key in _METADATA_KEYS if key not in metadata]
    if missing:
        raise ValueError(f"{path} is not a valid cprime model: its header lacks {', '.join(missing)}")
    stored = metadata["format_version"]
    if not re.fullmatch(r"[1-9]\d{0,8}", stored, re.ASCII):
        raise ValueError(f"{path} is not a valid cprime model: format_version is {stored!r}")
    if int(stored) > FORMAT_VERSION:
        raise ValueError(
            f"{path} has format {stored}, written by cprime {metadata['cprime_version']}; "
            f"this cprime reads formats up to {FORMAT_VERSION}: upgrade cprime"
        )
    if int(stored) > 1 and "checksum" not in metadata:
        raise ValueError(f"{path} is not a valid cprime model: its header lacks the checksum")


def _storable_params(estimator: BaseEstimator) -> dict[str, Any]:
    """Return the constructor parameters in a form that a model file can store, without callbacks.

    Functions and random generators are replaced by the parameter's default, estimators that are initial values by their
    centers, the parameter `estimator` by an unfitted clone, and paths by text.
    """
    defaults = inspect.signature(type(estimator)).parameters
    params = estimator.get_params(deep=False)
    params.pop("callbacks", None)  # callbacks are not part of a saved model
    for name, value in params.items():
        if isinstance(value, BaseEstimator):
            params[name] = clone(value) if name == "estimator" else _centers(value, name)
        elif isinstance(value, os.PathLike):
            params[name] = os.fspath(value)
        elif isinstance(value, np.random.RandomState | np.random.Generator) or callable(value):
            params[name] = defaults[name].default
            _logger.warning("%s=%r cannot be stored; %r is stored instead", name, value, params[name])
    return params


def _centers(estimator: BaseEstimator, name: str) -> np.ndarray:
    """Return the centers (C, D) of a fitted estimator that is given as the initialization of another one.

    name: name of the parameter, for the message
    """
    centers = fitted_centers(estimator)
    if centers is not None:
        return centers
    raise TypeError(f"{name} must be a fitted estimator with centers to be stored, got {estimator!r}")
