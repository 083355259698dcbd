"""Initial centers do not depend on the search, because they have random numbers of their own."""

import numpy as np
import pytest
from seeding_data import clustered

from cprime import GaussianMixture, KMeans

pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")

C = 36
X = clustered(700, 3)
SEARCHES = ("full", "bounded", "graph", "exact", "estimated")
PARTIAL = ("graph", "exact", "estimated")


def kmeans(search, **changes):
    given = {"n_neighbors": C} if search in PARTIAL else {}  # lists of all centers find the nearest one
    return KMeans(C, search=search, n_threads=1, **({"random_state": 0, "max_iter": 1} | given | changes))


def mixture(search, **changes):
    given = {"n_neighbors": C} if search in PARTIAL else {}
    given |= {"random_state": 0, "max_iter": 1, "covariance_type": "tied_spherical", "n_active": 2}
    return GaussianMixture(C, search=search, n_threads=1, **(given | changes))


class Recorder:
    """Initialization that draws numbers from its generator and records them."""

    def __init__(self):
        self.drawn = []

    def __call__(self, X, n_clusters, random_state):
        self.drawn.append(random_state.randint(2**31, size=4).tolist())
        return X[random_state.choice(len(X), n_clusters, replace=False)]


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("n_init", [1, 3])
@pytest.mark.parametrize("search", SEARCHES)
def test_k_means_gives_a_callable_the_same_numbers(search, n_init, seed):
    recorders = Recorder(), Recorder()
    for name, recorder in zip(("full", search), recorders, strict=True):
        kmeans(name, init=recorder, n_init=n_init, random_state=seed, max_iter=5).fit(X)
    assert len(recorders[0].drawn) == n_init
    assert len(set(map(tuple, recorders[0].drawn))) == n_init
    assert recorders[1].drawn == recorders[0].drawn


@pytest.mark.parametrize("assignment", ["soft", "posterior"])
@pytest.mark.parametrize("n_init", [1, 3])
@pytest.mark.parametrize("search", PARTIAL)
@pytest.mark.parametrize("family", ["tied_spherical", "diag"])
def test_a_mixture_gives_a_callable_the_same_numbers(family, search, n_init, assignment):
    recorders = Recorder(), Recorder()
    for name, recorder in zip(("full", search), recorders, strict=True):
        given = {"covariance_type": family, "assignment": assignment, "reg_covar": 1e-3, "max_iter": 3}
        mixture(name, init_params=recorder, n_init=n_init, **given).fit(X)
    assert len(recorders[0].drawn) == n_init
    assert recorders[1].drawn == recorders[0].drawn


@pytest.mark.parametrize("init", ["two-level", "random", "afk-mc2", "k-means++"])
def test_named_starts_of_k_means(init):
    """After one iteration with lists of all centers, equal centers imply equal initial centers."""
    expected = kmeans("full", init=init).fit(X).cluster_centers_
    assert (kmeans("full", init=init, random_state=1).fit(X).cluster_centers_ != expected).any()
    for search in SEARCHES[1:]:
        found = kmeans(search, init=init).fit(X).cluster_centers_
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12, err_msg=search)


@pytest.mark.parametrize("init", ["kmeans", "two-level", "random", "afk-mc2", "k-means++"])
def test_named_starts_of_mixtures(init):
    expected = mixture("full", init_params=init).fit(X).means_
    assert (mixture("full", init_params=init, random_state=1).fit(X).means_ != expected).any()
    for search in PARTIAL:
        found = mixture(search, init_params=init).fit(X).means_
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9, err_msg=search)


def test_several_starts_by_several_searches_end_alike():
    """Every search selects, with n_init, the best of the same starts."""
    fits = [kmeans(search, init="random", n_init=3).fit(X) for search in SEARCHES]
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.cluster_centers_, fits[0].cluster_centers_, rtol=0, atol=1e-12)


def test_a_generator_that_goes_on_is_not_rewound():
    """A RandomState instance continues from its state, so the next fit has other initial centers."""
    for search in SEARCHES:
        recorder, state = Recorder(), np.random.RandomState(3)
        for _ in range(2):
            kmeans(search, init=recorder, random_state=state).fit(X)
        assert recorder.drawn[0] != recorder.drawn[1]
