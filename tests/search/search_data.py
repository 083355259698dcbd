"""Data, estimators and distance counters used by several tests of searches."""

from functools import partial

import numpy as np

import fits
from cprime import GaussianMixture, KMeans
from cprime._utils.random import Key
from cprime.estimators.validation import as_search
from cprime.kernels import Dense

clustered = partial(fits.clustered, n_clusters=20, spread=4.0)
DTYPES = (np.float32, np.float64)
PARTIAL = ("graph", "exact", "estimated")
KEY = Key(0)
OPTIONS = ("n_neighbors", "n_explore", "start", "n_warmup", "regroup", "certificate", "final_assignment")  # of searches


def search_of(name, options):
    """Return the search object of a name with its options, which are removed from `options`."""
    given = {option: options.pop(option) for option in OPTIONS if option in options}
    search = as_search(name)
    own = search.get_params()
    return search.with_params(**{key: value for key, value in given.items() if key in own and value != "auto"})


def kmeans(C, search, **changes):
    """Return an unfitted k-means estimator with a search; options of other searches are ignored."""
    changes = {"n_threads": 1, "random_state": 0, "final_assignment": "found"} | changes
    if search != "graph":
        changes.pop("jumps", None)
    return KMeans(C, search=search_of(search, changes), **changes)


def mixture(C, search, n_active=3, **changes):
    """Return an unfitted mixture of the papers' model with a search; options of other searches are ignored."""
    given = {"n_threads": 1, "random_state": 0, "max_iter": 300, "momentum": False, "init_params": "k-means++"}
    given |= {"final_assignment": "found"} | changes
    search = search_of(search, given)
    return GaussianMixture(
        C, covariance_type="tied_spherical", weights="equal", n_active=n_active, search=search, **given
    )


def start_of(estimator):
    """Return the name of the argument for the initial centers."""
    return "init" if isinstance(estimator, KMeans) else "init_params"


class Counter:
    """Wrapper of the compiled kernels that counts the evaluated distances."""

    def __init__(self, core):
        self.core = core
        self.evaluations = 0

    def __getattr__(self, name):
        return getattr(self.core, name)

    def nearest(self, X, centers, *rest):
        self.evaluations += len(X) * len(centers)
        self.core.nearest(X, centers, *rest)

    def best(self, X, means, *rest):
        self.evaluations += len(X) * len(means)
        self.core.best(X, means, *rest)

    def distances(self, X, candidates, *rest):
        self.evaluations += len(X) * len(candidates)
        self.core.distances(X, candidates, *rest)

    def expect_all(self, X, centers, *rest):
        self.evaluations += len(X) * len(centers)
        self.core.expect_all(X, centers, *rest)

    def reassign(self, X, centers, lists, inside, outside, share, active, labels, *rest):
        self.evaluations += int((1 + (lists >= 0).sum(axis=1))[labels].sum())
        self.core.reassign(X, centers, lists, inside, outside, share, active, labels, *rest)

    def best_in_lists(self, X, centers, lists, previous, extra, kept, costs, counts, *rest):
        looked = self.core.best_in_lists(X, centers, lists, previous, extra, kept, costs, counts, *rest)
        self.evaluations += int(counts.sum())
        return looked

    def top_k(self, X, centers, lists, previous, kept, *rest):
        self.core.top_k(X, centers, lists, previous, kept, *rest)
        self.evaluations += int((1 + (lists >= 0).sum(axis=1))[previous[:, 0]].sum()) + previous[:, 1:].size

    def spread_out(self, candidates, offsets, weights, n_chosen, uniform, *rest):
        self.core.spread_out(candidates, offsets, weights, n_chosen, uniform, *rest)
        self.evaluations += int(np.diff(offsets) @ n_chosen) * uniform.shape[1]


def counted(monkeypatch, action):
    """Return the number of distances that an action evaluates."""
    with monkeypatch.context() as patch:
        counter = Counter(Dense.kernels)
        patch.setattr(Dense, "kernels", counter)
        action()
    return counter.evaluations
