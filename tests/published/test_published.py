"""Each published algorithm, called as the page on algorithms says, equals its pseudocode in every iteration."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import norm, poisson

import published
from cprime import (
    CategoricalMixture,
    FuzzyKMeans,
    GaussianMixture,
    KMeans,
    KMedians,
    KMedoids,
    PoissonMixture,
    SoftKMeans,
    StudentTMixture,
)
from cprime._utils.random import Key, Purpose, seed_of
from cprime.search import Papers
from cprime.search.papers import random_lists, random_sets
from cprime.seeding import AFKMC2, afk_mc2, seed
from cprime.seeding.sampling import draw_first
from cprime.theory import Gaussians, fit_assignment
from published import points

pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")
PAPER = {"covariance_type": "tied_spherical", "weights": "equal", "momentum": False, "reg_covar": 0.0}
C, N_ITER, SIGMA2 = 12, 15, 2.0


def recorded(estimator, X, names):
    """Return the attributes with these names after every iteration of a fit, and the fit."""
    steps = []
    estimator.set_params(
        callbacks=lambda row, now: steps.append([np.copy(getattr(now, n)) for n in names]), max_iter=N_ITER, tol=0
    )
    estimator.fit(X)
    return steps, estimator


def assert_equal(steps, expected, names):
    assert len(steps) == len(expected)
    for step, values in zip(steps, expected, strict=True):
        for name, found, right in zip(names, step, values, strict=True):
            np.testing.assert_allclose(found, right, rtol=0, atol=1e-9, err_msg=name)


@pytest.fixture(scope="module", params=[(400, 3), (900, 5)], ids=["400x3", "900x5"])
def X(request):
    return points(*request.param)


def start(X):
    """Return C starting centers that leave no cluster empty."""
    return X[np.random.default_rng(1).choice(len(X), C, replace=False)]


def test_k_means_is_the_published_algorithm(X):
    expected, counts = published.k_means(X, start(X), N_ITER)
    steps, km = recorded(KMeans(C, init=start(X), search="full"), X, ["cluster_centers_"])
    assert_equal(steps, [(centers,) for _, centers in expected[: len(steps)]], ["centers"])
    assert km.history_["n_distances"].tolist() == counts[: len(steps)]
    moved = [np.count_nonzero(a[0] != b[0]) for a, b in pairwise(expected)]
    assert km.history_["n_moved"].tolist() == [len(X), *moved][: len(steps)]


@pytest.mark.parametrize("epsilon", [0.05, 0.3])
def test_lazy_k_means_is_the_published_algorithm(X, epsilon):
    expected, counts = published.lazy_k_means(X, start(X), epsilon, N_ITER)
    steps, km = recorded(KMeans(C, init=start(X), search="full", epsilon=epsilon), X, ["cluster_centers_"])
    assert_equal(steps, [(centers,) for _, centers in expected[: len(steps)]], ["centers"])
    assert km.history_["n_distances"].tolist() == counts[: len(steps)]
    assert not np.allclose(expected[-1][1], published.k_means(X, start(X), N_ITER)[0][-1][1])


@pytest.mark.parametrize("n_active", [1, 2, 5, None], ids=["k-means", "2", "5", "EM"])
def test_k_means_c_prime_and_em_are_the_published_algorithms(X, n_active):
    expected, counts = published.k_means_c_prime(X, start(X), SIGMA2, n_active or C, N_ITER)
    gm = GaussianMixture(C, **PAPER, n_active=n_active, search="full", means_init=start(X), precisions_init=1 / SIGMA2)
    steps, gm = recorded(gm, X, ["means_", "variance_"])
    assert_equal(steps, expected[: len(steps)], ["means", "variance"])
    assert gm.history_["n_distances"].tolist() == counts[: len(steps)]


@pytest.mark.parametrize("lists", ["exact", "estimated"])
@pytest.mark.parametrize(("n_active", "n_neighbors"), [(1, 5), (1, 3), (3, 3), (5, 5)], ids=str)
@pytest.mark.parametrize("n_warmup", [0, 4])
@pytest.mark.parametrize("n_explore", [0, 1])
def test_var_k_means_and_var_gmm_are_the_published_algorithms(X, lists, n_active, n_neighbors, n_warmup, n_explore):
    """var-k-means-X and -S have C′ = 1 < G, var-GMM-X and -S have C′ = G; n_explore=1 is "G+1"."""
    seed, N = seed_of(3), len(X)
    key = Key(seed)
    search = Papers(lists, n_neighbors=n_neighbors, n_explore=n_explore, start="random", n_warmup=n_warmup)
    kept = random_sets(N, C, n_active, lambda i: key.uniform(Purpose.SETS, 0, N, i))

    def explore(iteration):
        return (Key(seed, 0, iteration).uniform(Purpose.EXPLORE, 0, N) * C).astype(int)

    expected, counts = published.variational(
        *(X, start(X), SIGMA2, kept, random_lists(C, n_neighbors, key), explore if n_explore else None),
        *(n_neighbors, lists == "estimated", n_warmup, N_ITER),
    )
    common = {"search": search.with_params(final_assignment="found", certificate=0), "random_state": 3}
    if n_active == 1:
        fit, names = KMeans(C, init=start(X), jumps=False, **common), ["cluster_centers_"]
    else:
        given = {"means_init": start(X), "precisions_init": 1 / SIGMA2}
        fit, names = GaussianMixture(C, **PAPER, n_active=n_active, **given, **common), ["means_", "variance_"]
    steps, fit = recorded(fit, X, names)
    steps = steps[n_warmup:]
    assert len(steps) > 4
    assert_equal(steps, [values[: len(names)] for values in expected[: len(steps)]], names)
    assert fit.history_["n_distances"].tolist() == counts[: n_warmup + len(steps)]
    assert not getattr(fit, "n_relocated_", 0)


def test_soft_k_means_is_the_published_algorithm(X):
    expected = published.soft_k_means(X, start(X), 0.4, N_ITER)
    soft = SoftKMeans(C, stiffness=0.4, init=start(X), search="full")
    steps, _ = recorded(soft, X, ["cluster_centers_"])
    assert_equal(steps, [(centers,) for centers in expected[: len(steps)]], ["centers"])


def test_em_of_a_gaussian_mixture_is_the_published_algorithm(X):
    D = X.shape[1]
    expected = published.gaussian_mixture(X, start(X)[:3], np.array([np.eye(D)] * 3), np.full(3, 1 / 3), N_ITER)
    gm = GaussianMixture(3, n_active=None, momentum=False, reg_covar=0.0, search="full")
    gm.set_params(means_init=start(X)[:3], precisions_init=np.array([np.eye(D)] * 3), weights_init=np.full(3, 1 / 3))
    names = ["means_", "covariances_", "weights_"]
    steps, _ = recorded(gm, X, names)
    assert_equal(steps, expected[: len(steps)], names)


def test_online_k_means_is_that_of_macqueen(X):
    """The first C points are the first centers, with a count of 1 each; then η = 1/n_k (Bishop, eq. 9.5)."""
    expected = published.online_k_means(X[C:200], X[:C], np.ones(C), lambda n: 1 / n)
    km = KMeans(C, init=X[:C]).partial_fit(X[:C])
    for x, centers in zip(X[C:200], expected, strict=True):
        np.testing.assert_allclose(km.partial_fit(x[np.newaxis]).cluster_centers_, centers, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kappa", [0.6, 0.9])
def test_online_k_means_has_rates_of_robbins_and_monro(X, kappa):
    """Rates η_n = n^−κ with 1/2 < κ ≤ 1 satisfy Σ η = ∞ and Σ η² < ∞."""
    expected = published.online_k_means(X[C:200], X[:C], np.ones(C), lambda n: n**-kappa)
    km = KMeans(C, init=X[:C], learning_decay=kappa).partial_fit(X[:C])
    for x, centers in zip(X[C:200], expected, strict=True):
        np.testing.assert_allclose(km.partial_fit(x[np.newaxis]).cluster_centers_, centers, rtol=0, atol=1e-9)


@pytest.mark.parametrize("chain_length", [1, 7, 50])
def test_afk_mc2_is_the_published_algorithm(X, chain_length):
    centers, rows = afk_mc2(X, C, chain_length=chain_length, random_state=5)
    rng = np.random.RandomState(5)
    assert draw_first(len(X), None, rng) == rows[0]
    proposals, thresholds = rng.uniform(size=(2, C, chain_length))
    assert published.afk_mc2(X, C, int(rows[0]), proposals, thresholds) == rows.tolist()
    assert np.array_equal(centers, X[rows])
    assert np.array_equal(seed(X, C, AFKMC2(chain_length), random_state=5), centers)


@pytest.mark.parametrize("metric", ["cityblock", "sqeuclidean"])
def test_k_medoids_is_the_published_algorithm(X, metric):
    V, first = cdist(X, X, metric), list(range(5))
    expected = published.k_medoids(V, first, N_ITER)
    for n in (1, 2, 3, N_ITER):
        fit = KMedoids(5, metric="precomputed", method="alternate", init=first, max_iter=n).fit(V)
        assert fit.medoid_indices_.tolist() == expected[n - 1]
    fit = KMedoids(5, metric="precomputed", init=first).fit(V)
    assert fit.medoid_indices_.tolist() == published.swaps(V, first)


# Kearns, Mansour & Ng: the three partitions of one-dimensional data by two Gaussians

Y = np.random.default_rng(0).normal(size=(3000, 1)) * 1.5 + np.random.default_rng(1).choice([-2.0, 2.0], (3000, 1))
Q = Gaussians.spherical([[-2.5], [1.0]], [1.0, 2.0])


def refit(labels):
    """Return means and standard deviations of the two parts of Y: their maximum likelihood fits."""
    parts = [Y[labels == b, 0] for b in (0, 1)]
    return np.array([part.mean() for part in parts]), np.array([part.std() for part in parts])


@pytest.mark.parametrize("weighted", [False, True])
def test_the_winner_takes_all_partition_is_the_published_one(weighted):
    """Unweighted K-means assigns x to the greater P_b(x), weighted K-means to the greater α_b P_b(x)."""
    mu, sd, alpha = Q.means[:, 0], np.sqrt(Q.covariances[:, 0, 0]), np.array([0.5, 0.5])
    fit = fit_assignment(Y, Q, weights="free" if weighted else "equal", reg_covar=0.0)
    for components in fit.path[1:]:
        labels = (norm.logpdf(Y, mu, sd) + np.log(alpha)).argmax(axis=1)
        mu, sd = refit(labels)
        alpha = np.array([np.mean(labels == b) for b in (0, 1)]) if weighted else alpha
        np.testing.assert_allclose(components.means[:, 0], mu, atol=1e-9)
        np.testing.assert_allclose(components.covariances[:, 0, 0], sd**2, atol=1e-9)
        np.testing.assert_allclose(components.weights, alpha, atol=1e-9)
    assert len(fit.path) > 3


@pytest.mark.parametrize("weighted", [False, True])
def test_the_soft_partition_is_the_published_one(weighted):
    mu, sd, alpha = Q.means[:, 0], np.sqrt(Q.covariances[:, 0, 0]), np.array([0.5, 0.5])
    fit = fit_assignment(
        Y, Q, assignment="soft", weights="free" if weighted else "equal", max_iter=N_ITER, reg_covar=0.0
    )
    for components in fit.path[1:]:
        p = alpha * norm.pdf(Y, mu, sd)
        p /= p.sum(axis=1, keepdims=True)
        mu = (p * Y).sum(axis=0) / p.sum(axis=0)
        sd = np.sqrt((p * (Y - mu) ** 2).sum(axis=0) / p.sum(axis=0))
        alpha = p.mean(axis=0) if weighted else alpha
        np.testing.assert_allclose(components.means[:, 0], mu, atol=1e-9)
        np.testing.assert_allclose(components.covariances[:, 0, 0], sd**2, atol=1e-9)
        np.testing.assert_allclose(components.weights, alpha, atol=1e-9)


def test_the_posterior_partition_is_the_published_one():
    """The posterior loss, eq. (45): every step of the descent lowers it, and no direction lowers it at the end."""

    def loss(mu, sd):
        log_p = norm.logpdf(Y, mu, sd)
        q = np.exp(log_p - np.logaddexp(*log_p.T)[:, np.newaxis])
        return -float((q * log_p).sum(axis=1).mean())

    fit = fit_assignment(Y, Q, assignment="posterior", covariance_type="spherical")
    losses = [loss(g.means[:, 0], np.sqrt(g.covariances[:, 0, 0])) for g in fit.path]
    np.testing.assert_allclose(losses, fit.losses, rtol=1e-9)
    assert np.all(np.diff(losses) < 0)
    mu, sd = fit.components.means[:, 0], np.sqrt(fit.components.covariances[:, 0, 0])
    for change in np.vstack([np.eye(4), -np.eye(4)]) * 1e-3:
        assert loss(mu + change[:2], sd + change[2:]) > losses[-1] - 1e-7


FUZZY = {
    "Bezdek": (published.bezdek(2.5), 2.5, {"m": 2.5}),
    "entropy": (published.entropy_regularized(3.0), 1, {"regularizer": "entropy", "regularization": 3.0}),
    "quadratic": (published.quadratic_regularized(9.0), 1, {"regularizer": "quadratic", "regularization": 9.0}),
}


@pytest.mark.parametrize("name", FUZZY)
def test_fuzzy_k_means_is_the_published_algorithm(X, name):
    memberships, m, options = FUZZY[name]
    centers = start(X) + 0.1  # no point is at the position of a center
    expected = published.fuzzy_k_means(X, centers, memberships, m, N_ITER)
    steps, _ = recorded(FuzzyKMeans(C, init=centers, **options), X, ["cluster_centers_"])
    assert_equal(steps, expected[: len(steps)], ["centers"])


def test_spherical_k_means_is_the_published_algorithm(X):
    steps, _ = recorded(KMeans(C, metric="cosine", init=start(X), search="full"), X, ["cluster_centers_"])
    assert_equal(steps, published.spherical_k_means(X, start(X), N_ITER)[: len(steps)], ["centers"])


def test_k_medians_is_the_published_algorithm(X):
    expected = published.k_medians(X, start(X), N_ITER)
    steps, _ = recorded(KMedians(C, init=start(X)), X, ["cluster_centers_"])
    assert_equal(steps, expected[: len(steps)], ["centers"])


def test_classification_em_is_the_published_algorithm(X):
    expected = published.classification_em(X, start(X), np.ones(C), np.full(C, 1 / C), N_ITER)
    gm = GaussianMixture(C, covariance_type="spherical", assignment="hard", search="full", reg_covar=0)
    gm.set_params(means_init=start(X), precisions_init=np.ones(C), weights_init=np.full(C, 1 / C))
    steps, _ = recorded(gm, X, ["means_", "covariances_", "weights_"])
    assert len(steps) > 4
    assert_equal(steps, expected[: len(steps)], ["means", "variances", "weights"])


def test_mixture_of_t_distributions_is_the_published_algorithm(X):
    scales = np.array([np.eye(X.shape[1])] * C)
    expected = published.student_t_mixture(X, start(X), scales, np.full(C, 1 / C), 4.0, N_ITER)
    tm = StudentTMixture(C, dof=4.0, n_active=None, momentum=False, search="full", reg_covar=0)
    tm.set_params(means_init=start(X), precisions_init=scales, weights_init=np.full(C, 1 / C))
    steps, _ = recorded(tm, X, ["means_", "covariances_", "weights_"])
    assert_equal(steps, expected[: len(steps)], ["means", "scales", "weights"])


def test_mixture_of_poisson_counts_is_the_published_algorithm():
    counts = np.random.default_rng(0).poisson(np.repeat([[1.0, 9.0], [20.0, 2.0], [6.0, 6.0]], 60, axis=0))
    rates, weights = counts[[0, 70, 130]] + 0.5, np.full(3, 1 / 3)
    expected = published.linear_mixture(
        lambda r: poisson.logpmf(counts[:, np.newaxis], r).sum(axis=2),
        lambda q: published.means(counts, q), rates, weights, N_ITER,
    )  # fmt: skip
    pm = PoissonMixture(3, n_active=None, search="full", rates_init=rates, weights_init=weights)
    steps, _ = recorded(pm.set_params(assignment="soft"), counts, ["rates_", "weights_"])
    assert_equal(steps[:2], expected[:2], ["rates", "weights"])


def test_latent_class_analysis_is_the_published_algorithm():
    rng = np.random.default_rng(0)
    codes = np.vstack([rng.choice(3, (80, 4), p=p) for p in ([0.7, 0.2, 0.1], [0.1, 0.2, 0.7])])
    one_hot = np.eye(3)[codes]  # (N, D, 3)
    first, weights = rng.dirichlet(np.ones(3), (2, 4)), np.array([0.4, 0.6])
    expected = published.linear_mixture(
        lambda p: np.einsum("ndk,cdk->nc", one_hot, np.log(p)),
        lambda q: np.einsum("nc,ndk->cdk", q, one_hot) / q.sum(axis=0)[:, np.newaxis, np.newaxis],
        first, weights, N_ITER,
    )  # fmt: skip
    cm = CategoricalMixture(
        2, n_active=None, search="full", probabilities_init=list(first.swapaxes(0, 1)), weights_init=weights
    )
    steps, _ = recorded(cm, codes, ["probabilities_", "weights_"])
    expected = [(p.swapaxes(0, 1), w) for p, w in expected]
    assert_equal(steps[:2], expected[:2], ["probabilities", "weights"])
