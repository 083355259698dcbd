"""`fit_many` returns the bits of a loop over `KMeans`, whichever path a problem takes."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import cprime
from cprime import KMeans
from cprime.estimators.many import _Fits
from cprime.search import Full
from cprime.seeding import KMeansPlusPlus


def data(B=4, n=150, D=6, seed=0):
    return np.random.default_rng(seed).standard_normal((B, n, D)) * 10 + 100


def loop(X, C, init="k-means++", sample_weight=None, random_state=0, max_iter=25, **params):
    """Return the fitted `KMeans` of each problem."""
    fits = []
    for b, one in enumerate(X):
        start = init[b] if np.ndim(init) == 3 else init
        weights = None if sample_weight is None else sample_weight[b]
        number = C if np.ndim(C) == 0 else int(C[b])
        fit = KMeans(number, init=start, max_iter=max_iter, random_state=random_state + b, **params)
        fits.append(fit.fit(one, sample_weight=weights))
    return fits


def assert_same_bits(many, fits):
    for b, fit in enumerate(fits):
        assert many.centers[b].dtype == fit.cluster_centers_.dtype
        assert many.centers[b].tobytes() == fit.cluster_centers_.tobytes()
        assert many.labels[b].tobytes() == fit.labels_.tobytes()
        assert (many.inertia[b], many.n_iter[b]) == (fit.inertia_, fit.n_iter_)


@pytest.fixture
def none_solved_alone(monkeypatch):
    """Let fits by `KMeans` fail, so that a test fails unless all problems take the fast path."""
    monkeypatch.setattr("cprime.estimators.many._Fits._solved", None)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, np.float16, np.int64])
@pytest.mark.parametrize("C", [1, 2, 40])
@pytest.mark.parametrize("weights", ["none", "integers", "real"])
def test_results_are_the_bits_of_a_loop(weights, C, dtype, none_solved_alone):
    X, rng = data().astype(dtype), np.random.default_rng(1)
    w = {"none": None, "integers": rng.integers(0, 3, (4, 150)), "real": rng.random((4, 150))}[weights]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        many = cprime.fit_many(X, C, sample_weight=w, random_state=7)
    assert many.centers.shape == (4, C, 6)
    assert many.labels.shape == (4, 150)
    assert_same_bits(many, loop(X, C, sample_weight=w, random_state=7))


@pytest.mark.parametrize("seed", [0, 123, 2**31])
@pytest.mark.parametrize("params", [{"max_iter": 1}, {"max_iter": 4, "tol": 0}, {"tol": 0.1}])
def test_other_seeds_and_tolerances_equal_a_loop(seed, params, none_solved_alone):
    X = data()
    assert_same_bits(cprime.fit_many(X, 9, random_state=seed, **params), loop(X, 9, random_state=seed, **params))


@pytest.mark.parametrize(
    "init",
    [KMeansPlusPlus(greedy=False), KMeansPlusPlus(n_local_trials=9), data()[:, 3:8], data()[2, :5].tolist()],
    ids=["not greedy", "more trials", "centers of each", "centers of all"],
)
def test_initializations_on_the_fast_path_equal_a_loop(init, none_solved_alone):
    X = data()
    assert_same_bits(cprime.fit_many(X, 5, init=init, random_state=0), loop(X, 5, init))


@pytest.mark.parametrize("init", ["random", "k-means||", "auto", lambda X, n, random_state: X[:n], KMeans(5)])
def test_other_initializations_equal_a_loop(init):
    X = data()
    init = init.fit(X[0]) if isinstance(init, KMeans) else init
    assert_same_bits(cprime.fit_many(X, 5, init=init, random_state=0), loop(X, 5, init))


@pytest.mark.parametrize("C", [5, 9, 20])
def test_repeated_points_and_empty_clusters_equal_a_loop(C):
    X = np.random.default_rng(0).integers(0, 3, (20, 40, 2)).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert_same_bits(cprime.fit_many(X, C, random_state=0), loop(X, C))
    if C > 9:
        with pytest.warns(ConvergenceWarning, match="Number of distinct clusters"):
            cprime.fit_many(X[:1], C, random_state=0, n_threads=1)


def test_as_many_clusters_as_rows_are_allowed():
    X = data(3, 12, 2)
    many = cprime.fit_many(X, 12, random_state=0)
    assert_same_bits(many, loop(X, 12))
    np.testing.assert_allclose(many.inertia, 0, atol=1e-9)


def test_large_problems_and_several_sizes_equal_a_loop(monkeypatch):
    monkeypatch.setattr("cprime.estimators.many._ROWS", 300)
    solved, called = _Fits._solved, []
    monkeypatch.setattr(_Fits, "_solved", lambda self, b: called.append(b) or solved(self, b))
    X = [data(1, n, 3)[0] for n in (5, 17, 301, 300, 80)]
    many = cprime.fit_many(X, 4, random_state=3, n_threads=1)
    assert called == [2]
    assert isinstance(many.labels, list)
    assert [len(labels) for labels in many.labels] == [5, 17, 301, 300, 80]
    assert_same_bits(many, loop(X, 4, random_state=3))


@pytest.mark.parametrize("kind", ["array", "list"])
def test_numbers_of_clusters_may_differ(kind, none_solved_alone):
    X, w, C = data(6), np.random.default_rng(1).random((6, 150)), [7, 2, 5, 2, 7, 1]
    given = (list(X), list(w)) if kind == "list" else (X, w)
    many = cprime.fit_many(given[0], C, sample_weight=given[1], random_state=3)
    assert [centers.shape for centers in many.centers] == [(c, 6) for c in C]
    assert isinstance(many.labels, list) == (kind == "list")
    assert_same_bits(many, loop(X, C, sample_weight=w, random_state=3))


@pytest.mark.parametrize("C", [3, [3, 1, 4]])
@pytest.mark.parametrize("ids", [np.array([30, 4, 17]), np.array(["c", "a", "b"]), pd.Categorical(["c", "a", "b"])])
def test_groups_are_problems_in_the_order_of_their_ids(ids, C, none_solved_alone):
    X, rng = data(1, 300)[0], np.random.default_rng(2)
    codes, w = rng.integers(3, size=300), rng.random(300)
    groups = ids[codes]
    found = [np.flatnonzero(np.asarray(groups) == one) for one in np.unique(np.asarray(ids))]
    many = cprime.fit_many(X, C, groups=groups, sample_weight=w, random_state=5)
    expected = cprime.fit_many([X[r] for r in found], C, sample_weight=[w[r] for r in found], random_state=5)
    for one, other, rows, labels in zip(many.centers, expected.centers, found, expected.labels, strict=True):
        assert one.tobytes() == other.tobytes()
        np.testing.assert_array_equal(many.labels[rows], labels)
    np.testing.assert_array_equal(many.inertia, expected.inertia)
    np.testing.assert_array_equal(many.n_iter, expected.n_iter)


@pytest.mark.parametrize(
    "estimator", [KMeans(n_init=2), cprime.GaussianMixture(covariance_type="diag"), cprime.StudentTMixture()]
)
def test_an_estimator_is_fitted_to_each_problem(estimator):
    X, groups = data(1, 300)[0], np.random.default_rng(2).integers(3, size=300)
    w = np.random.default_rng(3).random(300)
    fits = cprime.fit_many(X, [2, 1, 3], groups=groups, estimator=estimator, sample_weight=w, random_state=5)
    for b, (fit, C) in enumerate(zip(fits, (2, 1, 3), strict=True)):
        size = {"n_clusters": C} if isinstance(fit, KMeans) else {"n_components": C}
        expected = clone(estimator).set_params(**size, random_state=5 + b)
        expected.fit(X[groups == b], sample_weight=w[groups == b])
        assert fit.score(X) == expected.score(X)
        np.testing.assert_array_equal(fit.labels_, expected.labels_)


def test_a_problem_searched_partially_equals_a_loop():
    X = data(2, 8192, 5).astype(np.float32)
    many, fits = cprime.fit_many(X, 128, random_state=0, max_iter=2), loop(X, 128, max_iter=2)
    assert_same_bits(many, fits)
    full = KMeans(128, init="k-means++", max_iter=2, random_state=0, search=Full()).fit(X[0])
    assert many.inertia[0] != full.inertia_  # the test would not notice the fast path otherwise


@pytest.mark.parametrize("C", [3, 30])
def test_threads_and_pieces_change_no_bit(C, monkeypatch):
    X = data(20, 60, 3)
    one = cprime.fit_many(X, C, random_state=0, n_threads=1)
    for pieces, threads in ((3, 3), (64, 2)):
        monkeypatch.setattr("cprime.estimators.many._PROBLEMS", pieces)
        other = cprime.fit_many(X, C, random_state=0, n_threads=threads)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(("n", "C"), [(10, 2), (80, 6)])
def test_a_weight_of_two_is_a_repetition(n, C):
    """Points on multiples of 1/16 make sums exact, so results are equal, for the same starting centers too."""
    X = np.random.default_rng(0).integers(-200, 200, (3, n, 2)) / 16
    w = np.random.default_rng(1).integers(1, 4, (3, n))
    repeated = [np.repeat(one, times, axis=0) for one, times in zip(X, w, strict=True)]
    weighted = cprime.fit_many(X, C, sample_weight=w, random_state=0)
    many = cprime.fit_many(repeated, C, random_state=0)
    np.testing.assert_array_equal(weighted.centers, many.centers)
    for labels, times, others in zip(weighted.labels, w, many.labels, strict=True):
        np.testing.assert_array_equal(np.repeat(labels, times), others)
    np.testing.assert_allclose(weighted.inertia, many.inertia, rtol=1e-12)


def test_a_generator_gives_the_first_seed():
    X = data(3, 40, 2)
    first = np.random.RandomState(5).randint(2**31)
    for state in (np.random.RandomState(5), None):
        if state is None:
            np.random.seed(5)  # noqa: NPY002 None is this generator
        many = cprime.fit_many(X, 3, random_state=state)
        assert_same_bits(many, loop(X, 3, random_state=int(first)))


def test_lists_are_computed_in_one_type():
    X = [data(1, 30, 2)[0].astype(np.float32), data(1, 40, 2)[0]]
    assert cprime.fit_many(X, 3, random_state=0).centers.dtype == np.float64
    assert cprime.fit_many(X[:1] * 2, 3, random_state=0).centers.dtype == np.float32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": data()[0]}, r"X must have shape \(B, N, D\)"),
        ({"X": np.zeros((0, 4, 2))}, "no axis of length 0"),
        ({"X": []}, "at least one problem"),
        ({"X": [np.zeros((4, 2)), np.zeros((4, 3))]}, r"X\[1\] must have shape"),
        ({"X": [np.zeros((9, 2)), np.zeros((2, 2))]}, r"X\[1\] has n_samples=2, which should be >= n_clusters=3"),
        ({"X": np.where(np.arange(150)[:, np.newaxis] == 3, np.nan, data())}, r"X\[0\] must be finite, got nan"),
        ({"X": data() * 1e200}, r"X\[0\] has numbers up to"),
        ({"X": {"a": 1}}, "X must be an array, a list or a table of numbers, got dict"),
        ({"X": "data.npy"}, "X must hold numbers, got .data.npy"),
        ({"X": data().astype(complex)}, "real numbers"),
        ({"n_clusters": 0}, "n_clusters"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1.0}, "tol"),
        ({"n_threads": 0}, "n_threads"),
        ({"random_state": -1}, "random_state must be between 0 and 4294967292 for 4 problems, got -1"),
        ({"random_state": 2**32 - 3}, "random_state must be between"),
        ({"random_state": "seed"}, "seed"),
        ({"sample_weight": np.ones((4, 149))}, r"sample_weight must have a weight for each row of X, got \(149,\)"),
        ({"sample_weight": np.ones((3, 150))}, "got 3 for 4 problems"),
        ({"sample_weight": -np.ones((4, 150))}, r"sample_weight\[0\] must be finite and >= 0, got -1.0"),
        ({"sample_weight": np.repeat([[1.0], [0.0]], 2, axis=0) * np.ones(150)}, r"sample_weight\[2\] must have"),
        ({"init": "middle"}, "init should be"),
        ({"init": np.zeros((3, 5))}, r"init must have shape \(4, 3, 6\) or \(3, 6\), got \(3, 5\)"),
        ({"init": np.full((3, 6), np.inf)}, "init must be finite"),
        ({"init": 7}, "init should be"),
        ({"init": np.zeros((3, 6)), "n_clusters": [1, 2, 3, 3]}, "init must be a method if"),
        ({"n_clusters": [3, 3]}, r"n_clusters must be one number, or one for each of 4, got shape \(2,\)"),
        ({"n_clusters": [3, 3, 0, 3]}, r"n_clusters\[2\] == 0, must be >= 1"),
        ({"n_clusters": [3, 151, 3, 3]}, r"X\[1\] has n_samples=150, which should be >= n_clusters=151"),
        ({"groups": np.zeros(150)}, r"X must have shape \(N, D\) with groups"),
        ({"X": data()[0], "groups": np.zeros(149)}, r"groups must have shape \(150,\), .* got \(149,\)"),
        ({"X": data()[0], "groups": [None] * 150}, "groups must have no missing ids"),
        ({"X": data()[0], "groups": ["a"] * 148 + ["b"] * 2}, r"X of group 'b' has n_samples=2"),
        ({"X": data()[0], "groups": ["a"] * 150, "sample_weight": np.zeros(150)}, "sample_weight of group 'a' must"),
        (
            {"X": np.where(np.arange(150)[:, np.newaxis] == 3, np.nan, data()[0]), "groups": [7] * 150},
            "X of group 7 .*3",
        ),
        ({"estimator": cprime.GaussianMixture(), "max_iter": 3}, "init, max_iter and tol must be left out"),
        ({"estimator": cprime.XMeans()}, "estimator must be a KMeans or a mixture of this library, got XMeans"),
        ({"estimator": KMeans(checkpoint="folder")}, "estimator must have checkpoint=None"),
        ({"estimator": KMeans(), "X": [data()[0], data()[1] * np.nan]}, r"X\[1\]: .*NaN"),
    ],
)
def test_bad_arguments_are_named(change, message):
    with pytest.raises((TypeError, ValueError), match=message):
        cprime.fit_many(**{"X": data(), "n_clusters": 3, **change})
