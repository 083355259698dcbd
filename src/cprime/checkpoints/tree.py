"""Values as JSON and tensors, and back: what a fit knows, without pickle.

Owns which classes may be in a checkpoint: frozen ones of this library, by name. A file can name no other.
"""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from cprime import model, search
from cprime._random import Key
from cprime.block import Kept
from cprime.em.k_means_rule import KMeansState
from cprime.em.mixture_rule import MixtureState
from cprime.em.state import Fit
from cprime.encoding import as_computed
from cprime.execution.chunk import Chunk
from cprime.kernels import Bounds, Moves
from cprime.model.stiff import Stiff
from cprime.model.unit import UnitCenters
from cprime.search.bounded import BoundedState
from cprime.search.graph import GraphState, Last
from cprime.search.papers import PapersState
from cprime.statistics import Statistics


def _name_of(kind: type) -> str:
    """Room and name: `Full` is a covariance and a search."""
    return f"{kind.__module__.split('.')[1]}.{kind.__name__}"


_CLASSES: dict[str, Any] = {
    _name_of(kind): kind
    for kind in (
        *model.FAMILIES.values(),
        *(model.Scatter, Stiff, UnitCenters),
        *(search.Full, search.Bounded, search.Graph, search.Papers, search.Factors),
        *(BoundedState, GraphState, Last, PapersState),
        *(Bounds, Chunk, Fit, KMeansState, Kept, Key, MixtureState, Moves, Statistics),
    )
}


def encode(value: Any, name: str, tensors: dict[str, np.ndarray]) -> Any:
    """What JSON has, as it is; arrays go to `tensors` under a name; TypeError for what cannot be stored."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int | float):
        return value if isinstance(value, int) else {"float": value.hex()}
    if isinstance(value, np.ndarray):
        value = as_computed(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        complex_ = value.dtype.kind == "c"
        tensors[name] = np.asarray(value, order="C").view(np.float64 if complex_ else value.dtype)
        return {"complex" if complex_ else "tensor": name}
    if isinstance(value, csr_array):
        parts = {part: getattr(value, part) for part in ("data", "indices", "indptr")}
        return {"csr": encode(parts, name, tensors), "shape": list(value.shape)}
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return {"tuple": [encode(item, f"{name}.{i}", tensors) for i, item in enumerate(value)]}
    if isinstance(value, dict):
        return {"dict": {key: encode(item, f"{name}.{key}", tensors) for key, item in value.items()}}
    kind = _name_of(type(value)) if type(value).__module__.startswith("cprime.") else ""
    if _CLASSES.get(kind) is not type(value):
        raise TypeError(f"{name} cannot be stored: it is a {type(value).__name__}")
    return {
        "class": kind,
        "fields": {key: encode(getattr(value, key), f"{name}.{key}", tensors) for key in _names(value)},
    }


def decode(node: Any, tensors: dict[str, np.ndarray]) -> Any:
    """The value that `encode` was given; ValueError, KeyError or TypeError where it is none."""
    if not isinstance(node, dict):
        return node
    if "float" in node:
        return float.fromhex(node["float"])
    if "tensor" in node:
        return tensors[node["tensor"]]
    if "complex" in node:
        return tensors[node["complex"]].view(np.complex128)
    if "csr" in node:
        parts = decode(node["csr"], tensors)
        found = csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(node["shape"]))
        found.check_format(full_check=True)  # indices out of range would be read
        return found
    if "tuple" in node:
        return tuple(decode(item, tensors) for item in node["tuple"])
    if "dict" in node:
        return {key: decode(item, tensors) for key, item in node["dict"].items()}
    return _CLASSES[node["class"]](**{key: decode(item, tensors) for key, item in node["fields"].items()})


def _names(value: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(value)) if is_dataclass(value) else value._fields
