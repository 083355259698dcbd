"""Registry for the law of preparation: models of filled and scaled rows, and the public functions that take them."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import cprime
from cprime import Factors, GaussianMixture, KMeans, StudentTMixture, open_data
from cprime.sources.prepared import Preparation, PreparedSource, learned
from cprime.theory import Gaussians
from cprime.theory.mixtures import log_mixture_density

SIZES = {"few": (40, 3, 3), "many": (800, 4, 130)}  # rows, columns and C
PREPARATIONS = {"scaled": (False, True), "filled": (True, False), "both": (True, True)}
ESTIMATORS: dict[str, tuple[type, dict[str, Any]]] = {
    "KMeans": (KMeans, {}),
    "KMeans, marginal": (KMeans, {"missing": "marginal"}),
    "GaussianMixture, full": (GaussianMixture, {}),
    "GaussianMixture, diag": (GaussianMixture, {"covariance_type": "diag", "missing": "marginal"}),
    "GaussianMixture, tied_spherical": (GaussianMixture, {"covariance_type": "tied_spherical"}),
    "GaussianMixture, factors": (GaussianMixture, {"covariance_type": Factors(1)}),
    "StudentTMixture": (StudentTMixture, {}),
}


@dataclass(frozen=True)
class Case:
    """A prepared and a plain model with the same parameters, and their rows: X as given, Z filled and scaled."""

    prepared: Any
    plain: Any
    X: NDArray[np.float64]
    Z: NDArray[np.float64]
    preparation: Preparation


def has_factors(model: Any) -> bool:
    return isinstance(getattr(model, "covariance_type", None), Factors)


def rows_of(size: str, missing: bool) -> NDArray[np.float64]:
    n, D, C = SIZES[size]
    rng = np.random.default_rng(C)
    centers = 6 * rng.standard_normal((C, D))
    X = (centers[rng.integers(C, size=n)] + rng.standard_normal((n, D))) * [1000, 0.1, 1, 30][:D] + [5e4, 3, -7, 0][:D]
    if missing:
        X[3::11, 1] = np.nan
    return X


@cache
def case_of(name: str, preparation: str, size: str) -> Case:
    kind, options = ESTIMATORS[name]
    fill, scale = PREPARATIONS[preparation]
    X = rows_of(size, fill or "missing" in options)
    prepared_rows = PreparedSource(open_data(X), learned(open_data(X), fill=fill, scale=scale))
    shared = {"max_iter": 4, "random_state": 0, "n_threads": 1} | ({"search": "graph"} if size == "many" else {})
    if size == "many" and kind is not KMeans:
        shared["n_active"] = 3
    estimator = kind(SIZES[size][2], **shared, **options)
    prepared, Z = copy.deepcopy(estimator).fit(prepared_rows), prepared_rows.read(0, len(X))
    plain = copy.deepcopy(prepared)
    del plain.preparation_
    assert np.array_equal(estimator.fit(Z).predict(Z), prepared.labels_) or size == "many"
    return Case(prepared, plain, X, Z, prepared_rows.preparation)


Convert = Callable[[Preparation, Any], Any]


@dataclass(frozen=True)
class Function:
    """Use of one public function, and the conversion of its result for a plain model to the units of given rows.

    names: the public functions    takes: whether it accepts an estimator
    is_quick: whether it is also called for many components
    """

    names: tuple[str, ...]
    call: Callable[[Any, NDArray], Any]
    convert: Convert = lambda _, value: value
    takes: Callable[[Any], bool] = lambda _: True
    is_quick: bool = True


def restored(p: Preparation, rows: Any) -> Any:
    return p.restored(rows)


def rest(p: Preparation) -> Preparation:
    return p.select(range(1, len(p.fill if p.scale is None else p.scale)))  # type: ignore[arg-type]


def shown(p: Preparation) -> Preparation:
    return p.select([0, 2])


def is_mixture(model: Any) -> bool:
    return hasattr(model, "n_components")


def is_gaussian(model: Any) -> bool:
    return isinstance(model, GaussianMixture)


def is_complete(model: Any) -> bool:
    return getattr(model, "missing", "error") == "error"


def centers(model: Any) -> Any:
    return model.means_ if is_mixture(model) else model.cluster_centers_


def changed(model: Any, change: Callable[[Any], Any], X: NDArray) -> Any:
    """Return the centers and the predictions of a copy of the model after a change."""
    view = copy.deepcopy(model)
    view = change(view)
    return centers(view), view.predict(X), view.predict(X)


def display(name: str, **options: Any) -> Callable[[Any, NDArray], Any]:
    def shown(model: Any, X: NDArray) -> Any:
        pytest.importorskip("matplotlib.pyplot").close("all")
        given = (model,) if X is None else (model, X)
        return getattr(cprime.plots, name).from_estimator(*given, **options)

    return shown


def method(name: str, takes: Callable[[Any], bool] = lambda _: True, convert: Convert = lambda _, value: value) -> Any:
    return Function((name,), lambda m, X: getattr(m, name)(X), convert, lambda m: hasattr(type(m), name) and takes(m))


def one_density(model: Any, X: NDArray) -> Any:
    return np.eye(len(centers(model)))[model.predict(X)]


def clusters_of(shown_: Any) -> Any:
    return shown_.points, shown_.centers, shown_.labels, shown_.covariances


def log_densities_of(shown_: Any) -> Any:
    return log_mixture_density(shown_.density, shown_.points)


def report_of(model: Any, X: NDArray) -> Any:
    pytest.importorskip("jinja2")
    pytest.importorskip("PIL")
    made = model.report(X, compare=model, profile={"row": np.arange(len(X))})
    found, profile = made.clusters, [[each.low, each.typical, each.high, each.share] for each in made.profile]
    lights = [light.finding for light in made.lights]
    return found.sizes, found.spread, found.typical, found.z, lights, made.comparison.error, profile


def given_mixtures(model: Any, X: NDArray) -> Any:
    found = model.condition([0], X[:20, [0]])
    return found.mean(), found.std(), found.covariance(), found.sample(5, random_state=0)


def converted_mixtures(p: Preparation, value: Any) -> Any:
    mean, std, covariance, draws = value
    p = rest(p)
    return p.restored(mean), p.restored_spread(std), p.restored_covariances(covariance), p.restored(draws)


def of_density(p: Preparation, values: Any) -> Any:
    return tuple(value + p.log_volume for value in values[:2]) + tuple(values[2:])


def plotted(p: Preparation, value: Any) -> Any:
    points, places, labels, covariances = value
    p = shown(p)
    spread = None if covariances is None else p.restored_covariances(covariances)
    return p.restored(points), p.restored(places), labels, spread


def to_equal_weights(model: Any) -> Any:
    return Gaussians.from_estimator(model).with_equal_weights()


FUNCTIONS = {
    **{
        name: method(name)
        for name in (
            "predict",
            "nearest",
            "score",
            "predict_proba",
            "score_samples",
            "uncertainty",
            "bounds",
            "transform",
            "aic",
            "bic",
        )
    },
    "score_outliers": method("score_outliers"),
    "fit_predict": Function(
        ("fit_predict",),
        lambda m, X: copy.deepcopy(m).set_params(warm_start=True).fit_predict(X),
        takes=is_mixture,
    ),
    "fit, warm_start": Function(
        ("fit",), lambda m, X: changed(m.set_params(warm_start=True), lambda m: m.fit(X), X), takes=is_mixture
    ),
    "certify": Function(("certify",), lambda m, X: list(m.certify(X, 30).values())),
    "predict, approximate": Function(("predict",), lambda m, X: m.predict(X, approximate=True)),
    "transform_factors": method("transform_factors", has_factors),
    "partial_fit": Function(
        ("partial_fit",),
        lambda m, X: changed(m, lambda m: m.partial_fit(X[:30]), X),
        takes=lambda m: is_mixture(m) or is_complete(m),
    ),
    "update": Function(("update",), lambda m, X: changed(m, lambda m: m.update(X), X)),
    "update, other size": Function(("update",), lambda m, X: changed(m, lambda m: m.update(X, 2), X), is_quick=False),
    "impute": method("impute", convert=restored),
    "sample": Function(("sample",), lambda m, _: m.sample(50, random_state=0)[0], restored, is_mixture),
    "regress": Function(
        ("regress",),
        lambda m, X: m.regress(X, [0], return_std=True),
        lambda p, value: (rest(p).restored(value[0]), rest(p).restored_spread(value[1])),
        is_gaussian,
    ),
    "condition, many": Function(("condition",), given_mixtures, converted_mixtures, is_gaussian),
    "condition, quantiles": Function(
        ("condition",),
        lambda m, X: m.marginal([0, 2]).condition([1], X[:5, [2]]).quantile([0.1, 0.7]),
        lambda p, value: p.select([0]).restored(value[..., np.newaxis])[..., 0],
        is_gaussian,
    ),
    "condition, one": Function(
        ("condition",), lambda m, X: m.condition([0], X[0, [0]]).score_samples(X[:, 1:]), takes=is_gaussian
    ),
    "marginal": Function(("marginal",), lambda m, X: m.marginal([2, 0]).predict_proba(X[:, [2, 0]]), takes=is_mixture),
    "to_sklearn": Function(
        ("to_sklearn",),
        lambda m, X: m.to_sklearn().predict(X),
        takes=lambda m: hasattr(m, "to_sklearn") and is_complete(m),
    ),
    "report": Function(("report",), report_of),
    "combine": Function(
        ("combine",),
        lambda m, X: changed(m, lambda m: cprime.combine([m, copy.deepcopy(m)], random_state=0), X),
        takes=lambda m: type(m) is not StudentTMixture and not has_factors(m),
        is_quick=False,
    ),
    "merge": Function(
        ("merge",),
        lambda m, X: [cprime.selection.merge(m, X, criterion=c).changes for c in ("ward", "entropy")],
    ),
    "ledger": Function(
        ("ledger",),
        lambda m, X: [(each.left, each.right) for each in cprime.theory.ledger(m, X).identities],
        takes=is_complete,
    ),
    "lower_bound": Function(
        ("lower_bound",),
        lambda m, X: [getattr(cprime.theory.lower_bound(X, m, random_state=0), name) for name in ("value", "inertia")],
        takes=lambda m: type(m) is KMeans and is_complete(m),
        is_quick=False,
    ),
    "free_energy": Function(
        ("free_energy",),
        lambda m, X: cprime.theory.free_energy(m, X, one_density(m, X)),
        lambda p, value: value - p.log_volume,
        is_complete,
    ),
    "em_loss": Function(
        ("em_loss",),
        lambda m, X: cprime.theory.em_loss(m, m, X, unit="nats"),
        lambda p, value: value + p.log_volume,
        is_complete,
    ),
    "part_densities": Function(
        ("part_densities",),
        lambda m, X: cprime.theory.part_densities(m, m, X, assignment="posterior", n_samples=500, random_state=0),
        lambda p, value: value * np.exp(-p.log_volume),
        is_gaussian,
        is_quick=False,
    ),
    "partition_loss": Function(
        ("partition_loss",),
        lambda m, X: [
            getattr(cprime.theory.partition_loss(m, X, unit="nats"), name)
            for name in ("loss", "entropy", "modeling", "terms")
        ],
        of_density,
        is_complete,
    ),
    "kl_divergence": Function(
        ("kl_divergence",),
        lambda m, _: cprime.theory.kl_divergence(to_equal_weights(m), m, n_samples=500, random_state=0),
        takes=is_gaussian,
    ),
    "variation_distance": Function(
        ("variation_distance",),
        lambda m, _: cprime.theory.variation_distance(m, n_samples=500, random_state=0).distance,
        is_quick=False,
    ),
    "Gaussians": Function(
        ("Gaussians.from_estimator",),
        lambda m, _: (Gaussians.from_estimator(m).means, Gaussians.from_estimator(m).covariances),
        lambda p, value: (p.restored(value[0]), p.restored_covariances(value[1])),
        lambda m: type(m) is not StudentTMixture,
    ),
    "ClustersDisplay": Function(
        ("ClustersDisplay.from_estimator",),
        lambda m, X: clusters_of(display("ClustersDisplay", projection=(0, 2))(m, X)),
        plotted,
        is_quick=False,
    ),
    "ClustersDisplay, principal": Function(
        ("ClustersDisplay.from_estimator",),
        lambda m, X: clusters_of(display("ClustersDisplay", ellipses=True)(m, X)),
        is_quick=False,
    ),
    "ClustersDisplay, density": Function(
        ("ClustersDisplay.from_estimator",),
        lambda m, X: log_densities_of(display("ClustersDisplay", projection=(0, 2), density=True)(m, X)),
        lambda p, value: value - shown(p).log_volume,
        is_quick=False,
    ),
    "StepsDisplay": Function(
        ("StepsDisplay.from_estimator",),
        lambda m, X: [c.after.centers for c in display("StepsDisplay", projection=(0, 2))(m, X).cycles],
        lambda p, value: [shown(p).restored(each) for each in value],
        is_quick=False,
    ),
    "CodebookDisplay": Function(
        ("CodebookDisplay.from_estimator",),
        lambda m, X: display("CodebookDisplay", image_shape=(1, X.shape[1]))(m, None).tiles,
        lambda p, value: p.restored(value),
    ),
    "ConvergenceDisplay": Function(
        ("ConvergenceDisplay.from_estimator",),
        lambda m, X: [
            (found.free_energy, found.log_likelihood, found.error)
            for found in (display("ConvergenceDisplay", trace=trace)(m, X) for trace in (False, True))
        ],
        is_quick=False,
    ),
    "DecompositionDisplay": Function(
        ("DecompositionDisplay.from_estimator",),
        lambda m, X: display("DecompositionDisplay", unit="nats")(m, X).total,
        lambda p, value: value + p.log_volume,
        is_complete,
    ),
    "ResponsibilitiesDisplay": Function(
        ("ResponsibilitiesDisplay.from_estimator",), lambda m, X: display("ResponsibilitiesDisplay")(m, X[0]).exact
    ),
    "SearchSpaceDisplay": Function(
        ("SearchSpaceDisplay.from_estimator",),
        lambda m, X: [
            (found.point, found.centers)
            for found in [
                display("SearchSpaceDisplay", projection=(0, 2), neighbors=[[c, 0] for c in range(len(centers(m)))])(
                    m, X[0]
                )
            ]
        ],
        lambda p, value: [tuple(shown(p).restored(each) for each in value[0])],
    ),
    "MergeTreeDisplay": Function(
        ("MergeTreeDisplay.from_estimator",), lambda m, X: display("MergeTreeDisplay")(m, X).tree.changes
    ),
    "SizesDisplay": Function(("SizesDisplay.from_estimator",), lambda m, X: display("SizesDisplay")(m, X).sizes),
}

# Public functions with an argument for a fitted model that the law does not call, and the reason.
EXCEPTIONS = {
    "fit_transform": "fits the estimator anew",
    "fit_many": "fits new models; its argument is the initialization",
    "sweep": "clones the estimator",
    "stability": "clones the estimator",
    "information_curve": "clones the estimator; a sweep has the densities of partition_loss",
    "bootstrap": "clones the estimator",
    "likelihood_ratio_test": "clones the estimator",
    "standard_errors": "errors of fitted parameters, which are in the units of the prepared rows",
    "SelectionDisplay.from_estimator": "clones the estimator",
    "plan": "of an estimator before its fit",
    "variation_bounds": "composed of partition_loss and variation_distance",
    "posterior_mean": "noise has the same variance in all given columns: see the test of equal scales",
    "to_faiss": "refuses scaled models: see the test below",
    "save": "writes the model, with its preparation",
    "train_ivf": "fits new models",
    "get_feature_names_out": "names of the results",
    "get_params": "arguments of the constructor",
    "set_params": "arguments of the constructor",
    "get_metadata_routing": "arguments of the constructor",
    "set_output": "container of the results",
    "set_callbacks": "arguments of the constructor",
}
