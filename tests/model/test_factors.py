"""Mixtures of factor analyzers: densities, EM steps, searches, and the simpler models that they include."""

import copy
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.decomposition import FactorAnalysis
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

from cprime import Factors, GaussianMixture, StudentTMixture, em, load
from cprime.execution.block import Block
from cprime.kernels import Dense, posterior
from cprime.model import FactorAnalyzers, PrincipalComponents
from cprime.model.interface import Responsibilities
from cprime.neighbors.components import Components
from cprime.search import Graph

C, D, H = 6, 9, 2
pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")


def parameters(C=C, D=D, H=H, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(C, 5.0))
    centers = (2 * rng.normal(size=(C, D))).astype(dtype)
    return FactorAnalyzers(centers, rng.normal(size=(C, D, H)), rng.uniform(0.2, 0.8, size=(C, D)), 0.0, weights)


def drawn(model, N, seed=1):
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.choice(len(model.centers), N, p=model.weights))
    return model.centers[labels] + model.noise(labels, rng.normal(size=(N, model.n_features)))


def matrices(model):
    return model.covariances_along(np.eye(model.n_features))


@pytest.fixture(scope="module")
def model():
    return parameters()


@pytest.fixture(scope="module")
def X(model):
    return drawn(model, 500)


def log_joint(model, X):
    each = [multivariate_normal(mean, S).logpdf(X) for mean, S in zip(model.centers, matrices(model), strict=True)]
    return np.column_stack(each) + np.log(model.weights)


def test_costs_are_log_densities(model, X):
    wanted = log_joint(model, X)
    every = np.broadcast_to(np.arange(C, dtype=np.int32), (len(X), C))
    costs = model.components().costs(Dense(X), every)
    assert_allclose(model.log_scale + model.scale * costs, wanted, rtol=1e-10)
    ids, least = model.components().best(Dense(X), 3)
    assert np.array_equal(ids, np.argsort(-wanted, axis=1)[:, :3])
    assert_allclose(least, np.take_along_axis(costs, ids.astype(int), 1), rtol=1e-9, atol=1e-9)
    assert_allclose(model.log_likelihood(Dense(X)), np.logaddexp.reduce(wanted, axis=1))


@pytest.mark.parametrize("n_kept", [1, 3])
@pytest.mark.parametrize("n_components", [6, 40])
def test_a_partial_search_finds_the_best_of_what_it_is_offered(n_kept, n_components):
    model = parameters(n_components, seed=3)
    X, rng = drawn(model, 300), np.random.default_rng(0)
    others = [np.delete(np.arange(n_components), c) for c in range(n_components)]
    lists = np.array([rng.permutation(row)[:4] for row in others], dtype=np.int32)
    lists[::3, 2:] = -1
    previous = np.array([rng.permutation(n_components)[:n_kept] for _ in range(len(X))], dtype=np.int32)
    found = model.components().top_k(Dense(X), lists, previous, n_kept)
    wanted = Components.top_k(model.components(), Dense(X), lists, previous, n_kept)
    assert np.array_equal(found[0], wanted[0])
    assert_allclose(found[1], wanted[1], rtol=1e-9, atol=1e-9)
    some = model.components().top_k(Dense(X[7:8]), lists, previous[7:8], n_kept)
    assert np.array_equal(some[0][0], found[0][7])


def test_lists_are_those_of_the_divergence(model):
    S = matrices(model)
    precisions, shift = np.linalg.inv(S), model.centers[:, None] - model.centers[None]
    mean_costs = np.einsum("bij,aji->ab", precisions, S) + np.einsum("abi,bij,abj->ab", shift, precisions, shift)
    mean_costs += np.linalg.slogdet(S)[1] - 2 * np.log(model.weights)
    np.fill_diagonal(mean_costs, np.inf)
    assert np.array_equal(model.components().lists(C), np.argsort(mean_costs, axis=1)[:, : C - 1])


