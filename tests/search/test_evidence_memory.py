"""Estimated lists are summed during a pass, so memory does not grow with the number of candidates per point."""

import json
import sys
import tracemalloc

import numpy as np
import pytest

from cprime import GaussianMixture, KMeans
from cprime.search import Papers

pytestmark = [
    pytest.mark.filterwarnings("ignore:The fit did not converge"),
    pytest.mark.filterwarnings("ignore::cprime.SearchQualityWarning"),
]

N, C, D = 200_000, 300, 8
MOST = 400  # bytes per point, without the data; ids and values of all candidates would take 1,000 and more

PROGRAM = """
import json, sys
import numpy as np
from cprime import GaussianMixture

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

X = np.random.default_rng(0).standard_normal(({N}, {D}))
given = dict(covariance_type="tied_spherical", n_active=5, search="estimated", init_params="random", max_iter=2)
mixture = GaussianMixture({C}, tol=0, random_state=0, n_threads=2, **given)
mixture.fit(X[:2000])
before = peak()
mixture.fit(X)
sys.stdout.write(json.dumps(peak() - before))
"""


def most_taken(estimator, X):
    """Return the peak bytes of arrays during a fit, per point."""
    tracemalloc.start()
    try:
        estimator.fit(X)
        return tracemalloc.get_traced_memory()[1] / len(X)
    finally:
        tracemalloc.stop()


def points(dtype):
    return np.random.default_rng(0).standard_normal((N, D), dtype=dtype)


@pytest.mark.parametrize(
    ("family", "n_neighbors", "dtype"),
    [("tied_spherical", 16, np.float64), ("tied_spherical", 30, np.float32), ("diag", 16, np.float32)],
)
@pytest.mark.long
def test_evidence_of_a_mixture_takes_bounded_memory(family, n_neighbors, dtype):
    gm = GaussianMixture(
        C,
        covariance_type=family,
        n_active=5,
        search=Papers("estimated", n_neighbors=n_neighbors),
        init_params="random",
        max_iter=2,
        tol=0,
        reg_covar=1e-3,
        random_state=0,
        n_threads=2,
    )
    taken = most_taken(gm, points(dtype))
    assert taken < MOST


@pytest.mark.parametrize("n_neighbors", [16, pytest.param(100, marks=pytest.mark.long)])
def test_evidence_of_k_means_takes_bounded_memory(n_neighbors):
    search = Papers("estimated", n_neighbors=n_neighbors)
    km = KMeans(C, search=search, init="random", max_iter=2, random_state=0, n_threads=2)
    taken = most_taken(km, points(np.float64))
    assert taken < MOST


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is read from /proc")
@pytest.mark.long
def test_compiled_code_does_not_take_it_either(forked):
    code = PROGRAM.format(N=N // 2, C=C, D=D)
    run = forked(code)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) / (N // 2) < MOST
