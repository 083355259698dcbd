"""Points of weight 0 change no label, choice or draw of other points; sums change by the order of summation only.

Rows of weight 0 move other rows into other partial sums. One iteration differs by some eps. Iterations multiply
this, so converged parameters differ by more: by 3e-14 in one fit by exact EM.

The tests run at two sizes: small enough that each sample, step or share contains all data, and larger.
"""

import numpy as np
import pytest
from reliability.laws import PLACES, check_weight_zero, with_others, with_others_in_chunks

from cprime import FuzzyKMeans, GaussianMixture, GMeans, KMeans, KMedoids, SoftKMeans, XMeans, open_data
from cprime.search import Bounded, Full, Graph, Papers

pytestmark = [
    pytest.mark.filterwarnings("ignore:The fit did not converge"),
    pytest.mark.filterwarnings("ignore::cprime.SearchQualityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

SEARCHES = {
    "full": Full(),
    "bounded": Bounded(),
    "graph": Graph(),
    "graph, regrouped": Graph(regroup=True),
    "graph of nine": Graph(9),
    "exact": Papers("exact", n_neighbors=6),
    "exact, random": Papers("exact", n_neighbors=6, start="random"),
    "estimated": Papers("estimated", n_neighbors=6, n_explore=2),
}
STARTS = ("k-means++", "k-means||", "random", "afk-mc2", "two-level")
SIZES = {"small": (400, 8), "large": (6000, 60)}


def points(n, D, seed):
    """Return points (n, D) without clusters, so that small changes would change their assignment."""
    return np.random.default_rng(seed).standard_normal((n, D))


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())
@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES.keys())
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("source", ["array", "chunks"])
def test_points_of_weight_zero_do_not_change_k_means(source, where, start, search, size):
    n, C = size
    if source == "chunks" and start in ("k-means++", "afk-mc2"):
        start = "two-level"
    X = points(n, 5, 0)
    if source == "array":
        both, weights, at = with_others(X, where)
    else:
        both, weights, at = with_others_in_chunks(X, n // 3, where, extra=n // 2)

    def fitted(rows, w, step):
        data = rows if source == "array" else open_data(rows, chunk_rows=step)
        km = KMeans(C, init=start, search=search, random_state=0, max_iter=40, n_threads=1)
        return km.fit(data, sample_weight=w)

    check_weight_zero(fitted(X, np.ones(n), n // 3), fitted(both, weights, n // 3 + n // 2), at)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())
@pytest.mark.parametrize("family", ["tied_spherical", "spherical", "diag", "tied", "full"])
@pytest.mark.parametrize("search", ["full", "graph", "estimated"])
@pytest.mark.parametrize("assignment", ["soft", "hard", "sampled"])
@pytest.mark.parametrize("where", PLACES)
def test_points_of_weight_zero_do_not_change_mixtures(where, assignment, search, family, size):
    n, C = size
    X = points(n, 3, 0)
    both, weights, at = with_others(X, where)
    given = {"covariance_type": family, "search": search, "assignment": assignment, "n_active": 3}
    given |= {"random_state": 0, "max_iter": 12, "n_threads": 1}
    alone = GaussianMixture(C, **given).fit(X, sample_weight=np.ones(n))
    check_weight_zero(alone, GaussianMixture(C, **given).fit(both, sample_weight=weights), at)


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize(
    "make",
    [
        lambda: FuzzyKMeans(6, random_state=0),
        lambda: SoftKMeans(6, random_state=0),
        lambda: KMedoids(6, random_state=0),
        lambda: XMeans(random_state=0),
        lambda: GMeans(random_state=0),
        lambda: KMeans(6, metric="cosine", random_state=0),
        lambda: KMeans(6, epsilon=0.05, random_state=0),
        lambda: KMeans(6, n_init=3, random_state=0),
    ],
    ids=["fuzzy", "soft", "medoids", "x-means", "g-means", "cosine", "lazy", "three starts"],
)
def test_points_of_weight_zero_do_not_change_the_other_estimators(make, where):
    X = points(600, 3, 0) + 6 * np.random.default_rng(1).integers(0, 3, (600, 1))
    both, weights, at = with_others(X, where)
    check_weight_zero(make().fit(X, sample_weight=np.ones(600)), make().fit(both, sample_weight=weights), at)


@pytest.mark.parametrize("n", [300, 4000])
def test_rows_are_found_by_their_numbers_among_those_of_weight(n):
    from cprime.execution import Local, rows_of

    both, weights, at = with_others(points(n, 2, 0), "among")
    numbers = np.random.default_rng(0).permutation(n)[:50]
    data = Local(open_data(both, chunk_rows=n // 3).with_weights(weights))
    assert data.n_weighted == n
    np.testing.assert_array_equal(rows_of(data, numbers), at[numbers])


@pytest.mark.parametrize("family", ["full", "tied", "diag", "spherical", "tied_spherical", "factors", "ppca"])
def test_one_iteration_differs_in_the_last_places_alone(family):
    """One iteration of exact EM without rows of weight 0 changes results by the order of summation, at most 64 eps.

    Sums are made of partial sums over rows at fixed positions, so other rows in between regroup them. Later iterations
    multiply this difference by up to the reciprocal of 1 − the rate of convergence.
    """
    X = points(500, 3, 0) + 3 * np.random.default_rng(1).integers(0, 3, (500, 1))
    both, weights, _ = with_others(X, "among")
    given = {"covariance_type": family, "n_active": None, "search": "full", "tol": 0, "momentum": False}
    for max_iter, places in ((1, 64), (100, 2**12)):
        alone, among = (
            GaussianMixture(4, means_init=X[:4], max_iter=max_iter, **given).fit(rows, sample_weight=w)
            for rows, w in ((X, np.ones(500)), (both, weights))
        )
        rounding = places * np.finfo(float).eps
        np.testing.assert_allclose(among.means_, alone.means_, rtol=0, atol=rounding * np.abs(X).max())
        np.testing.assert_allclose(among.weights_, alone.weights_, rtol=0, atol=rounding)
        np.testing.assert_allclose(among.lower_bound_, alone.lower_bound_, rtol=rounding)
