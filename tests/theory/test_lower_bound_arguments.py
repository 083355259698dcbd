"""Arguments and text of lower bounds of J."""

import numpy as np
import pytest

from cprime import KMeans
from cprime.theory import LowerBound, lower_bound


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"n_clusters": 0}, ValueError, "n_clusters == 0, must be >= 1"),
        ({"n_clusters": 9}, ValueError, r"n_samples=6 should be >= n_clusters=9"),
        ({"n_clusters": "2"}, TypeError, "n_clusters must be an instance of int"),
        ({"n_clusters": KMeans(2, metric="cosine")}, ValueError, "not fitted"),
        ({"time_limit": -1}, ValueError, "time_limit == -1"),
        ({"tol": -1}, ValueError, "tol == -1"),
        ({"max_memory": "much"}, ValueError, "max_memory must be"),
        ({"n_threads": 0}, ValueError, "n_threads must be None or an integer >= 1"),
        ({"labels": [0, 1]}, ValueError, r"labels must be 6 integers, got an array of shape \(2,\)"),
        ({"labels": [0.5] * 6}, ValueError, "labels must be 6 integers"),
        ({"labels": [0, 1, 2, 0, 0, 0]}, ValueError, r"labels must be from 0 to n_clusters − 1 = 1, got 0 to 2"),
        ({"sample_weight": [0.0] * 6}, ValueError, "must contain at least one non-zero number"),
        ({"X": [[0.0], [np.nan]]}, ValueError, "Input X contains NaN in row 1"),
    ],
)
def test_wrong_arguments_are_named(given, error, message):
    arguments = {"X": np.arange(12.0).reshape(6, 2), "n_clusters": 2} | given
    with pytest.raises(error, match=message):
        lower_bound(**arguments)


def test_model_of_another_metric_is_refused():
    X = np.random.default_rng(0).normal(size=(9, 2))
    km = KMeans(2, metric="cosine", random_state=0).fit(X)
    with pytest.raises(ValueError, match="metric='euclidean', got 'cosine'"):
        lower_bound(X, km)
    fitted = KMeans(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="labels must be None"):
        lower_bound(X, fitted, labels=fitted.labels_)


@pytest.mark.parametrize(
    ("value", "parts", "text"),
    [
        (99.0, 1, "J* >= 99; J is at most 1.02 % above it (relaxation)"),
        (100.0, 7, "J* >= 100; J is at most 0.00 % above it (relaxation, 7 parts)"),
        (0.0, 1, "J* >= 0: no better bound was found (relaxation)"),
    ],
)
def test_text_rounds_up_what_may_be_missing(value, parts, text):
    assert str(LowerBound(value, 100.0, 1 - value / 100, "relaxation", parts, np.zeros(1, dtype=int))) == text
