"""`sklearn.cluster.tests.test_k_means` with this library's classes."""

import numpy as np
import pytest
from their_tests import functions_of

from cprime.sklearn import MiniBatchKMeans

pytestmark = [
    pytest.mark.usefixtures("served_here"),
    pytest.mark.filterwarnings("ignore"),  # scikit-learn's tests decide which warnings are errors
]
globals().update(functions_of("sklearn.cluster.tests.test_k_means"))


def test_batches_of_few_weighted_rows_have_a_start():
    """Random rows for the start may all have weight 0; scikit-learn then divides by 0."""
    for seed in range(20):
        rng = np.random.RandomState(seed)
        X, weights = rng.randn(300, 2), np.where(np.arange(300) % 60 == 7, 1.0, 0.0)
        km = MiniBatchKMeans(3, random_state=seed, batch_size=32, init_size=40, n_init=3).fit(X, sample_weight=weights)
        assert np.isfinite(km.inertia_)
