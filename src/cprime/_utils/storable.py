"""Encoding of values as JSON and tensors without pickle, and decoding, for model files and checkpoints.

Tensors are numeric arrays that are stored by name beside the JSON text. A value that JSON can represent is stored
unchanged. Any other value is stored as a JSON object whose only key is its type. The keys are ``tensor``, ``complex``
and ``numpy_scalar`` (their content is the name of a tensor, used only once), ``strings`` (an array of text), ``record``
(a structured array, field by field), ``csr`` (a sparse array), ``float`` (nan or an infinity), ``list``, ``tuple``,
``dict``, ``pairs`` (a dict with other keys than text), and ``object`` (an instance of a frozen class that the decorator
`storable` marks, with the class's name). Other modules add types by `add_type`. Decoding raises an error for the name
of any other class. Decoded values need at most a small multiple of the memory of the encoded ones, so a small file
cannot exhaust the memory.
"""

import json
import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_array

# A stored array of text may declare items of up to this number of characters, even if all its items are shorter.
_WIDTH = 64
# Storable classes by their names in files, and these names by class.
_classes: dict[str, Any] = {}
_names: dict[Any, str] = {}
# For each such class, fields of former versions with their values there, and the present values.
_former: dict[Any, dict[tuple[str, str], Any]] = {}
# Keys and encoders of further types.
_encoders: dict[type, tuple[str, Callable[..., Any]]] = {}

T = TypeVar("T", bound=type)
Tensors = dict[str, np.ndarray]


def storable(name: str, former: dict[tuple[str, str], Any] | None = None) -> Callable[[T], T]:
    """Return a decorator of a frozen dataclass or named tuple that allows its instances to be stored in files.

    name: name of the class in files, with a namespace, as in "model.Full". It must not change if the class is renamed
    or moved, so that older files can be read.
    former: present values of fields, by the name of the field and the text that older files have instead
    """

    def register(cls: T) -> T:
        _classes[name], _names[cls], _former[cls] = cls, name, former or {}
        return cls

    return register


def is_storable(cls: type) -> bool:
    """Return whether values of the class can be stored in files."""
    return cls in _names


def add_type(key: str, cls: type, encoder: Callable[..., Any], decoder: Callable[..., Any]) -> None:
    """Let `encode` and `decode` store instances of a class as JSON objects with this key.

    encoder: function that has the arguments of `encode`    decoder: function that has the arguments of `decode`
    """
    _encoders[cls] = key, encoder
    _DECODERS[key] = decoder


def _fields(value: Any) -> tuple[str, ...]:
    """Return the field names of a storable class (dataclass or named tuple), or of an instance."""
    return tuple(field.name for field in fields(value)) if is_dataclass(value) else value._fields


