"""Changed copies of frozen values."""

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import pytest

from cprime._utils.values import replace


@dataclass(frozen=True)
class Plain:
    a: int
    b: tuple = ()

    kind: ClassVar[str] = "plain"

    @cached_property
    def twice(self):
        return 2 * self.a


@dataclass(frozen=True)
class Checked(Plain):
    def __post_init__(self):
        if self.a < 0:
            raise ValueError("a is negative")


@pytest.mark.parametrize("kind", [Plain, Checked])
def test_a_copy_has_the_changes_and_nothing_that_was_cached(kind):
    value = kind(1, (2,))
    assert value.twice == 2
    changed = replace(value, a=5)
    assert changed == dataclasses.replace(value, a=5)
    assert (changed.twice, changed.kind, value.a) == (10, "plain", 1)
    assert set(vars(replace(value))) == {"a", "b"}


def test_what_a_class_checks_is_checked():
    with pytest.raises(ValueError, match="a is negative"):
        replace(Checked(1), a=-1)


def test_a_field_that_is_not_there_is_refused():
    with pytest.raises(TypeError, match=r"Plain has no field \['c'\]"):
        replace(Plain(1), c=3)
