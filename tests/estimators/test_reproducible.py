"""Fits are bit-identical for any number of threads of BLAS if the seed is the same, which decides all draws."""

import numpy as np
import pytest
from estimator_data import MAKERS
from threadpoolctl import threadpool_limits

from cprime import KMeans
from fits import clustered, outcome

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
def test_the_seed_determines_the_fit(make, init):
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
def test_given_centers_need_one_start_only(make):
    X = clustered(200, 2)
    calls = []
    estimator = make(5, n_init=7)
    estimator.set_params(callbacks=lambda row: calls.append(row["iteration"]))
    estimator.set_params(**{"init" if isinstance(estimator, KMeans) else "means_init": X[:5]}).fit(X)
    assert calls == list(range(1, estimator.n_iter_ + 1))
