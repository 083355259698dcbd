"""`random_state` may be a NumPy Generator: equal generators give equal results, and each use advances them."""

import importlib
import inspect

import numpy as np
import pytest
from scipy.stats import norm

import cprime
from cprime import coresets, datasets, seeding, selection, theory, tl
from cprime import sklearn as dropin

MODULES = [f"cprime.{name}" for name in ("coresets", "datasets", "seeding", "selection", "sklearn", "theory", "tl")]
MODULES = ["cprime", *MODULES]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 2)) + RNG.integers(0, 3, (90, 1)) * 4.0
WITH_MISSING = np.where(RNG.random((90, 2)) < [[0.2, 0.0]], np.nan, X)
P = theory.Gaussians(np.eye(2), np.stack([np.eye(2)] * 2))
Q = theory.Gaussians(np.eye(2) + 1, np.stack([np.eye(2)] * 2))


def fitted(cls, attribute, **parameters):
    return lambda rng: getattr(cls(**parameters, random_state=rng).fit(X), attribute)


def imputed(cls):
    model = cls(3, missing="marginal", random_state=0).fit(WITH_MISSING)
    return lambda rng: model.impute(WITH_MISSING, sample=True, random_state=rng)


def sampled(cls):
    model = cls(3, random_state=0).fit(X)
    return lambda rng: model.sample(5, random_state=rng)[0]


def discrete(cls):
    counts = np.abs(X).astype(int)
    return lambda rng: cls(9, init_params="random", max_iter=1, random_state=rng).fit(counts).means_


def discrete_sampled(cls):
    model = cls(3, random_state=0).fit(np.abs(X).astype(int))
    return lambda rng: model.sample(50, random_state=rng)[0]


def annotated(tool, start):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")

    def call(rng):
        found = getattr(tl, tool)(anndata.AnnData(X), 9, **start, max_iter=1, random_state=rng, copy=True)
        return found.obs[tool].to_numpy()

    return call


RANDOM = {"n_clusters": 9, "init": "random", "max_iter": 1}
CALLS = {
    "cprime.CategoricalMixture": lambda: discrete(cprime.CategoricalMixture),
    "cprime.CategoricalMixture.sample": lambda: discrete_sampled(cprime.CategoricalMixture),
    "cprime.ConditionalMixtures.sample": lambda: (
        lambda rng: cprime.GaussianMixture(3, random_state=0).fit(X).condition([1], X[:5, 1:]).sample(random_state=rng)
    ),
    "cprime.FuzzyKMeans": lambda: fitted(cprime.FuzzyKMeans, "cluster_centers_", **RANDOM),
    "cprime.GMeans": lambda: fitted(cprime.GMeans, "cluster_centers_"),
    "cprime.GaussianMixture": lambda: fitted(
        cprime.GaussianMixture, "means_", n_components=9, init_params="random", max_iter=1
    ),
    "cprime.GaussianMixture.impute": lambda: imputed(cprime.GaussianMixture),
    "cprime.GaussianMixture.sample": lambda: sampled(cprime.GaussianMixture),
    "cprime.KMeans": lambda: fitted(cprime.KMeans, "cluster_centers_", **RANDOM),
    "cprime.KMeans.impute": lambda: imputed(cprime.KMeans),
    "cprime.KMedians": lambda: fitted(cprime.KMedians, "cluster_centers_", **RANDOM),
    "cprime.KMedoids": lambda: fitted(cprime.KMedoids, "cluster_centers_", **RANDOM),
    "cprime.PoissonMixture": lambda: discrete(cprime.PoissonMixture),
    "cprime.PoissonMixture.sample": lambda: discrete_sampled(cprime.PoissonMixture),
    "cprime.ResidualKMeans": lambda: fitted(cprime.ResidualKMeans, "codebooks_", **RANDOM),
    "cprime.SoftKMeans": lambda: fitted(cprime.SoftKMeans, "cluster_centers_", **RANDOM),
    "cprime.StudentTMixture": lambda: fitted(
        cprime.StudentTMixture, "means_", n_components=9, init_params="random", max_iter=1
    ),
    "cprime.StudentTMixture.sample": lambda: sampled(cprime.StudentTMixture),
    "cprime.XMeans": lambda: fitted(cprime.XMeans, "cluster_centers_"),
    "cprime.combine": lambda: (
        lambda rng: cprime.combine([cprime.KMeans(9, random_state=0).fit(X)], 4, random_state=rng).cluster_centers_
    ),
    "cprime.fit_many": lambda: lambda rng: cprime.fit_many([X, X], 9, max_iter=1, random_state=rng).centers,
    "cprime.coresets.lightweight": lambda: lambda rng: coresets.lightweight(X, 10, random_state=rng)[0],
    "cprime.coresets.sensitivity": lambda: lambda rng: coresets.sensitivity(X, 10, 3, random_state=rng)[0],
    "cprime.datasets.birch": lambda: lambda rng: datasets.birch(2, random_state=rng).data,
    "cprime.datasets.birch_random": lambda: lambda rng: datasets.birch_random(3, random_state=rng).data,
    "cprime.datasets.clusters": lambda: lambda rng: datasets.clusters(20, 3, 2, random_state=rng).data,
    "cprime.seeding.afk_mc2": lambda: lambda rng: seeding.afk_mc2(X, 4, random_state=rng)[0],
    "cprime.seeding.kmeans_plusplus": lambda: lambda rng: seeding.kmeans_plusplus(X, 4, random_state=rng)[0],
    "cprime.seeding.random_rows": lambda: lambda rng: seeding.random_rows(X, 4, random_state=rng)[0],
    "cprime.seeding.seed": lambda: lambda rng: seeding.seed(X, 4, "random", random_state=rng),
    "cprime.seeding.start": lambda: lambda rng: seeding.start(X, 4, "random", random_state=rng).centers,
    "cprime.seeding.two_level": lambda: lambda rng: seeding.two_level(X, 4, random_state=rng)[0],
    "cprime.selection.stability": lambda: (
        lambda rng: selection.stability(X, 7, n_resamples=1, random_state=rng).agreement
    ),
    "cprime.selection.sweep": lambda: (
        lambda rng: selection.sweep(cprime.KMeans(n_clusters=2), X, [2], n_init=1, random_state=rng).held_out
    ),
    "cprime.sklearn.BisectingKMeans": lambda: fitted(dropin.BisectingKMeans, "cluster_centers_", **RANDOM),
    "cprime.sklearn.GaussianMixture": lambda: fitted(
        dropin.GaussianMixture, "means_", n_components=9, init_params="random_from_data", max_iter=1
    ),
    "cprime.sklearn.KMeans": lambda: fitted(dropin.KMeans, "cluster_centers_", **RANDOM),
    "cprime.sklearn.MiniBatchKMeans": lambda: fitted(dropin.MiniBatchKMeans, "cluster_centers_", **RANDOM),
    "cprime.sklearn.k_means": lambda: lambda rng: dropin.k_means(X, 9, init="random", max_iter=1, random_state=rng)[0],
    "cprime.sklearn.kmeans_plusplus": lambda: lambda rng: dropin.kmeans_plusplus(X, 4, random_state=rng)[0],
    "cprime.theory.Gaussians.sample": lambda: lambda rng: Q.sample(5, random_state=rng),
    "cprime.theory.Univariate.sample": lambda: lambda rng: theory.Univariate([norm(0, 1)]).sample(5, random_state=rng),
    "cprime.theory.kl_divergence": lambda: lambda rng: theory.kl_divergence(Q, P, n_samples=50, random_state=rng).value,
    "cprime.theory.partition_loss": lambda: (
        lambda rng: theory.partition_loss(P, Q, n_samples=50, random_state=rng).loss
    ),
    "cprime.theory.variation_bounds": lambda: (
        lambda rng: theory.variation_bounds(P, Q, n_samples=500, random_state=rng).misfits
    ),
    "cprime.theory.variation_distance": lambda: (
        lambda rng: theory.variation_distance(P, n_samples=50, random_state=rng).distance
    ),
    "cprime.tl.gaussian_mixture": lambda: annotated("gaussian_mixture", {"init_params": "random"}),
    "cprime.tl.kmeans": lambda: annotated("kmeans", {"init": "random"}),
    "cprime.theory.lower_bound": lambda: (
        lambda rng: np.array(cprime.theory.lower_bound(X[:9], 3, random_state=rng).value)
    ),
}