def em_step(model, X, weight):
    """Compute one EM step point by point from p(z | x); return means, loadings and noise variances."""
    q = np.exp(log_joint(model, X))
    q = q / q.sum(axis=1, keepdims=True) * weight[:, None]
    means, loadings, noise = [], [], []
    for c in range(C):
        beta = model.loadings[c].T @ np.linalg.inv(matrices(model)[c])
        z = (X - model.centers[c]) @ beta.T
        z1 = np.column_stack([z, np.ones(len(X))])
        rest = np.zeros((H + 1, H + 1))
        rest[:H, :H] = np.eye(H) - beta @ model.loadings[c]
        outer = (z1 * q[:, c, None]).T @ z1 + q[:, c].sum() * rest
        inner = (X * q[:, c, None]).T @ z1
        both = inner @ np.linalg.inv(outer)
        means.append(both[:, H]), loadings.append(both[:, :H])
        noise.append((np.square(X).T @ q[:, c] - (both * inner).sum(axis=1)) / q[:, c].sum())
    return np.array(means), np.array(loadings), np.array(noise)


@pytest.mark.parametrize("exact", [True, False])
def test_a_step_of_em_equals_the_dense_formula(model, X, exact):
    weight = np.random.default_rng(2).uniform(0, 2, len(X))
    block = Block(Dense(X), weight)
    if exact:
        found = model.expect_all(block)
        moments = found.moments
        r = np.exp(log_joint(model, X) - np.logaddexp.reduce(log_joint(model, X), axis=1)[:, None])
        assert_allclose(found.entropy, -weight @ (r * np.log(r)).sum(axis=1))
    else:
        ids, costs = model.components().best(Dense(X), C)
        likely = posterior(costs, model.scale).responsibilities
        moments = model.summarise(block, Responsibilities(ids, likely, None))
    new = model.maximise(moments)
    means, loadings, noise = em_step(model, X, weight)
    assert_allclose(new.centers, means, rtol=1e-8)
    assert_allclose(new.loadings, loadings, rtol=1e-7, atol=1e-9)
    assert_allclose(new.noise_variances, noise, rtol=1e-8)


@pytest.mark.parametrize("at_a_time", [1, 3])
def test_costs_of_some_components_at_a_time_are_those_of_all(model, X, at_a_time, monkeypatch):
    whole = model.components().best(Dense(X), C)
    monkeypatch.setattr("cprime.model.factor_costs._DIRECTIONS", at_a_time * D * H)
    few = replace(model).components()
    ids, costs = few.best(Dense(X), C)
    assert "terms" not in vars(few)
    np.testing.assert_array_equal(ids, whole[0])
    assert_allclose(costs, whole[1], rtol=1e-10)


def test_a_step_of_em_reuses_the_memory_of_the_moments(model, X):
    block, (ids, costs) = Block(Dense(X)), model.components().best(Dense(X), 3)
    moments = model.summarise(block, Responsibilities(ids, posterior(costs, model.scale).responsibilities, None))
    new = model.maximise(moments)
    assert np.shares_memory(new.loadings, moments.cross)
    for array in (new.loadings.transpose(0, 2, 1), new.centers, new.noise_variances):
        assert array.flags.c_contiguous  # as kernels read them, without a copy


@pytest.mark.long
def test_a_fit_takes_little_more_than_its_parameters(monkeypatch):
    """A fit needs memory for three generations of parameters, of 4 (H + 2) bytes per center and column, and for sums.

    The initialization needs more and is not counted.
    """
    C, D, H, start = 200, 100, 4, em.hard_start

    def started(*arguments):
        found = start(*arguments)
        tracemalloc.reset_peak()
        return found

    monkeypatch.setattr(em, "hard_start", started)
    monkeypatch.setattr("cprime.kernels.tables.TABLE", 2**12)
    monkeypatch.setattr("cprime.model.factor_costs._CLOSED_FORM", 0)
    monkeypatch.setattr("cprime.model.factor_costs._DIRECTIONS", 2**12)
    X = np.random.default_rng(0).standard_normal((600, D)).astype(np.float32)
    gm = GaussianMixture(C, covariance_type=Factors(H), n_active=2, search=Graph(4), momentum=True)
    gm.set_params(max_iter=3, tol=0, init_params=X[:C], random_state=0, n_threads=1)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        gm.fit(X)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    a_model, sums, regrouped = 4 * (H + 2), 8 * (H + 2), X.nbytes
    assert (peak - regrouped) / (C * D) < 3 * a_model + sums + 56


