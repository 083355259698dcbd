"""Planned bytes and `max_memory` agree with the memory that fits take, measured in fresh processes."""

import pytest
from anonymous import MEASURABLE, peak
from sklearn.base import clone

import cprime
from cprime import GaussianMixture, KMeans, Memory, StudentTMixture
from cprime.estimators.memory_limit import as_memory

pytestmark = pytest.mark.skipif(not MEASURABLE, reason="needs the memory figures of Linux")

KMEANS = KMeans(300, max_iter=5, random_state=0)
DIAG = GaussianMixture(150, covariance_type="diag", max_iter=4, tol=0, random_state=0)
FACTORS = GaussianMixture(
    1500, covariance_type="factors", search="graph", n_active=3, max_iter=4, tol=0, random_state=0
)
STUDENT_T = StudentTMixture(150, covariance_type="diag", max_iter=4, tol=0, random_state=0)
FITS = {
    "k-means, graph, in memory": (KMEANS, (200_000, 24), False),
    "k-means, sizes within bounds": (KMeans(300, max_iter=5, size_max="1.1x", random_state=0), (100_000, 24), False),
    "k-means, graph, a file": (KMEANS, (200_000, 24), True),
    "mixture, diag, C'=5": (DIAG, (100_000, 16), False),
    "factors, graph": (FACTORS, (8000, 512), False),
    "t, diag, C'=5": (STUDENT_T, (100_000, 16), False),
    "exact EM, full": (GaussianMixture(10, max_iter=4, tol=0, random_state=0), (400_000, 16), False),
}
SLOW = ("k-means, sizes within bounds", "factors, graph", "exact EM, full", "t, diag, C'=5")


def bytes_held(shape):
    """Return the bytes of an array of this shape, which the plan counts and the measuring process already holds."""
    return shape[0] * shape[1] * 4


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.rare] * (name in SLOW)) for name in FITS])
def test_peak_bytes_are_those_of_the_fit(name, tmp_path):
    estimator, shape, in_file = FITS[name]
    path = tmp_path / "x.npy" if in_file else None
    taken = peak(estimator, shape, path)
    plan = cprime.plan(estimator, shape if path is None else path)
    planned = plan.peak_bytes - (0 if in_file else bytes_held(shape))
    assert taken / 1.5 < planned < 1.5 * taken


WITHIN = {
    "k-means, a file": (KMEANS, {"max_memory": "16MB"}, True),
    "k-means, a file, spilled": (KMEANS, {"max_memory": Memory("9MB", spill=".")}, True),
    "k-means, in memory": (KMEANS, {"max_memory": "20MB"}, False),
    "mixture, a file": (DIAG, {"max_memory": "40MB"}, True),
}
ALLOWANCE = 2**21  # for memory that a process allocates only once


@pytest.mark.long
@pytest.mark.parametrize("name", WITHIN)
def test_a_fit_stays_within_max_memory(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    estimator, limits, in_file = WITHIN[name]
    path = tmp_path / "x.npy" if in_file else None
    taken = peak(clone(estimator).set_params(**limits), (200_000, 24), path)
    limit = as_memory(limits["max_memory"]).n_bytes
    assert limit is not None
    assert taken < 1.1 * limit + ALLOWANCE


@pytest.mark.long
def test_the_measure_sees_what_is_not_limited(tmp_path):
    """A fit without a limit takes more than the limit of the test above."""
    assert peak(KMEANS, (200_000, 24), tmp_path / "x.npy") > 2 * 16_000_000
