"""scikit-learn's own checks of the estimators, and the examples of the docstrings."""

import doctest
import importlib

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from cprime.selection import GMeans, XMeans


@parametrize_with_checks([XMeans(), XMeans(min_clusters=2, n_active=2), GMeans(), GMeans(min_clusters=2)])
def test_estimator_passes(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", ["sweep", "xmeans", "gmeans"])
def test_examples_are_right(name):
    results = doctest.testmod(importlib.import_module(f"cprime.selection.{name}"))
    assert results.attempted > 0
    assert results.failed == 0
