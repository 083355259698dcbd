"""Helpers for frozen dataclasses: changed copies, cached properties, and options that scikit-learn can read."""

import dataclasses
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")


def replace(value: T, /, **changes: Any) -> T:
    """Return a copy of an instance of a frozen dataclass, or of a named tuple, with some fields changed.

    Cached properties are not copied. This is `dataclasses.replace`, but faster if the class has no `__post_init__`.
    """
    if isinstance(value, tuple):
        return value._replace(**changes)  # type: ignore[attr-defined]
    cls: Any = type(value)
    names, plain = _fields(cls)
    if not plain:
        return dataclasses.replace(value, **changes)  # type: ignore[type-var]
    new = object.__new__(cls)
    before, after = value.__dict__, new.__dict__
    if len(before) == len(names):
        after.update(before)
    else:  # `__dict__` also contains cached properties, so only the fields are copied
        for name in names:
            after[name] = before[name]
    after.update(changes)
    if len(after) != len(names):
        raise TypeError(f"{cls.__name__} has no field {sorted(changes.keys() - names)}")
    return new


@cache
def _fields(cls: Any) -> tuple[frozenset[str], bool]:
    """Return the names of a dataclass's fields, and whether the class has no method `__post_init__`."""
    return frozenset(map(attrgetter("name"), dataclasses.fields(cls))), not hasattr(cls, "__post_init__")


class cached(Generic[T]):
    """Property whose value is computed once for each instance and then stored in the instance.

    Unlike `functools.cached_property` of older versions of Python, it uses no lock.
    """

    def __init__(self, function: Callable[[Any], T]):
        self.function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, value: Any, owner: type | None = None) -> T:
        if value is None:
            return self  # type: ignore[return-value]
        found = value.__dict__[self.name] = self.function(value)
        return found


class Options:
    """Base of frozen classes whose fields are options.

    scikit-learn's `clone`, `set_params` and `GridSearchCV` can read and change the options. A subclass that is a
    `dataclass(repr=False)` has the `repr` of this class.
    """

    def __repr__(self) -> str:
        """Return the constructor call, without options that have their default values."""
        changed = [field for field in dataclasses.fields(self) if getattr(self, field.name) != field.default]  # type: ignore[arg-type]
        shown = [f"{field.name}={getattr(self, field.name)!r}" for field in changed]
        return f"{type(self).__name__}({', '.join(shown)})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return a dictionary of the options by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    def with_params(self, **params: Any) -> Self:
        """Return a copy with some options changed.

        Raises
        ------
        ValueError
            If there is no option of a given name, or its value is out of range.
        """
        names = self.get_params()
        for name in params:
            if name not in names:
                raise ValueError(f"Invalid parameter {name!r} for {self!r}. Valid parameters are: {list(names)}.")
        return type(self)(**{**names, **params})

    def __sklearn_clone__(self) -> Self:
        return type(self)(**self.get_params())


def fitted_centers(estimator: Any) -> Any:
    """Return the attribute `cluster_centers_` or `means_` of an estimator; None if it has neither."""
    centers = getattr(estimator, "cluster_centers_", None)
    return getattr(estimator, "means_", None) if centers is None else centers
