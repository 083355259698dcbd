"""`random_state` may be an int or a Generator: equal ones give equal results, and each use advances a generator."""

import importlib
import inspect
from functools import partial
from typing import Any

import numpy as np
import pytest

for library in ("anndata", "faiss", "matplotlib"):
    pytest.importorskip(library)

from calls import ESTIMATORS, LABELS, TARGETS, Call, annotated, calls, fit_with  # noqa: E402
from calls import X as ROWS  # noqa: E402
from test_law_of_arguments import answer  # noqa: E402

import cprime  # noqa: E402
from cprime import seeding, selection, theory, tl  # noqa: E402
from cprime import sklearn as dropin  # noqa: E402

MODULES = ["cprime"]
MODULES += [f"cprime.{name}" for name in ("coresets", "datasets", "seeding", "selection", "sklearn", "theory", "tl")]
WITH_MISSING = np.where(np.random.default_rng(0).random(ROWS.shape) < [[0.2, 0.0, 0.0]], np.nan, ROWS)
START, RANDOM = {"X": ROWS, "n_clusters": 4, "init": "random"}, {"n_clusters": 9, "init": "random", "max_iter": 1}
MIXTURE = {"n_components": 9, "init_params": "random_from_data", "max_iter": 1}
P, Q = (theory.Gaussians(shift + np.eye(2), np.stack([np.eye(2)] * 2)) for shift in (0, 1))


def one_step(name: str) -> Call:
    """Return a fit that ends near its random start, so that its result depends on the seed."""
    cls = getattr(cprime, name)
    given = {} if name == "DPMeans" else MIXTURE | RANDOM
    options = {each: value for each, value in given.items() if each in cls().get_params()}
    return Call(partial(fit_with, name, **options), tried=cls)


def draws_of(name: str) -> Call:
    tried = getattr(cprime, name).sample
    return Call(lambda **given: fit_with(name).sample(**given), {"n_samples": 9}, {}, tried)


def regression_of(**arguments: Any) -> Any:
    return cprime.RegressionMixture(**arguments).fit(ROWS, TARGETS)


def dropped_in(name: str, **arguments: Any) -> Call:
    cls = getattr(dropin, name)
    return Call(lambda **given: cls(**given).fit(ROWS), arguments, {}, cls)


def imputed(**arguments: Any) -> Any:
    model = cprime.KMeans(3, missing="marginal", random_state=0).fit(WITH_MISSING)
    return model.impute(WITH_MISSING, sample=True, **arguments)


def classified(**arguments: Any) -> Any:
    return [each.means_ for each in cprime.MixtureClassifier(**arguments).fit(ROWS, LABELS).mixtures_]