def test_what_is_remembered_gives_the_parameters(model):
    new = model.maximise(model.pseudo_moments(model.weights)[0])
    for name in ("centers", "loadings", "noise_variances", "weights"):
        assert_allclose(getattr(new, name), getattr(model, name), rtol=1e-9, atol=1e-12)


def test_noise_and_distances_are_those_of_the_covariances(model, X):
    normal = np.random.default_rng(0).normal(size=(200_000, D))
    drawn = model.noise(np.full(len(normal), 4, dtype=np.int32), normal)
    assert_allclose(np.cov(drawn.T), matrices(model)[4], atol=0.06)
    labels = np.arange(len(X), dtype=np.int32) % C
    off, precisions = X - model.centers[labels], np.linalg.inv(matrices(model))
    assert_allclose(model.distances(Dense(X), labels), np.sqrt(np.einsum("ni,nij,nj->n", off, precisions[labels], off)))
    assert_allclose(model.least_variances, 1 / np.diagonal(precisions, axis1=1, axis2=2).max(axis=1))


def test_no_factors_are_diag_and_all_are_full(X):
    options = {"random_state": 0, "max_iter": 50}
    none = GaussianMixture(4, covariance_type=Factors(0), **options).fit(X)
    diag = GaussianMixture(4, covariance_type="diag", **options).fit(X)
    assert_allclose(none.lower_bounds_, diag.lower_bounds_, rtol=1e-9)
    assert_allclose(none.noise_variances_, diag.covariances_, rtol=1e-8)
    Y = X[:, :4]
    many = {"reg_covar": 0, "tol": 0, "max_iter": 300, "random_state": 0}
    most = GaussianMixture(1, covariance_type=Factors(3), **many)
    most.fit(Y)
    assert_allclose(most.score(Y), GaussianMixture(1, random_state=0, reg_covar=0).fit(Y).score(Y), rtol=1e-5)


@pytest.mark.long
def test_one_component_is_factor_analysis(X):
    wanted = FactorAnalysis(2, tol=1e-8, max_iter=5000, svd_method="lapack").fit(X).score(X)
    gm = GaussianMixture(1, covariance_type=Factors(2), tol=1e-9, max_iter=5000, reg_covar=0).fit(X)
    assert abs(gm.score(X) - wanted) < 1e-4


def test_one_component_of_ppca_has_the_closed_form(X):
    """σ² is the mean of the remaining eigenvalues (Tipping & Bishop 1999)."""
    gm = GaussianMixture(1, covariance_type=Factors(2, isotropic=True), tol=1e-10, max_iter=5000, reg_covar=0).fit(X)
    values = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    assert_allclose(gm.noise_variances_, values[2:].mean(), rtol=1e-4)
    spread = np.linalg.svd(gm.factors_[0], compute_uv=False) ** 2
    assert_allclose(spread, values[:2] - values[2:].mean(), rtol=1e-4)
    assert PrincipalComponents.from_attributes(vars(gm), gm.means_, None).n_parameters == D + D * 2 - 1 + 1


