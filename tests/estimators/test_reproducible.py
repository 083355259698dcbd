"""Fits are bit-identical for any number of threads of BLAS if the seed is the same, which decides all draws."""

import numpy as np
import pytest
from estimator_data import MAKERS
from threadpoolctl import threadpool_limits

from cprime import KMeans, em
from fits import centers_of, clustered, outcome

NOT_CONVERGED = pytest.mark.filterwarnings("ignore:The fit did not converge")


@NOT_CONVERGED
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_threads_of_blas_change_no_bit(make):
    """Fits are bit-identical for any number of BLAS threads, though BLAS sums long vectors in as many parts."""
    X = clustered(30_011, 2)
    weight = np.random.default_rng(1).random(len(X))
    outcomes = []
    for limit in (1, 2, 3):
        with threadpool_limits(limit):
            fit = make(3, n_threads=1, random_state=5, max_iter=3).fit(X, sample_weight=weight)
            outcomes.append((outcome(fit), fit.score(X, sample_weight=weight), fit.bounds(X, sample_weight=weight)))
    assert outcomes[0] == outcomes[1] == outcomes[2]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
@pytest.mark.parametrize("init", ["k-means++", "random", "afk-mc2"])
def test_seed_decides(make, init):
    X = clustered(300, 3, n_clusters=20)
    name = "init" if isinstance(make(8), KMeans) else "init_params"

    def fitted(random_state):
        return outcome(make(8, random_state=random_state, **{name: init}).fit(X))

    assert fitted(3) == fitted(3) == fitted(np.random.RandomState(3))
    assert fitted(3) != fitted(4)


def test_a_generator_moves_on_from_fit_to_fit():
    X = clustered(300, 3, n_clusters=20)
    km = KMeans(8, random_state=np.random.RandomState(3), init="random")
    assert outcome(km.fit(X)) != outcome(km.fit(X))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_the_best_of_several_starts_is_kept(make, monkeypatch):
    X = clustered(400, 2, n_clusters=12)
    given = {"random_state": 3, ("init" if isinstance(make(12), KMeans) else "init_params"): "random"}
    alone, runs, run = make(12, **given).fit(X), [], em.run
    monkeypatch.setattr(em, "run", lambda *arguments: runs.append(run(*arguments)) or runs[-1])
    best = make(12, n_init=6, **given).fit(X)
    quality = [-fit.error if isinstance(best, KMeans) else fit.bound for fit in runs]
    assert len(quality) == 6
    assert len(set(quality)) > 2
    assert int(np.argmax(quality)) not in (0, 5)
    winner = runs[int(np.argmax(quality))]
    assert np.array_equal(centers_of(best), winner.model.centers)
    assert np.array_equal(best.labels_, best.predict(X))
    assert best.lower_bound_ == winner.bound
    assert best.n_iter_ == len(winner.rows)
    assert np.array_equal(centers_of(alone), runs[0].model.centers)
    assert alone.lower_bound_ == runs[0].bound


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_given_centers_need_one_start_only(make):
    X = clustered(200, 2)
    calls = []
    estimator = make(5, n_init=7)
    estimator.set_params(callbacks=lambda row: calls.append(row["iteration"]))
    estimator.set_params(**{"init" if isinstance(estimator, KMeans) else "means_init": X[:5]}).fit(X)
    assert calls == list(range(1, estimator.n_iter_ + 1))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_data_and_starts_are_left_alone(make):
    X = clustered(200, 3)
    start = X[:5].copy()
    weight = np.random.default_rng(0).random(200)
    copies = X.copy(), start.copy(), weight.copy()
    estimator = make(5)
    estimator.set_params(**{"init" if isinstance(estimator, KMeans) else "means_init": start})
    estimator.fit(X, sample_weight=weight)
    for given, copy in zip((X, start, weight), copies, strict=True):
        assert np.array_equal(given, copy)
    assert not np.shares_memory(centers_of(estimator), start)
