"""A fit that is interrupted anywhere leaves the estimator unchanged, and the next fit is bit-identical."""

import sys
from inspect import CO_GENERATOR

import numpy as np
import pytest

import cprime

MOMENTS = 12
SIZE = {"n_init": 2, "n_threads": 1, "random_state": 0}
MAKERS = {
    "KMeans": lambda: cprime.KMeans(4, search=cprime.search.Graph(3), tol=0, max_iter=4, **SIZE),
    "SoftKMeans": lambda: cprime.SoftKMeans(4, tol=1.0, **SIZE),
    "GaussianMixture": lambda: cprime.GaussianMixture(2, tol=1.0, **SIZE),
    "KMeans1D": lambda: cprime.KMeans1D(3),
    "KMedoids": lambda: cprime.KMedoids(3),
    "FuzzyKMeans": lambda: cprime.FuzzyKMeans(3, tol=1.0, **SIZE),
    "XMeans": lambda: cprime.XMeans(1, 4, n_threads=1, random_state=0),
    "GMeans": lambda: cprime.GMeans(1, 4, n_threads=1, random_state=0),
}
ONLINE = ("KMeans", "GaussianMixture")


def data(kind, seed, D):
    return np.random.default_rng(seed).normal(size=(60 + seed, 1 if kind == "KMeans1D" else D))


def interrupted(call, at):
    """Run `call` and raise KeyboardInterrupt at the `at`-th call of a function of cprime; return the number of such
    calls.

    Functions of other packages are not interrupted, because `logging` would never release its lock. Generators are not
    interrupted either: Python calls them again to close them and ignores what they raise then.
    """
    called = [0]

    def count(frame, event, argument):
        generator = frame.f_code.co_flags & CO_GENERATOR
        if event == "call" and not generator and frame.f_globals.get("__name__", "").startswith("cprime"):
            called[0] += 1
            if called[0] == at:
                raise KeyboardInterrupt

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return called[0]


def assert_same_bits(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if name == "history_":
            for column in set(value.dtype.names) - {"seconds"}:
                np.testing.assert_array_equal(found[name][column], value[column], column)
        else:
            np.testing.assert_equal(found[name], value, name)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_an_interrupted_fit_leaves_all_as_it_was_and_is_repeated_to_the_same_bits(kind, method):
    if method == "partial_fit" and kind not in ONLINE:
        pytest.skip(f"{kind} has no partial_fit")
    old, new = data(kind, 1, 2), data(kind, 2, 3 if method == "fit" else 2)
    estimator, other = MAKERS[kind]().fit(old), MAKERS[kind]().fit(old)
    total = interrupted(lambda: getattr(other, method)(new), 0)
    expected, before = vars(other), dict(vars(estimator))
    for at in np.unique(np.linspace(1, 0.9 * total, MOMENTS).astype(int)):
        with pytest.raises(KeyboardInterrupt):
            interrupted(lambda: getattr(estimator, method)(new), int(at))
        assert vars(estimator).keys() == before.keys()
        assert all(vars(estimator)[name] is value for name, value in before.items())
    assert_same_bits(vars(getattr(estimator, method)(new)), expected)


@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_a_fit_that_is_refused_leaves_all_as_it_was(kind):
    estimator = MAKERS[kind]().fit(data(kind, 1, 2))
    before = dict(vars(estimator))
    for wrong in (np.full((60, 3), np.nan), np.zeros((0, 3)), [["a"]], np.zeros((1, 1))):
        if kind in ("XMeans", "GMeans") and np.shape(wrong) == (1, 1):
            continue  # one point is one cluster
        with pytest.raises(ValueError, match=r"\S"):
            estimator.fit(wrong)
        assert vars(estimator) == before or all(vars(estimator)[name] is value for name, value in before.items())
