"""A fit aborted after any pass continues, by `resume` or by the same call, and ends with bit-identical results."""

import numpy as np
import pytest

import cprime
from cprime import GaussianMixture, KMeans
from fits import assert_same, clustered, died, random_weights

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
FITS = {
    "k-means, graph": lambda **more: KMeans(6, search="graph", max_iter=12, tol=0, **more),
    "k-means, two starts": lambda **more: KMeans(6, n_init=2, init="random", max_iter=6, tol=0, **more),
    "mixture": lambda **more: GaussianMixture(4, n_active=2, covariance_type="diag", max_iter=6, tol=1e-9, **more),
    "mixture, two starts": lambda **more: GaussianMixture(
        4, covariance_type="diag", n_init=2, init_params="random", max_iter=4, tol=1e-9, **more
    ),
}


def maker(name):
    return lambda checkpoint=None: FITS[name](random_state=3, n_threads=1, checkpoint=checkpoint)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", FITS)
def test_a_fit_that_dies_after_any_pass_ends_in_the_same_bits(name, weighted, tmp_path):
    X, make = clustered(), maker(name)
    weights = random_weights(len(X)) if weighted else None
    expected, passes = make().fit(X, sample_weight=weights), 1
    while died(make(tmp_path / str(passes)), passes, X, sample_weight=weights):
        folder = tmp_path / str(passes)
        found = cprime.resume(folder) if passes % 2 else make(folder).fit(X, sample_weight=weights)
        assert_same(found, expected)
        assert sorted(path.name for path in folder.iterdir()) == ["fit.safetensors", "model.safetensors"]
        passes += 1
    assert passes > 2


def test_a_fit_may_die_again_and_again(tmp_path):
    X, make = clustered(), maker("k-means, graph")
    expected = make().fit(X)
    deaths = sum(died(make(tmp_path / "folder"), 2, X) for _ in range(expected.n_iter_))
    assert deaths == expected.n_iter_ - 1  # the pass after which the fit is aborted is lost
    assert_same(cprime.resume(tmp_path / "folder"), expected)


def test_an_audit_and_its_longer_lists_go_on(tmp_path):
    X = clustered(2000, 8, n_clusters=90)

    def make(checkpoint=None):
        return KMeans(90, search="graph", random_state=0, checkpoint=checkpoint, n_threads=1, max_iter=14, tol=0)

    expected = make().fit(X)
    for passes in (4, 5, 6, 7):
        assert died(make(tmp_path / str(passes)), passes, X)
        assert_same(cprime.resume(tmp_path / str(passes)), expected)


def test_clusters_that_jump_go_on(tmp_path, caplog):
    places = 9 * np.random.default_rng(0).standard_normal((300, 6))
    X = np.repeat(places, 8, axis=0) + 0.3 * clustered(2400, 6)

    def make(checkpoint=None):
        return KMeans(300, search="graph", random_state=0, checkpoint=checkpoint, n_threads=1)

    with caplog.at_level("INFO", logger="cprime"):
        expected = make().fit(X)
    assert any("jumps moved" in record.getMessage() for record in caplog.records)
    for passes in range(1, min(expected.n_iter_, 8)):
        assert died(make(tmp_path / str(passes)), passes, X)
        assert_same(cprime.resume(tmp_path / str(passes)), expected)


def test_relocated_clusters_go_on(tmp_path):
    X = clustered()
    init = np.vstack([X[:4], np.full((2, 3), 1e3)])

    def make(checkpoint=None):
        return KMeans(6, init=init, random_state=0, checkpoint=checkpoint, tol=0, max_iter=8)

    expected = make().fit(X)
    assert expected.n_relocated_ > 0
    for passes in range(1, expected.n_iter_):
        assert died(make(tmp_path / str(passes)), passes, X)
        assert_same(cprime.resume(tmp_path / str(passes)), expected)
