"""Mixtures of von Mises–Fisher distributions: Bessel functions, EM, sparse rows, draws, and k-means as a limit."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.sparse import csr_array
from scipy.special import ive, logsumexp

from cprime import KMeans, VonMisesFisherMixture
from cprime.model.von_mises_fisher import concentration_of, log_normalizer, mean_length

pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")


def points(n=300, C=5, D=4, seed=0):
    rng = np.random.default_rng(seed)
    X = 2.5 * rng.normal(size=(C, D))[rng.integers(C, size=n)] + rng.normal(size=(n, D))
    return X * rng.uniform(0.1, 9, size=(n, 1))


def log_c(kappa, D):
    """Return log C_D(κ) by scaled Bessel functions."""
    nu = D / 2 - 1
    return nu * np.log(kappa) - D / 2 * np.log(2 * np.pi) - np.log(ive(nu, kappa)) - kappa


@pytest.mark.parametrize("D", [2, 3, 10, 60, 64, 200])
def test_functions_of_concentrations_are_those_of_bessel_functions(D):
    kappa = np.array([5.0, 12, 29, 31, 100, 1e4])
    ratio = ive(D / 2, kappa) / ive(D / 2 - 1, kappa)
    np.testing.assert_allclose(log_normalizer(kappa, D), log_c(kappa, D), rtol=1e-11)
    np.testing.assert_allclose(mean_length(kappa, D), ratio, rtol=1e-11)
    np.testing.assert_allclose(concentration_of(ratio, D), kappa, rtol=1e-8)
    assert concentration_of(np.array([0.0, 1.0]), D).tolist() == [0, 1e8]


@pytest.mark.parametrize("D", [100, 3000])
def test_normalizers_of_many_columns_are_continuous_integrals(D):
    """The derivative of −log C_D is the mean length, also where Bessel functions underflow."""
    for a, b in ((1e-3, 5.0), (5.0, 400.0), (400.0, 1e5)):
        integral = quad(lambda k: mean_length(np.array([k]), D)[0], a, b, epsrel=1e-11)[0]
        low, high = log_normalizer(np.array([a, b]), D)
        assert low - high == pytest.approx(integral, rel=1e-8)


@pytest.mark.parametrize("n_active", [None, 2])
@pytest.mark.parametrize("concentration", ["estimate", "shared", 7.0])
def test_every_iteration_is_truncated_em(concentration, n_active):
    X, C, D = points(), 4, 4
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    w, steps = np.random.default_rng(1).integers(0, 4, len(X)).astype(float), []
    vm = VonMisesFisherMixture(C, concentration=concentration, n_active=n_active, max_iter=6, tol=0, search="full")
    start = KMeans(C, metric="cosine", random_state=0).fit(X).cluster_centers_
    vm.set_params(
        means_init=start + np.random.default_rng(3).normal(scale=0.3, size=start.shape),
        weights_init=[0.1, 0.2, 0.3, 0.4],
    )
    vm.set_params(callbacks=lambda row, now: steps.append((now.weights_, now.means_, now.concentrations_, row)))
    vm.fit(X, sample_weight=w)
    (weights, means, kappa, _), *later = steps
    for found_weights, found_means, found_kappa, row in later:
        logs = np.log(weights) + log_c(kappa, D) + kappa * (U @ means.T)
        rank = (-logs).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        logs = np.where(rank < (n_active or C), logs, -np.inf)
        total = logsumexp(logs, axis=1, keepdims=True)
        assert row["lower_bound"] == pytest.approx((w @ total)[0] / w.sum(), rel=1e-10)
        q = w[:, np.newaxis] * np.exp(logs - total)
        sums, counts = q.T @ U, q.sum(axis=0)
        lengths = np.linalg.norm(sums, axis=1)
        weights, means = counts / counts.sum(), sums / lengths[:, np.newaxis]
        np.testing.assert_allclose(found_weights, weights, rtol=1e-9)
        np.testing.assert_allclose(found_means, means, rtol=1e-9, atol=1e-12)
        kappa = found_kappa
        expected = lengths.sum() / counts.sum() if concentration == "shared" else lengths / counts
        if concentration == 7.0:
            assert (kappa == 7).all()
        else:
            np.testing.assert_allclose(ive(D / 2, kappa) / ive(D / 2 - 1, kappa), expected, rtol=1e-9)
    assert len(later) == 5
    assert (np.diff(vm.lower_bounds_) > -1e-12).all()
    n_parameters = C - 1 + C * (D - 1) + {"estimate": C, "shared": 1, 7.0: 0}[concentration]
    assert vm.bic(X) == pytest.approx(-2 * vm.score_samples(X).sum() + n_parameters * np.log(len(X)))


@pytest.mark.parametrize(("n", "C", "D"), [(200, 3, 2), (2000, 12, 20)])
def test_large_concentrations_give_cosine_k_means(n, C, D):
    X = points(n, C, D)
    start = KMeans(C, metric="cosine", random_state=0).fit(X[: n // 4]).cluster_centers_
    km = KMeans(C, metric="cosine", init=start, jumps=False, tol=0, max_iter=300).fit(X)
    vm = VonMisesFisherMixture(C, concentration=1e7, weights="equal", means_init=start, tol=0, max_iter=300).fit(X)
    np.testing.assert_array_equal(vm.labels_, km.labels_)
    np.testing.assert_allclose(vm.means_, km.cluster_centers_, atol=1e-9)


@pytest.mark.parametrize("search", ["full", "graph"])
def test_sparse_rows_give_the_fit_of_dense_rows(search):
    X = points(1500, 20, 30) * (np.random.default_rng(2).random((1500, 30)) < 0.3)
    X[:, 0] += 1
    dense, sparse = (
        VonMisesFisherMixture(20, n_active=3, search=search, means_init=X[:20], max_iter=5).fit(rows)
        for rows in (X, csr_array(X))
    )
    np.testing.assert_allclose(sparse.means_, dense.means_, atol=1e-9)
    np.testing.assert_allclose(sparse.score_samples(csr_array(X)), dense.score_samples(X), rtol=1e-9)


@pytest.mark.parametrize("D", [1, 2, 3, 40])
@pytest.mark.parametrize("kappa", [0.5, 20.0, 1e4])
def test_draws_have_the_mean_lengths_and_variances(D, kappa):
    vm = VonMisesFisherMixture(1, concentration=kappa, means_init=np.eye(D)[:1]).fit(points(20, 2, D))
    X, _ = vm.sample(20_000, random_state=0)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-12)
    variances, noise = vm._parameters().variances[0], 0.03
    along = X @ vm.means_[0]
    assert along.mean() == pytest.approx(mean_length(np.array([kappa]), D)[0], abs=4 * along.std() / 141)
    np.testing.assert_allclose(X.var(axis=0), variances, rtol=2 * noise, atol=1e-9)
    (full,) = vm._parameters().covariances_along(np.eye(D))
    np.testing.assert_allclose(full.diagonal(), variances, rtol=1e-6, atol=1e-12)


def test_what_was_drawn_is_found_again():
    truth = VonMisesFisherMixture(3, random_state=0).fit(points(900, 3))
    X, _ = truth.sample(8000, random_state=1)
    again = VonMisesFisherMixture(3, random_state=0, n_init=3, tol=1e-7).fit(X)
    assert again.score(X) >= truth.score(X) - 1e-6
    for batch in np.split(X, 4):
        truth.partial_fit(batch)
    assert truth.score(X) > again.score(X) - 0.02


def test_rows_without_directions_and_wrong_concentrations_are_refused():
    X = points()
    X[3] = 0
    with pytest.raises(ValueError, match="X must have no rows of zeros"):
        VonMisesFisherMixture(2).fit(X)
    with pytest.raises(ValueError, match="concentration must be > 0, got -1"):
        VonMisesFisherMixture(2, concentration=-1).fit(points())
