"""EM with momentum never lowers F, takes fewer iterations and converges to the same optimum as EM."""

import weakref

import numpy as np
import pytest

from cprime import GaussianMixture, em
from cprime.em import Momentum
from cprime.estimators.problems import options_of
from cprime.execution import local
from cprime.kernels import as_rows
from cprime.model import FAMILIES
from marks import long_but

C = 24


@pytest.fixture(scope="module")
def X():
    """Return overlapping clusters, for which EM converges slowly."""
    rng = np.random.default_rng(3)
    places = 0.8 * rng.standard_normal((C, 6))
    return places[rng.integers(C, size=2000)] + rng.standard_normal((2000, 6))


def fitted(X, covariance_type, momentum, **params):
    params = {"reg_covar": 0.0, "max_iter": 400, "tol": 2e-4, "random_state": 0, "init_params": "k-means++"} | params
    return GaussianMixture(C, covariance_type=covariance_type, momentum=momentum, **params).fit(X)


@pytest.mark.filterwarnings("ignore:1 component.s. have a singular")  # F of VVE has no limit, which is reached sooner
@pytest.mark.parametrize("n_active", [5, None])
@pytest.mark.parametrize("covariance_type", long_but(["diag", "tied", "tied_spherical"], sorted(FAMILIES)))
def test_fewer_iterations_lead_as_far_and_the_bound_never_falls(covariance_type, n_active, X):
    plain = fitted(X, covariance_type, False, n_active=n_active)
    found = fitted(X, covariance_type, True, n_active=n_active)
    assert plain.converged_
    assert found.converged_
    if n_active is None:
        assert found.n_iter_ < 0.85 * plain.n_iter_
    else:  # truncated fits with momentum may end later, after they have reached a higher F
        assert max(found.lower_bounds_[: int(0.6 * plain.n_iter_)]) > plain.lower_bound_
    assert found.score(X) > plain.score(X) - 0.02
    assert (np.diff(found.lower_bounds_) >= -1e-9).all()
    assert found.lower_bound_ >= found.lower_bounds_[-1] - 1e-9


def test_auto_is_for_many_components_of_soft_assignment(X):
    for params, expected in (
        ({"n_components": 16}, False),
        ({"n_components": 17}, True),
        ({"n_components": 17, "search": "estimated"}, False),
        ({"n_components": 17, "assignment": "hard"}, False),
        ({"n_components": 17, "assignment": "sampled"}, False),
    ):
        plan = options_of(GaussianMixture(**params)).plan(local(as_rows(X[:300])))
        assert isinstance(plan.stage, Momentum) is expected, params


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"momentum": 1}, TypeError, r'momentum must be "auto" or a bool, got 1'),
        ({"momentum": "on"}, ValueError, "momentum must be one of"),
        ({"momentum": True, "assignment": "hard"}, ValueError, 'momentum=True needs assignment="soft", got'),
    ],
)
def test_wrong_values_are_named(params, error, message, X):
    with pytest.raises(error, match=message):
        GaussianMixture(2, **params).fit(X)


@pytest.mark.filterwarnings("ignore:The fit did not converge")
def test_a_step_that_would_lower_the_bound_is_taken_back(X, monkeypatch):
    """If every extrapolated step lowers the bound, the plain EM steps are used, with as many iterations as without
    momentum.
    """
    plain = fitted(X, "diag", False, max_iter=30, tol=0.0)

    def away(self, before, share):
        return type(self)(self.centers + 50, self.covariances, self.reg_covar, self.weights)

    monkeypatch.setattr(FAMILIES["diag"], "extrapolated", away)
    found = fitted(X, "diag", True, max_iter=60, tol=0.0)
    n = min(found.n_iter_, plain.n_iter_)
    assert n >= 25
    np.testing.assert_allclose(found.lower_bounds_[:n], plain.lower_bounds_[:n], rtol=1e-12)


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("seed", [9, 18])
def test_bounds_of_a_pass_that_was_taken_back_are_forgotten(seed, caplog):
    """Distance bounds of an extrapolated pass do not hold after the step is undone, so they are discarded."""
    X = np.random.default_rng(seed).standard_normal((200, 2))
    given = {"covariance_type": "tied_spherical", "weights": "equal", "n_active": 1, "momentum": True, "tol": 1e-7}
    given |= {"init_params": "random", "max_iter": 60, "random_state": 0, "n_threads": 1}
    with caplog.at_level("INFO", "cprime"):
        full, bounded = (GaussianMixture(20, search=search, **given).fit(X) for search in ("full", "bounded"))
    assert "would lower F" in caplog.text
    np.testing.assert_array_equal(bounded.labels_, full.labels_)
    assert bounded.lower_bounds_ == full.lower_bounds_
    assert bounded.history_["n_distances"].sum() < full.history_["n_distances"].sum()


@pytest.mark.parametrize("momentum", [True, False])
def test_parameters_of_the_start_are_gone_after_an_iteration(X, momentum, monkeypatch):
    run, start, there = em.run, [], []

    def seen(data, first, *rest):
        def made():
            model = first()
            start[:] = [weakref.ref(model)]
            return model

        return run(data, made, *rest)

    monkeypatch.setattr("cprime.em.solving.run", seen)
    gm = GaussianMixture(4, momentum=momentum, init_params="random", random_state=0)
    gm.set_params(callbacks=lambda row: there.append(start[0]() is not None)).fit(X)
    assert len(there) > 2
    assert there == [True] + [False] * (len(there) - 1)
