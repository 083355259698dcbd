"""The Anderson–Darling test: SciPy's statistic, weights as repetitions, and the rejected share of Gaussians."""

import numpy as np
import pytest
from scipy import stats

from cprime.selection.normality import anderson_darling, p_value


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_statistic_is_scipys_but_for_the_correction(rng):
    for n in (8, 50, 1000):
        x = rng.exponential(size=n)
        expected = stats.anderson(x).statistic * (1 + 0.75 / n + 2.25 / n**2)
        assert anderson_darling(x)[0] == pytest.approx(expected, rel=1e-9)


def test_a_weight_is_a_repetition(rng):
    x, w = rng.standard_normal(40), rng.integers(1, 4, 40)
    assert anderson_darling(x, w.astype(float)) == pytest.approx(anderson_darling(np.repeat(x, w)), rel=1e-9)


def test_place_and_scale_do_not_matter(rng):
    x = rng.standard_normal(100)
    assert anderson_darling(3 + 1e4 * x) == pytest.approx(anderson_darling(x), rel=1e-9)


@pytest.mark.parametrize("power", [-1000, -600, 480, 900])
def test_squares_beyond_their_type_do_not_matter(rng, power):
    values = rng.normal(size=200)
    np.testing.assert_allclose(anderson_darling(np.ldexp(values, power)), anderson_darling(values), rtol=1e-12)


def test_gaussians_are_rejected_as_often_as_the_level_says(rng):
    p = np.array([anderson_darling(rng.standard_normal(60))[1] for _ in range(4000)])
    for alpha in (0.5, 0.1, 0.01):
        error = np.sqrt(alpha * (1 - alpha) / len(p))
        assert abs(np.mean(p < alpha) - alpha) < 4 * error + 0.03 * alpha


def test_p_value_falls_and_has_no_leaps():
    A = np.linspace(0.01, 200, 40_000)
    p = np.array([p_value(a) for a in A])
    assert (np.diff(p) <= 2e-3).all()  # the pieces of the table agree at their ends to three digits
    assert np.abs(np.diff(p)).max() < 0.02
    assert 0 <= p.min() < p.max() <= 1
    assert p_value(1e6) == p_value(150)


def test_critical_values_are_the_published_ones():
    """The p-values agree with Hamerly & Elkan (1.8692 at 0.0001) and D'Agostino & Stephens (0.752 at 0.05, 1.035 at
    0.01).
    """
    assert p_value(1.8692) == pytest.approx(1e-4, rel=0.15)
    assert p_value(0.752) == pytest.approx(0.05, rel=0.02)
    assert p_value(1.035) == pytest.approx(0.01, rel=0.02)


def test_far_values_do_not_overflow(rng):
    statistic, p = anderson_darling(np.append(rng.standard_normal(5000), 1e12))
    assert np.isfinite(statistic)
    assert p < 1e-10
