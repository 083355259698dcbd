"""Standard errors agree with closed forms, exact integrals, numerical derivatives, and the spread over samples."""

import numpy as np
import pytest
from scipy.stats import chi2

from cprime import Factors, GaussianMixture, KMeans, StudentTMixture, open_data
from cprime.selection import bootstrap, standard_errors
from cprime.theory import Gaussians

RNG = np.random.default_rng(0)
TWO = np.concatenate([RNG.normal(size=(300, 2)), RNG.normal(size=(500, 2)) @ [[1.0, 0.4], [0, 1.5]] + [4.0, 1.0]])
FAMILIES = ("tied_spherical", "spherical", "diag", "tied", "full")
EDGE, DENSITY = np.sqrt(2 / np.pi), 1 / np.sqrt(2 * np.pi)  # centers ±EDGE of a normal distribution; its density at 0


def covariance_of_two_normal_centers():
    """Return √N times the covariance of the two centers of a standard normal distribution: (2, 2)."""
    curvature = np.eye(2) - DENSITY * EDGE
    curvature[0, 0] = curvature[1, 1] = 1 - DENSITY * EDGE
    inverse = np.linalg.inv(curvature)
    return inverse @ (2 * (1 - 2 / np.pi) * np.eye(2)) @ inverse


@pytest.mark.parametrize("n_features", [1, 2])
def test_boundary_integrals_of_a_known_density_are_exact(n_features):
    """Two centers of a normal distribution in a plane: across the face as on a line; along it, curvature 1 ∓ r f/2."""
    X = np.random.default_rng(1).normal(size=(40_000, n_features)) * ([1.0, 0.5] if n_features == 2 else [1.0])
    km = KMeans(2, init=EDGE * np.array([[-1.0, 0.0], [1.0, 0.0]])[:, :n_features], tol=0.0).fit(X)
    found = standard_errors(km, X).center_covariances * len(X)
    np.testing.assert_allclose(found[:, 0, 0], covariance_of_two_normal_centers()[0, 0], rtol=0.12)
    if n_features == 2:  # Γ = 1 − f/a · 0.25 · [[1, −1], [−1, 1]] along the face, with V = 2 · 0.25
        curvature = np.eye(2) - DENSITY / EDGE * 0.25 * np.array([[1, -1], [-1, 1]])
        inverse = np.linalg.inv(curvature)
        np.testing.assert_allclose(found[:, 1, 1], (inverse @ inverse)[0, 0] * 0.5, rtol=0.06)


@pytest.mark.parametrize("n_clusters", [1, 3])
def test_separated_clusters_have_the_covariance_of_a_mean(n_clusters):
    X = np.concatenate([RNG.normal(size=(100, 2)) + 50 * c for c in range(n_clusters)])
    km = KMeans(n_clusters, random_state=0).fit(X)
    expected = [np.cov(X[km.labels_ == c].T, ddof=0) / 100 for c in range(n_clusters)]
    np.testing.assert_allclose(standard_errors(km, X).center_covariances, expected, rtol=1e-9)


@pytest.mark.parametrize("n_samples", [pytest.param(20), pytest.param(200, marks=pytest.mark.long)])
def test_ellipses_of_95_percent_hold_the_centers_of_the_limit(n_samples):
    centers = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
    density = Gaussians(centers, np.array([np.eye(2)] * 3))
    limit = KMeans(3, init=centers, tol=0.0).fit(density.sample(1_000_000, random_state=0)).cluster_centers_
    inside = []
    for seed in range(1, n_samples + 1):
        X = density.sample(2000, random_state=seed)
        km = KMeans(3, init=limit, tol=0.0).fit(X)
        covariances, away = standard_errors(km, X).center_covariances, km.cluster_centers_ - limit
        inside += (np.einsum("ci,cij,cj->c", away, np.linalg.inv(covariances), away) < chi2.ppf(0.95, 2)).tolist()
    low, high = (0.93, 0.97) if n_samples == 200 else (0.8, 1.0)
    assert low <= np.mean(inside) <= high


def parameters_of(gm):
    """Return free parameters (P,) of a mixture, and a function that returns the log densities of TWO for such ones."""
    C, D = gm.means_.shape
    family = gm.covariance_type_
    rows, columns = np.tril_indices(D)
    given = np.atleast_1d(gm.covariances_)
    free = given[..., rows, columns] if family in ("full", "tied") else given

    def log_densities(vector):
        means, rest = np.split(vector, [C * D])
        entries, weights = np.split(rest, [free.size])
        entries = entries.reshape(free.shape)
        if family in ("full", "tied"):
            matrices = np.zeros((*free.shape[:-1], D, D))
            matrices[..., rows, columns] = matrices[..., columns, rows] = entries
        else:
            matrices = (
                entries[..., np.newaxis, np.newaxis] * np.eye(D)
                if family != "diag"
                else entries[:, :, np.newaxis] * np.eye(D)
            )
        matrices = np.broadcast_to(matrices, (C, D, D))
        weights = np.append(weights, 1 - weights.sum())
        X = TWO[:, np.newaxis] - means.reshape(C, D)
        squares = np.einsum("nci,cij,ncj->nc", X, np.linalg.inv(matrices), X)
        logs = -0.5 * (squares + np.linalg.slogdet(2 * np.pi * matrices)[1])
        return np.log(np.exp(logs) @ weights)

    return np.concatenate([gm.means_.ravel(), free.ravel(), gm.weights_[:-1]]), log_densities


