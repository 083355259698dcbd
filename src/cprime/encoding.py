"""Values in model files: JSON and tensors, and back.

A value is stored as it is where JSON has it; else as an object with one key that says what it is: ``tensor`` and
``numpy_scalar`` (the name of a tensor, which no other value has), ``strings`` (an array of text), ``record`` (a
structured array, field by field), ``float`` (nan or an infinity), ``search`` (its class and options), ``list``,
``tuple`` and ``dict``. What comes back is at most a small multiple of what was read.
"""

import json
import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

from cprime.search import Bounded, Full, Graph, Papers

_SEARCHES: dict[str, Any] = {cls.__name__: cls for cls in (Full, Bounded, Graph, Papers)}
_WIDTH = 64  # characters that an item of text may have room for beyond what it has


def strict_json(text: str | bytes) -> Any:
    """What JSON text says; ValueError where a key comes twice, a number is none of JSON, or it is nested too deep."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deep") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key comes twice in its JSON")
    return found


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def encode(value: Any, name: str, tensors: dict[str, np.ndarray]) -> Any:
    """One value as JSON; its arrays go to `tensors` under `name` or names that begin with it."""
    if value is None or isinstance(value, bool | str):
        return value
    value = gathered(value)
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
        items = [encode(item, f"{name}.{i}", tensors) for i, item in enumerate(value)]
        return {"list" if isinstance(value, list) else "tuple": items}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: encode(item, f"{name}.{key}", tensors) for key, item in value.items()}}
    if _SEARCHES.get(type(value).__name__) is type(value):
        options = {key: encode(item, f"{name}.{key}", tensors) for key, item in value.get_params().items()}
        return {"search": {"class": type(value).__name__, "options": options}}
    raise TypeError(f"{name} has a type that a model file cannot hold: {type(value)!r}")


def gathered(value: Any) -> Any:
    """A Dask array as the array that it stands for, anything else as it is."""
    return np.asarray(value) if type(value).__module__.partition(".")[0] == "dask" else value


def as_computed(array: np.ndarray) -> np.ndarray:
    """Numbers that are longer than what fits compute in become float64, as they do in a fit."""
    return array.astype(np.float64) if array.dtype.char == "g" else array


def _encode_array(array: np.ndarray, name: str, tensors: dict[str, np.ndarray]) -> Any:
    if array.dtype.names is not None:
        fields = {field: _encode_array(array[field], f"{name}.{field}", tensors) for field in array.dtype.names}
        return {"record": fields}
    array = as_computed(array)
    if array.dtype.kind in "biuf":
        tensors[name] = np.require(array, array.dtype.newbyteorder("="), "C")
        return {"tensor": name}
    items = array.ravel().tolist()
    if array.dtype.kind in "UO" and all(isinstance(item, str) for item in items):
        return {"strings": {"dtype": array.dtype.str, "shape": list(array.shape), "items": items}}
    raise TypeError(f"{name} has a type that a model file cannot hold: an array of {array.dtype}")


def decode(node: Any, tensors: dict[str, np.ndarray]) -> Any:
    """The value that `_encode` stored as `node`."""
    if not isinstance(node, dict):
        return node
    if len(node) != 1:
        raise ValueError(f"a value must be an object of one key, got {len(node)} keys")
    ((kind, content),) = node.items()
    if kind not in _DECODERS:
        raise ValueError(f"there is no kind of value {kind!r}")
    return _DECODERS[kind](content, tensors)


def _decode_tensor(name: str, tensors: dict[str, np.ndarray]) -> np.ndarray:
    if name not in tensors:
        raise ValueError(f"there is no tensor {name!r}, or two values refer to it")
    return tensors.pop(name)


def _decode_scalar(name: str, tensors: dict[str, np.ndarray]) -> Any:
    found = _decode_tensor(name, tensors)
    if found.shape != ():
        raise ValueError(f"{name} must be one number, it has the shape {found.shape}")
    return found[()]


def _decode_strings(content: Any, tensors: dict[str, np.ndarray]) -> np.ndarray:
    dtype, items = np.dtype(content["dtype"]), content["items"]
    if dtype.kind not in "UO":
        raise ValueError(f"an array of text cannot have the dtype {dtype}")
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError("an array of text must have text for items")
    if dtype.itemsize > np.dtype(f"U{max(_WIDTH, *map(len, items), 0)}").itemsize:
        raise ValueError(f"an array of text cannot have the dtype {dtype}, its items are much shorter")
    return np.array(items, dtype=dtype).reshape(content["shape"])


def _decode_record(content: Any, tensors: dict[str, np.ndarray]) -> np.ndarray:
    fields = {field: decode(node, tensors) for field, node in content.items()}
    shapes = {values.shape for values in fields.values()}
    if len(shapes) != 1:
        raise ValueError(f"the fields of a structured array must have one shape, got {sorted(shapes)}")
    (shape,) = shapes
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
    "tensor": _decode_tensor,
    "numpy_scalar": _decode_scalar,
    "float": lambda text, tensors: float(text),
    "strings": _decode_strings,
    "record": _decode_record,
    "search": _decode_search,
    "list": lambda items, tensors: [decode(item, tensors) for item in items],
    "tuple": lambda items, tensors: tuple(decode(item, tensors) for item in items),
    "dict": lambda items, tensors: {key: decode(item, tensors) for key, item in items.items()},
}
