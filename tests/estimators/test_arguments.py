"""Errors of arguments name the argument, the value and what was expected, and nothing is fitted."""

import re

import numpy as np
import pytest
from estimator_data import MAKERS, mixture
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture as SklearnMixture

import cprime
from cprime import GaussianMixture, KMeans, Memory
from fits import clustered

X = clustered(30, 3)

# argument -> (value, error, words that the message must contain)
COMMON = [
    ("n_init", 0, ValueError, ["n_init", "0", ">= 1"]),
    ("n_init", 2.0, TypeError, ["n_init", "int", "float"]),
    ("max_iter", 0, ValueError, ["max_iter", "0", ">= 1"]),
    ("max_iter", "many", TypeError, ["max_iter", "int", "str"]),
    ("max_iter", True, TypeError, ["max_iter", "int", "bool"]),
    ("tol", -1e-3, ValueError, ["tol", "-0.001", ">= 0"]),
    ("tol", None, TypeError, ["tol", "float", "None"]),
    ("tol", np.nan, ValueError, ["tol", "nan"]),
    ("tol", np.inf, ValueError, ["tol", "finite", "inf"]),
    ("search", "fast", ValueError, ["search", "'fast'", "'full'", "'auto'"]),
    ("n_threads", 0, ValueError, ["n_threads", "None", ">= 1", "0"]),
    ("n_threads", 2.0, ValueError, ["n_threads", "None", ">= 1", "2.0"]),
    ("n_threads", True, ValueError, ["n_threads", "None", ">= 1", "True"]),
    ("random_state", "seed", ValueError, ["seed"]),
    ("max_memory", Memory(spill="nowhere"), ValueError, ["spill", "'nowhere'", "folder", "No such file"]),
    ("max_memory", Memory(spill=__file__), ValueError, ["spill", __file__, "folder"]),
]
OF_K_MEANS = [
    ("n_clusters", 0, ValueError, ["n_clusters", "0", ">= 1"]),
    ("n_clusters", 3.0, TypeError, ["n_clusters", "int", "float"]),
    ("n_clusters", 31, ValueError, ["n_samples=30", "n_clusters=31"]),
    ("epsilon", -0.1, ValueError, ["epsilon", "-0.1", ">= 0"]),
    ("epsilon", "lazy", TypeError, ["epsilon", "float", "str"]),
    ("init", "best", ValueError, ["init", "'best'", "'k-means++'", "'random'", "'afk-mc2'"]),
    ("init", 7, TypeError, ["init", "7", "int"]),
    ("init", X[:3], ValueError, ["(3, 3)", "4"]),
    ("init", X[:4, :2], ValueError, ["(4, 2)", "3"]),
    ("init", np.full((4, 3), np.nan), ValueError, ["init", "NaN"]),
    ("init", KMeans(4), NotFittedError, ["init", "cluster_centers_"]),
    ("size_max", "abc", ValueError, ["size_max", "'abc'", "1.2x"]),
    ("size_min", 30, ValueError, ["size_min=30", "4 clusters", "30"]),
    ("fixed", X[:2, :2], ValueError, ["fixed", "(m, 3)", "(2, 2)"]),
    ("metric", "manhattan", ValueError, ["metric", "'manhattan'", "'cosine'"]),
]
OF_MIXTURE = [
    ("n_components", 0, ValueError, ["n_components", "0", ">= 1"]),
    ("n_components", 4.5, TypeError, ["n_components", "int", "float"]),
    ("n_components", 31, ValueError, ["n_samples=30", "n_components=31"]),
    ("covariance_type", "round", ValueError, ["covariance_type", "'round'", "'tied_spherical'"]),
    ("weights", "some", ValueError, ["weights", "'some'", "'equal'"]),
    ("assignment", "firm", ValueError, ["assignment", "'firm'", "'soft'"]),
    ("n_active", 0, ValueError, ["n_active", "0", ">= 1"]),
    ("n_active", 5, ValueError, ["n_active", "5", "n_components=4"]),
    ("n_active", 1.5, TypeError, ["n_active", "int", "float"]),
    ("n_active", "all", ValueError, ["n_active", "'all'", "'auto'"]),
    ("reg_covar", -1.0, ValueError, ["reg_covar", "-1.0", ">= 0"]),
    ("weights_init", [0.1, 0.2, 0.3, 0.4], ValueError, ["weights_init", "equal", "0.4"]),
    ("weights_init", [0.5, 0.5], ValueError, ["weights_init", "n_components=4", "0.5"]),
    ("means_init", X[:3], ValueError, ["(3, 3)", "4"]),
    ("means_init", X[:4, :1], ValueError, ["(4, 1)", "3"]),
    ("precisions_init", 0.0, ValueError, ["precisions_init", "0.0"]),
    ("precisions_init", [1.0] * 4, ValueError, ["precisions_init", "(4,)"]),
    ("init_params", "best", ValueError, ["'best'", "'k-means++'", "'random'", "'afk-mc2'"]),
    ("init_params", np.full(30, 4), ValueError, ["init_params", "0 to n_components - 1 = 3"]),
    ("fixed", (X[:2], np.ones((2, 3))), ValueError, ["fixed", "covariance_type", "'tied_spherical'"]),
]


