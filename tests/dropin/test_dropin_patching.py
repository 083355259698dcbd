"""An unchanged program gets this library's estimators while scikit-learn is patched, and scikit-learn's afterwards."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import sklearn.cluster
import sklearn.mixture
from sklearn.cluster import SpectralClustering
from sklearn.preprocessing import KBinsDiscretizer

import cprime.sklearn

PROGRAM = """
import sys
from sklearn import cluster
from sklearn.mixture import GaussianMixture
import numpy as np

X = np.random.default_rng(0).normal(size=(60, 2))
for model in (cluster.KMeans(3, random_state=0), cluster.MiniBatchKMeans(3), GaussianMixture(2)):
    print(type(model.fit(X)).__module__)
print(__name__, sys.argv[1:])
"""


@pytest.fixture
def patched():
    before = {name: getattr(sklearn.cluster, name) for name in sklearn.cluster.__all__}
    cprime.sklearn.patch()
    yield
    cprime.sklearn.unpatch()
    assert {name: getattr(sklearn.cluster, name) for name in before} == before


def test_patched_names_are_ours_and_come_back():
    theirs = sklearn.cluster.KMeans, sklearn.mixture.GaussianMixture
    cprime.sklearn.patch()
    cprime.sklearn.patch()
    try:
        assert sklearn.cluster.KMeans is cprime.sklearn.KMeans
        assert sklearn.mixture.GaussianMixture is cprime.sklearn.GaussianMixture
        assert sklearn.cluster.k_means is cprime.sklearn.k_means
    finally:
        cprime.sklearn.unpatch()
    assert (sklearn.cluster.KMeans, sklearn.mixture.GaussianMixture) == theirs
    cprime.sklearn.unpatch()
    assert sklearn.cluster.KMeans is theirs[0]


@pytest.mark.usefixtures("patched")
def test_functions_of_scikit_learn_go_on_while_patched():
    X = np.random.default_rng(0).normal(size=(80, 2))
    assert sklearn.cluster.kmeans_plusplus(X, 3, random_state=0)[0].shape == (3, 2)
    assert len(set(SpectralClustering(3, random_state=0, n_neighbors=10).fit_predict(X))) == 3
    bins = KBinsDiscretizer(3, strategy="kmeans", quantile_method="linear") if _has_quantile_method() else None
    assert bins is None or bins.fit_transform(X).shape[0] == 80


def _has_quantile_method() -> bool:
    return "quantile_method" in KBinsDiscretizer().get_params()


def test_pickles_are_read_whoever_wrote_them():
    X = np.random.default_rng(0).normal(size=(80, 2))
    theirs = sklearn.cluster.KMeans(3, random_state=0).fit(X)
    cprime.sklearn.patch()
    try:
        assert np.array_equal(pickle.loads(pickle.dumps(theirs)).predict(X), theirs.predict(X))
        ours = sklearn.cluster.KMeans(3, random_state=0).fit(X)
        stored = pickle.dumps(ours)
    finally:
        cprime.sklearn.unpatch()
    assert np.array_equal(pickle.loads(stored).predict(X), ours.predict(X))


def run(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "cprime.sklearn", *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )


@pytest.mark.long
@pytest.mark.parametrize("arguments", ["program.py", "-m program"])
def test_an_unchanged_program_runs(arguments, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "helper.py").write_text("", encoding="utf-8")
    ours = ("kmeans", "mini_batch", "mixture")
    expected = "".join(f"cprime.sklearn.{name}\n" for name in ours) + "__main__ ['--depth', '3']\n"
    found = run(*arguments.split(), "--depth", "3", cwd=tmp_path)
    assert (found.stdout, found.stderr, found.returncode) == (expected, "", 0)


def test_without_a_program_it_says_what_it_wants(forked, tmp_path):
    module = "import runpy; runpy.run_module('cprime.sklearn', run_name='__main__', alter_sys=True)"
    found = forked(module, folder=tmp_path)
    assert found.returncode == 2
    assert found.stderr.startswith("usage: python -m cprime.sklearn")
    found = forked(module, "nothing.py", folder=tmp_path)
    assert found.returncode != 0
    assert found.stderr.endswith("there is no program nothing.py\n")
    assert "usage" in forked(module, "--help", folder=tmp_path).stdout