def strict_json(text: str | bytes) -> Any:
    """Return parsed JSON; raise ValueError for a repeated key, a number such as NaN, or too deep nesting."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deep") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the (key, value) pairs of a JSON object as a dict; raise ValueError for a repeated key."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key comes twice in its JSON")
    return found


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def gathered(value: Any) -> Any:
    """Compute a Dask array and return it as a NumPy array; return any other value unchanged."""
    return np.asarray(value) if type(value).__module__.partition(".")[0] == "dask" else value


def encode(value: Any, name: str, tensors: Tensors) -> Any:
    """Return a value in a form that JSON can represent, and add the arrays that it contains to `tensors`.

    name: prefix of the names under which the arrays are added
    tensors: dict of arrays by name    Raises TypeError for a value that cannot be stored.
    """
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
    if isinstance(value, csr_array):
        parts = {
            part: encode(getattr(value, part), f"{name}.{part}", tensors) for part in ("data", "indices", "indptr")
        }
        return {"csr": {**parts, "shape": list(value.shape)}}
    if type(value) in _names:
        items = {key: encode(getattr(value, key), f"{name}.{key}", tensors) for key in _fields(value)}
        return {"object": {"class": _names[type(value)], "fields": items}}
    if isinstance(value, list | tuple | range):
        each = [encode(item, f"{name}.{i}", tensors) for i, item in enumerate(value)]
        return {"list" if isinstance(value, list) else "tuple": each}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: encode(item, f"{name}.{key}", tensors) for key, item in value.items()}}
    if isinstance(value, dict):
        return {"pairs": encode(list(value.items()), name, tensors)}
    for cls, (key, encoder) in _encoders.items():
        if isinstance(value, cls):
            return {key: encoder(value, name, tensors)}
    raise TypeError(f"{name} has a type that a file cannot hold: {type(value)!r}")


def _encode_array(array: np.ndarray, name: str, tensors: Tensors) -> Any:
    """Return the JSON form of an array: its name among the tensors, its texts, or its fields."""
    if array.dtype.names is not None:
        return {
            "record": {field: _encode_array(array[field], f"{name}.{field}", tensors) for field in array.dtype.names}
        }
    if array.dtype.char == "g":  # long doubles are stored as float64, because no computation uses their precision
        array = array.astype(np.float64)
    if array.dtype.kind in "biuf":
        tensors[name] = np.require(array, array.dtype.newbyteorder("="), "C")
        return {"tensor": name}
    if array.dtype.kind == "c":
        tensors[name] = np.ascontiguousarray(array, dtype=np.complex128).view(np.float64)
        return {"complex": name}
    items = array.ravel().tolist()
    if array.dtype.kind in "UO" and all(isinstance(item, str) for item in items):
        return {"strings": {"dtype": array.dtype.str, "shape": list(array.shape), "items": items}}
    raise TypeError(f"{name} has a type that a file cannot hold: an array of {array.dtype}")


def decode(node: Any, tensors: Tensors, namespaces: tuple[str, ...] = ()) -> Any:
    """Return the value that `encode` stored as `node`.

    tensors: dict of arrays by name; the arrays that are used are removed
    namespaces: first parts that names of this package's classes may have, such as "model"; () accepts all. Storable
    classes of other packages are always accepted.
    Raises ValueError, or errors of Python such as KeyError and TypeError, if `node` is invalid.
    """
    if not isinstance(node, dict):
        return node
    if len(node) != 1:
        raise ValueError(f"a value must be an object of one key, got {len(node)} keys")
    ((kind, content),) = node.items()
    if kind not in _DECODERS:
        raise ValueError(f"there is no kind of value {kind!r}")
    return _DECODERS[kind](content, tensors, namespaces)


def _tensor(name: str, tensors: Tensors, namespaces: tuple[str, ...]) -> np.ndarray:
    if name not in tensors:
        raise ValueError(f"there is no tensor {name!r}, or two values refer to it")
    return tensors.pop(name)


def _scalar(name: str, tensors: Tensors, namespaces: tuple[str, ...]) -> Any:
    found = _tensor(name, tensors, namespaces)
    if found.shape != ():
        raise ValueError(f"{name} must be one number, it has the shape {found.shape}")
    return found[()]


def _strings(content: Any, tensors: Tensors, namespaces: tuple[str, ...]) -> np.ndarray:
    dtype, items = np.dtype(content["dtype"]), content["items"]
    if dtype.kind not in "UO":
        raise ValueError(f"an array of text cannot have the dtype {dtype}")
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError("an array of text must have text for items")
    if dtype.itemsize > np.dtype(f"U{max(_WIDTH, *map(len, items), 0)}").itemsize:
        raise ValueError(f"an array of text cannot have the dtype {dtype}, its items are much shorter")
    return np.array(items, dtype=dtype).reshape(content["shape"])


def _record(content: Any, tensors: Tensors, namespaces: tuple[str, ...]) -> np.ndarray:
    columns = {field: decode(node, tensors, namespaces) for field, node in content.items()}
    shapes = {values.shape for values in columns.values()}
    if len(shapes) != 1:
        raise ValueError(f"the fields of a structured array must have one shape, got {sorted(shapes)}")
    (shape,) = shapes
    record = np.empty(shape, dtype=[(field, values.dtype) for field, values in columns.items()])
    for field, values in columns.items():
        record[field] = values
    return record


def _csr(content: Any, tensors: Tensors, namespaces: tuple[str, ...]) -> csr_array:
    parts = [decode(content[part], tensors, namespaces) for part in ("data", "indices", "indptr")]
    found = csr_array(tuple(parts), shape=tuple(content["shape"]))
    found.check_format(full_check=True)  # indices out of range would cause invalid memory access in later operations
    return found


def _object(content: Any, tensors: Tensors, namespaces: tuple[str, ...]) -> Any:
    name = content["class"]
    cls = _classes.get(name)
    limited = namespaces and cls is not None and cls.__module__.startswith("cprime.")
    if cls is None or (limited and name.partition(".")[0] not in namespaces):
        raise ValueError(f"there is no {name!r} that can be stored here")
    items = {
        key: _former[cls].get((key, item), item) if isinstance(item, str) else decode(item, tensors, namespaces)
        for key, item in content["fields"].items()
    }
    # Older versions of a class can have fields that it no longer has. They are ignored if their values are None.
    own = _fields(cls)
    return cls(**{key: item for key, item in items.items() if key in own or item is not None})


def _search(content: Any, tensors: Tensors, namespaces: tuple[str, ...]) -> Any:
    """Return a search (value of the argument `search`) that is stored in a model file of format 1 or 2.

    Later formats store it as any other object.
    """
    options = {"dict": content["options"]}
    return _object(
        {"class": f"search.{content['class']}", "fields": decode(options, tensors, namespaces)}, tensors, namespaces
    )


_DECODERS: dict[str, Callable[[Any, Tensors, tuple[str, ...]], Any]] = {
    "tensor": _tensor,
    "complex": lambda name, tensors, namespaces: _tensor(name, tensors, namespaces).view(np.complex128),
    "numpy_scalar": _scalar,
    "float": lambda text, tensors, namespaces: float(text),
    "strings": _strings,
    "record": _record,
    "csr": _csr,
    "object": _object,
    "search": _search,
    "list": lambda items, tensors, namespaces: [decode(item, tensors, namespaces) for item in items],
    "tuple": lambda items, tensors, namespaces: tuple(decode(item, tensors, namespaces) for item in items),
    "pairs": lambda items, tensors, namespaces: dict(decode(items, tensors, namespaces)),
    "dict": lambda items, tensors, namespaces: {key: decode(item, tensors, namespaces) for key, item in items.items()},
}
