"""The partition loss and its parts agree with closed forms, integrals and theorems of Kearns, Mansour & Ng."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import expon, laplace, norm

from cprime import KMeans
from cprime.theory import Gaussians, Univariate, fit_assignment, kl_divergence, partition_loss

A = Gaussians.spherical([-2, 2], 1.5)
C = Gaussians.spherical([0, 5], [1.0, 0.1], [0.95, 0.05])
P = Gaussians.spherical([-0.219, 0.906], [0.470, 1.979], [0.3, 0.7])
THREE = Gaussians.spherical([-3, 0, 4], [0.5, 1, 2], [0.2, 0.5, 0.3])
CASES = [(A, A), (P, C), (P, A), (THREE, A), (A, THREE)]


def gaussian(x, mean, deviation):
    return np.exp(-0.5 * ((x - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))


def probabilities(x, model, assignment, weights):
    """Return Pr[F(x) = b], the probability of component b at a point x, directly from its definition: (C,)."""
    alpha = model.weights if weights == "free" else np.ones(len(model.weights))
    scores = alpha * gaussian(x, model.means[:, 0], model.standard_deviations)
    if assignment == "posterior":
        return scores / scores.sum()
    return np.eye(len(scores))[scores.argmax()]


def density(x, Q):
    return float(Q.weights @ gaussian(x, Q.means[:, 0], Q.standard_deviations))


def integral(function, breaks):
    edges = [-30, *breaks, 30]
    return sum(quad(function, a, b, limit=400)[0] for a, b in pairwise(edges))


def changes(model, assignment, weights):
    """Return the points between −20 and 20 at which the best component changes, by bisection from a fine grid."""

    def winner(x):
        return probabilities(x, model, "hard", weights).argmax()

    grid = np.linspace(-20, 20, 1601) + 0.0031
    found = []
    for a, b in pairwise(grid):
        if winner(a) != winner(b):
            while b - a > 1e-13:
                middle = (a + b) / 2
                a, b = (middle, b) if winner(middle) == winner(a) else (a, middle)
            found.append(a)
    return sorted({*found, -5, -2, 0, 2, 4.5, 5, 5.5})


@pytest.mark.parametrize("weights", ["equal", "free"])
@pytest.mark.parametrize("assignment", ["hard", "posterior"])
@pytest.mark.parametrize(("model", "Q"), CASES)
def test_every_part_is_the_integral_of_its_definition(model, Q, assignment, weights):
    breaks = changes(model, assignment, weights)
    found = partition_loss(model, Q, assignment=assignment, weights=weights, unit="nats")
    total = 0.0
    for b, (mean, deviation) in enumerate(zip(model.means[:, 0], model.standard_deviations, strict=True)):
        share = integral(lambda x, b=b: density(x, Q) * probabilities(x, model, assignment, weights)[b], breaks)

        def divergence(x, b=b, mean=mean, deviation=deviation, share=share):
            q = density(x, Q) * probabilities(x, model, assignment, weights)[b] / share
            return q * np.log(q / gaussian(x, mean, deviation)) if q > 1e-300 else 0.0

        assert found.shares[b] == pytest.approx(share, abs=1e-7)
        assert found.kl[b] == pytest.approx(integral(divergence, breaks), abs=1e-6)
        total += share * found.kl[b]
    assert found.modeling == pytest.approx(total, abs=1e-9)
    entropy = integral(lambda x: -density(x, Q) * np.log(max(density(x, Q), 1e-300)), breaks)
    assert found.entropy == pytest.approx(entropy, abs=1e-7)
    assert found.partition_entropy == pytest.approx(-(found.shares * np.log(found.shares)).sum(), abs=1e-9)


@pytest.mark.parametrize("unit", ["bits", "nats"])
@pytest.mark.parametrize("assignment", ["hard", "posterior"])
@pytest.mark.parametrize(("model", "Q"), CASES)
def test_loss_is_modeling_plus_conditional_entropy(model, Q, assignment, unit):
    found = partition_loss(model, Q, assignment=assignment, unit=unit)
    assert found.loss == pytest.approx(found.modeling + found.conditional_entropy, abs=1e-9)
    assert found.information_gain <= found.partition_entropy
    assert 0 <= found.assignment_entropy <= np.log(len(model.weights)) / (np.log(2) if unit == "bits" else 1)
    assert (found.terms >= -1e-10).all()


def test_bits_are_nats_by_ln_2():
    bits, nats = (partition_loss(P, C, unit=unit) for unit in ("bits", "nats"))
    assert bits.loss * np.log(2) == pytest.approx(nats.loss)
    np.testing.assert_allclose(bits.terms * np.log(2), nats.terms)


def test_one_component_has_the_loss_of_a_gaussian():
    found = partition_loss(Gaussians.spherical([1], 2.0), Gaussians.spherical([0], 1.0), unit="nats")
    assert found.entropy == pytest.approx(0.5 * np.log(2 * np.pi * np.e))
    assert found.modeling == pytest.approx(np.log(2) + (1 + 1) / 8 - 0.5)
    assert found.information_gain == pytest.approx(0, abs=1e-9)


def test_the_posterior_partition_of_the_truth_has_no_loss():
    found = partition_loss(A, A, assignment="posterior")
    np.testing.assert_allclose(found.terms, 0, atol=1e-9)
    hard = partition_loss(A, A)
    assert hard.modeling > 0.1
    assert hard.assignment_entropy == 0 < found.assignment_entropy


def test_weighted_loss_has_no_information_term_once_the_weights_are_the_shares():
    X = C.sample(2000, 0)
    components = fit_assignment(X, Gaussians.spherical([0, 0], [1, 5]), weights="free").components
    found = partition_loss(components, X, weights="free")
    np.testing.assert_allclose(found.shares, components.weights)
    assert found.weighted_loss == pytest.approx(found.modeling + found.entropy)
    assert found.weighted_loss == pytest.approx(found.loss + found.partition_entropy)


def test_a_component_that_takes_nothing_has_no_term():
    found = partition_loss(Gaussians.spherical([0, 100], 1.0), Gaussians.spherical([0], 1.0))
    np.testing.assert_array_equal(found.shares[1], 0)
    assert found.terms[1] == 0
    assert np.isnan(found.kl[1])
    assert found.modeling == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("deviation", [1e-1, 1e-3, 1e-5])
def test_narrow_components_are_found(deviation):
    found = partition_loss(Gaussians.spherical([0, 2], [1, deviation]), Gaussians.spherical([0], 1.0))
    # ((x − 2)/s)² + 2 log s = x²
    a, b, c = 1 / deviation**2 - 1, -4 / deviation**2, 4 / deviation**2 + 2 * np.log(deviation)
    half = np.sqrt(b**2 - 4 * a * c) / (2 * a)
    share = norm.cdf(-b / (2 * a) + half) - norm.cdf(-b / (2 * a) - half)
    assert found.shares[1] == pytest.approx(share, rel=1e-4)
    assert found.loss == pytest.approx(found.modeling + found.conditional_entropy, abs=1e-9)


def test_loss_of_k_means_is_its_free_energy_without_the_weights(rng):
    X = rng.standard_normal((500, 3))
    km = KMeans(4, random_state=0).fit(X)
    found = partition_loss(km, X, unit="nats")
    assert found.loss == pytest.approx(-km.bounds(X).free_energy - np.log(4))
    assert found.weighted_loss == pytest.approx(-km.bounds(X).free_energy)
    np.testing.assert_allclose(found.shares, np.bincount(km.labels_) / 500)


def in_the_plane(line):
    """Return the mixture with an independent N(0, 1) as second coordinate."""
    means = np.column_stack([line.means[:, 0], np.zeros(len(line.means))])
    covariances = np.array([np.diag([v, 1.0]) for v in line.covariances[:, 0, 0]])
    return Gaussians(means, covariances, line.weights)


@pytest.mark.long
@pytest.mark.parametrize("assignment", ["hard", "posterior"])
def test_intervals_of_draws_cover_the_exact_values(assignment):
    exact = partition_loss(P, A, assignment=assignment, unit="nats")
    another = 0.5 * np.log(2 * np.pi * np.e)  # the second coordinate's entropy
    expected = {
        "loss": exact.loss + another,
        "entropy": exact.entropy + another,
        "modeling": exact.modeling,
        "information_gain": exact.information_gain,
        "partition_entropy": exact.partition_entropy,
        "conditional_entropy": exact.conditional_entropy + another,
    }
    inside = dict.fromkeys(expected, 0)
    terms = np.zeros(2)
    for seed in range(120):
        found = partition_loss(
            in_the_plane(P), in_the_plane(A), assignment=assignment, unit="nats", n_samples=1500, random_state=seed
        )
        for name, value in expected.items():
            low, high = found.intervals[name]
            inside[name] += low <= value <= high
        low, high = found.intervals["terms"]
        terms += (low <= exact.terms) & (exact.terms <= high)
    assert all(0.88 <= count / 120 <= 0.995 for count in [*inside.values(), *terms]), (inside, terms)


def test_entropy_of_data_is_covered():
    exact = partition_loss(A, A, unit="nats").entropy
    intervals = [partition_loss(A, A.sample(1500, seed), unit="nats").intervals["entropy"] for seed in range(60)]
    assert 0.85 <= np.mean([low <= exact <= high for low, high in intervals]) <= 1
    assert max(high - low for low, high in intervals) < 0.15


def test_densities_of_scipy_are_taken():
    Q = Univariate([laplace(0, 1), expon(2, 1)], [0.4, 0.6])
    found = partition_loss(Q, Q, weights="free", unit="nats")
    assert found.loss == pytest.approx(found.modeling + found.conditional_entropy, abs=1e-8)
    same = partition_loss(Univariate([norm(-2, 1.5), norm(2, 1.5)]), Univariate([norm(-2, 1.5), norm(2, 1.5)]))
    assert same.loss == pytest.approx(partition_loss(A, A).loss, abs=1e-9)


def test_divergences_of_gaussians_are_the_formula():
    assert kl_divergence(A, A).value == pytest.approx(0, abs=1e-10)
    plane = kl_divergence(in_the_plane(A), in_the_plane(P), n_samples=20_000, random_state=0)
    assert plane.lower < kl_divergence(A, P).value < plane.upper
    shifted = kl_divergence(Gaussians.spherical([0], 1), Gaussians.spherical([3], 1), unit="nats")
    assert shifted.value == pytest.approx(4.5)


def test_text_shows_every_part():
    found = partition_loss(P, C)
    text = str(found)
    for value in (found.loss, found.modeling, found.entropy, found.partition_entropy):
        assert f"{value:.4f}" in text
    assert "bits  [" in str(partition_loss(P, C.sample(100, 0)))
    assert "bits  [" not in text


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((A, A), {"assignment": "soft"}, "assignment must be one of"),
        ((A, A), {"weights": "other"}, "weights must be one of"),
        ((A, A), {"unit": "bans"}, "unit must be one of"),
        ((A, np.zeros((20, 1))), {}, "Q has 20 equal rows: such data have no density"),
        ((A, np.zeros((4, 1))), {}, "more than n_neighbors=5 rows, got 4"),
        ((A, np.zeros((9, 2))), {}, "Q has 2 features, but model has 1"),
        ((A, Gaussians.spherical(np.zeros((2, 2)), 1.0)), {}, "Q has 2 features, but model has 1"),
        ((A, [[np.nan]] * 9), {}, "contains NaN"),
    ],
)
def test_wrong_arguments_are_named(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        partition_loss(*arguments, **options)


def test_what_is_no_model_is_named():
    with pytest.raises(TypeError, match="model must be Gaussians"):
        partition_loss(3, A)
    with pytest.raises(TypeError, match="Q must be Gaussians"):
        kl_divergence(3, A)


@pytest.mark.parametrize("D", [1, 2, 6])
def test_repeated_rows_have_a_density(D):
    """Rounded data, each row of which occurs many times, have about the entropy of the data before rounding."""
    X = np.random.default_rng(0).normal(size=(4000, D))
    exact = D / 2 * np.log2(2 * np.pi * np.e)
    model = Gaussians.spherical(np.stack([np.full(D, -1.0), np.full(D, 1.0)]), 1.0)
    fine = partition_loss(model, X)
    coarse = partition_loss(model, X.round(0 if D > 2 else 1))
    assert fine.entropy == pytest.approx(exact, abs=0.1 * D)
    assert coarse.entropy == pytest.approx(exact, abs=0.6 * D)
    some = np.vstack([X, np.tile(X[:1], (12, 1))])
    assert partition_loss(model, some).entropy == pytest.approx(fine.entropy, abs=0.05 * D)
