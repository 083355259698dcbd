"""Estimators are fitted in other threads and processes, and in pipelines and searches of scikit-learn."""

import numpy as np
import pytest
from estimator_data import MAKERS, mixture
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cprime import KMeans
from fits import clustered, outcome

every_estimator = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


def fit_and_tell(estimator, X):
    return outcome(estimator.fit(X))


@every_estimator
def test_fits_in_threads_of_joblib_equal_those_alone(make):
    X = clustered(150, 3)
    estimators = [make(5, random_state=seed) for seed in range(4)]
    found = Parallel(n_jobs=2, prefer="threads")(delayed(fit_and_tell)(clone(e), X) for e in estimators)
    assert found == [fit_and_tell(estimator, X) for estimator in estimators]


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.long)])
def test_fits_in_processes_equal_an_earlier_fit_here(method):
    """A forked process lacks the threads of its parent's pool, so a fit there must not wait for them."""
    import multiprocessing

    X = clustered(20_000, 8)
    here = fit_and_tell(KMeans(5, random_state=0, n_threads=2), X)
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system does not {method} processes")
    with multiprocessing.get_context(method).Pool(1) as pool:
        there = pool.apply_async(fit_and_tell, (KMeans(5, random_state=0, n_threads=2), X)).get(timeout=60)
    assert there == here


def test_estimators_work_in_a_pipeline_and_a_search():
    X = clustered(150, 3) * [1.0, 100.0, 0.01]
    pipeline = make_pipeline(StandardScaler(), KMeans(4, random_state=0))
    labels = pipeline.fit_predict(X)
    assert np.array_equal(labels, KMeans(4, random_state=0).fit_predict(StandardScaler().fit_transform(X)))
    search = GridSearchCV(mixture(2, random_state=0), {"n_components": [1, 6], "n_active": [1, None]}, cv=3)
    search.fit(clustered(300, 2, spread=6.0))
    assert search.best_params_["n_components"] == 6
