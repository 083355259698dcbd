"""Law: results are bit-identical for any number of threads."""

import pytest
from registry import POOR_FITS_PASS, answers, check_same_bits, configurations, estimator_of, executed, fitted, points_of

pytestmark = POOR_FITS_PASS


@pytest.mark.parametrize("each", configurations())
def test_threads_change_no_bit(each):
    X, weights = points_of(each)
    one, three = (estimator_of(each, n_threads=n).fit(executed(each, X), sample_weight=weights) for n in (1, 3))
    check_same_bits(fitted(three), fitted(one))
    check_same_bits(answers(three, X), answers(one, X))