@pytest.mark.parametrize("family", FAMILIES)
def test_the_information_is_that_of_numerical_derivatives(family):
    gm = GaussianMixture(2, covariance_type=family, tol=1e-10, max_iter=2000, random_state=0).fit(TWO)
    found = standard_errors(gm, TWO)
    start, log_densities = parameters_of(gm)
    step = 1e-5
    scores = [
        (log_densities(start + step * e) - log_densities(start - step * e)) / (2 * step) for e in np.eye(len(start))
    ]
    covariance = np.linalg.inv(np.array(scores) @ np.array(scores).T)
    errors = np.sqrt(np.diagonal(covariance))
    np.testing.assert_allclose(found.standard_errors["means_"].ravel(), errors[:4], rtol=1e-5)
    np.testing.assert_allclose(found.center_covariances[0], covariance[:2, :2], rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(found.standard_errors["weights_"], errors[-1], rtol=1e-5)
    own = np.atleast_1d(found.standard_errors["covariances_"])
    rows, columns = np.tril_indices(2)
    own = own[..., rows, columns] if family in ("full", "tied") else own
    np.testing.assert_allclose(own.ravel(), errors[4:-1], rtol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("estimator", [KMeans(2, random_state=0), GaussianMixture(2, random_state=0)])
def test_a_bootstrap_of_many_points_has_the_same_standard_errors(estimator):
    X = GaussianMixture(2, random_state=0).fit(TWO).sample(20_000, random_state=0)[0]
    fit = estimator.set_params(tol=1e-9, max_iter=2000).fit(X)
    found, expected = standard_errors(fit, X), bootstrap(fit, X, 200, random_state=0)
    for name, errors in found.standard_errors.items():
        np.testing.assert_allclose(errors, expected.standard_errors[name], rtol=0.2)


@pytest.mark.parametrize("estimator", [KMeans(3, random_state=0), GaussianMixture(2, random_state=0)])
def test_weights_are_copies_and_chunks_give_the_same_errors(estimator):
    weights = np.tile([1.0, 2.0], 400)
    found = standard_errors(estimator.fit(TWO, sample_weight=weights), TWO, sample_weight=weights)
    for other in (
        standard_errors(estimator, np.repeat(TWO, weights.astype(int), axis=0)),
        standard_errors(estimator, open_data(TWO, chunk_rows=300), sample_weight=weights),
    ):
        for name, errors in found.standard_errors.items():
            np.testing.assert_allclose(other.standard_errors[name], errors, rtol=1e-9)
    one, three = (standard_errors(estimator.set_params(n_threads=n), TWO, sample_weight=weights) for n in (1, 3))
    np.testing.assert_array_equal(one.center_covariances, three.center_covariances)


def test_many_centers_have_blocks_that_are_too_small_by_covariances_of_neighbors(monkeypatch):
    km = KMeans(6, random_state=0).fit(TWO)
    whole = standard_errors(km, TWO)
    monkeypatch.setattr("cprime.selection.asymptotics._WHOLE", 1)
    blocks = standard_errors(km, TWO)
    assert blocks.method == "Pollard, without covariances of different centers"
    means = [np.cov(TWO[km.labels_ == c].T, ddof=0) / np.sum(km.labels_ == c) for c in range(6)]
    plain = np.sqrt(np.diagonal(means, axis1=1, axis2=2))
    errors, all_errors = (each.standard_errors["cluster_centers_"] for each in (blocks, whole))
    assert (plain < errors).all()
    assert errors.mean() < all_errors.mean()
    assert "Standard errors (Pollard); intervals of 95 %" in repr(whole)


@pytest.mark.parametrize(
    ("estimator", "error", "message"),
    [
        (
            StudentTMixture(2, random_state=0),
            TypeError,
            "estimator must be a KMeans, GaussianMixture or RegressionMixture, .* StudentT",
        ),
        (KMeans(2, metric="cosine", random_state=0), ValueError, "needs metric='euclidean', got 'cosine'"),
        (KMeans(2, fixed=[[0.0, 0.0]], random_state=0), ValueError, "needs fixed=None"),
        (GaussianMixture(2, assignment="hard", random_state=0), ValueError, "needs assignment='soft', got 'hard'"),
        (GaussianMixture(2, covariance_type=Factors(1), max_iter=500), ValueError, "covariance_type must be one of"),
    ],
)
def test_fits_beyond_the_theory_are_refused(estimator, error, message):
    with pytest.raises(error, match=message):
        standard_errors(estimator.fit(TWO), TWO)


def test_large_and_singular_information_is_refused():
    X = RNG.normal(size=(200, 40))
    with pytest.raises(ValueError, match=r"the mixture must have at most 5,000 parameters, .* got 6,026"):
        standard_errors(GaussianMixture(7, max_iter=5, tol=9.0, random_state=0).fit(X), X)
    with pytest.raises(ValueError, match="singular information matrix"):
        standard_errors(GaussianMixture(random_state=0).fit(X[:20]), X[:20])
