"""F never decreases and J never increases, for every search, C′, G, initialization, weights and data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_data import DTYPES, PARTIAL, clustered, kmeans, mixture

from fits import random_weights

pytestmark = [
    pytest.mark.filterwarnings("ignore:The fit did not converge"),
    pytest.mark.filterwarnings("ignore:Number of distinct clusters"),
]
LEAST_VARIANCE = 1e-2


@st.composite
def problems(draw):
    """Draw data, weights, C, arguments of a search and a seed; sometimes many duplicates, C near N or G above C."""
    dtype = draw(st.sampled_from(DTYPES))
    n, D = draw(st.integers(4, 90)), draw(st.integers(1, 4))
    C, seed = draw(st.integers(2, min(n, 30))), draw(st.integers(0, 2**20))
    X = clustered(n, D, dtype, seed, n_clusters=max(C // 2, 1))
    if draw(st.booleans()):
        X = np.round(X)
    weight = None
    if draw(st.booleans()):
        weight = random_weights(n, seed) + (np.arange(n) == seed % n)
    search = draw(st.sampled_from(PARTIAL))
    arguments = {
        "search": search,
        "n_neighbors": draw(st.integers(2, 8) | st.just("auto")),
        "n_explore": draw(st.integers(0, 2)),
        "n_warmup": draw(st.integers(0, 3)),
        "start": draw(st.sampled_from(["two-level", "random"])),
        "random_state": seed,
        "tol": 0,
        "certificate": 0,
    }
    return X, weight, C, draw(st.sampled_from(["random", "two-level"])), arguments


def noise(X, weight):
    """Return the sum of squares that rounding of coordinates may add to J."""
    total = len(X) if weight is None else weight.sum()
    return total * X.shape[1] * (2 * float(np.finfo(X.dtype).eps) * float(np.abs(X).max())) ** 2


def assert_monotone(fit, X, weight, exchanged=False):
    """Check that F never decreases and J never increases, except for rounding.

    exchanged: whether exchange steps ran; then the rounding error of J is relative to J two iterations earlier.
    """
    D, eps = X.shape[1], 8 * float(np.finfo(X.dtype).eps)
    errors = np.array([*fit.history_["quantization_error"], fit.inertia_])
    bounds = np.array([*fit.lower_bounds_, fit.lower_bound_])
    assert np.isfinite(bounds).all()
    floor = noise(X, weight)
    of_before = np.concatenate([errors[:1], errors[:-2]]) if exchanged else 0
    assert (np.diff(errors) <= D * eps * np.maximum(errors[:-1], of_before) + floor).all()
    far_from_noise = errors[1:] > 1e4 * floor
    assert (np.diff(bounds)[far_from_noise] >= -(D**2) * eps).all()


@settings(max_examples=100)
@given(problem=problems())
@pytest.mark.long
def test_k_means_by_plain_steps(problem):
    X, weight, C, init, arguments = problem
    fit = kmeans(C, jumps=False, init=init, **arguments).fit(X, sample_weight=weight)
    assert fit.converged_
    assert_monotone(fit, X, weight)


@settings(max_examples=40)
@given(problem=problems(), G=st.integers(2, 12) | st.just("auto"), regroup=st.booleans())
def test_k_means_by_exchange_and_plain_steps_never_raises_j(problem, G, regroup):
    X, weight, C, init, arguments = problem
    arguments |= {"search": "graph", "n_neighbors": G}
    fit = kmeans(C, jumps=True, init=init, regroup=regroup, **arguments).fit(X, sample_weight=weight)
    assert_monotone(fit, X, weight, exchanged=True)
    # The last steps are without exchange: no point has a nearer center in the list of its own.
    distances = np.square(X[:, np.newaxis].astype(float) - fit.cluster_centers_.astype(float)).sum(axis=2)
    lists = fit.neighbors_[fit.labels_]
    offered = np.where(lists < 0, np.inf, np.take_along_axis(distances, np.maximum(lists, 0), axis=1))
    own = np.take_along_axis(distances, fit.labels_[:, np.newaxis], axis=1)[:, 0]
    rounding = 16 * float(np.finfo(X.dtype).eps)
    slack = rounding * (own + np.square(X.astype(float)).sum(axis=1) * rounding)
    if fit.converged_:
        assert (own <= offered.min(axis=1) + slack).all()


@settings(max_examples=100)
@given(problem=problems(), n_active=st.sampled_from([1, 2, 5]))
@pytest.mark.long
def test_the_bound_of_a_mixture_never_falls(problem, n_active):
    X, weight, C, init, arguments = problem
    n_active = min(n_active, C - 1)
    fit = mixture(C, n_active=n_active, init_params=init, reg_covar=LEAST_VARIANCE, **(arguments | {"max_iter": 15}))
    fit.fit(X, sample_weight=weight)
    bounds = np.array([*fit.lower_bounds_, fit.lower_bound_])
    assert np.isfinite(bounds).all()
    rounding = 8 * float(np.finfo(X.dtype).eps) * X.shape[1] * (X.shape[1] + np.abs(bounds[1:]) + np.abs(bounds[:-1]))
    total = len(X) if weight is None else weight.sum()
    assert (np.diff(bounds) >= -rounding - noise(X, weight) / total / LEAST_VARIANCE).all()
    likelihood = fit.score(X, sample_weight=weight)
    assert fit.lower_bound_ <= likelihood + rounding.max()
    assert fit.neighbors_.shape[0] == C


@pytest.mark.filterwarnings("ignore::cprime.SearchQualityWarning")
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("search", PARTIAL)
def test_lazy_k_means_never_raises_its_objective(search, epsilon):
    for seed in range(5):
        X = clustered(300, 2, seed=seed)
        fit = kmeans(25, search, n_neighbors=5, epsilon=epsilon, tol=0, init="random", random_state=seed).fit(X)
        assert_monotone(fit, X, None)
        lazy, eager = fit.history_["n_moved"], kmeans(25, search, n_neighbors=5, jumps=False, tol=0, init="random")
        eager.set_params(random_state=seed).fit(X)
        assert lazy[1] <= eager.history_["n_moved"][1]
