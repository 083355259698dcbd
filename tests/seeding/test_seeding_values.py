"""Initializations as values: the same starts as their names, with options that reach the algorithm."""

import numpy as np
import pytest
from sklearn.base import clone

import cprime
from cprime import GaussianMixture, KMeans, seeding
from cprime.seeding import AFKMC2, Jumps, KMeansParallel, KMeansPlusPlus, Random, TwoLevel
from cprime.seeding.methods import METHODS, name_of

X = np.random.default_rng(0).normal(size=(700, 3)).astype(np.float32)
VALUES = [KMeansPlusPlus(), KMeansParallel(), AFKMC2(), Random(), TwoLevel(), Jumps()]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value.name)
@pytest.mark.parametrize(
    "make", [lambda init: KMeans(20, init=init), lambda init: GaussianMixture(5, init_params=init)]
)
def test_a_value_without_options_starts_as_its_name(value, make):
    if isinstance(make("random"), GaussianMixture) and value.name not in (
        "k-means++",
        "afk-mc2",
        "random",
        "two-level",
    ):
        pytest.skip(f"{value.name} is no name of a mixture's start")
    by_value, by_name = (
        make(init).set_params(max_iter=3, tol=1e9, random_state=1).fit(X) for init in (value, value.name)
    )
    name = "cluster_centers_" if isinstance(by_value, KMeans) else "means_"
    assert np.array_equal(getattr(by_value, name), getattr(by_name, name))


def test_every_name_has_a_value():
    assert {value.name for value in VALUES} == set(METHODS)
    assert [name_of(value) for value in VALUES] == [value.name for value in VALUES]
    assert name_of("random") == "random"
    assert name_of(X) is name_of(KMeans()) is None


def test_options_reach_the_algorithm():
    plain = seeding.kmeans_plusplus(X, 20, n_local_trials=1, random_state=3)[0]
    assert np.array_equal(seeding.seed(X, 20, KMeansPlusPlus(greedy=False), random_state=3), plain)
    chains = seeding.afk_mc2(X, 20, chain_length=200, random_state=3)[0]
    assert np.array_equal(seeding.seed(X, 20, AFKMC2(chain_length=200), random_state=3), chains)
    for one, other in [
        (KMeansPlusPlus(n_local_trials=2), KMeansPlusPlus(n_local_trials=9)),
        (KMeansParallel(n_rounds=1), KMeansParallel(n_rounds=9)),
        (KMeansParallel(oversampling=0.5), KMeansParallel(oversampling=4.0)),
        (TwoLevel(n_cells=2), TwoLevel(n_cells=9)),
    ]:
        starts = [seeding.seed(X, 20, value, random_state=3) for value in (one, other)]
        assert not np.array_equal(*starts)
        assert all(len(np.unique(centers, axis=0)) == 20 for centers in starts)


def test_values_are_parameters_as_scikit_learn_knows_them(tmp_path):
    km = KMeans(5, init=AFKMC2(chain_length=3), random_state=0)
    assert km.get_params()["init__chain_length"] == 3
    assert clone(km).init == AFKMC2(chain_length=3)
    assert km.set_params(init__chain_length=7).init == AFKMC2(chain_length=7)
    km.fit(X).save(tmp_path / "model")
    assert cprime.load(tmp_path / "model").init == AFKMC2(chain_length=7)
    assert "AFKMC2(chain_length=7)" in repr(km)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: AFKMC2(chain_length=0), ValueError, r"chain_length.*0.*>= 1"),
        (lambda: AFKMC2(chain_length=2.5), TypeError, "chain_length"),
        (lambda: KMeansPlusPlus(greedy="yes"), TypeError, "greedy must be a bool, got 'yes'"),
        (
            lambda: KMeansPlusPlus(greedy=False, n_local_trials=4),
            ValueError,
            "n_local_trials must be 1 or None .* got 4",
        ),
        (lambda: KMeansPlusPlus(n_local_trials=0), ValueError, "n_local_trials"),
        (lambda: KMeansParallel(n_rounds=0), ValueError, "n_rounds"),
        (lambda: KMeansParallel(oversampling=0), ValueError, "oversampling must be a positive number, got 0"),
        (lambda: TwoLevel(n_cells=0), ValueError, "n_cells"),
        (lambda: KMeans(3, init="k-means+").fit(X), ValueError, r"init should be .*got 'k-means\+' instead"),
        (lambda: KMeans(3, init="random").set_params(init__chain_length=3), ValueError, "init"),
        (lambda: AFKMC2().with_params(length=3), ValueError, "Invalid parameter 'length'.*chain_length"),
    ],
)
def test_what_is_wrong_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_value_that_needs_the_rows_in_memory_says_so(tmp_path):
    np.save(tmp_path / "X.npy", X)
    source = cprime.open_data(tmp_path / "X.npy", chunk_rows=100)
    with pytest.raises(ValueError, match=r"init='afk-mc2' needs the data as one chunk in memory"):
        KMeans(5, init=AFKMC2()).fit(source)
    assert KMeans(5, init=TwoLevel(n_cells=2), random_state=0).fit(source).cluster_centers_.shape == (5, 3)


def test_an_interrupted_fit_goes_on_with_its_value(tmp_path):
    km = KMeans(5, init=AFKMC2(chain_length=3), random_state=0, checkpoint=str(tmp_path / "c"))
    assert np.array_equal(km.fit(X).cluster_centers_, clone(km).set_params(checkpoint=None).fit(X).cluster_centers_)
