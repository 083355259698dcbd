"""Proposition 4 of Lücke & Forster: the bound of k-means-C′ from variance and entropy alone, eq. (20)."""

import numpy as np
import pytest
from theory_data import DTYPES, e_step, model_of, nearest_sets, responsibilities, truncated_posterior

from cprime import GaussianMixture, em
from fits import clustered, random_weights, squared_distances

EQUAL = {"covariance_type": "tied_spherical", "weights": "equal"}
N, D, C = 240, 3, 6
RELATIVE = {np.float32: 1e-5, np.float64: 1e-12}


def entropy_of(q, weight):
    """Return the entropy −1/W Σ_nc w_n q_nc log q_nc [nats]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.average(-np.where(q > 0, q * np.log(q), 0).sum(axis=1), weights=weight)


def of_20(variance, entropy):
    """Return F by eq. (20) of Lücke & Forster."""
    return -np.log(C) - D / 2 * np.log(2 * np.pi * np.e * variance) + entropy


@pytest.mark.parametrize("n_active", [2, 3, 5, None])
@pytest.mark.parametrize("weighted", [False, True])
def test_proposition_4_holds_at_convergence(n_active, weighted):
    X = clustered(N, D, seed=7)
    weight = random_weights(N) if weighted else None
    gm = GaussianMixture(C, n_active=n_active, tol=1e-13, max_iter=5000, random_state=0, **EQUAL)
    gm.fit(X, sample_weight=weight)
    assert gm.converged_
    kept = nearest_sets(X, gm.means_, gm.n_active_)
    entropy = entropy_of(truncated_posterior(X, gm.means_, gm.variance_, kept), weight)
    assert entropy > 0.01
    assert gm.lower_bound_ == pytest.approx(of_20(gm.variance_, entropy), abs=1e-6)
    bounds = gm.bounds(X, sample_weight=weight)
    assert bounds.entropy == pytest.approx(entropy, rel=1e-9)
    assert bounds.free_energy == pytest.approx(gm.lower_bound_, rel=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_active", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("variance", [0.3, 1.0, 20.0])
def test_proposition_4_has_one_term_more_before_convergence(dtype, n_active, variance):
    """F = (20) of Lücke & Forster + (D/2)(1 − σ²_new/σ²), where σ²_new is the mean square of q about its centers."""
    X = clustered(N, D, dtype, seed=7)
    weight = random_weights(N)
    model = model_of(X[:C], variance)
    totals = e_step(X, model, n_active, weight)[1]
    tally, statistics = totals.tally, totals.moments
    q = truncated_posterior(X, X[:C], variance, nearest_sets(X, X[:C], n_active))
    new = np.average((q * squared_distances(X, X[:C])).sum(axis=1), weights=weight) / D
    entropy = entropy_of(q, weight)
    assert statistics.squares / (D * statistics.weight) == pytest.approx(new, rel=RELATIVE[dtype])
    assert tally.entropy / tally.weight == pytest.approx(entropy, rel=RELATIVE[dtype], abs=1e-4 * RELATIVE[dtype])
    extra = D / 2 * (1 - new / variance)
    assert abs(extra) > 0.05
    ours = em.free_energy(model, tally)
    assert ours == pytest.approx(of_20(variance, entropy) + extra, rel=RELATIVE[dtype])


@pytest.mark.parametrize("n_active", [1, 2, 4, 6])
def test_m_step_maximises_the_bound_of_fixed_posteriors(n_active):
    """Σ q log p + H(q) for an E-step's q is greatest at the M-step, eq. (6) of Lücke & Forster, and equals eq. (20)
    there.
    """
    X = clustered(N, D, seed=8)
    model = model_of(X[:C], 1.5)
    statistics = e_step(X, model, n_active)[1].moments
    new, (_, squares) = (
        model.maximise(statistics),
        model.recentred(statistics.counts, statistics.sums, statistics.squares),
    )
    q = truncated_posterior(X, X[:C], 1.5, nearest_sets(X, X[:C], n_active))

    def expected(centers, variance):
        squares = (q * squared_distances(X, centers)).sum() / N
        return -np.log(C) - D / 2 * np.log(2 * np.pi * variance) - squares / (2 * variance) + entropy_of(q, None)

    assert squares == pytest.approx((q * squared_distances(X, new.centers)).sum(), rel=1e-12)
    best = expected(new.centers, new.variance)
    assert best == pytest.approx(of_20(new.variance, entropy_of(q, None)), rel=1e-12)
    assert em.free_energy(new, e_step(X, new, n_active)[1].tally) > best
    for step in np.random.default_rng(0).standard_normal((5, C, D)):
        assert expected(new.centers + 1e-3 * step, new.variance) < best
    for factor in (0.9, 0.999, 1.001, 1.1):
        assert expected(new.centers, new.variance * factor) < best


@pytest.mark.parametrize("n_active", [1, 2, 3, 5, None])
@pytest.mark.parametrize("weighted", [False, True])
def test_gap_of_a_fit_is_the_mass_outside_the_kept_sets(n_active, weighted):
    """L − F = D_KL = −1/W Σ_n w_n log Σ_{c∈K(n)} r_nc for fitted mixtures."""
    X = clustered(N, D, seed=7)
    weight = random_weights(N) if weighted else None
    gm = GaussianMixture(C, n_active=n_active, random_state=0, **EQUAL).fit(X, sample_weight=weight)
    inside = np.take_along_axis(
        responsibilities(X, gm.means_, gm.variance_), nearest_sets(X, gm.means_, gm.n_active_), axis=1
    )
    bounds = gm.bounds(X, sample_weight=weight)
    assert bounds.kl_gap == pytest.approx(np.average(-np.log(inside.sum(axis=1)), weights=weight), abs=1e-12)
    assert (bounds.kl_gap > 1e-4) == (gm.n_active_ < 5)
    assert bounds.log_likelihood == pytest.approx(gm.score(X, sample_weight=weight), rel=1e-13)
