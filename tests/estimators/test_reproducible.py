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
def test_given_centers_need_one_start_only(make):
    X = clustered(200, 2)
    calls = []
    estimator = make(5, n_init=7)
    estimator.set_params(callbacks=lambda row: calls.append(row["iteration"]))
    estimator.set_params(**{"init" if isinstance(estimator, KMeans) else "means_init": X[:5]}).fit(X)
    assert calls == list(range(1, estimator.n_iter_ + 1))
