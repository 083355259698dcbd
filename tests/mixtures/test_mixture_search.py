"""Searches of general mixtures: active sets K(n) of the best components, neighbor lists by mean costs, certificates."""

import numpy as np
import pytest
from mixture_data import FAMILIES, WEIGHTS, best_sets, clustered, joint_of, mixture, start_of, truncated

from cprime._utils.random import Purpose
from cprime.model import Diag, FullCovariance, Spherical
from cprime.neighbors import with_self
from cprime.search import Graph, Papers
from passes import Passes
from reference.distances import costs_of

pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")
GENERAL = ("spherical", "diag", "full")
CLASSES = {"spherical": Spherical, "diag": Diag, "full": FullCovariance}


def model_of(family, C=12, D=3, seed=0, dtype=np.float64, weights="free"):
    """Return parameters of components with various covariances and weights."""
    rng = np.random.default_rng(seed)
    roots = rng.standard_normal((C, D, D)) / 2 + np.eye(D)
    covariances = roots @ roots.transpose(0, 2, 1) * rng.uniform(0.3, 3, C)[:, None, None]
    if family != "full":
        covariances = np.diagonal(covariances, axis1=1, axis2=2)
    if family == "spherical":
        covariances = covariances.mean(axis=1)
    shares = rng.dirichlet(np.full(C, 3)) if weights == "free" else None
    return CLASSES[family]((2 * rng.standard_normal((C, D))).astype(dtype), covariances.copy(), 0.0, shares)


def costs_of_model(model, X):
    return costs_of(X, *model.gaussians[:4])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("n_active", [1, 3, 7])
def test_the_full_search_keeps_the_best_by_31(family, weights, n_active):
    X = clustered(400, 3, n_clusters=8)
    gm = mixture(8, family, weights, n_active=n_active, search="full", max_iter=6)
    gm.set_params(**start_of(X, 8, family, weights=weights)).fit(X)
    joint = joint_of(gm, X)
    q, log_sum = truncated(joint, n_active)
    kept = gm.predict_proba(X, sparse=True)
    assert kept.nnz == 400 * n_active
    np.testing.assert_array_equal(kept.indices.reshape(400, -1), np.sort(best_sets(joint, n_active), axis=1))
    np.testing.assert_allclose(kept.toarray(), q, atol=1e-9)
    np.testing.assert_allclose(gm.predict_proba(X), kept.toarray(), atol=1e-15)
    np.testing.assert_array_equal(gm.labels_, joint.argmax(axis=1))
    assert gm.lower_bound_ == pytest.approx(log_sum.mean(), abs=1e-10)
    bounds = gm.bounds(X)
    assert bounds.free_energy == pytest.approx(gm.lower_bound_, abs=1e-10)
    assert bounds.kl_gap == pytest.approx(gm.score(X) - log_sum.mean(), abs=1e-9)
    assert bounds.entropy == pytest.approx(-(q * np.log(np.maximum(q, 1e-300))).sum(axis=1).mean(), abs=1e-9)


@pytest.mark.parametrize("family", GENERAL)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("G", [1, 2, 5, 12, 40])
def test_lists_are_the_least_of_all_pairs(family, dtype, G):
    """Neighbor lists contain the least mean costs of all pairs: offset + tr(P Σ) + (μ − μ̃)ᵀ P (μ − μ̃)."""
    model = model_of(family, dtype=dtype)
    C, D = model.centers.shape
    spread = model.covariances if family == "full" else np.broadcast_to(model.covariances.reshape(C, -1), (C, D))
    spread = spread if family == "full" else spread[:, :, None] * np.eye(D)
    mean = np.full((C, C), np.inf)
    for c in range(C):
        for b in range(C):
            if b != c:
                precision = np.linalg.inv(spread[b])
                step = (model.centers[c] - model.centers[b]).astype(float)
                mean[c, b] = (
                    float(model.gaussians.offsets[b]) + np.trace(precision @ spread[c]) + step @ precision @ step
                )
    lists = model.components().lists(G)
    assert lists.shape == (C, min(G, C) - 1)
    assert lists.dtype == np.int32
    np.testing.assert_array_equal(lists, np.argsort(mean, axis=1)[:, : min(G, C) - 1])


