"""The examples in the docstrings of `cprime.theory` give what they say."""

import doctest
from importlib import import_module

import pytest

import cprime.theory

MODULES = sorted({getattr(cprime.theory, name).__module__ for name in cprime.theory.__all__})


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_right(name):
    results = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.attempted > 0
    assert results.failed == 0


def test_every_public_name_has_a_docstring():
    assert [name for name in cprime.theory.__all__ if not getattr(cprime.theory, name).__doc__] == []
