"""With n_threads=1 no method of an estimator determines the number of processors."""

import numpy as np
import pytest
from estimator_data import clustered

from cprime import GaussianMixture, KMeans
from cprime._utils import threads as _threads

pytestmark = [
    pytest.mark.filterwarnings("ignore:The fit did not converge"),
    pytest.mark.filterwarnings("ignore:Number of distinct clusters"),
]

C = 20
X = clustered(600, 3, n_clusters=20)
WEIGHTS = np.random.default_rng(1).exponential(size=600)
FAMILIES = ("tied_spherical", "spherical", "diag", "tied", "full")
PARTIAL = ("graph", "exact", "estimated")


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Make every call fail that leaves the number of threads to be determined."""

    def asked(*_):
        raise AssertionError("n_threads=1 has not come here")

    monkeypatch.setattr(_threads, "allowed_threads", asked)
    with pytest.raises(AssertionError):
        _threads.resolve_threads(None)


def kmeans(**changes):
    return KMeans(C, **({"n_threads": 1, "random_state": 0, "max_iter": 12} | changes))


def mixture(**changes):
    given = {"n_threads": 1, "random_state": 0, "max_iter": 4, "n_active": 3, "init_params": "random"} | changes
    return GaussianMixture(C, **given)


def use(estimator):
    """Call all methods of a fitted estimator that take data."""
    estimator.predict(X)
    estimator.score(X, sample_weight=WEIGHTS)
    estimator.bounds(X, sample_weight=WEIGHTS)
    if isinstance(estimator, KMeans):
        estimator.transform(X)
        estimator.predict(X, approximate=True)
    else:
        estimator.predict_proba(X)
        estimator.predict_proba(X, sparse=True)
        estimator.score_samples(X)
        estimator.aic(X)
        estimator.bic(X)
        estimator.sample(10)


@pytest.mark.parametrize("search", ["auto", "full", "bounded", *PARTIAL])
def test_k_means(search):
    use(kmeans(search=search).fit(X, sample_weight=WEIGHTS))


@pytest.mark.parametrize("init", ["k-means++", "random", "afk-mc2", "two-level"])
@pytest.mark.parametrize("search", ["full", "graph"])
def test_starts_of_k_means(init, search):
    kmeans(search=search, init=init, n_init=2).fit(X)


@pytest.mark.parametrize("given", [{"metric": "cosine"}, {"epsilon": 0.1}], ids=str)
@pytest.mark.parametrize("search", ["full", "graph"])
def test_other_k_means(given, search):
    use(kmeans(search=search, **given).fit(X))


def test_clusters_that_begin_anew():
    start = np.concatenate([X[: C - 5], np.full((5, 3), 1e3)])
    for search in ("full", "bounded", "graph"):
        assert kmeans(search=search, init=start).fit(X).n_relocated_ > 0


@pytest.mark.parametrize("weights", ["free", "equal"])
@pytest.mark.parametrize("search", ["full", *PARTIAL])
@pytest.mark.parametrize("family", FAMILIES)
def test_mixtures(family, search, weights):
    use(mixture(covariance_type=family, search=search, weights=weights).fit(X, sample_weight=WEIGHTS))


@pytest.mark.parametrize("weights", ["free", "equal"])
@pytest.mark.parametrize("family", FAMILIES)
def test_mixtures_by_bounds_and_by_exact_em(family, weights):
    use(mixture(covariance_type=family, search="bounded", weights=weights, n_active=1).fit(X))
    use(mixture(covariance_type=family, search="full", weights=weights, n_active=None).fit(X))


@pytest.mark.parametrize("assignment", ["hard", "posterior"])
@pytest.mark.parametrize("search", ["full", "graph"])
@pytest.mark.parametrize("family", FAMILIES)
def test_mixtures_of_other_assignments(family, search, assignment):
    mixture(covariance_type=family, search=search, assignment=assignment).fit(X)
    mixture(covariance_type=family, assignment=assignment, n_active=None).fit(X)


@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random", "afk-mc2", "two-level"])
@pytest.mark.parametrize("family", ["tied_spherical", "diag"])
def test_starts_of_mixtures(family, init):
    for search in ("full", "graph"):
        mixture(covariance_type=family, search=search, init_params=init).fit(X)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_batches_of_k_means(metric):
    km = kmeans(metric=metric)
    for batch in np.split(X, 3):
        km.partial_fit(batch)
    use(km)


@pytest.mark.parametrize("assignment", ["soft", "hard", "posterior"])
@pytest.mark.parametrize("weights", ["free", "equal"])
@pytest.mark.parametrize("family", FAMILIES)
def test_batches_of_mixtures(family, weights, assignment):
    gm = mixture(covariance_type=family, weights=weights, assignment=assignment)
    for batch in np.split(X, 3):
        gm.partial_fit(batch)
    use(gm)
