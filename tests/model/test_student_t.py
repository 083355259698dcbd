"""Components with t densities: densities, steps and costs agree with SciPy and plain NumPy."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq
from scipy.special import digamma, gammaln, logsumexp
from scipy.stats import chi2, kstest, multivariate_t

from cprime import StudentTMixture
from cprime.em import EM, MixtureSettings
from cprime.execution.block import Block
from cprime.kernels import Dense, posterior
from cprime.model import STUDENT_T
from cprime.model.interface import Responsibilities
from cprime.model.student_t import gap, log_normalizer, solved
from cprime.search import Full

C, D, N = 4, 3, 300
OWN, ONE = np.array([0.6, 3.0, 40.0, 1e5]), np.full(C, 4.0)
TYPES = ("full", "diag", "spherical", "tied", "tied_spherical")


def matrices(kind):
    """Return Σ in the form of the family, and as matrices (C, D, D)."""
    roots = np.random.default_rng(1).standard_normal((C, D, D + 2))
    full = roots @ roots.transpose(0, 2, 1) / (D + 2) + 0.2 * np.eye(D)
    if kind == "full":
        return full, full
    if kind == "tied":
        return full[0], np.repeat(full[:1], C, axis=0)
    if kind == "tied_spherical":
        return np.array(0.7), np.repeat(0.7 * np.eye(D)[np.newaxis], C, axis=0)
    diagonals = np.diagonal(full, axis1=1, axis2=2)
    if kind == "diag":
        return diagonals.copy(), diagonals[:, :, np.newaxis] * np.eye(D)
    return diagonals[:, 0].copy(), diagonals[:, :1, np.newaxis] * np.eye(D)


def model_of(kind, dof, dtype=np.float64, **changes):
    centers = np.random.default_rng(0).standard_normal((C, D)).astype(dtype)
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    return STUDENT_T[kind](centers, matrices(kind)[0], 0.0, weights, dof.copy(), **changes)


def points(n=N, dtype=np.float64):
    rng = np.random.default_rng(2)
    return (rng.standard_normal((n, D)) * np.where(rng.random((n, 1)) < 0.1, 30, 2)).astype(dtype)


def joint(kind, model, X):
    """Return log π_c t(x; c): (n, C)."""
    each = zip(model.centers, matrices(kind)[1], model.dof, strict=True)
    return np.column_stack([multivariate_t(m, S, nu).logpdf(X) for m, S, nu in each]) + np.log(model.weights)


@pytest.mark.parametrize("dof", [OWN, ONE], ids=["own", "one"])
@pytest.mark.parametrize("kind", TYPES)
def test_densities_are_those_of_scipy(kind, dof):
    model, X = model_of(kind, dof), points()
    expected = joint(kind, model, X)
    likelihood = logsumexp(expected, axis=1)
    assert_allclose(model.log_likelihood(Dense(X)), likelihood, rtol=1e-10)
    assert_allclose(model.responsibilities(Dense(X)), np.exp(expected - likelihood[:, None]), atol=1e-9)
    ids, costs = model.components().best(model.embed(Dense(X)), 2)
    best = np.argsort(-expected, axis=1)[:, :2]
    assert_array_equal(ids, best)
    assert_allclose(model.log_scale - 0.5 * costs, np.take_along_axis(expected, best, axis=1), rtol=1e-9)


def test_one_row_of_many_components_is_as_among_many():
    rng = np.random.default_rng(0)
    many = STUDENT_T["diag"](rng.standard_normal((100, D)), np.ones((100, D)), 0.0, None, 1 + 9 * rng.random(100))
    X = Dense(points(200))
    assert_allclose(many.log_likelihood(X[:1]), many.log_likelihood(X)[:1], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dof", [OWN, ONE], ids=["own", "one"])
@pytest.mark.parametrize("kind", ["full", "diag", "tied"])
def test_partial_searches_find_the_best_of_what_they_look_at(kind, dof, dtype):
    model, X = model_of(kind, dof, dtype), points(dtype=dtype)
    rows, components = model.embed(Dense(X)), model.components()
    every, costs = components.best(rows, C)
    table = np.empty((N, C))
    np.put_along_axis(table, every.astype(int), costs.astype(float), axis=1)
    rng = np.random.default_rng(3)
    lists = np.array([rng.permutation(np.delete(np.arange(C), c))[:2] for c in range(C)], dtype=np.int32)
    previous = rng.permuted(np.tile(np.arange(C, dtype=np.int32), (N, 1)), axis=1)[:, :1]
    extra = rng.integers(0, C, (N, 1)).astype(np.int32)
    offered = np.zeros((N, C), dtype=bool)
    np.put_along_axis(offered, np.column_stack([previous, lists[previous[:, 0]]]), True, axis=1)
    kept = components.top_k(rows, lists, previous, 2)
    check_best(table, offered, *kept)
    np.put_along_axis(offered, extra, True, axis=1)
    found = components.search_lists(rows, lists, previous, 2, extra, evidence=True)
    check_best(table, offered, found.kept, found.costs)
    assert_array_equal(found.counts, offered.sum(axis=1))
    assert found.evidence.weights.sum() == offered.sum()
    alone = components.search_lists(rows, lists, previous, C)
    assert_array_equal(alone.kept[:, -1], -1)  # only three candidates
    assert np.isinf(alone.costs[:, -1]).all()


def check_best(table, offered, ids, costs):
    expected = np.sort(np.where(offered, table, np.inf), axis=1)[:, : ids.shape[1]]
    assert_allclose(costs, expected, rtol=1e-5 if costs.dtype == np.float32 else 1e-12, atol=1e-5)
    assert np.take_along_axis(offered, ids.astype(int), axis=1).all()


def twin(X, w, centers, Sigma, pi, dof, kind, estimate):
    """Compute one EM iteration in plain NumPy; return the new parameters and F before the iteration."""
    delta = np.column_stack(
        [np.einsum("nd,de,ne->n", X - m, np.linalg.inv(S), X - m) for m, S in zip(centers, Sigma, strict=True)]
    )
    log_det = np.linalg.slogdet(Sigma)[1]
    log_joint = np.log(pi) + gammaln((dof + D) / 2) - gammaln(dof / 2) - D / 2 * np.log(dof * np.pi) - log_det / 2
    log_joint = log_joint - (dof + D) / 2 * np.log1p(delta / dof)
    each = logsumexp(log_joint, axis=1)
    q = w[:, None] * np.exp(log_joint - each[:, None])
    u = (dof + D) / (dof + delta)
    counts, scaled = q.sum(axis=0), (q * u).sum(axis=0)
    means = (q * u).T @ X / scaled[:, None]
    new = np.empty_like(Sigma)
    for c in range(C):
        off = X - means[c]
        new[c] = (q[:, c] * u[:, c] * off.T) @ off / scaled[c]
        if kind not in ("full", "tied"):
            new[c] = np.diag(np.diag(new[c]) if kind == "diag" else np.full(D, np.trace(new[c]) / D))
    rest = (q * (np.log(u) - u)).sum(axis=0) + counts * (digamma((dof + D) / 2) - np.log((dof + D) / 2))
    if estimate == "shared":
        rest, over = np.full(C, rest.sum()), counts.sum()
    else:
        over = counts

    def equation(nu, left):
        return -digamma(nu / 2) + np.log(nu / 2) + 1 + left

    if estimate != "fixed":
        lefts = rest / over
        dof = np.array([1e9 if equation(1e9, t) > 0 else brentq(equation, 0.1, 1e9, (t,), 1e-13) for t in lefts])
    if kind.startswith("tied"):
        new[:] = np.tensordot(scaled / (dof @ scaled / (dof @ counts) * counts.sum()), new, axes=1)
    return means, new, counts / counts.sum(), dof, w @ each / w.sum()


@pytest.mark.parametrize("estimate", ["own", "shared", "fixed"])
@pytest.mark.parametrize("kind", TYPES)
def test_twenty_iterations_are_those_of_a_twin(kind, estimate):
    X, w = points(), np.random.default_rng(4).integers(0, 3, N).astype(float)
    model = model_of(kind, ONE, estimated=estimate != "fixed", shared=estimate == "shared")
    theirs = model.centers, matrices(kind)[1], model.weights, model.dof
    block, P = Block(Dense(X), w), np.eye(D)
    for _ in range(20):
        *theirs, bound = twin(X, w, *theirs, kind, estimate)
        found = model.expect_all(block)
        assert_allclose(model.log_scale + found.log_sum / w.sum(), bound, rtol=1e-10)
        model = model.maximise(found.moments)
        ours = model.centers, model.covariances_along(P), model.weights, model.dof
        for mine, their in zip(ours, theirs, strict=True):
            assert_allclose(mine, their, rtol=1e-9, atol=1e-11)
    assert_allclose(model.variances, np.diagonal(model.covariances_along(P), axis1=1, axis2=2), rtol=1e-14)
    free = {"own": C, "shared": 1, "fixed": 0}[estimate]
    assert (
        model.n_parameters
        == C - 1 + C * D + {"full": 24, "diag": 12, "spherical": 4, "tied": 6, "tied_spherical": 1}[kind] + free
    )


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("estimate", ["own", "shared", "fixed"])
@pytest.mark.parametrize("kind", TYPES)
def test_a_fit_without_momentum_is_the_twin_at_every_iteration(kind, estimate):
    X, Sigma = points(), matrices(kind)[1]
    centers, weights = model_of(kind, ONE).centers, np.full(C, 1 / C)
    theirs, sequence = (centers, Sigma, weights, ONE), []
    for _ in range(20):
        *theirs, _ = twin(X, np.ones(N), *theirs, kind, estimate)
        sequence.append(theirs)
    found = []
    precisions = np.linalg.inv(Sigma)
    given = {"full": precisions, "tied": precisions[0], "diag": np.diagonal(precisions, axis1=1, axis2=2)}
    given |= {"spherical": precisions[:, 0, 0], "tied_spherical": precisions[0, 0, 0]}
    StudentTMixture(
        C,
        covariance_type=kind,
        dof={"own": "estimate", "shared": "shared", "fixed": 4.0}[estimate],
        n_active=None,
        search="full",
        max_iter=20,
        tol=0,
        momentum=False,
        reg_covar=0,
        means_init=centers,
        weights_init=weights,
        precisions_init=given[kind],
        callbacks=lambda _, standing: found.append((standing.means_, standing.weights_, standing.dof_)),
    ).fit(X)
    assert len(found) >= 20
    for (means, pi, dof), (their_means, _, their_pi, their_dof) in zip(found, sequence, strict=False):
        assert_allclose(means, their_means, rtol=1e-9, atol=1e-11)
        assert_allclose(pi, their_pi, rtol=1e-9)
        assert_allclose(dof, their_dof, rtol=1e-9)


@pytest.mark.parametrize("kind", ["tied", "tied_spherical"])
def test_tails_that_differ_pull_a_shared_covariance_up(kind):
    """If components differ in ν, one common α is not the mean of u; with it, F would decrease here."""
    tails, of, rng = np.array([0.1, 30, 1e6, 0.2]), np.arange(N) % C, np.random.default_rng(5)
    model = model_of(kind, tails, estimated=False)
    scale = 0.1 * np.where(tails > 100, 30, 1)[of][:, np.newaxis]
    block = Block(Dense(model.centers[of] + scale * rng.standard_normal((N, D))))
    stage, bounds = EM(MixtureSettings(9, 0.0, 1)), []
    for _ in range(10):
        components = model.components()
        look = Full().look(None, components, None)
        _, totals = stage.propose(model, components, look, None)(block, None)
        bounds.append(model.log_scale + totals.tally.log_sum / N)
        model = model.maximise(totals.moments)
    assert (np.diff(bounds) >= -1e-12).all()


@pytest.mark.parametrize("kind", ["full", "tied"])
def test_exact_moments_are_those_of_all_that_is_kept_and_of_two_halves(kind):
    model, X = model_of(kind, OWN), points(3000)
    w = np.random.default_rng(4).random(3000)
    whole, halves = model.expect_all(Block(Dense(X), w)), [slice(0, 1000), slice(1000, None)]
    ids, costs = model.components().best(model.embed(Dense(X)), C)
    shares = Responsibilities(ids, posterior(costs, -0.5).responsibilities, None, costs)
    parts = [model.expect_all(Block(Dense(X[s]), w[s])).moments for s in halves]
    for other in (model.summarise(Block(Dense(X), w), shares), (parts[0] + parts[1]).scaled(1)):
        assert_allclose(other.counts, whole.moments.counts, rtol=1e-9)
        assert_allclose(other.logs, whole.moments.logs, rtol=1e-9, atol=1e-9)
        assert_allclose(other.weighted.second, whole.moments.weighted.second, rtol=1e-9)


@pytest.mark.parametrize("kind", ["diag", "tied"])
@pytest.mark.parametrize("shared", [False, True])
def test_what_is_remembered_gives_the_parameters(shared, kind):
    model = model_of(kind, ONE if shared else OWN, shared=shared)
    again = model.maximise(model.pseudo_moments(model.weights)[0])
    assert_allclose(again.dof, model.dof, rtol=1e-9)
    assert_allclose(again.covariances, model.covariances, rtol=1e-12)
    assert_allclose(again.centers, model.centers, rtol=1e-12)


def test_a_component_without_points_keeps_its_degrees_of_freedom():
    model = model_of("diag", OWN)
    shares = model.weights * [1, 0, 1, 1]
    again = model.maximise(model.pseudo_moments(shares)[0])
    assert again.dof[1] == 3
    assert_allclose(again.dof, OWN, rtol=1e-9)


def test_degrees_of_freedom_solve_their_equation():
    dof = np.array([0.1, 0.7, 3.0, 99.9, 100.1, 1e4, 1e7])
    assert_allclose(solved(gap(dof / 2)), dof, rtol=1e-10)
    assert_allclose(gap(dof[:5] / 2), np.log(dof[:5] / 2) - digamma(dof[:5] / 2), rtol=1e-11)
    assert_allclose(solved(np.array([0.0, 1e-12, 1e3])), [1e9, 1e9, 0.1], rtol=1e-15)
    for n_features in (1, 40):
        exact = n_features * np.log(dof / 2) - 2 * gammaln((dof + n_features) / 2) + 2 * gammaln(dof / 2)
        assert_allclose(log_normalizer(dof, n_features), exact, rtol=1e-8, atol=1e-6)
        assert abs(log_normalizer(np.array([1e9]), n_features)[0]) < 1e-5


def test_draws_have_these_densities():
    rng, n = np.random.default_rng(0), 20_000
    model = model_of("full", np.array([0.5, 5.0, 2e6, 1e9]))
    for c, dof in enumerate(model.dof):
        drawn = model.noise(np.full(n, c), rng.standard_normal((n, model.n_normals)))
        squares = np.einsum("nd,de,ne->n", drawn, np.linalg.inv(model.covariances[c]), drawn)
        law = chi2(D).cdf if dof > 1e3 else lambda s, dof=dof: multivariate_square(s, dof)
        assert kstest(squares, law).pvalue > 1e-3


def multivariate_square(squares, dof):
    """Return the distribution function of δ/D of a t distribution, which is the F distribution with D and ν d.o.f."""
    from scipy.stats import f

    return f(D, dof).cdf(squares / D)


def test_a_pickled_model_has_the_same_densities():
    model = model_of("full", OWN)
    model.log_likelihood(Dense(points()))
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.dof, OWN)
    assert_array_equal(again.log_likelihood(Dense(points())), model.log_likelihood(Dense(points())))
