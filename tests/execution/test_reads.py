"""Number of times a fit reads its data: a few before the first iteration, and once in each iteration."""

import numpy as np
import pytest

from cprime import GaussianMixture, KMeans, open_data
from cprime.estimators.validation import as_search
from cprime.search import Graph, Papers

N, CHUNK = 6000, 500


@pytest.fixture
def source(tmp_path):
    rng = np.random.default_rng(0)
    X = 8 * rng.standard_normal((40, 5))[rng.integers(0, 40, N)] + rng.standard_normal((N, 5))
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    read = np.zeros(N, dtype=int)

    def watch(begin, end):
        read[begin:end] += 1

    return open_data(tmp_path / "X.npy", chunk_rows=CHUNK).watched(watch), read


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("init", ["two-level", "random"])
@pytest.mark.parametrize(
    ("estimator", "more"),
    [
        (KMeans(30, search="full", max_iter=4, tol=0), 0),
        (KMeans(30, search=Graph(9), jumps=False, max_iter=4, tol=0), 0),
        (KMeans(30, search=Papers("estimated", n_neighbors=5), max_iter=4, tol=0), 0),
        # Two more reads compute the sums of the hard assignment to the initial means, and the first active sets.
        (GaussianMixture(30, covariance_type="diag", search="graph", n_active=3, max_iter=4, tol=0), 2),
        # Three more reads compute the first variance, the scatter, and labels, because there are no active sets.
        (GaussianMixture(8, covariance_type="tied_spherical", weights="equal", n_active=None, max_iter=4, tol=0), 3),
    ],
)
def test_a_fit_reads_its_data_as_often_as_it_has_to(source, estimator, more, init):
    data, read = source
    name = "init" if isinstance(estimator, KMeans) else "init_params"
    search = as_search(estimator.search).with_params(certificate=0, final_assignment="found")
    estimator.set_params(random_state=0, search=search, **{name: init}).fit(data)
    assert read.min() == read.max()  # every read covers all rows
    assert estimator.n_iter_ == 4
    start = 2 if init == "two-level" else 1
    assert read[0] <= start + more + 4 + 1  # the iterations, and the final pass with the returned parameters
