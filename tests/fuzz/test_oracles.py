"""The reference implementations for generated cases agree with exact rational arithmetic."""

from fractions import Fraction
from math import log

import numpy as np
import pytest
from reliability.oracles import log_densities
from scipy.stats import multivariate_normal


class Factored:
    """Stand-in for a fitted mixture of one factor analyzer, with the attributes that the references read."""

    def __init__(self, loadings, noise):
        self.means_, self.weights_ = np.zeros((1, len(noise))), np.ones(1)
        self.factors_, self.noise_variances_ = loadings[np.newaxis], noise[np.newaxis]


def exact_log_density(x, loadings, noise):
    """Return the log density of x under N(0, Λ Λᵀ + diag(ψ)), computed by Gaussian elimination of fractions."""
    D = len(x)
    rows = [[Fraction(value) for value in row] for row in loadings.tolist()]
    table = [[sum(a * b for a, b in zip(rows[i], rows[j], strict=True)) for j in range(D)] for i in range(D)]
    for i in range(D):
        table[i][i] += Fraction(float(noise[i]))
        table[i].append(Fraction(float(x[i])))
    log_determinant, square = 0.0, Fraction(0)
    for i in range(D):  # the pivots are those of L D Lᵀ
        pivot = table[i][i]
        log_determinant += log(pivot.numerator) - log(pivot.denominator)
        square += table[i][D] ** 2 / pivot
        for j in range(i + 1, D):
            ratio = table[j][i] / pivot
            table[j] = [a - ratio * b for a, b in zip(table[j], table[i], strict=True)]
    return -(D * log(2 * np.pi) + log_determinant + float(square)) / 2


@pytest.mark.parametrize("spread", [0, 6, 36])
@pytest.mark.parametrize("observed", [5, 3, 1])
def test_log_densities_of_factor_analyzers_are_exact(observed, spread):
    """Log densities are exact for noise variances that differ by up to 10^72, with and without missing values."""
    rng = np.random.default_rng(spread)
    noise = 10.0 ** rng.uniform(-spread, spread, 5)
    loadings = rng.normal(size=(5, 2)) * 10.0 ** rng.uniform(-spread / 2, spread / 2, (5, 1))
    x = rng.normal(size=5) * np.sqrt(noise)
    x[rng.permutation(5)[observed:]] = np.nan
    there = ~np.isnan(x)
    found, _ = log_densities(Factored(loadings, noise), x[np.newaxis], np.float64)
    assert found[0, 0] == pytest.approx(exact_log_density(x[there], loadings[there], noise[there]), rel=1e-9)


class Correlated:
    """Stand-in for a fitted mixture of one component with a covariance matrix, with the attributes that the references
    read.
    """

    covariance_type_ = "full"

    def __init__(self, covariance):
        self.means_, self.weights_ = np.zeros((1, len(covariance))), np.ones(1)
        self.covariances_ = covariance[np.newaxis]
        self.precisions_cholesky_ = np.linalg.inv(np.linalg.cholesky(covariance)).transpose()[np.newaxis]


def test_tolerances_of_marginal_densities_follow_the_observed_columns():
    """Complete rows of two columns and their sum are ill conditioned, but rows of any two columns are not."""
    mixture = Correlated(np.array([[1.0, 0, 1], [0, 1, 1], [1, 1, 2 + 1e-12]]))
    x = np.array([[0.5, -1.0, -0.5], [0.5, -1.0, np.nan], [0.5, np.nan, -0.5], [np.nan, -1.0, -0.5]])
    found, errors = log_densities(mixture, x, np.float64)
    assert (errors[1:] < 1e-7).all()
    assert errors[0] > 1e-5
    for row, (density,) in zip(x[1:], found[1:], strict=True):
        there = ~np.isnan(row)
        own = multivariate_normal(np.zeros(2), mixture.covariances_[0][np.ix_(there, there)])
        assert density == pytest.approx(own.logpdf(row[there]), abs=1e-12)
