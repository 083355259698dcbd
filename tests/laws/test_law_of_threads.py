"""Law: results are bit-identical for any number of threads, and a fit with one thread does not look for more."""

import numpy as np
import pytest
from registry import POOR_FITS_PASS, answers, check_same_bits, configurations, estimator_of, executed, fitted, points_of

from cprime import GaussianMixture, KMeans
from cprime._utils import threads

pytestmark = POOR_FITS_PASS


@pytest.fixture
def one_thread_only(monkeypatch):
    """Make every call fail that determines the number of processors, because it was given no number of threads."""

    def asked(*_):
        raise AssertionError("n_threads=1 has not come here")

    monkeypatch.setattr(threads, "allowed_threads", asked)
    with pytest.raises(AssertionError):
        threads.resolve_threads(None)


@pytest.mark.parametrize("each", configurations())
def test_threads_change_no_bit(each):
    X, weights = points_of(each)
    one, three = (estimator_of(each, n_threads=n).fit(executed(each, X), sample_weight=weights) for n in (1, 3))
    check_same_bits(fitted(three), fitted(one))
    check_same_bits(answers(three, X), answers(one, X))


@pytest.mark.parametrize("each", configurations(lambda each: each.execution != "dask"))
def test_one_thread_is_enough(each, one_thread_only):
    X, weights = points_of(each)
    assert answers(estimator_of(each, n_threads=1).fit(executed(each, X), sample_weight=weights), X)


STARTS = ("k-means++", "random", "afk-mc2", "two-level")
OTHER_FITS = {
    **{f"{init}, {s}": KMeans(20, init=init, search=s, n_init=2) for init in STARTS for s in ("full", "graph")},
    **{
        f"{init}, {family}, {s}": GaussianMixture(20, covariance_type=family, init_params=init, search=s, n_active=3)
        for init in ("kmeans", *STARTS)
        for family in ("tied_spherical", "diag")
        for s in ("full", "graph")
    },
    "empty clusters": KMeans(20, init=np.vstack([np.zeros((15, 3)), np.full((5, 3), 1e3)])),
}
BATCHES = {
    **{metric: KMeans(20, metric=metric) for metric in ("euclidean", "cosine")},
    **{
        f"{family}, {assignment}": GaussianMixture(20, covariance_type=family, assignment=assignment, n_active=3)
        for family in ("tied_spherical", "spherical", "diag", "tied", "full")
        for assignment in ("soft", "hard", "sampled")
    },
}


@pytest.mark.parametrize("estimator", (OTHER_FITS | BATCHES).values(), ids=(OTHER_FITS | BATCHES).keys())
def test_other_starts_and_batches_have_one_thread(estimator, one_thread_only):
    X = 3 * np.random.default_rng(0).standard_normal((600, 3))
    estimator.set_params(n_threads=1, random_state=0)
    if estimator in OTHER_FITS.values():
        estimator.set_params(max_iter=4).fit(X)
    else:
        for batch in np.split(X, 3):
            estimator.partial_fit(batch)
    estimator.predict(X, approximate=True)
    assert estimator.bounds(X, sample_weight=np.ones(600)).entropy >= 0
    assert not isinstance(estimator, GaussianMixture) or estimator.aic(X) < estimator.bic(X)