def test_fitted_factors_serve_every_method(X, tmp_path):
    gm = GaussianMixture(4, covariance_type=Factors(3), random_state=0, checkpoint=tmp_path / "run").fit(X)
    gm.save(tmp_path / "m.safetensors")
    same = load(tmp_path / "m.safetensors")
    assert np.array_equal(same.predict_proba(X), gm.predict_proba(X))
    assert np.array_equal(load(tmp_path / "run" / "model.safetensors").factors_, gm.factors_)
    assert_allclose(gm.to_sklearn().score(X), gm.score(X))
    z = gm.transform_factors(X)
    assert z.shape == (len(X), 3)
    assert not any(hasattr(gm, name) for name in ("covariances_", "precisions_", "precisions_cholesky_"))
    labels = gm.predict(X)
    back = gm.means_[labels] + np.einsum("ndh,nh->nd", gm.factors_[labels], z)
    assert np.square(X - back).sum() < 0.5 * np.square(X - gm.means_[labels]).sum()
    drawn, components = gm.sample(50)
    assert drawn.shape == (50, D)
    assert (np.diff(components) >= 0).all()
    assert gm.bic(X) > -2 * len(X) * gm.score(X)
    gm.set_params(warm_start=True, checkpoint=None).fit(X)
    assert gm.n_iter_ < same.n_iter_
    gm.set_params(warm_start=False).partial_fit(X[:100])
    assert gm.factors_.shape == (4, D, 3)
    assert gm.set_params(covariance_type="diag").fit(X).covariances_.shape == (4, D)
    assert not hasattr(gm, "factors_")


def test_arguments_are_refused_by_name(X):
    def fit(**options):
        return GaussianMixture(3, **{"covariance_type": "factors", **options}).fit(X)

    with pytest.raises(ValueError, match="n_factors must be below the number of features, 9, got 9"):
        fit(covariance_type=Factors(9))
    with pytest.raises(ValueError, match="n_factors == -1, must be >= 0"):
        Factors(-1)
    with pytest.raises(TypeError, match="n_factors must be an instance of int"):
        GaussianMixture(covariance_type="ppca").set_params(covariance_type__n_factors=1.5)
    with pytest.raises(ValueError, match="precisions_init must be None for covariance_type='factors'"):
        fit(precisions_init=np.ones((3, D)))
    with pytest.raises(ValueError, match="transform_factors needs components with factors, got 'diag'"):
        fit(covariance_type="diag").transform_factors(X)
    gm = fit(covariance_type=Factors(2), warm_start=True)
    fitted = r"warm_start goes on from a fit with covariance_type=Factors\(n_factors=2\), got covariance_type=Factors"
    for other in ({"n_factors": 3}, {"isotropic": True}):
        with pytest.raises(ValueError, match=fitted):
            copy.copy(gm).set_params(**{f"covariance_type__{name}": value for name, value in other.items()}).fit(X)
    assert gm.set_params(covariance_type="factors").fit(X).factors_.shape[2] == 2
    with pytest.raises(ValueError, match=r"covariance_type='full' has no parameters \['n_factors'\]"):
        GaussianMixture().set_params(covariance_type__n_factors=3)
    with pytest.raises(ValueError, match=r"covariance_type must be one of .*, got 'factors'"):
        StudentTMixture(covariance_type=Factors(2)).fit(X)
    with pytest.raises(ValueError, match="Invalid parameter 'n_facs' for Factors"):
        gm.set_params(covariance_type__n_facs=3)


def test_options_of_factors_can_be_searched_and_cloned(X):
    search = GridSearchCV(GaussianMixture(2, covariance_type="factors"), {"covariance_type__n_factors": [0, 4]}, cv=2)
    best = search.fit(X).best_estimator_
    assert best.covariance_type == Factors(search.best_params_["covariance_type__n_factors"])
    assert best.get_params()["covariance_type__n_factors"] == best.factors_.shape[2]
    assert clone(best).covariance_type == best.covariance_type
    assert clone(best).covariance_type is not best.covariance_type


@pytest.mark.parametrize(
    "options", [{"n_active": None}, pytest.param({"n_active": 2, "search": "graph"}, marks=pytest.mark.long)], ids=str
)
def test_threads_of_products_change_no_bit(options):
    """Results are bit-identical even at shapes for which two threads would split sums over rows differently."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(20, 300))[rng.integers(20, size=4000)] + rng.normal(size=(4000, 300))).astype(np.float32)
    fits = []
    for n_threads in (1, 2):
        gm = GaussianMixture(20, covariance_type="factors", max_iter=3, n_threads=n_threads, random_state=0, **options)
        with threadpool_limits(n_threads, user_api="blas"):
            fits.append(gm.fit(X))
    assert np.array_equal(fits[0].factors_, fits[1].factors_)
    assert fits[0].lower_bounds_ == fits[1].lower_bounds_
