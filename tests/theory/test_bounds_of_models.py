"""Lower bounds of J* beside the J of a fitted model: both are for the same rows and weights."""

import numpy as np
import pytest
from test_lower_bound import groups

from cprime import KMeans
from cprime.theory import lower_bound

WIDE = np.concatenate([groups(40, 2, 2, 9, np.random.default_rng(1)), [[4.0, 40.0]] * 3])


@pytest.mark.parametrize(
    "fit",
    [
        lambda: KMeans(3, random_state=0).fit(WIDE),
        lambda: KMeans(3, fixed=[[-30.0, -30.0]], random_state=0).fit(WIDE),
        lambda: KMeans(3, size_max=16, random_state=0).fit(WIDE),
        lambda: KMeans(3, random_state=0).partial_fit(WIDE[:20]),
        lambda: KMeans(3, random_state=0).fit(WIDE, sample_weight=np.arange(43.0)),
        lambda: KMeans(3, init=WIDE[:3], max_iter=1, search="full", jumps=False).fit(WIDE),
    ],
    ids=["free", "fixed centers", "sizes", "batch", "weights", "max_iter"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_bound_is_compared_with_the_j_of_the_model_for_the_same_rows(fit):
    km = fit()
    found, J = lower_bound(WIDE, km, random_state=0), -km.score(WIDE)
    assert found.inertia == pytest.approx(J, rel=1e-12)
    assert found.gap == pytest.approx(1 - found.value / J, abs=1e-12)
    best = KMeans(3, n_init=20, random_state=0).fit(WIDE).inertia_
    assert found.value <= best * (1 + 1e-9)
    assert f"% lower than {J:.6g}" in repr(km)
    assert ("for the rows and weights of the bound" in repr(km)) == (abs(km.inertia_ / J - 1) > 1e-4)
