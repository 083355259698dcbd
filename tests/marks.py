"""Pytest marks for parameters, used by several test folders."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def long_but(
    quick: Iterable[Any], values: Iterable[Any], ids: Sequence[str] | None = None, mark: Any = pytest.mark.long
) -> list[Any]:
    """Return the values of a parameter, marked unless they (or their first entries, if tuples) are in `quick`."""
    values, quick = list(values), list(quick)
    names = [value[0] if isinstance(value, tuple) else value for value in values]
    assert set(quick) <= set(names), f"{set(quick) - set(names)} are none of {names}"
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            id=None if ids is None else ids[i],
            marks=() if names[i] in quick else mark,
        )
        for i, value in enumerate(values)
    ]
