"""The estimator passed to a callback predicts rows of the user's data, even if the fit transformed its data first."""

import numpy as np
import pytest

from cprime import GaussianMixture, KMeans, open_data
from cprime.sources.prepared import PreparedSource, learned

X = np.random.default_rng(0).standard_normal((300, 2)) * [1, 1000] + [5, 70_000]


class Predicting:
    """Callback that predicts the labels of the user's untransformed rows after every iteration."""

    def __init__(self):
        self.labels = []

    def on_fit_begin(self, estimator):
        pass

    def on_iteration(self, row, estimator):
        self.labels.append(estimator.predict(X))

    def on_fit_end(self, estimator):
        pass


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("make", [KMeans, GaussianMixture])
def test_predictions_in_a_callback_prepare_rows_as_the_fit(make):
    source = open_data(X)
    prepared = PreparedSource(source, learned(source, fill=False, scale=True))
    seen = Predicting()
    fit = make(4, random_state=0, callbacks=seen, max_iter=60, tol=0).fit(prepared)
    np.testing.assert_array_equal(seen.labels[-1], fit.predict(X))
    assert len(np.unique(seen.labels[0])) == 4
