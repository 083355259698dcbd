"""Proposition 2 of Lücke & Forster: C′ = 1 is k-means and equals scikit-learn's, step by step, for any variance."""

import numpy as np
import pytest
import sklearn.cluster
from theory_data import DTYPES

from cprime import GaussianMixture, KMeans
from fits import clustered, random_weights

EQUAL = {"covariance_type": "tied_spherical", "weights": "equal"}
NOT_CONVERGED = pytest.mark.filterwarnings("ignore:The fit did not converge")
RELATIVE = {np.float32: 2e-5, np.float64: 1e-10}


def start(X, C, seed=0):
    """Return C distinct rows of the data, so that no cluster is empty at first."""
    return X[np.random.default_rng(seed).choice(len(X), C, replace=False)]


def lloyd(X, centers, n_iter, weight=None):
    """Return scikit-learn's k-means after at most n_iter iterations of Lloyd's algorithm."""
    estimator = sklearn.cluster.KMeans(len(centers), init=centers, n_init=1, max_iter=n_iter, tol=0, algorithm="lloyd")
    return estimator.fit(X, sample_weight=weight)


def assert_same_clustering(ours, centers, theirs, dtype):
    assert np.array_equal(ours.labels_, theirs.labels_)
    scale = np.abs(theirs.cluster_centers_).max()
    np.testing.assert_allclose(centers, theirs.cluster_centers_, rtol=0, atol=RELATIVE[dtype] * scale)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "D", "C"), [(200, 2, 5), (301, 7, 12), (150, 1, 4)])
@pytest.mark.parametrize("weighted", [False, True])
def test_proposition_2_every_step_of_k_means_is_scikit_learns(dtype, n, D, C, weighted):
    X = clustered(n, D, dtype, seed=D)
    weight = random_weights(n) + 0.01 if weighted else None
    centers = start(X, C)
    whole = KMeans(C, init=centers, tol=0).fit(X, sample_weight=weight)
    assert whole.n_relocated_ == 0
    assert whole.n_iter_ > 3
    for n_iter in range(1, whole.n_iter_ + 1):
        theirs = lloyd(X, centers, n_iter, weight)
        ours = KMeans(C, init=centers, tol=0, max_iter=n_iter).fit(X, sample_weight=weight)
        assert_same_clustering(ours, ours.cluster_centers_, theirs, dtype)
        assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=RELATIVE[dtype])


@NOT_CONVERGED
@pytest.mark.parametrize("precision", [1e-8, 1.0, 1e5, None])
@pytest.mark.parametrize("weighted", [False, True])
def test_proposition_2_mixture_that_keeps_one_is_k_means_whatever_the_variance(precision, weighted):
    X = clustered(250, 3, seed=2)
    weight = random_weights(250) + 0.01 if weighted else None
    centers = start(X, 8)
    n_steps = KMeans(8, init=centers, tol=0).fit(X, sample_weight=weight).n_iter_
    for n_iter in range(1, n_steps + 1):
        theirs = lloyd(X, centers, n_iter, weight)
        ours = GaussianMixture(
            8, n_active=1, means_init=centers, precisions_init=precision, tol=0, max_iter=n_iter, **EQUAL
        ).fit(X, sample_weight=weight)
        assert_same_clustering(ours, ours.means_, theirs, np.float64)
        assert ours.variance_ == pytest.approx(mean_square_before_last_e_step(X, ours, centers, n_iter, weight))


def mean_square_before_last_e_step(X, fitted, start_centers, n_iter, weight):
    """Return σ² by eq. (6) of Lücke & Forster: mean square about the new centers, for the labels that gave these."""
    before = start_centers if n_iter == 1 else lloyd(X, start_centers, n_iter - 1, weight).cluster_centers_
    labels = np.square(X[:, np.newaxis] - before).sum(axis=2).argmin(axis=1)
    squares = np.square(X - fitted.means_[labels]).sum(axis=1)
    return np.average(squares, weights=weight) / X.shape[1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_error_is_that_of_the_factorisation(dtype):
    """J = ‖X − ZU‖_F² with one-hot rows of Z, where U = (ZᵀZ)⁻¹ ZᵀX once k-means has converged."""
    X = clustered(200, 4, dtype, seed=9)
    km = KMeans(7, tol=0, random_state=0).fit(X)
    assert km.converged_
    Z = np.eye(7)[km.labels_]
    U = km.cluster_centers_.astype(np.float64)
    assert km.inertia_ == pytest.approx(np.linalg.norm(X - Z @ U, "fro") ** 2, rel=RELATIVE[dtype])
    np.testing.assert_allclose(U, np.linalg.solve(Z.T @ Z, Z.T @ X), rtol=0, atol=20 * RELATIVE[dtype])


@NOT_CONVERGED
@pytest.mark.parametrize("search", ["full", "graph"])
@pytest.mark.parametrize("C", [5, 40])
def test_proposition_2_a_mixture_of_one_active_component_is_k_means_by_default_too(C, search):
    """The equivalence holds even for more components than momentum needs; momentum would leave the steps of k-means."""
    X = clustered(900, 3, np.float64, seed=C)
    centers = start(X, C)
    given = {"search": search, "tol": 0, "max_iter": 6}
    mixture = GaussianMixture(C, n_active=1, means_init=centers, **EQUAL, **given).fit(X)
    means = KMeans(C, init=centers, jumps=False, **given).fit(X)
    np.testing.assert_allclose(mixture.means_, means.cluster_centers_, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(mixture.labels_, means.labels_)
    assert mixture.n_iter_ == means.n_iter_