def with_random_state():
    """Return the names of all public classes, methods and functions that have a parameter `random_state`."""
    found = set()
    for name in MODULES:
        module = importlib.import_module(name)
        for public in module.__all__:
            value = getattr(module, public)
            if not inspect.isclass(value):
                if callable(value) and "random_state" in inspect.signature(value).parameters:
                    found.add(f"{name}.{public}")
                continue
            for method, function in inspect.getmembers(value, inspect.isfunction):
                if "random_state" in inspect.signature(function).parameters and (
                    method == "__init__" or (method[0] != "_" and function.__module__.startswith("cprime"))
                ):
                    found.add(f"{name}.{public}" + (f".{method}" if method != "__init__" else ""))
    return found


# Aliases of tested classes, and a class that only `condition` creates.
NOT_TRIED = {"cprime.selection.GMeans", "cprime.selection.XMeans", "cprime.ConditionalMixtures"}


def test_every_use_of_random_state_is_tried():
    assert with_random_state() == CALLS.keys() | NOT_TRIED


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CALLS)
def test_generators_serve_as_random_state(name):
    call = CALLS[name]()
    rng, again = np.random.default_rng(5), np.random.default_rng(5)
    np.testing.assert_array_equal(call(rng), call(again))
    assert rng.bit_generator.state == again.bit_generator.state != np.random.default_rng(5).bit_generator.state


def test_samples_repeat_for_an_int_and_go_on_for_a_generator():
    gm = cprime.GaussianMixture(2, random_state=3).fit(X)
    np.testing.assert_array_equal(gm.sample(4)[0], gm.sample(4)[0])
    np.testing.assert_array_equal(gm.sample(4, random_state=7)[0], gm.sample(4, random_state=7)[0])
    assert not np.array_equal(gm.sample(4, random_state=7)[0], gm.sample(4)[0])
    gm.set_params(random_state=np.random.default_rng(3))
    assert not np.array_equal(gm.sample(4)[0], gm.sample(4)[0])
