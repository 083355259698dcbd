"""F never decreases and J never increases: random data, dtype, C, C′, weights, initial centers and laziness."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from theory_data import DTYPES, resolution

from cprime import GaussianMixture, KMeans
from fits import clustered, random_weights

EQUAL = {"covariance_type": "tied_spherical", "weights": "equal"}
NOT_CONVERGED = "ignore:The fit did not converge"
DUPLICATES = "ignore:Number of distinct clusters"
LEAST_VARIANCE = 1e-2  # far above the squared rounding of coordinates of about 100, even in single precision


@dataclass
class Problem:
    """Points, weights, C and C′, and initial centers: rows of the data or random places, near or far."""

    X: np.ndarray
    weight: np.ndarray | None
    n_components: int
    n_active: int
    start: str | np.ndarray
    seed: int

    @property
    def noise(self) -> float:
        """Return the sum of squares that rounding of coordinates may add to J [data unit²]."""
        rounding = 2 * float(np.finfo(self.X.dtype).eps) * float(np.abs(self.X).max())
        return self.total_weight * self.X.shape[1] * rounding**2

    @property
    def total_weight(self) -> float:
        return len(self.X) if self.weight is None else self.weight.sum()


@st.composite
def problems(draw):
    dtype = draw(st.sampled_from(DTYPES))
    n, D = draw(st.integers(1, 25)), draw(st.integers(1, 4))
    C = draw(st.integers(1, min(n, 6)))
    seed = draw(st.integers(0, 2**20))
    numbers = st.floats(-100, 100, width=32).map(lambda x: x if abs(x) > 1e-6 else 0.0)  # squares do not underflow
    if draw(st.booleans()):
        X = clustered(n, D, dtype, seed, n_clusters=C)
    else:
        X = draw(arrays(dtype, (n, D), elements=numbers))
    weight = None
    if draw(st.booleans()):
        weight = random_weights(n, seed) + (np.arange(n) == seed % n)
    start = draw(st.sampled_from(["random", "k-means++"]) | arrays(dtype, (C, D), elements=numbers))
    if not isinstance(start, str):
        start = start * dtype(draw(st.sampled_from([1, 1000])))
    return Problem(X, weight, C, draw(st.integers(1, C)), start, seed)


# Centers so far away that squares about the old centers lose the digits of those about the new ones.
FAR = Problem(clustered(8, 1, np.float32), None, 6, 3, np.linspace(-2e5, 1e5, 6, dtype=np.float32)[:, np.newaxis], 0)
# One of the two centers has no points; the points at the other must not be rounded because of it.
DEAD = Problem(np.zeros((5, 1), np.float32), None, 2, 2, np.array([[688102.15], [0.0]], np.float32), 0)
# The first point assigned to the empty third cluster is duplicated, and the copy stays in its own cluster.
TWINS = Problem(np.array([[-1.0], [1.0], [50.0], [50.0]]), None, 3, 1, np.array([[0.0], [30.0], [1e4]]), 0)


@pytest.mark.filterwarnings(NOT_CONVERGED)
@settings(max_examples=50)
@given(problem=problems(), precision=st.none() | st.floats(1e-6, 1e6))
@example(problem=FAR, precision=None)
@example(problem=DEAD, precision=None)
def test_bound_of_a_mixture_never_falls(problem, precision):
    X, D = problem.X, problem.X.shape[1]
    gm = GaussianMixture(
        problem.n_components,
        n_active=problem.n_active,
        init_params=problem.start,
        precisions_init=precision,
        tol=0,
        max_iter=25,
        reg_covar=LEAST_VARIANCE,
        random_state=problem.seed,
        n_threads=1,
        **EQUAL,
    ).fit(X, sample_weight=problem.weight)
    bounds = np.array([*gm.lower_bounds_, gm.lower_bound_])
    assert np.isfinite(bounds).all()
    assert gm.variance_ > 0
    rounded_centers = problem.noise / problem.total_weight / LEAST_VARIANCE
    assert (np.diff(bounds) >= -resolution(X.dtype, D, bounds[:-1], bounds[1:]) - rounded_centers).all()
    likelihood = gm.score(X, sample_weight=problem.weight)
    assert gm.lower_bound_ <= likelihood + resolution(X.dtype, D, gm.lower_bound_, likelihood)


@pytest.mark.filterwarnings(DUPLICATES)
@settings(max_examples=50)
@given(problem=problems(), epsilon=st.sampled_from([0.0, 0.01, 0.1, 1.0]))
def test_error_of_k_means_never_rises_nor_does_its_bound_fall(problem, epsilon):
    X, D = problem.X, problem.X.shape[1]
    km = KMeans(
        problem.n_components,
        init=problem.start,
        epsilon=epsilon,
        tol=0,
        random_state=problem.seed,
        n_threads=1,
    ).fit(X, sample_weight=problem.weight)
    errors = np.array([*km.history_["quantization_error"], km.inertia_])
    bounds = np.array([*km.lower_bounds_, km.lower_bound_])
    assert km.converged_
    assert np.isfinite(bounds).all()
    growth = 8 * float(np.finfo(X.dtype).eps) * np.sqrt(D)
    assert (np.diff(errors) <= growth * errors[:-1] + problem.noise).all()
    far_from_noise = errors[1:] > 1e4 * problem.noise
    assert (np.diff(bounds)[far_from_noise] >= -D * growth).all()


@pytest.mark.filterwarnings(DUPLICATES)
@settings(max_examples=100)
@given(problem=problems())
@example(problem=TWINS)
def test_k_means_leaves_no_cluster_empty_where_points_allow(problem):
    X, C = problem.X, problem.n_components
    weight = np.ones(len(X)) if problem.weight is None else problem.weight
    n_distinct = len(np.unique(X[weight > 0], axis=0))
    km = KMeans(C, init=problem.start, tol=0, random_state=problem.seed, n_threads=1).fit(X, sample_weight=weight)
    n_found = np.count_nonzero(np.bincount(km.labels_, weights=weight))
    assert n_found <= min(C, n_distinct)
    if n_found < min(C, n_distinct):
        assert km.inertia_ <= problem.noise
