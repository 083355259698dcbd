"""Types that say which values an attribute can have, such as `Array("C D", least=0.0)`, and the check of values.

A type is a type of Python (`int`, `float | None`, `Literal`, `list`, a `TypedDict`), a condition, or both together:
`Annotated[NDArray, Array("C D")]`. A condition is a function of a value and the sizes, which says whether the value is
valid. Sizes have names of one letter. A condition adds a size that is unknown, with which later values must agree.
"""

import math
import types
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from inspect import get_annotations
from typing import Annotated, Any, Literal, Union, get_args, get_origin, is_typeddict

import numpy as np
from numpy.typing import NDArray

from cprime._utils.number_types import largest

Sizes = dict[str, int]


class Presence(Enum):
    """Mark of a type whose attribute may be missing; the attribute of a type without a mark may not."""

    OPTIONAL = "may be missing"
    RECORD = "may be missing if all others with this mark are"
    WITH_RECORD = "may be missing if all with the mark RECORD are"


@dataclass(frozen=True, kw_only=True)
class Number:
    """Condition of a number, or of all numbers of an array: least ≤ value, above < value < below; never NaN.

    below: a number, or a size such as "C" or "C+1"
    """

    least: float = -math.inf
    above: float = -math.inf
    below: float | str | None = None

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        below = sizes[self.below[0]] + int(self.below[1:] or 0) if isinstance(self.below, str) else self.below
        inside = (value >= self.least) & ((value > self.above) | (self.above == -math.inf))
        return bool(np.all(inside if below is None else inside & (value < below)))


@dataclass(frozen=True)
class Array(Number):
    """Check that a value is an array of finite numbers within the bounds of `Number`.

    axes: sizes of the axes, such as "C D" or "C+1"; "?" is any size    dtypes: names, or kinds such as "f", of dtypes
    is_first: whether this array defines what C, D and other axes are for all other values; they must be above 0
    may_be_infinite: whether infinities are allowed
    """

    axes: str
    dtypes: str = "f"
    is_first: bool = False
    may_be_infinite: bool = False

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        axes = self.axes.split()
        return (
            isinstance(value, np.ndarray)
            and any(dtype in (value.dtype.kind, value.dtype.name) for dtype in self.dtypes.split())
            and value.ndim == len(axes)
            and all(_agrees(axis, length, sizes) for axis, length in zip(axes, value.shape, strict=True))
            and not (self.is_first and not value.size)
            and (self.may_be_infinite or bool(np.isfinite(value).all()))
            and super().__call__(value, sizes)
        )


@dataclass(frozen=True)
class Texts:
    """Condition of an array of text with one axis."""

    axis: str

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        is_text = isinstance(value, np.ndarray) and value.ndim == 1 and all(isinstance(text, str) for text in value)
        return is_text and _agrees(self.axis, len(value), sizes)


@dataclass(frozen=True)
class Size:
    """Condition of a number that is equal to a size."""

    axis: str

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        return value >= 1 and _agrees(self.axis, int(value), sizes)


@dataclass(frozen=True)
class Columns:
    """Condition of a convergence history: it has a row, and the columns of the dtype."""

    dtype: np.dtype

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        is_array = isinstance(value, np.ndarray) and value.ndim == 1
        return is_array and value.dtype.names == self.dtype.names and len(value) >= 1


@dataclass(frozen=True)
class Rising:
    """Condition of integers that begin with 0, end with a size, and rise by at least `step`."""

    end: str
    step: int

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        return bool(value[0] == 0 and value[-1] == sizes[self.end] and (np.diff(value) >= self.step).all())


def _agrees(axis: str, length: int, sizes: Sizes) -> bool:
    """Return whether an axis such as "C+1" can have this length; a size that is unknown is added to `sizes`."""
    size = length - int(axis[1:] or 0)
    return axis == "?" or sizes.setdefault(axis[0], size) == size


def _has_finite_squares(value: Any, sizes: Sizes) -> bool:
    return bool(np.abs(value).max() <= largest(value.dtype, value.shape[1]))


Ids = Annotated[NDArray[np.int32], Array("N", "int32", least=0, below="C")]
Positive = Annotated[float, Number(above=0, below=math.inf)]
NonNegative = Annotated[float, Number(least=0)]
Count = Annotated[int, Number(least=0)]
Centers = Annotated[Any, Array("C D", "float32 float64", is_first=True), _has_finite_squares]


def admits(declared: Any, value: Any, sizes: Sizes) -> bool:
    """Return whether a value has a declared type. Sizes that are unknown are added to `sizes`."""
    origin, parts = get_origin(declared), get_args(declared)
    if declared is Any or origin is np.ndarray or isinstance(declared, Presence):
        return True
    if origin is Annotated:
        return all(admits(part, value, sizes) for part in parts)
    if origin in (Union, types.UnionType):
        return any(admits(part, value, sizes) for part in parts)
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if origin is list:
        return isinstance(value, list) and all(admits(parts[0], item, sizes) for item in value)
    if is_typeddict(declared):
        items = get_annotations(declared)
        return (
            isinstance(value, dict)
            and value.keys() == items.keys()
            and all(admits(item, value[name], sizes) for name, item in items.items())
        )
    if not isinstance(declared, type) and origin is None:
        return bool(declared(value, sizes))
    if declared is float:
        return isinstance(value, float | np.floating) and value == value
    if declared is int:
        return isinstance(value, int | np.integer) and not isinstance(value, bool)
    return isinstance(value, bool | np.bool_ if declared is bool else origin or declared)


def attribute_types(cls: type) -> dict[str, Any]:
    """Return the declared types of a class's fitted attributes, whose names end in an underscore, by name."""
    annotations = [item for base in cls.__mro__ for item in get_annotations(base).items() if item[0].endswith("_")]
    return dict(reversed(annotations))


def presence(declared: Any) -> Presence | None:
    """Return the mark of a declared type that says whether the attribute may be missing; None if it may not."""
    return next((part for part in get_args(declared) if isinstance(part, Presence)), None)


def check_values(values: Mapping[str, Any], declared: Mapping[str, Any]) -> None:
    """Raise ValueError if one of the values, by name, is missing or does not have its declared type."""
    marks = {name: presence(each) for name, each in declared.items()}
    has_record = any(mark is Presence.RECORD for name, mark in marks.items() if name in values)
    may_be_missing = {Presence.OPTIONAL} if has_record else {*Presence}
    missing = {name for name, mark in marks.items() if name not in values and mark not in may_be_missing}
    if missing:
        raise ValueError(f"it has no {min(missing)}")
    sizes: Sizes = {}
    for name in sorted(declared.keys() & values.keys(), key=lambda name: (not _is_first(declared[name]), name)):
        if not admits(declared[name], values[name], sizes):
            known = "".join(f", {size} = {length}" for size, length in sizes.items())
            raise ValueError(f"{name} is not what a fit leaves{known}: got {_shown(values[name])}")


def _is_first(declared: Any) -> bool:
    """Return whether the values of a type define sizes for others."""
    return getattr(declared, "is_first", False) or any(_is_first(part) for part in get_args(declared))


def _shown(value: Any) -> str:
    """Return a short text of a value for an error message."""
    text = f"an array {value.shape} of {value.dtype}" if isinstance(value, np.ndarray) else repr(value)
    return text if len(text) <= 100 else f"{text[:100]} …"
