"""Several starts of a mixture are of different kinds, reach what Ward's partition leads to, and do not collapse."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.datasets import load_wine

from cprime import GaussianMixture
from cprime.datasets import old_faithful
from cprime.em import SetLabels, diverse_start
from cprime.em.diverse_starts import PartitionStart
from cprime.execution import local

pytestmark = pytest.mark.filterwarnings("ignore:.* singular covariance")
SPACES = ("raw", "columns", "whitened")


def groups(seed=0):
    """Return rows of a tight, a wide and an elongated group, whose columns have different units."""
    rng = np.random.default_rng(seed)
    parts = [
        ([90, 350, 170], [8, 50, 40], 76),
        ([100, 500, 300], [10, 100, 150], 36),
        ([220, 1000, 100], [70, 300, 60], 33),
    ]
    return np.concatenate([mean + rng.standard_normal((n, 3)) * sd for mean, sd, n in parts])


@dataclass(frozen=True)
class LabelledStart:
    """Initialization by given labels."""

    X: np.ndarray
    labels: np.ndarray
    name: ClassVar[str] = "given"

    def centers(self, data, C, rng):
        data.each(SetLabels(self.labels))
        return np.stack([self.X[self.labels == c].mean(axis=0) for c in range(C)])


def by_ward(X, space, C):
    Y = X if space == "raw" else (X - X.mean(axis=0)) / X.std(axis=0)
    if space == "whitened":
        Y = Y @ np.linalg.inv(np.linalg.cholesky(np.cov(Y.T))).T
    return LabelledStart(X, (fcluster(linkage(Y, "ward"), C, "maxclust") - 1).astype(np.int32))


@pytest.mark.parametrize(("family", "C"), [("tied", 2), ("full", 2), ("spherical", 6)])
def test_ten_starts_reach_what_ward_leads_to(family, C):
    X, options = load_wine().data, {"covariance_type": family, "tol": 1e-5, "max_iter": 500}
    found = GaussianMixture(C, n_init=10, random_state=0, **options).fit(X).lower_bound_
    for space in SPACES:
        fit = GaussianMixture(C, init_params=by_ward(X, space, C), **options).fit(X)
        assert found > fit.lower_bound_ - 0.005


@pytest.mark.parametrize("n_init", [1, 3])
def test_first_starts_are_the_same_as_before(n_init):
    X = groups()
    found = GaussianMixture(4, n_init=n_init, random_state=1).fit(X)
    bounds = [
        GaussianMixture(4, init_params=init, random_state=1).fit(X).lower_bound_
        for init in ("kmeans", "k-means++", "random")
    ]
    assert found.lower_bound_ >= bounds[0]
    if n_init == 1:
        assert found.lower_bound_ == bounds[0]
    assert [diverse_start(i) for i in range(3)] == ["kmeans", "k-means++", "random"]
    assert len({diverse_start(i) for i in range(12)}) == 10


@pytest.mark.parametrize("kind", ["duplicates", "rounded", "constant", "zeros", "faithful"])
@pytest.mark.parametrize("family", ["diag", "full", "spherical"])
def test_likelihoods_are_finite_and_variances_positive(family, kind):
    rng = np.random.default_rng(0)
    X = {
        "duplicates": np.repeat(rng.normal(size=(15, 3)), 10, axis=0),
        "rounded": np.round(rng.normal(size=(150, 3)), 1),
        "constant": np.column_stack([rng.normal(size=(150, 2)), np.ones(150)]),
        "zeros": np.concatenate([np.zeros((75, 3)), rng.exponential(size=(75, 3))]),
        "faithful": old_faithful().data,
    }[kind]
    gm = GaussianMixture(6, covariance_type=family, n_init=7, reg_covar=0, random_state=0).fit(X)
    assert np.isfinite(gm.score_samples(X)).all()
    assert np.isfinite(gm.precisions_).all()
    variances = np.diagonal(gm.covariances_, 0, 1, 2) if family == "full" else gm.covariances_
    assert (variances > 0).all()


@pytest.mark.long
def test_ten_starts_avoid_components_on_a_few_equal_values():
    """One start of the default collapses here: waiting times are integers."""
    X, options = old_faithful().data, {"covariance_type": "diag", "reg_covar": 0, "tol": 1e-7, "max_iter": 3000}
    one, ten = (GaussianMixture(5, n_init=n, random_state=0, **options).fit(X) for n in (1, 10))
    assert one._parameters().n_collapsed
    assert not ten._parameters().n_collapsed
    assert ten.covariances_.min() > 1e-4


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("method", ["ward", "jumps", "lloyd", "lloyd++", "rows"])
@pytest.mark.parametrize("n", [40, 3000])
def test_partitions_have_their_means(method, space, n):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((n, 2)) * [1, 1000], np.full(n, 3.0)])
    X[: n // 2] += [20, 0, 0]
    w = rng.exponential(size=n) * (rng.random(n) < 0.8)
    data = local(X, w)
    data.begin(keep=False)
    centers = PartitionStart(method, space).centers(data, 4, np.random.RandomState(0))
    labels = data.labels()
    assert centers.shape == (4, 3)
    assert np.isfinite(centers).all()
    np.testing.assert_allclose(centers[:, 2], 3.0)
    assert len(np.unique(labels[w > 0])) == 4
    if method == "ward" and n == 40:
        heavy = w > 0
        means = [np.average(X[heavy & (labels == c)], axis=0, weights=w[heavy & (labels == c)]) for c in range(4)]
        np.testing.assert_allclose(centers, means, atol=1e-8)


def test_scaled_starts_do_not_depend_on_units():
    X = np.random.default_rng(0).standard_normal((300, 3))
    labels = []
    for unit in (1.0, np.array([1.0, 1024.0, 2.0**-10])):
        data = local(X * unit)
        data.begin(keep=False)
        PartitionStart("ward", "columns").centers(data, 5, np.random.RandomState(0))
        labels.append(data.labels())
    np.testing.assert_array_equal(*labels)


def test_threads_and_rows_without_weight_change_nothing():
    X, rng = groups(), np.random.default_rng(1)
    w = rng.exponential(size=len(X)) * (rng.random(len(X)) < 0.8)
    fits = [GaussianMixture(3, n_init=8, random_state=0, n_threads=n).fit(X, sample_weight=w) for n in (1, 3)]
    fits.append(GaussianMixture(3, n_init=8, random_state=0).fit(X[w > 0], sample_weight=w[w > 0]))
    np.testing.assert_array_equal(fits[0].means_, fits[1].means_)
    np.testing.assert_allclose(fits[0].means_, fits[2].means_, rtol=1e-6)