def named(cases):
    return [pytest.param(*case, id=f"{case[0]}={str(case[1])[:20]}") for case in cases]


def assert_refused(estimator, argument, value, error, words):
    with pytest.raises(error) as caught:
        estimator.set_params(**{argument: value}).fit(X)
    missing = [word for word in words if word not in str(caught.value)]
    assert not missing, str(caught.value)
    assert not hasattr(estimator, "labels_")
    with pytest.raises(error, match=f"^{re.escape(str(caught.value))}$"):
        cprime.plan(estimator, X)


@pytest.mark.parametrize(("argument", "value", "error", "words"), named(COMMON + OF_K_MEANS))
def test_k_means_refuses(argument, value, error, words):
    assert_refused(KMeans(4), argument, value, error, words)


@pytest.mark.parametrize(("argument", "value", "error", "words"), named(COMMON + OF_MIXTURE))
def test_mixture_refuses(argument, value, error, words):
    assert_refused(mixture(), argument, value, error, words)


def test_the_defaults_of_a_mixture_are_those_of_scikit_learn():
    ours, theirs = GaussianMixture().get_params(), SklearnMixture().get_params()
    differ = {name: value for name, value in theirs.items() if name in ours and ours[name] != value}
    assert differ == {"init_params": "kmeans"}
    assert set(theirs) - set(ours) == {"verbose_interval"}
    assert ours["init_params"] == "auto"
    assert ours["weights"] == "free"
    assert GaussianMixture(2, random_state=0).fit(X).covariances_.shape == (2, 3, 3)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.ones(29), ["sample_weight", "(29,)", "(30,)"]),
        (np.ones((30, 2)), ["ample", "1D"]),
        (-np.ones(30), ["Negative", "sample_weight"]),
        (np.zeros(30), ["ample", "weight", "zero"]),
        (np.full(30, np.nan), ["sample_weight", "NaN"]),
    ],
    ids=["short", "matrix", "negative", "zeros", "nan"],
)
def test_weights_are_checked_in_every_method(make, weight, words):
    fitted = make(3, random_state=0).fit(X)
    for call in (make(3).fit, fitted.score, fitted.bounds):
        with pytest.raises(ValueError) as caught:  # noqa: PT011 the words are checked below
            call(X, sample_weight=weight)
        assert [word for word in words if word not in str(caught.value)] == [], str(caught.value)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_methods_need_a_fit_and_its_number_of_features(make):
    methods = ["predict", "score", "bounds", "transform", "predict_proba", "score_samples", "bic", "aic"]
    estimator = make(3, random_state=0)
    present = [name for name in methods if hasattr(estimator, name)]
    assert len(present) >= 4
    for name in present:
        with pytest.raises(NotFittedError):
            getattr(estimator, name)(X)
    estimator.fit(X)
    for name in present:
        with pytest.raises(ValueError, match=re.escape("X has 2 features") + ".*expecting 3"):
            getattr(estimator, name)(X[:, :2])


def test_sample_needs_a_fit_and_a_count():
    gm = mixture()
    with pytest.raises(NotFittedError):
        gm.sample(3)
    gm.fit(X)
    with pytest.raises(ValueError, match="n_samples == 0"):
        gm.sample(0)
    with pytest.raises(TypeError, match="n_samples"):
        gm.sample(2.5)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_arguments_are_named_and_read_when_they_are_needed(make):
    with pytest.raises(TypeError):
        make(3, 5)
    with pytest.raises(ValueError, match="n_threads"):
        make(3).fit(X).set_params(n_threads=0).predict(X)
