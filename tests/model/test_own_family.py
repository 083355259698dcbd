"""A family defined in a file of its own works everywhere, without a change elsewhere."""

import sys
from pathlib import Path

import numpy as np
import pytest
from laplace import Laplace

import cprime
from cprime import GaussianMixture, open_data
from cprime.model import FAMILIES, register
from cprime.search import Full, Graph, Papers
from fits import assert_same, died

pytestmark = [
    pytest.mark.filterwarnings("ignore:The fit did not converge"),
    pytest.mark.filterwarnings("ignore::cprime.SearchQualityWarning"),
]
SEARCHES = {
    "full": Full(),
    "graph": Graph(6),
    "exact": Papers("exact", n_neighbors=6),
    "estimated": Papers("estimated", n_neighbors=6, n_explore=2),
}
C, D = 12, 3


@pytest.fixture(autouse=True, scope="module")
def known():
    """Register the Laplace family during these tests only, because other tests go through all families."""
    register(Laplace)
    yield
    del FAMILIES["laplace"]


def points(n=1500, dtype=np.float64):
    rng = np.random.default_rng(0)
    places = 6 * rng.standard_normal((C, D))
    return (places[rng.integers(C, size=n)] + rng.laplace(size=(n, D))).astype(dtype)


def laplace(n_active=3, **given):
    given = {"random_state": 0, "max_iter": 15, "tol": 1e-300, "reg_covar": 1e-4, "init_params": "random"} | given
    return GaussianMixture(C, covariance_type="laplace", n_active=n_active, **given)


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES.keys())
@pytest.mark.parametrize("n_active", [1, 3])
@pytest.mark.parametrize("assignment", ["soft", "hard", "sampled"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_search_and_assignment_takes_an_own_family(dtype, assignment, n_active, search):
    X, w = points(dtype=dtype), np.random.default_rng(1).integers(0, 3, 1500)
    gm = laplace(n_active, search=search, assignment=assignment).fit(X, sample_weight=w)
    assert np.isfinite(gm.lower_bounds_).all()
    if assignment != "sampled":
        assert (np.diff(gm.lower_bounds_) >= -1e-6).all()
    assert gm.means_.dtype == dtype
    assert gm.score(X, sample_weight=w) >= gm.lower_bound_ - 1e-5


def test_its_exact_em_is_better_on_such_data_than_gaussians():
    X = points(6000)
    ours, gaussians = (
        GaussianMixture(C, covariance_type=family, n_active=None, random_state=0, max_iter=60)
        for family in ("laplace", "diag")
    )
    assert ours.fit(X).score(X) > gaussians.fit(X).score(X) + 0.05
    assert (np.diff(ours.lower_bounds_) >= -1e-5).all()
    np.testing.assert_allclose(ours.predict_proba(X).sum(axis=1), 1, rtol=1e-6)
    drawn, labels = ours.sample(40_000)
    spread = np.sqrt(np.square(drawn - ours.means_[labels]).mean(axis=0) / ours.covariances_[labels].mean(axis=0))
    np.testing.assert_allclose(spread, 1, atol=0.05)


def test_chunks_files_and_threads_change_no_bit(tmp_path):
    X = points()
    np.save(tmp_path / "X.npy", X)
    first, *others = (
        laplace(n_threads=n_threads).fit(open_data(data, chunk_rows=400))
        for data, n_threads in ((X, 1), (tmp_path / "X.npy", 1), (X, 3))
    )
    for other in others:
        assert_same(other, first)


def test_a_weight_is_a_repetition():
    X, w = points(400), np.random.default_rng(1).integers(1, 4, 400)
    start = {"means_init": X[:C], "max_iter": 2}  # later a mean may coincide with a point, whose pull is rounding
    weighted, repeated = laplace(None, **start), laplace(None, **start)
    weighted.fit(X, sample_weight=w)
    repeated.fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-6, atol=1e-6)


def test_batches_of_an_own_family_do_not_lower_its_score():
    X = points(4000)
    gm = laplace(max_iter=5)
    for batch in np.split(X, 8):
        gm.partial_fit(batch)
    before = gm.score(X)
    for batch in np.split(X, 8):
        gm.partial_fit(batch)
    assert gm.score(X) > before - 0.1
    assert np.isfinite(gm.covariances_).all()


def test_an_own_family_is_stored_and_resumed(tmp_path):
    X = points()
    np.save(tmp_path / "X.npy", X)
    whole = laplace().fit(tmp_path / "X.npy")
    whole.save(tmp_path / "model.safetensors")
    loaded = cprime.load(tmp_path / "model.safetensors")
    assert_same(loaded, whole)
    np.testing.assert_array_equal(loaded.predict(X), whole.predict(X))

    assert died(laplace(checkpoint=str(tmp_path / "fit")), 7, tmp_path / "X.npy")
    assert_same(cprime.resume(tmp_path / "fit"), whole)


def test_reports_and_pictures_take_an_own_family(tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    from matplotlib import pyplot as plt

    from cprime.plots import ClustersDisplay

    X = points(400)
    gm = laplace().fit(X)
    assert "laplace" in gm.report(X).html
    assert ClustersDisplay.from_estimator(gm, X).covariances.shape == (C, 2, 2)
    plt.close("all")


def test_many_components_need_no_extrapolation():
    """Fits of more than 16 components use momentum by default, which a family need not support."""
    X = points()
    many = GaussianMixture(20, covariance_type="laplace", random_state=0, max_iter=5).fit(X)
    assert (np.diff(many.lower_bounds_) >= -1e-6).all()
    with pytest.raises(ValueError, match=r"momentum=True needs a family .* got covariance_type='laplace'"):
        GaussianMixture(20, covariance_type="laplace", momentum=True).fit(X)


def test_marginals_that_it_does_not_say_are_refused():
    gm = laplace().fit(points(400))
    with pytest.raises(TypeError, match="Laplace must say what its marginals are"):
        gm.marginal([0])
    with pytest.raises(TypeError, match="Laplace must say what its conditionals are"):
        gm.regress(points(400), [0])


def test_an_own_family_is_one_file():
    assert len(Path(sys.modules["laplace"].__file__).read_text(encoding="utf-8").splitlines()) <= 130