def own_calls() -> dict[str, Call]:
    """Return uses of `random_state` beside those of the registry of public callables, or in place of them."""
    densities = {"model": P, "Q": Q, "n_samples": 500}
    return {
        **{name: one_step(name) for name in ESTIMATORS if name != "KMeans1D"},
        "KMeans.impute": Call(imputed, tried=cprime.KMeans.impute),
        "PoissonMixture.sample": draws_of("PoissonMixture"),
        "CategoricalMixture.sample": draws_of("CategoricalMixture"),
        "MixedMixture.sample": draws_of("MixedMixture"),
        "RegressionMixture": Call(
            regression_of, {"n_components": 9, "n_init": 1, "max_iter": 1}, {}, cprime.RegressionMixture
        ),
        "RegressionMixture.sample": Call(
            lambda **given: regression_of(n_components=1).sample(ROWS, **given), {}, {}, cprime.RegressionMixture.sample
        ),
        "seeding.seed": Call(seeding.seed, START),
        "seeding.start": Call(lambda **given: seeding.start(**given).centers, START, tried=seeding.start),
        "sklearn.KMeans": dropped_in("KMeans", **RANDOM),
        "sklearn.MiniBatchKMeans": dropped_in("MiniBatchKMeans", **RANDOM),
        "sklearn.BisectingKMeans": dropped_in("BisectingKMeans", **RANDOM),
        "sklearn.GaussianMixture": dropped_in("GaussianMixture", **MIXTURE),
        "sklearn.BayesianGaussianMixture": dropped_in("BayesianGaussianMixture", **MIXTURE),
        "sklearn.k_means": Call(dropin.k_means, {"X": ROWS, **RANDOM}),
        "sklearn.kmeans_plusplus": Call(dropin.kmeans_plusplus, {"X": ROWS, "n_clusters": 4}),
        "tl.kmeans": Call(annotated(tl.kmeans), RANDOM, tried=tl.kmeans),
        "tl.gaussian_mixture": Call(annotated(tl.gaussian_mixture), MIXTURE, tried=tl.gaussian_mixture),
        "tl.sweep": Call(
            annotated(tl.sweep),
            {"n_components_range": [5], "estimator": cprime.KMeans(init="random", max_iter=1)},
            tried=tl.sweep,
        ),
        "MixtureClassifier": Call(
            classified,
            {"estimator": cprime.GaussianMixture(init_params="random_from_data", max_iter=1), "n_components": 3},
            tried=cprime.MixtureClassifier,
        ),
        "combine": Call(cprime.combine, {"models": [fit_with("KMeans", n_clusters=9)], "n_clusters": 4}),
        "selection.stability": Call(
            selection.stability, {"estimator": cprime.KMeans(), "X": ROWS, "n_clusters": 7, "n_resamples": 1}
        ),
        "selection.information_curve": Call(
            lambda **given: selection.information_curve(**given).modeling,
            {"estimator": cprime.KMeans(), "X": ROWS, "n_components_range": [7]},
            tried=selection.information_curve,
        ),
        "theory.soft_kmeans_path": Call(
            lambda **given: theory.soft_kmeans_path(**given).centers,
            {"X": ROWS, "n_clusters": 3, "stiffness": [0.01, 0.1]},
            tried=theory.soft_kmeans_path,
        ),
        "theory.kl_divergence": Call(theory.kl_divergence, densities),
        "theory.part_densities": Call(theory.part_densities, {**densities, "X": np.eye(2)}),
        "theory.partition_loss": Call(theory.partition_loss, densities),
        "theory.variation_bounds": Call(theory.variation_bounds, densities),
        "theory.variation_distance": Call(theory.variation_distance, {"model": P, "n_samples": 50}),
    }


CALLS = {name: call for name, call in (calls() | own_calls()).items() if "random_state" in call.arguments}
# Uses whose result is that of any seed for these rows.
ALIKE = {"XMeans", "GMeans", "DPMeans", "theory.lower_bound"}
# Aliases of tested classes, and a class that only `condition` creates.
NOT_TRIED = {cprime.GMeans, cprime.XMeans, cprime.DPMeans, cprime.ConditionalMixtures}


def with_random_state() -> set[Any]:
    """Return all public classes, methods and functions that have a parameter `random_state`."""
    found = set()
    for module in map(importlib.import_module, MODULES):
        for value in (getattr(module, name) for name in module.__all__):
            members = [value]
            if inspect.isclass(value):
                methods = inspect.getmembers(value, inspect.isfunction)
                members += [one for name, one in methods if name[0] != "_" and one.__module__.startswith("cprime")]
            makers = {one: one.__init__ if inspect.isclass(one) else one for one in members if callable(one)}
            found |= {one for one, make in makers.items() if "random_state" in inspect.signature(make).parameters}
    return found


def test_every_use_of_random_state_is_tried():
    tried = {inspect.unwrap(getattr(one, "__func__", one)) for one in (c.tried or c.function for c in CALLS.values())}
    assert {inspect.unwrap(each) for each in with_random_state()} <= tried | NOT_TRIED


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CALLS)
def test_equal_seeds_and_generators_give_equal_results(name):
    call = CALLS[name]

    def results(random_state):
        return answer(call.function(**call.usual | {"random_state": random_state}))

    rng, again = np.random.default_rng(5), np.random.default_rng(5)
    for one, other in ((rng, again), (7, 7)):
        expected, found = results(one), results(other)
        assert len(expected) == len(found) > 0
        assert all(map(np.array_equal, found, expected))
    assert name in ALIKE or not all(map(np.array_equal, results(8), expected))
    assert rng.bit_generator.state == again.bit_generator.state != np.random.default_rng(5).bit_generator.state


def test_samples_repeat_for_an_int_and_go_on_for_a_generator():
    gm = cprime.GaussianMixture(2, random_state=3).fit(ROWS)
    np.testing.assert_array_equal(gm.sample(4)[0], gm.sample(4)[0])
    np.testing.assert_array_equal(gm.sample(4, random_state=7)[0], gm.sample(4, random_state=7)[0])
    assert not np.array_equal(gm.sample(4, random_state=7)[0], gm.sample(4)[0])
    gm.set_params(random_state=np.random.default_rng(3))
    assert not np.array_equal(gm.sample(4)[0], gm.sample(4)[0])
