"""Eq. (52) of Kearns, Mansour & Ng: its zero, its sign, and its equality with the derivative of the posterior loss."""

import numpy as np
import pytest

from cprime.theory import posterior_loss, repulsion, repulsion_zero


def test_zero_is_the_printed_one():
    zero = repulsion_zero()
    assert round(zero, 3) == 0.218
    assert (1 - zero) * np.log2((1 - zero) / zero) == pytest.approx(1 / np.log(2))
    assert repulsion(zero - 1e-9) > 0 > repulsion(zero + 1e-9)


def test_repulsion_is_infinite_at_zero():
    assert repulsion(0.0) == np.inf
    assert repulsion(1.0) == repulsion(0.5) == pytest.approx(-1 / np.log(2))
    assert repulsion([[0.1, 0.2], [0.3, 0.4]]).shape == (2, 2)


@pytest.mark.parametrize("total", [1e-3, 1.0, 50.0])
def test_it_is_the_derivative_by_the_density_in_bits(total):
    R = np.linspace(0.02, 0.98, 30)
    log_p = np.log(total * np.column_stack([R, 1 - R]))
    by_log_p = posterior_loss(log_p)[1][:, 0]
    np.testing.assert_allclose(by_log_p / (total * R) * total, repulsion(R), atol=1e-9)


@pytest.mark.parametrize("ratio", [-0.1, 1.1, np.nan])
def test_what_is_no_share_is_refused(ratio):
    with pytest.raises(ValueError, match="ratio must lie between 0 and 1"):
        repulsion(ratio)
