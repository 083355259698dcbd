"""Properties of every estimator of the k-means family: dtypes, seeds, output."""

from functools import partial

import numpy as np
import pytest
from family_data import DTYPES, TOLERANCE

import cprime
from cprime import FuzzyKMeans, KMedoids, SoftKMeans
from fits import clustered, outcome

MEMBERS = {
    "soft": SoftKMeans,
    "soft, C'=2": partial(SoftKMeans, n_active=2),
    "fuzzy": FuzzyKMeans,
    "fuzzy, C'=2": partial(FuzzyKMeans, n_active=2, m=1.5),
    "entropy": partial(FuzzyKMeans, regularizer="entropy"),
    "medoids": KMedoids,
    "medoids, alternate": partial(KMedoids, method="alternate", metric="manhattan"),
}
every_member = pytest.mark.parametrize("make", MEMBERS.values(), ids=MEMBERS.keys())


@every_member
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_dtype_of_the_data_is_kept(make, dtype):
    X = clustered(100, 3, dtype)
    fit = make(5, random_state=0).fit(X)
    assert fit.cluster_centers_.dtype == fit.transform(X).dtype == dtype
    assert fit.labels_.dtype == fit.predict(X).dtype == np.int32
    if hasattr(fit, "predict_proba"):
        assert fit.predict_proba(X).dtype == fit.predict_proba(X, sparse=True).dtype == dtype
        with np.errstate(all="raise"):  # underflow of tiny memberships must raise no error
            np.testing.assert_allclose(fit.predict_proba(X * 1000).sum(axis=1), 1, rtol=1e-6)
    wide = make(5, random_state=0).fit(X.astype(np.float64))
    np.testing.assert_allclose(fit.cluster_centers_, wide.cluster_centers_, atol=TOLERANCE[dtype])
    assert fit.get_feature_names_out().tolist() == [f"{type(fit).__name__.lower()}{c}" for c in range(5)]


@every_member
def test_the_seed_decides_and_the_best_start_is_kept(make):
    X = clustered(300, 3, n_clusters=20)
    make = partial(make, 8, init="random")
    assert outcome(make(random_state=3).fit(X)) == outcome(make(random_state=3).fit(X))
    assert outcome(make(random_state=3).fit(X)) != outcome(make(random_state=4).fit(X))
    fixed = {"stiffness": 0.3} if make.func is SoftKMeans else {}
    if "regularizer" in make.keywords:
        fixed = {"regularization": 3.0}
    if make.func is SoftKMeans:  # its initializations follow from one seed
        starts = [make(random_state=4, n_init=n, **fixed).fit(X) for n in range(1, 6)]
        bounds = [fit.lower_bound_ for fit in starts]
        assert len(set(bounds)) > 1
        assert bounds == sorted(bounds)
        return
    generator = np.random.RandomState(4)
    single = [make(random_state=generator, **fixed).fit(X) for _ in range(5)]
    best = make(random_state=np.random.RandomState(4), n_init=5, **fixed).fit(X)
    quality = [getattr(fit, "lower_bound_", -getattr(fit, "objective_", fit.inertia_)) for fit in single]
    assert len(set(quality)) > 1
    assert outcome(best) == outcome(single[int(np.argmax(quality))])


def test_medoids_of_a_matrix_come_back(tmp_path):
    V = np.abs(np.subtract.outer(np.arange(20.0), np.arange(20.0)))
    fit = KMedoids(3, metric="precomputed").fit(V)
    fit.save(tmp_path / "model.safetensors")
    loaded = cprime.load(tmp_path / "model.safetensors")
    assert loaded.cluster_centers_ is None
    assert np.array_equal(loaded.predict(V), fit.labels_)


@every_member
def test_verbose_shows_the_iterations(make, capsys):
    make(3, random_state=0, verbose=1).fit(clustered(50, 2))
    assert "[cprime] iteration 1:" in capsys.readouterr().err
    make(3, random_state=0).fit(clustered(50, 2))
    assert capsys.readouterr().err == ""
