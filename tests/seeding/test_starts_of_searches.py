"""Initial centers do not depend on the search, because they have random numbers of their own."""

import numpy as np
import pytest
from seeding_data import clustered

from cprime import GaussianMixture, KMeans
from cprime.estimators.validation import as_search
from fits import centers_of

pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")

C = 36
X = clustered(700, 3)
SEARCHES = ("full", "bounded", "graph", "exact", "estimated")
PARTIAL = ("graph", "exact", "estimated")


def complete(search):
    """Return a search whose lists, if it has some, contain all centers, so that they find the nearest one."""
    return as_search(search).with_params(**({"n_neighbors": C} if search in PARTIAL else {}))


def kmeans(search, **changes):
    return KMeans(C, search=complete(search), n_threads=1, **({"random_state": 0, "max_iter": 1} | changes))


def mixture(search, **changes):
    given = {"random_state": 0, "max_iter": 1, "covariance_type": "tied_spherical", "n_active": 2}
    return GaussianMixture(C, search=complete(search), n_threads=1, **(given | changes))


class Recorder:
    """Initialization that draws numbers from its generator and records them."""

    def __init__(self):
        self.drawn = []

    def __call__(self, X, n_clusters, random_state):
        self.drawn.append(random_state.randint(2**31, size=4).tolist())
        return X[random_state.choice(len(X), n_clusters, replace=False)]


OF_MIXTURES = [
    {"covariance_type": family, "assignment": assignment, "reg_covar": 1e-3}
    for family in ("tied_spherical", "diag")
    for assignment in ("soft", "sampled")
]
CASES = [(kmeans, "init", search, {"random_state": seed}) for search in SEARCHES for seed in (0, 7)]
CASES += [(mixture, "init_params", search, given) for search in PARTIAL for given in OF_MIXTURES]


@pytest.mark.parametrize("n_init", [1, 3])
@pytest.mark.parametrize(("make", "start", "search", "given"), CASES)
def test_a_callable_is_given_the_same_numbers(make, start, search, given, n_init):
    recorders = Recorder(), Recorder()
    for name, recorder in zip(("full", search), recorders, strict=True):
        make(name, **{start: recorder}, n_init=n_init, **{"max_iter": 3} | given).fit(X)
    assert len(recorders[0].drawn) == n_init
    assert len(set(map(tuple, recorders[0].drawn))) == n_init
    assert recorders[1].drawn == recorders[0].drawn


NAMED = ["two-level", "random", "afk-mc2", "k-means++"]


@pytest.mark.parametrize(
    ("make", "start", "init", "searches"),
    [(kmeans, "init", init, SEARCHES[1:]) for init in NAMED]
    + [(mixture, "init_params", init, PARTIAL) for init in ("kmeans", *NAMED)],
)
def test_named_starts_are_equal_in_every_search(make, start, init, searches):
    """After one iteration with lists of all centers, equal centers imply equal initial centers."""
    expected = centers_of(make("full", **{start: init}).fit(X))
    assert (centers_of(make("full", **{start: init}, random_state=1).fit(X)) != expected).any()
    for search in searches:
        found = centers_of(make(search, **{start: init}).fit(X))
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
