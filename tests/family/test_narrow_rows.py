"""Fits of narrow rows by other estimators of the family equal those of a float32 copy, without copying all rows."""

import numpy as np
import pytest
from sklearn import clone

from cprime import FuzzyKMeans, GMeans, KMedoids, XMeans
from cprime.kernels import StoredRows

FITS = {
    "fuzzy": FuzzyKMeans(4, random_state=0, max_iter=5, tol=0),
    "entropy, some": FuzzyKMeans(4, regularizer="entropy", n_active=2, random_state=0, max_iter=5),
    "X-means": XMeans(max_clusters=6, random_state=0),
    "G-means": GMeans(max_clusters=6, random_state=0),
}
N, D = 9000, 3


def numbers(dtype):
    rng = np.random.default_rng(0)
    X = 60 + 15 * rng.standard_normal((5, D))[rng.integers(5, size=N)] + 3 * rng.standard_normal((N, D))
    return np.clip(X, 1, 120).astype(dtype)


@pytest.fixture
def widened(monkeypatch):
    most, dense = [0], StoredRows.dense
    for name in ("stored._SHORT", "stored._PIECE_BYTES", "rows._CENTERED"):
        monkeypatch.setattr(f"cprime.kernels.{name}", 3000 if "CENTERED" in name else 0 if "SHORT" in name else 1)
    monkeypatch.setattr(StoredRows, "dense", lambda X: most.append(len(X)) or dense(X))
    return most


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("fit", FITS.values(), ids=FITS.keys())
def test_fits_have_the_bits_of_the_wider_copy(fit, widened):
    X, w = numbers(np.uint8), np.random.default_rng(1).integers(1, 3, N).astype(float)
    wide = X.astype(np.float32)
    ours, theirs = clone(fit).fit(X, sample_weight=w), clone(fit).fit(wide, sample_weight=w)
    assert 0 < max(widened) < N
    for name in ("cluster_centers_", "labels_", "inertia_"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name, strict=True)
    for name in ("predict", "transform", "score", "predict_proba"):
        if hasattr(fit, name):
            np.testing.assert_array_equal(getattr(ours, name)(X), getattr(theirs, name)(wide), strict=True)


def test_medoids_are_of_numbers_that_are_computed_with():
    X = numbers(np.float16)[:40]
    ours, theirs = KMedoids(3, random_state=0).fit(X), KMedoids(3, random_state=0).fit(X.astype(np.float32))
    np.testing.assert_array_equal(ours.cluster_centers_, theirs.cluster_centers_, strict=True)
    np.testing.assert_array_equal(ours.predict(X), theirs.labels_)
