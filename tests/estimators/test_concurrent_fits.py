"""Concurrent fits and predictions of several Python threads, on shared and separate data, equal those of one thread.

Data are small, so that the tests end in acceptable time under a sanitizer that checks every memory access.
"""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from estimator_data import DTYPES

from cprime import GaussianMixture, KMeans
from cprime.search import Graph, Papers
from fits import clustered, outcome

CALLERS = 4
C = 24

# fits that together call every kernel
FITS = {
    "full": lambda **options: KMeans(C, search="full", **options),
    "bounded": lambda **options: KMeans(C, search="bounded", **options),
    "exact lists": lambda **options: KMeans(C, search=Papers("exact", n_neighbors=5), **options),
    "estimated lists": lambda **options: KMeans(C, search=Papers("estimated", n_neighbors=5), **options),
    "graph": lambda **options: KMeans(C, search=Graph(5), **options),
    "mixture, graph": lambda **options: _mixture("tied_spherical", n_active=3, search="graph", **options),
    "mixture, estimated": lambda **options: _mixture("diag", n_active=3, search="estimated", **options),
    "mixture, exact": lambda **options: _mixture("tied_spherical", n_active=None, **options),
    "full covariances": lambda **options: _mixture("full", n_active=None, **options),
    "full covariances, graph": lambda **options: _mixture("full", n_active=3, search="graph", **options),
}

pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")


def _mixture(covariance_type, **options):
    return GaussianMixture(C, covariance_type=covariance_type, **options)


def at_once(work, jobs):
    """Return the result of `work` for each job, run by several threads that start together."""
    together = Barrier(CALLERS)

    def share(caller):
        together.wait(timeout=60)
        return [work(job) for job in jobs[caller::CALLERS]]

    with ThreadPoolExecutor(CALLERS) as pool:
        shares = list(pool.map(share, range(CALLERS)))
    return [shares[i % CALLERS][i // CALLERS] for i in range(len(jobs))]


@pytest.mark.filterwarnings("ignore::cprime.SearchQualityWarning")
@pytest.mark.parametrize("name", FITS)
def test_fits_at_once_find_what_each_finds_alone(name):
    """Two of the callers use the same data, and two use their own."""
    data = [clustered(900, 9, DTYPES[caller % 2], seed=caller, n_clusters=C) for caller in range(CALLERS)]
    data[2] = data[0]
    jobs = [(caller, n_threads) for n_threads in (2, 3) for caller in range(CALLERS)]

    def fit(job):
        caller, n_threads = job
        return outcome(FITS[name](n_threads=n_threads, random_state=caller, max_iter=4).fit(data[caller]))

    alone = [fit((caller, 1)) for caller in range(CALLERS)]
    assert at_once(fit, jobs) == alone * 2
    assert len({found["labels_"] for found in alone}) == CALLERS


@pytest.mark.parametrize("name", FITS)
def test_predictions_at_once_equal_those_of_one_thread(name):
    X = clustered(900, 9, np.float32, n_clusters=C)
    fitted = FITS[name](n_threads=2, random_state=0, max_iter=2).fit(X)

    def predict(_):
        answers = [fitted.predict(X), fitted.score(X)]
        if isinstance(fitted, GaussianMixture):
            answers.append(fitted.predict_proba(X))
        return [np.asarray(answer).tobytes() for answer in answers]

    alone = predict(None)
    assert at_once(predict, range(2 * CALLERS)) == [alone] * 2 * CALLERS
