"""Every identity of Lücke & Forster holds in the ledger of real fits; where it need not hold, the ledger shows that."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from cprime import (
    CategoricalMixture,
    GaussianMixture,
    KMeans,
    LaplaceMixture,
    PoissonMixture,
    SoftKMeans,
    StudentTMixture,
    VonMisesFisherMixture,
)
from cprime.datasets import birch
from cprime.theory import ledger


def mixture(n_active, **options):
    given = {"covariance_type": "tied_spherical", "weights": "equal", "random_state": 0, "tol": 1e-13, "max_iter": 5000}
    return GaussianMixture(9, n_active=n_active, **(given | options))


@pytest.fixture(scope="module")
def X():
    return birch(3, 60, spacing=3.0, random_state=0).data


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_k_means_satisfies_them_all(X, dtype, weighted):
    w = np.random.default_rng(0).exponential(size=len(X)) if weighted else None
    data = X.astype(dtype)
    km = KMeans(9, random_state=0).fit(data, sample_weight=w)
    found = ledger(km, data, w)
    assert [each.equation for each in found.identities if not each.holds] == []
    assert {"matrix", "(14)", "(15)", "(16)", "(19)", "KL"} <= {each.equation for each in found.identities}
    assert found.quantization_error == pytest.approx(km.inertia_, rel=1e-5)
    assert found.kl_gap == pytest.approx(found.log_likelihood - found.free_energy, abs=1e-6)
    assert found.weight == pytest.approx(len(X) if w is None else w.sum())
    assert found.entropy == 0


@pytest.mark.parametrize("n_active", [1, 3, 9])
def test_mixtures_satisfy_them_at_convergence(X, n_active):
    found = ledger(mixture(n_active).fit(X), X)
    broken = [each for each in found.identities if not each.holds]
    assert all(each.note == "at convergence" and abs(each.difference) < 1e-6 for each in broken)
    assert (found.entropy > 0) == (n_active > 1)
    assert found.kl_gap == pytest.approx(0, abs=1e-9) if n_active == 9 else found.kl_gap > 1e-9


@pytest.mark.parametrize("assignment", ["soft", "hard"])
@pytest.mark.parametrize("weights", ["equal", "free"])
@pytest.mark.parametrize("covariance_type", ["tied_spherical", "spherical", "diag", "tied", "full"])
def test_general_mixtures_satisfy_what_is_said_of_them(X, covariance_type, weights, assignment):
    n_active = 4 if assignment == "soft" else None
    options = {"covariance_type": covariance_type, "weights": weights, "assignment": assignment, "tol": 1e-8}
    found = ledger(mixture(n_active, **options).fit(X), X)
    broken = [each for each in found.identities if not each.holds]
    assert all(each.note == "at convergence" and abs(each.difference) < 1e-4 for each in broken)
    assert {"(3)", "(7)", "KL"} <= {each.equation for each in found.identities}
    assert (found.quantization_error is None) == ((covariance_type, weights) != ("tied_spherical", "equal"))
    assert (found.entropy > 0) == (assignment == "soft")


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("n_active", [1, 4, 9])
@pytest.mark.parametrize("covariance_type", ["tied_spherical", "spherical", "diag", "tied", "full"])
def test_t_mixtures_satisfy_what_holds_for_any_mixture(X, covariance_type, n_active):
    tm = StudentTMixture(9, covariance_type=covariance_type, n_active=n_active, random_state=0, max_iter=10).fit(X)
    found = ledger(tm, X, np.random.default_rng(0).exponential(size=len(X)))
    assert {each.equation for each in found.identities} == {"(3)", "(7)", "KL"}
    assert all(each.holds for each in found.identities)
    assert found.quantization_error is found.variance is None
    assert (found.entropy > 0) == (n_active > 1)


@pytest.mark.filterwarnings("ignore:The fit did not converge")
def test_before_convergence_only_the_full_form_holds(X):
    found = ledger(mixture(3, max_iter=2).fit(X), X)
    open_ = {(each.equation, each.note): each.holds for each in found.identities}
    assert open_[("(20)", "")]
    assert not open_[("(20)", "at convergence")]


def test_other_data_break_what_needs_their_own_variance(X):
    found = ledger(KMeans(9, random_state=0).fit(X), 1.1 * X)
    broken = {each.equation for each in found.identities if not each.holds}
    assert broken == {"(14)", "(15)", "(16)"}
    assert {each.note for each in found.identities if not each.holds} == {"σ² from these data"}


def test_blocks_of_rows_change_nothing(X, monkeypatch):
    gm = mixture(3).fit(X)
    whole = ledger(gm, X)
    monkeypatch.setattr("cprime.theory.partition._VALUES", 9 * 7)
    for each, other in zip(ledger(gm, X).identities, whole.identities, strict=True):
        assert each.left == pytest.approx(other.left)
        assert each.right == pytest.approx(other.right)


def test_text_and_table_show_every_identity(X):
    found = ledger(KMeans(9, random_state=0).fit(X), X)
    console = Console(width=160, record=True, file=StringIO())
    console.print(found)
    for text in (str(found), console.export_text()):
        for each in found.identities:
            assert each.equation in text
            assert each.statement in text
        assert "holds" in text
        assert "differs" not in text


def test_other_estimators_are_refused(X):
    with pytest.raises(TypeError, match="estimator must be a KMeans, SoftKMeans or mixture without posteriors, got 3"):
        ledger(3, X)


@pytest.mark.parametrize(
    "estimator",
    [
        SoftKMeans(5, random_state=0),
        LaplaceMixture(5, n_active=2, random_state=0),
        VonMisesFisherMixture(3, random_state=0),
        GaussianMixture(3, covariance_type="VEV", random_state=0),
    ],
    ids=lambda each: type(each).__name__,
)
def test_identities_hold_for_every_mixture(X, estimator):
    found = ledger(estimator.fit(X), X)
    assert found.free_energy == pytest.approx(estimator.lower_bound_, rel=1e-9)
    assert [each.statement for each in found.identities if not each.holds] == []


def test_identities_hold_for_counts_and_categories():
    counts = np.random.default_rng(0).poisson(np.repeat([[1.0, 9.0], [20.0, 2.0]], 60, axis=0))
    for estimator in (PoissonMixture(3, n_active=2, random_state=0), CategoricalMixture(2, random_state=0)):
        assert all(each.holds for each in ledger(estimator.fit(counts), counts).identities)
