"""Steps of EM are those of truncated EM in NumPy, and F falls by no more than the penalty of `reg_covar`."""

from itertools import pairwise

import numpy as np
import pytest
from mixture_data import FAMILIES, WEIGHTS, clustered, matrices, mixture, start_of, truncated_em

from fits import random_weights

pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")
N, D, C = 300, 2, 8
every_family = pytest.mark.parametrize("family", FAMILIES)
every_weights = pytest.mark.parametrize("weights", WEIGHTS)


def bounds_of(gm):
    return np.array([*gm.lower_bounds_, gm.lower_bound_])


@pytest.mark.parametrize("family", ["spherical", "diag", "tied", "full"])
@pytest.mark.parametrize("n_active", [None, 3])
@pytest.mark.parametrize("reg_covar", [1e-3, 0.3])
def test_what_is_added_to_the_variances_costs_what_it_must(family, n_active, reg_covar):
    """The M-step maximizes F of fixed posteriors less reg/2 Σ_c N_c/N tr Σ_c⁻¹, so F may fall by at most that term."""
    X = clustered(N, D)
    seen = []
    gm = mixture(C, family, n_active=n_active, search="full", reg_covar=reg_covar, max_iter=25)
    gm.set_params(**start_of(X, C, family))
    gm.set_params(callbacks=lambda row, standing: seen.append((row["lower_bound"], standing._parameters())))
    gm.fit(X)

    def penalty(model, shares):
        inverses = np.linalg.inv(matrices(family, model.covariances, C, D))
        return reg_covar / 2 * shares @ np.trace(inverses, axis1=1, axis2=2)

    for (_, old), (bound, new), (next_bound, _) in zip(seen, seen[1:], seen[2:], strict=False):
        shares = new.weights
        assert next_bound - penalty(new, shares) >= bound - penalty(old, shares) - 1e-10
    if family == "tied":
        penalised = [bound - penalty(model, model.weights) for (_, model), (bound, _) in pairwise(seen)]
        assert (np.diff(penalised) >= -1e-10).all()


@every_family
@every_weights
@pytest.mark.parametrize("n_active", [1, 2, 5, None])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_truncated_em_in_numpy(family, weights, n_active, weighted):
    """Parameters and F agree with NumPy after each of ten iterations; full search finds the best components."""
    X = clustered(N, D, seed=3, n_clusters=6, spread=4.0)
    weight = random_weights(N) if weighted else None
    start = start_of(X, 6, family, weights=weights)
    found, bounds = truncated_em(X, start, family, weights, n_active or 6, 11, sample_weight=weight)
    seen = []
    gm = mixture(6, family, weights, n_active=n_active, search="full", reg_covar=0, max_iter=10, **start)
    gm.set_params(callbacks=lambda _, standing: seen.append(standing._parameters()))
    gm.fit(X, sample_weight=weight)
    assert gm.n_iter_ == 10
    np.testing.assert_allclose(bounds_of(gm), bounds, rtol=0, atol=1e-9)
    for model, (means, covariances, shares) in zip(seen, found, strict=False):
        np.testing.assert_allclose(model.centers, means, atol=1e-8)
        np.testing.assert_allclose(matrices(family, model.covariances, 6, D), covariances, atol=1e-8)
        np.testing.assert_allclose(np.full(6, 1 / 6) if model.weights is None else model.weights, shares, atol=1e-9)


@every_family
@every_weights
def test_hard_assignment_is_classification_em(family, weights):
    X = clustered(N, D, seed=5)
    start = start_of(X, 5, family, weights=weights)
    found, bounds = truncated_em(X, start, family, weights, 1, 8, hard=True)
    for n_active in (1, 3, None):
        gm = mixture(5, family, weights, assignment="hard", n_active=n_active, search="full", reg_covar=0, max_iter=7)
        gm.set_params(**start).fit(X)
        assert gm.n_active_ == 1
        n = gm.n_iter_
        np.testing.assert_allclose(gm.lower_bounds_, bounds[:n], rtol=0, atol=1e-9)
        means, covariances, shares = found[n - 1]
        np.testing.assert_allclose(gm.means_, means, atol=1e-8)
        np.testing.assert_allclose(matrices(family, gm.covariances_, 5, D), covariances, atol=1e-8)
        np.testing.assert_allclose(gm.weights_, shares, atol=1e-12)
        assert (gm.predict_proba(X).max(axis=1) == 1).all()


@pytest.mark.parametrize("assignment", ["soft", "hard"])
@pytest.mark.parametrize("family", ["spherical", "diag", "tied", "full"])
def test_lists_of_all_components_give_the_full_search(family, assignment):
    X = clustered(400, 3, n_clusters=12)
    start = start_of(X, 12, family)
    given = {"n_active": 3, "assignment": assignment, "max_iter": 10} | start
    full = mixture(12, family, search="full", **given).fit(X)
    for search in ("graph", "exact", "estimated"):
        n_explore = 30 if search == "estimated" else 0
        partial = mixture(12, family, search=search, n_neighbors=12, n_explore=n_explore, **given).fit(X)
        assert partial.neighbors_.shape == (12, 12)
        np.testing.assert_array_equal(partial.labels_, full.labels_)
        np.testing.assert_allclose(partial.means_, full.means_, atol=1e-8)
        np.testing.assert_allclose(partial.lower_bounds_, full.lower_bounds_, rtol=1e-9)
