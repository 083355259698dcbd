"""Arguments that have no effect on a fit are named in the log, and no others."""

import logging
import re

import numpy as np
import pytest

from cprime import Factors, GaussianMixture, KMeans, SoftKMeans, StudentTMixture
from cprime.search import Auto, Graph

X = np.random.default_rng(0).normal(size=(200, 3))
UNUSED = {
    "lists of a full search": (
        KMeans(4, search=Auto(n_neighbors=3)),
        r"n_neighbors=3 .*the search is Full\(\), which",
    ),
    "lists of one cluster": (KMeans(1, search=Graph(3)), "n_neighbors=3 .*there is one component"),
    "runs from a given start": (KMeans(3, init=X[:3], n_init=4), "n_init=4 .*the start is given, so there is one run"),
    "jumps of one cluster": (KMeans(1, jumps=True), "jumps=True .*there is one cluster"),
    "runs from given means": (GaussianMixture(3, means_init=X[:3], n_init=4), "n_init=4 .*so there is one run"),
    "start beside given means": (
        GaussianMixture(3, means_init=X[:3], init_params="random"),
        "init_params='random' .*the means of the start are given",
    ),
    "new means of a continued fit": (
        GaussianMixture(2, means_init=X[:2], warm_start=True, random_state=0).fit(X),
        "means_init has no effect: warm_start=True continues the previous fit",
    ),
}
USED = [
    KMeans(4, search=Graph(3), jumps=True, n_init=2),
    KMeans(4, search="full", jumps=True),
    GaussianMixture(2, covariance_type=Factors(1), init_params="random", n_init=2),
    StudentTMixture(2, dof="shared"),
    SoftKMeans(3),
]


def lines(estimator, caplog):
    with caplog.at_level(logging.INFO, "cprime"):
        estimator.set_params(random_state=0, max_iter=3).fit(X)
    return [line for line in caplog.messages if "has no effect" in line]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", UNUSED)
def test_an_argument_without_effect_is_named(name, caplog):
    estimator, expected = UNUSED[name]
    (line,) = lines(estimator, caplog)
    assert re.search(expected, line)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", USED, ids=str)
def test_arguments_with_effect_are_not_named(estimator, caplog):
    assert not lines(estimator, caplog)