@pytest.mark.parametrize("family", GENERAL)
@pytest.mark.parametrize("n_kept", [1, 3])
def test_estimated_lists_are_by_the_mean_cost_of_the_points_won(family, n_kept):
    """The estimated list of a component c has the components c̃ of least mean cost, eq. (8) of Forster & Lücke.

    The mean is over the points whose best component is c, and whose search has evaluated c̃.
    """
    X, model = clustered(300, 3), model_of(family, C=15)
    components = model.components()
    passes = Passes(Papers("estimated", n_neighbors=5, n_explore=2, start="random"), X, components, n_kept)
    cost = costs_of_model(model, X)
    for _ in range(3):
        before, lists = passes.kept.ids, passes.lists()[:, 1:]
        kept = passes.find(components).kept.ids
        explored = [passes.key.uniform(Purpose.EXPLORE, 0, 300, column) * 15 for column in range(2)]
        random = np.column_stack(explored).astype(int)
        seen = np.zeros((300, 15), dtype=bool)
        for n in range(300):
            for c in [*before[n], *lists[before[n]].ravel(), *random[n]]:
                seen[n, c] |= c >= 0
        offered = np.where(seen, cost, np.inf)
        np.testing.assert_array_equal(kept, np.argsort(offered, axis=1, kind="stable")[:, :n_kept])
        passes.refresh(components)
        for c in range(15):
            won = kept[:, 0] == c
            mean = {b: cost[won & seen[:, b], b].mean() for b in range(15) if b != c and (won & seen[:, b]).any()}
            expected = sorted(mean, key=mean.__getitem__)[:4]
            assert passes.lists()[c].tolist() == [c, *expected, *[-1] * (4 - len(expected))]


@pytest.mark.parametrize("family", GENERAL)
@pytest.mark.parametrize("search", [Papers("exact", n_neighbors=6), Graph(6)], ids=repr)
def test_what_is_kept_never_gets_worse_and_costs_are_right(family, search):
    X, model = clustered(400, 3), model_of(family, C=30)
    components = model.components()
    passes = Passes(search, X, components, 3)
    cost = costs_of_model(model, X)
    np.testing.assert_array_equal(passes.lists()[:, 0], np.arange(30))
    last = np.take_along_axis(cost, passes.kept.ids, axis=1)
    for _ in range(4):
        passes.refresh(components)
        if isinstance(search, Papers):
            np.testing.assert_array_equal(passes.lists(), with_self(components.lists(6)))
        kept, n_distances, _ = passes.find(components)
        now = np.take_along_axis(cost, kept.ids, axis=1)
        np.testing.assert_allclose(kept.costs, now, rtol=1e-9)
        assert (np.diff(now, axis=1) >= 0).all()
        assert (now <= np.sort(last, axis=1) + 1e-9).all()
        assert 400 * 3 <= n_distances <= 400 * 30
        last = now


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("search", ["graph", "exact", "estimated"])
def test_the_certificate_of_all_points_is_exact(family, search):
    X = clustered(600, 2, n_clusters=40)
    gm = mixture(40, family, n_active=3, search=search, n_neighbors=3, n_explore=0, max_iter=2, certificate=10_000)
    gm.fit(X)
    certificate = gm.certificate_
    assert set(certificate) == {"n_points", "agreement", "agreement_interval", "shortfall", "shortfall_interval"}
    assert certificate["n_points"] == 600
    assert certificate["shortfall"] == pytest.approx(gm.bounds(X).free_energy - gm.lower_bound_, abs=1e-8)
    assert certificate["agreement"] == pytest.approx(np.mean(gm.labels_ == joint_of(gm, X).argmax(axis=1)), abs=1e-9)
    low, high = certificate["agreement_interval"]
    assert 0 <= low <= certificate["agreement"] <= high <= 1
    assert gm.neighbors_.shape == (40, 3)
    part = mixture(40, family, n_active=3, search=search, n_neighbors=3, n_explore=0, max_iter=2, certificate=200)
    assert part.fit(X).certificate_["n_points"] == 200


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("search", ["graph", "exact", "estimated"])
def test_a_partial_search_evaluates_less_and_ends_near_the_full_one(family, search):
    X = clustered(1500, 2, n_clusters=50, spread=12.0)
    given = {"n_active": 3, "max_iter": 15, "init_params": "kmeans"}
    full = mixture(50, family, search="full", **given).fit(X)
    partial = mixture(50, family, search=search, n_neighbors=8, **given).fit(X)
    assert partial.history_["n_distances"].max() < 0.6 * full.history_["n_distances"].min()
    assert partial.score(X) > full.score(X) - 0.1
