"""Certificates agree with samples of known losses, and their intervals hold in at least 95 % of all fits."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom, norm
from sklearn.datasets import load_digits, load_sample_image

from cprime import CategoricalMixture, GaussianMixture, KMeans, PoissonMixture, StudentTMixture
from cprime._utils.random import Key
from cprime.em.certificate import Loss, certify, known_loss, mean_limits
from cprime.execution.base import RowSample
from cprime.execution.block import ActiveSet
from cprime.kernels import as_rows
from cprime.neighbors.components import Centers
from cprime.search import Graph
from fits import clustered
from marks import long_but

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::cprime.SearchQualityWarning"),
]

Z = norm.ppf(0.975)
CENTERS = np.array([[0.0], [10.0], [30.0]])
X = np.array([[1.0], [2.0], [12.0], [9.0], [28.0], [33.0], [4.0], [6.0]])
SQUARES = np.square(X - CENTERS[:, 0])
ONES = np.ones(len(X))


class Model:
    """Three centers whose costs are squared distances, and −0.02 times these log-densities of at most log 3."""

    log_scale = 0.0
    components = staticmethod(lambda: Centers(CENTERS))
    embed = staticmethod(lambda rows: rows)
    density_limit = staticmethod(lambda rows: np.log(3))


def kept(wrong=(), n=1):
    """Return active sets of the n nearest centers, without the nearest for the points in `wrong`."""
    order = np.argsort(SQUARES, axis=1)
    order[list(wrong)] = np.roll(order[list(wrong)], -1, axis=1)
    ids = order[:, :n].astype(np.int32)
    return ActiveSet(ids, np.take_along_axis(SQUARES, ids, axis=1))


def certificate(found, scale=None, n_points=8, weights=None, rows=X):
    """Return the certificate of active sets `found` (n, H) of all rows, as if they were the result of a fit."""
    data = SimpleNamespace(
        n_points=len(rows),
        n_weighted=len(rows),
        take=lambda chosen: RowSample(
            as_rows(rows[chosen]), None if weights is None else weights[chosen], found.at(chosen)
        ),
    )
    return certify(data, Loss(Model(), scale), Key(0), n_points)


def enough(n):
    """Return the least number of n intervals that hold with a probability of 99.9 %, if each one holds with 95 %."""
    return binom.ppf(0.001, n, 0.95)


@pytest.mark.parametrize("draw", ["none", "rare", "rare and large", "many", "half", "uniform"])
@pytest.mark.parametrize("n", [1, 30, 1000])
def test_limits_of_a_mean_hold_for_any_distribution_in_the_unit_interval(draw, n):
    rng, n_held = np.random.default_rng(0), 0
    share, size = {"none": (0, 0), "rare": (0.02, 0.3), "rare and large": (0.003, 1.0), "many": (0.3, 0.2)}.get(
        draw, (0.5, 1.0)
    )
    mean = 0.5 if draw == "uniform" else share * size
    for _ in range(200):
        values = rng.random(n) if draw == "uniform" else size * (rng.random(n) < share)
        low, high = mean_limits(values)
        assert 0 <= low <= values.mean() <= high <= 1
        n_held += low <= mean <= high
    assert n_held >= enough(200)


def test_no_miss_among_a_thousand_points_limits_the_share_to_half_a_percent():
    assert mean_limits(np.zeros(1000)) == (0.0, pytest.approx(0.0041, abs=1e-4))
    assert mean_limits(np.ones(1000)) == (pytest.approx(1 - 0.0041, abs=1e-4), 1.0)


@pytest.mark.parametrize("wrong", [(), (0,), (1, 4, 6), range(8)])
def test_losses_of_all_points_are_known_without_an_error(wrong):
    found = certificate(kept(wrong), weights=np.arange(1.0, 9.0))
    assert (found["n_points"], found["agreement"]) == (8, 1 - len(wrong) / 8)
    assert found["agreement_interval"] == [found["agreement"]] * 2
    w, own, best = np.arange(1.0, 9.0), kept(wrong).costs[:, 0], SQUARES.min(axis=1)
    assert found["relative_excess"] == pytest.approx(w @ own / (w @ best) - 1)
    assert found["relative_excess_interval"] == [found["relative_excess"]] * 2


@pytest.mark.parametrize("n", [1, 2])
def test_the_shortfall_of_all_points_is_that_of_f(n):
    found = certificate(kept([0, 5], n), -0.02)
    exact = logsumexp(-0.02 * np.sort(SQUARES, axis=1)[:, :n], axis=1)
    short = exact - logsumexp(-0.02 * kept([0, 5], n).costs, axis=1)
    assert found["shortfall"] == pytest.approx(short.mean())
    assert found["shortfall_interval"] == [found["shortfall"]] * 2
    assert certificate(kept((), n), -0.02)["shortfall"] == pytest.approx(0, abs=1e-15)


def test_a_center_that_is_as_near_as_the_found_one_counts_as_found():
    both = ActiveSet(np.array([[1]], np.int32), np.array([[25.0]]))
    assert certificate(both, rows=np.array([[5.0]]))["agreement"] == 1.0


def test_points_on_their_centers_have_no_excess():
    found = ActiveSet(np.arange(3, dtype=np.int32)[:, np.newaxis], np.zeros((3, 1)))
    assert certificate(found, rows=CENTERS)["relative_excess_interval"] == [0.0, 0.0]
    assert known_loss(Loss(Model()), (0.0, 3.0), (0.0, 3.0))["relative_excess"] == 0.0


def test_the_interval_of_an_agreement_is_wilson_s():
    noise = np.random.default_rng(0).standard_normal((3000, 8))
    found = KMeans(60, search=Graph(4, certificate=500), random_state=0).fit(noise).certificate_
    p = found["agreement"]
    ends = np.sort(np.roots([1 + Z**2 / 500, -(2 * p + Z**2 / 500), p**2]))
    np.testing.assert_allclose(found["agreement_interval"], ends, atol=1e-8)


GENERATED = clustered(2000, 5, seed=3, n_clusters=90)
COUNTS = np.random.default_rng(4).poisson(np.exp(GENERATED[:, :3] / np.abs(GENERATED).max()))
HOLES = np.where(np.random.default_rng(5).random(GENERATED.shape) < 0.15, np.nan, GENERATED)
WEIGHTS = np.random.default_rng(6).exponential(size=len(GENERATED))
PARTIAL = {"search": Graph(3, final_assignment="found", certificate=300), "max_iter": 3}
COVERED = {
    "k-means": (KMeans(90, **PARTIAL), GENERATED, None),
    "k-means, weights": (KMeans(90, **PARTIAL), GENERATED, WEIGHTS),
    "k-means, cosine": (KMeans(90, metric="cosine", **PARTIAL), GENERATED, WEIGHTS),
    **{
        family: (GaussianMixture(60, covariance_type=family, n_active=2, **PARTIAL), GENERATED, WEIGHTS)
        for family in ("tied_spherical", "spherical", "diag", "tied", "full", "factors")
    },
    **{
        f"{family}, missing values": (
            GaussianMixture(60, covariance_type=family, n_active=2, missing="marginal", **PARTIAL),
            HOLES,
            None,
        )
        for family in ("tied_spherical", "diag")
    },
    "hard": (GaussianMixture(60, covariance_type="diag", assignment="hard", n_active=2, **PARTIAL), GENERATED, None),
    "t": (StudentTMixture(60, covariance_type="diag", n_active=2, **PARTIAL), GENERATED, None),
    "Poisson": (PoissonMixture(60, n_active=2, **PARTIAL), COUNTS, None),
    "categorical": (CategoricalMixture(60, n_active=2, **PARTIAL), COUNTS, None),
}


def holds(estimator, X, weights, seed):
    """Fit, and return whether the interval of the certificate contains the true loss."""
    fit = estimator.set_params(random_state=seed).fit(X, sample_weight=weights)
    found = fit.certificate_
    if "relative_excess" in found:
        low, high = found["relative_excess_interval"]
        return low <= fit.inertia_ / -fit.score(X, sample_weight=weights) - 1 <= high
    low, high = found["shortfall_interval"]
    lost = fit.bounds(X, sample_weight=weights).free_energy - fit.lower_bound_
    return low - 1e-9 <= lost <= high


@pytest.mark.parametrize("name", long_but(["k-means, weights", "diag", "t", "Poisson"], COVERED))
def test_intervals_of_certificates_hold(name):
    held = [holds(*COVERED[name], seed) for seed in range(4)]
    assert sum(held) >= enough(4)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", long_but(["k-means, weights"], ["k-means, weights", "diag", "hard"], mark=pytest.mark.rare)
)
def test_intervals_of_certificates_hold_in_95_percent_of_200_fits(name):
    held = [holds(*COVERED[name], seed) for seed in range(200)]
    assert sum(held) >= enough(200)


def patches():
    """Return 20,000 overlapping 8 × 8 patches of a photograph, as rows of gray values."""
    gray = load_sample_image("china.jpg").mean(axis=2, dtype=np.float32)
    every = np.lib.stride_tricks.sliding_window_view(gray, (8, 8)).reshape(-1, 64)
    return every[np.random.default_rng(0).choice(len(every), 20_000, replace=False)]


@pytest.mark.rare
@pytest.mark.parametrize("read", [patches, lambda: load_digits().data], ids=["patches", "digits"])
def test_intervals_of_certificates_hold_for_real_data(read):
    X = read()
    estimator = KMeans(len(X) // 50, search=Graph(4, final_assignment="found"), max_iter=4)
    held = [holds(estimator, X, None, seed) for seed in range(200)]
    assert sum(held) >= enough(200)


def test_a_loss_that_an_exact_final_pass_shows_has_no_error():
    weights = np.random.default_rng(1).exponential(size=2000)
    make = GaussianMixture(60, covariance_type="diag", n_active=2, **PARTIAL, random_state=0)
    found = make.fit(GENERATED, sample_weight=weights)
    lost = found.bounds(GENERATED, sample_weight=weights).free_energy - found.lower_bound_
    exact = make.set_params(search__final_assignment="exact").fit(GENERATED, sample_weight=weights).certificate_
    assert exact["shortfall"] == pytest.approx(lost, abs=1e-9)
    assert exact["shortfall_interval"] == [exact["shortfall"]] * 2


def test_rows_of_zero_weight_change_no_certificate():
    weights = np.repeat([1.0, 0.0], 2000)
    both = np.concatenate([GENERATED, GENERATED + 100])
    alone = KMeans(90, random_state=0, **PARTIAL).fit(GENERATED).certificate_
    assert KMeans(90, random_state=0, **PARTIAL).fit(both, sample_weight=weights).certificate_ == alone
