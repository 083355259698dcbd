"""The examples in the docstrings of the estimators give what they say."""

import doctest

import pytest

from cprime.estimators import base, gaussian_mixture, kmeans, validation


@pytest.mark.parametrize("module", [kmeans, gaussian_mixture], ids=lambda module: module.__name__)
def test_examples_are_right(module):
    results = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("module", [base, validation], ids=lambda module: module.__name__)
def test_other_modules_have_no_wrong_ones(module):
    assert doctest.testmod(module).failed == 0
