"""Registry of the public callables: one valid call of each, and the kind of value of each argument.

`public()` lists the callables that docs/api.rst names, with their public methods; `CALLS` has an entry for each.
"""

import copy
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from anndata import AnnData

import cprime
from cprime import Factors, coresets, datasets, plots, report, search, seeding, selection, theory, tl
from cprime import faiss as bridge
from cprime.callbacks import ProgressBar, RowsProgress
from cprime.faiss.vectors import faiss

RNG = np.random.default_rng(0)
# 40 rows in three groups, of small integers, which every type of number represents exactly.
X = np.vstack([RNG.integers(1, 7, (n, 3)) + shift for n, shift in ((14, 0), (13, 20), (13, 50))]).astype(float)
WEIGHTS = RNG.integers(1, 4, len(X)).astype(float)
LABELS = np.repeat([0, 1, 2], [14, 13, 13])
CENTERS = np.array([[4.0, 4, 4], [24, 24, 24], [54, 54, 54]])
PRECISIONS = np.array([np.eye(3) / 4] * 3)
SHARES = np.array([0.25, 0.25, 0.5])
CODES = (X % 3).astype(int)
IMAGE = RNG.integers(0, 200, (16, 16)).astype(float)

# Names of arguments by kind of value. A call states kinds of its own where a name means something else in it.
KINDS = {
    "rows": "X Q x",
    "weights": "sample_weight weights",
    "ignored": "y verbose ax callbacks title metric_params out",
    "labels": "labels labels_true codes ids",
    "numbers": "mean_prior covariance_prior "
    "centers means_init precisions_init rates_init probabilities_init init_centroids means "
    "standard_deviations weights_init q log_densities ratio Y patches image values covariances",
    "count": "n_clusters n_components n_nearest n_points n_neighbors min_clusters max_clusters m d k "
    "chain_length n_cells n_local_trials n_pcs max_iter max_rounds max_rows chunk_rows",
    "effort": "beam n_levels n_init n_samples n_rounds n_resamples size n_side n_per_cluster n_features",
    "size": "n_explore certificate size_max size_min n_rows",
    "counts": "n_components_range n_categories image_shape shape columns",
    "bytes": "max_memory limit",
    "optional": "holdout time_limit",
    "size or None": "n_active n_warmup",
    "real": "weight_concentration_prior mean_precision_prior degrees_of_freedom_prior "
    "tol epsilon concentration reg_covar learning_decay dof stiffness regularization alpha variance side "
    "spacing oversampling penalty",
    "flag": "semi_supervised warm_start sample approximate sparse return_std greedy jumps momentum "
    "regroup copy transient quiet header training_labels isotropic",
    "choice": "weight_concentration_prior_type "
    "n_factors metric missing final_assignment covariance_type assignment method regularizer criterion unit "
    "library lists start dtype handle_unknown init init_params search use_rep layer key_added separator key",
    "seed": "random_state",
    "threads": "n_threads",
    "path": "path folder checkpoint spill",
    "object": "categories estimator fitted mixture model tree sweep adata reference index models data compare fixed "
    "prior criteria kind frame profile",
}
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names.split()}
# Methods of scikit-learn's classes and of tuples; the protocols of searches, of starts and of callbacks.
NOT_OURS = {"get_params", "set_params", "set_output", "set_callbacks", "get_metadata_routing", "get_feature_names_out"}
NOT_OURS |= {"fit_transform", "agreement", "begin", "jumped", "learn", "look", "neighbors", "refresh", "regroups"}
NOT_OURS |= {"undone", "with_params", "centers", "on_fit_begin", "on_fit_end", "on_iteration", "rows"}
# Classes whose instances functions return, and `Source`, which has the tests of sources.
RESULTS = {"Bounds", "ConditionalMixtures", "Many", "Plan", "SearchQualityWarning", "Coreset", "Report", "Source"}
RESULTS |= {
    "Sweep",
    "SelectionDisplay",
    "Stability",
    "InformationCurve",
    "MergeTree",
    "ClassificationTable",
    "AssignmentFit",
    "Divergence",
    "Identity",
    "Ledger",
}
RESULTS |= {
    "LowerBound",
    "SoftKMeansPath",
    "PartitionLoss",
    "VariationBounds",
    "VariationDistance",
    *plots.__all__,
    "Callback",
}
RESULTS |= {"ColumnProfile", "ClassificationTable", "Bootstrap", "LikelihoodRatioTest", "StandardErrors"}
# Callables of which a single call takes long.
LONG = {"XMeans", "XMeans.fit", "GMeans", "GMeans.fit", "KMeans.report", "StudentTMixture", "StudentTMixture.fit"}
LONG |= {"CategoricalMixture", "CategoricalMixture.fit", "GaussianMixture.update", "coresets.sensitivity"}
LONG |= {"theory.lower_bound", "theory.variation_bounds", "theory.variation_distance", "selection.sweep", "tl.sweep"}
LONG |= {
    "selection.likelihood_ratio_test",
    "selection.stability",
    "selection.SelectionDisplay.from_estimator",
    "GaussianMixture.fit_predict",
}
# Arguments that are not tried, by callable: other libraries or other laws check them, or any value is documented.
UNTRIED = {
    "open_data": {"data"},
    "search.Papers": {"n_warmup"},
    "plan": {"X", "dtype"},
    "faiss.Kmeans": {"k"},
    "faiss.Kmeans.train": {"x", "weights", "init_centroids"},
    "faiss.train_ivf": {"index", "weights"},
    "CategoricalMixture.fit": {"X"},
    "MixedMixture.fit": {"X"},
}
# Packages with own tests: scikit-learn's arguments and errors (tests/dropin), and matplotlib's (tests/plots).
SKIPPED = {"cprime.sklearn", "cprime.plots"}


@dataclass(frozen=True)
class Call:
    """Public callable with the arguments of a valid call.

    function: called with arguments by name    usual: arguments of the valid call, by name
    kinds: kinds of arguments that differ from `KINDS`    tried: callable whose arguments are tried, if not `function`
    """

    function: Callable[..., Any]
    usual: dict[str, Any] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    tried: Callable[..., Any] | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the usual value, or else the default, of each argument by name."""
        found = {}
        for each in inspect.signature(self.tried or self.function).parameters.values():
            if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL) and each.name != "self":
                found[each.name] = self.usual.get(each.name, each.default)
        return found

    def kind(self, name: str) -> str:
        return self.kinds.get(name) or KIND_OF[name]


SMALL = {"n_clusters": 3}
MIXTURE = {"n_components": 3, "init_params": "random_from_data", "max_iter": 9}
ESTIMATORS: dict[str, tuple[Any, dict[str, Any]]] = {  # rows and arguments
    "KMeans": (X, SMALL),
    "GaussianMixture": (X, MIXTURE | {"reg_covar": 0.5}),
    "BayesianGaussianMixture": (X, MIXTURE),
    "StudentTMixture": (X, MIXTURE | {"reg_covar": 0.5}),
    "LaplaceMixture": (X, MIXTURE | {"reg_covar": 0.5}),
    "VonMisesFisherMixture": (X, MIXTURE),
    "PoissonMixture": (X, MIXTURE),
    "CategoricalMixture": (CODES, MIXTURE),
    "MixedMixture": (X, MIXTURE | {"reg_covar": 0.5, "columns": ["diag"] * 3}),
    "SoftKMeans": (X, SMALL),
    "FuzzyKMeans": (X, SMALL),
    "KMedoids": (X, SMALL),
    "KMedians": (X, SMALL),
    "KMeans1D": (X[:, :1], SMALL),
    "ResidualKMeans": (X, SMALL | {"n_levels": 2}),
    "XMeans": (X, {"max_clusters": 4}),
    "DPMeans": (X, {"penalty": 9.0}),
    "GMeans": (X, {"max_clusters": 4}),
}
# Arguments with numbers, for which a fit has an entry of its own.
GIVEN = {
    "KMeans": {"init": CENTERS, "fixed": CENTERS[:2], "size_max": 15, "size_min": 5},
    "GaussianMixture": {"means_init": CENTERS, "weights_init": SHARES, "precisions_init": PRECISIONS},
    "BayesianGaussianMixture": {
        "means_init": CENTERS,
        "mean_prior": CENTERS[0],
        "covariance_prior": 9 * np.eye(3),
        "weight_concentration_prior": 0.5,
        "mean_precision_prior": 0.5,
        "degrees_of_freedom_prior": 4.0,
    },
    "StudentTMixture": {"means_init": CENTERS, "weights_init": SHARES, "precisions_init": PRECISIONS, "dof": 4.0},
    "LaplaceMixture": {"means_init": CENTERS, "weights_init": SHARES},
    "VonMisesFisherMixture": {"means_init": CENTERS, "weights_init": SHARES, "concentration": 4.0},
    "PoissonMixture": {"rates_init": CENTERS, "weights_init": SHARES},
    "MixedMixture": {"means_init": CENTERS, "weights_init": SHARES},
    "SoftKMeans": {"init": CENTERS, "stiffness": 0.25},
    "FuzzyKMeans": {"init": CENTERS, "regularization": 0.5},
    "KMedians": {"init": CENTERS},
    "DPMeans": {"init": CENTERS},
}
METHODS: dict[str, dict[str, Any]] = {
    "condition": {"columns": [0, 2], "values": X[:5, [0, 2]]},
    "marginal": {"columns": [0, 2]},
    "regress": {"columns": [0, 2], "X": X[:5, [0, 2]]},
    "sample": {"n_samples": 4, "random_state": 0},
    "impute": {"random_state": 0},
    "decode": {"codes": np.array([[0, 1], [2, 0], [1, 1]])},
    "inverse_transform": {"codes": np.array([[0, 1], [2, 0], [1, 1]])},
    "certify": {"n_points": 10},
    "save": {"path": "model.cprime"},
}


def estimator(name: str, **arguments: Any) -> Any:
    """Return an estimator with its usual arguments and those given."""
    cls, (_, usual) = getattr(cprime, name), ESTIMATORS[name]
    seed = {"random_state": 0} if "random_state" in inspect.signature(cls).parameters else {}
    return cls(**seed | usual | arguments)


@cache
def fitted(name: str) -> Any:
    made = estimator(name, **({"covariance_type": Factors(1)} if name == "GaussianMixture" else {}))
    return made.fit(ESTIMATORS[name][0])


def fit_with(name: str, **arguments: Any) -> Any:
    return estimator(name, **arguments).fit(ESTIMATORS[name][0])


def entries_of_estimators() -> dict[str, Call]:
    """Return the entries of the constructors, with a fit, and of the methods that differ between the classes."""
    found, seen = {}, set()
    for name, (rows, usual) in ESTIMATORS.items():
        cls = getattr(cprime, name)
        own = {"weights": "choice", "init_params": "untried"} | ({"m": "real"} if name == "FuzzyKMeans" else {})
        own |= {"columns": "object"} if name == "MixedMixture" else {}
        found[name] = Call(partial(fit_with, name), usual, own, cls)
        for argument, value in GIVEN.get(name, {}).items():
            more = {"means_init": CENTERS} if argument == "precisions_init" else {}
            more |= {"regularizer": "entropy"} if argument == "regularization" else {}
            kinds = {"init": "numbers", "fixed": "numbers"}
            call = Call(partial(fit_with, name, **more), {argument: value}, kinds, partial_of(argument))
            found[f"{name}, {argument}"] = call
        for method in methods_of(cls):
            function = inspect.getattr_static(cls, method)
            if method != "fit" and function in seen:
                continue
            seen.add(function)
            given = {"X": rows, **METHODS.get(method, {})}
            needs = inspect.signature(getattr(cls, method)).parameters
            given = {key: value for key, value in given.items() if key in needs}
            kinds = {} if method != "sample" else {"sample": "flag"}
            found[f"{name}.{method}"] = Call(partial(call_method, name, method), given, kinds, getattr(cls, method))
    return found


def partial_of(argument: str) -> Callable[..., Any]:
    """Return a function whose only argument has the given name, for an entry in which only this argument is tried."""

    def tried() -> None: ...

    parameter = inspect.Parameter(argument, inspect.Parameter.KEYWORD_ONLY, default=None)
    tried.__signature__ = inspect.Signature([parameter])  # type: ignore[attr-defined]
    return tried


def call_method(name: str, method: str, **arguments: Any) -> Any:
    """Call a method of a copy of a fitted estimator."""
    return getattr(copy.deepcopy(fitted(name)), method)(**arguments)


def methods_of(cls: type) -> list[str]:
    """Return the names of the public methods of a class that the library documents as its own."""
    names = [name for name in dir(cls) if not name.startswith("_") and not name.endswith("_request")]
    own = [name for name in names if callable(getattr(cls, name, None)) and name not in NOT_OURS]
    return [name for name in own if not (issubclass(cls, tuple) and name in ("count", "index"))]


def public() -> set[str]:
    """Return the names of all public callables; those of a method follow the name of its class."""
    found, module = set(), ""
    for line in (Path(__file__).parents[2] / "docs" / "api.rst").read_text(encoding="utf-8").splitlines():
        if head := re.match(r"\.\. currentmodule:: (\S+)$", line):
            module = head[1]
        elif (name := re.match(r"   (\w+)$", line)) and module and module not in SKIPPED:
            value = getattr(import_module(module), name[1])
            path = ".".join(["" if module == "cprime" else module.removeprefix("cprime."), name[1]]).strip(".")
            if not inspect.isclass(value):
                found.add(path)
                continue
            if name[1] not in RESULTS:
                found.add(path)
            if name[1] not in ("Source", "Callback", "ProgressBar", "RowsProgress", "SearchQualityWarning"):
                found |= {f"{path}.{method}" for method in methods_of(value)}
    return found


DENSITY = theory.Gaussians(CENTERS, np.array([4.0 * np.eye(3)] * 3), SHARES)
ONE = theory.Gaussians.spherical([0.0, 9.0], [1.0, 2.0])


@cache
def made(name: str) -> Any:
    """Return a result whose methods are called."""
    k_means, mixture = fitted("KMeans"), fit_with("GaussianMixture")
    return {
        "conditional": lambda: mixture.condition([0, 1], X[:, :2]),
        "tree": lambda: selection.merge(mixture, X),
        "sweep": lambda: selection.sweep(cprime.GaussianMixture(), X, [2, 3], n_init=1, random_state=0),
        "families": lambda: selection.sweep(
            cprime.GaussianMixture(), X, [1], covariance_type=["EII", "VVI"], random_state=0
        ),
        "table": lambda: selection.classification_table(LABELS, mixture),
        "information": lambda: selection.information_curve(cprime.KMeans(), X, [1, 2], random_state=0),
        "path": lambda: theory.soft_kmeans_path(X, 2, stiffness=[0.001, 0.01], random_state=0),
        "stability": lambda: selection.stability(cprime.KMeans(), X, [2, 3], n_resamples=2, random_state=0),
        "bootstrap": lambda: selection.bootstrap(k_means, X, 3, random_state=0),
        "errors": lambda: selection.standard_errors(k_means, X),
        "ratios": lambda: selection.likelihood_ratio_test(cprime.GaussianMixture(), X, n_resamples=2, random_state=0),
        "plan": lambda: cprime.plan(cprime.KMeans(3), X),
        "report": lambda: k_means.report(X),
        "faiss": trained_bridge,
        "mixture": lambda: mixture,
    }[name]()


def trained_bridge() -> Any:
    found = bridge.Kmeans(3, 3, min_points_per_centroid=1)
    found.train(X)
    return found


def method(name: str, member: str, usual: dict[str, Any], **kinds: str) -> Call:
    """Return the entry of a method of a result."""
    return Call(lambda **given: getattr(made(name), member)(**given), usual, kinds, getattr(made(name), member))


def load_saved(**arguments: Any) -> Any:
    fitted("KMeans").save("saved.cprime")
    return cprime.load(**arguments)


def run_search(**arguments: Any) -> Any:
    """Fit with a search object of the given class and arguments."""
    cls = arguments.pop("cls")
    return cprime.KMeans(3, search=cls(**arguments), random_state=0).fit(X)


def fit_factors(factors: cprime.Factors) -> Any:
    return cprime.GaussianMixture(3, covariance_type=factors, max_iter=9, random_state=0).fit(X)


def fit_rows(estimator: Any, rows: Any) -> Any:
    """Fit an estimator to rows with errors or exposures."""
    return estimator.fit(rows)


def fit_prior(prior: cprime.Prior) -> Any:
    return cprime.GaussianMixture(3, covariance_type="diag", prior=prior, max_iter=9, random_state=0).fit(X)


def run_start(**arguments: Any) -> Any:
    cls = arguments.pop("cls")
    return cprime.KMeans(3, init=cls(**arguments), random_state=0).fit(X)


def index() -> Any:
    return faiss.IndexIVFFlat(faiss.IndexFlatL2(3), 3, 3)


def trained_index() -> Any:
    found = index()
    bridge.train_ivf(found, X, random_state=0)
    return found


def add(**arguments: Any) -> Any:
    found = trained_index()
    bridge.add_to_lists(found, **arguments)
    return found.search(CENTERS.astype(np.float32), 2)


@cache
def calls() -> dict[str, Call]:
    """Return all entries."""
    seeded, many = {"random_state": 0}, {"X": [X, X[:9]], "n_clusters": 2, "random_state": 0}
    draws = {"X": X, "n_clusters": 3, **seeded}
    found = entries_of_estimators() | {
        "ConditionalMixtures.mean": method("conditional", "mean", {}),
        "ConditionalMixtures.std": method("conditional", "std", {}),
        "ConditionalMixtures.covariance": method("conditional", "covariance", {}),
        "ConditionalMixtures.sample": method("conditional", "sample", {"n_samples": 2, **seeded}),
        "ConditionalMixtures.quantile": method("conditional", "quantile", {"q": np.array([0.25, 0.5])}),
        "Plan.as_dict": method("plan", "as_dict", {}),
        "assign": Call(cprime.assign, {"X": X, "centers": CENTERS}),
        "fit_many": Call(
            cprime.fit_many,
            many | {"X": X.reshape(2, 20, 3)},
            {"X": "many", "sample_weight": "untried", "groups": "untried", "n_clusters": "counts"},
        ),
        "open_data": Call(
            lambda **given: cprime.open_data(**given).read(0, 40), {"data": X}, {"data": "untried"}, cprime.open_data
        ),
        "plan": Call(
            lambda **given: cprime.plan(**given).as_dict()["bytes"],
            {"estimator": cprime.KMeans(3), "X": X},
            {},
            cprime.plan,
        ),
        "load": Call(load_saved, {"path": "saved.cprime"}, tried=cprime.load),
        "resume": Call(cprime.resume, {"folder": "nowhere"}, {"X": "untried", "sample_weight": "untried"}),
        "combine": Call(cprime.combine, {"models": [fitted("KMeans"), fitted("KMeans")], "n_clusters": 3, **seeded}),
        "Factors": Call(lambda **given: fit_factors(cprime.Factors(**given)), {"n_factors": 1}, tried=cprime.Factors),
        "Prior": Call(
            lambda **given: fit_prior(cprime.Prior(**given)),
            {"shrinkage": 0.5, "mean": CENTERS[0], "dof": 6.0, "scale": np.array([4.0, 5.0, 6.0])},
            {"shrinkage": "real", "mean": "numbers", "scale": "numbers"},
            cprime.Prior,
        ),
        "Noisy": Call(
            lambda **given: fit_rows(cprime.GaussianMixture(2, random_state=0), cprime.Noisy(**given)),
            {"X": X, "covariance": np.ones_like(X)},
            {"covariance": "numbers"},
            cprime.Noisy,
        ),
        "Exposed": Call(
            lambda **given: fit_rows(cprime.PoissonMixture(2, random_state=0), cprime.Exposed(**given)),
            {"X": X, "exposure": WEIGHTS},
            {"exposure": "numbers"},
            cprime.Exposed,
        ),
        "Memory": Call(
            lambda **given: cprime.KMeans(3, max_memory=cprime.Memory(**given), random_state=0).fit(X),
            tried=cprime.Memory,
        ),
        "search.Auto": Call(partial(run_search, cls=search.Auto), tried=search.Auto),
        "search.Full": Call(partial(run_search, cls=search.Full), tried=search.Full),
        "search.Bounded": Call(partial(run_search, cls=search.Bounded), tried=search.Bounded),
        "search.Graph": Call(partial(run_search, cls=search.Graph), {"n_neighbors": 2}, tried=search.Graph),
        "search.Papers": Call(partial(run_search, cls=search.Papers), {"n_neighbors": 2}, tried=search.Papers),
        **{
            f"seeding.{cls.__name__}": Call(partial(run_start, cls=cls), tried=cls)
            for cls in (seeding.KMeansPlusPlus, seeding.KMeansParallel, seeding.AFKMC2, seeding.Random)
        },
        "seeding.TwoLevel": Call(partial(run_start, cls=seeding.TwoLevel), tried=seeding.TwoLevel),
        "seeding.Jumps": Call(partial(run_start, cls=seeding.Jumps), tried=seeding.Jumps),
        "seeding.random_rows": Call(seeding.random_rows, draws),
        "seeding.kmeans_plusplus": Call(seeding.kmeans_plusplus, draws),
        "seeding.afk_mc2": Call(seeding.afk_mc2, draws),
        "seeding.two_level": Call(seeding.two_level, draws),
        "selection.sweep": Call(
            lambda **given: selection.sweep(**given).bic,
            {"estimator": cprime.GaussianMixture(), "X": X, "n_components_range": [2, 3], "n_init": 1, **seeded},
            {},
            selection.sweep,
        ),
        "selection.stability": Call(
            selection.stability,
            {"estimator": cprime.KMeans(), "X": X, "n_clusters": [2, 3], "n_resamples": 2, **seeded},
            {"n_clusters": "counts"},
        ),
        "selection.information_curve": Call(
            lambda **given: selection.information_curve(**given).modeling,
            {"estimator": cprime.KMeans(), "X": X, "n_components_range": [1, 2], **seeded},
            {"n_components_range": "counts or None", "holdout": "real or None", "weights": "choice"},
            selection.information_curve,
        ),
        "selection.merge": Call(selection.merge, {"fitted": made("mixture"), "X": X}),
        "selection.purity": Call(
            selection.purity,
            {"labels_true": LABELS, "labels": LABELS[::-1].copy()},
            {"labels_true": "classes", "labels": "classes"},
        ),
        "selection.classification_table": Call(
            lambda **given: selection.classification_table(**given).counts,
            {"classes": LABELS, "clusters": LABELS[::-1].copy()},
            {"classes": "classes", "clusters": "classes"},
            selection.classification_table,
        ),
        "selection.bootstrap": Call(
            selection.bootstrap,
            {"estimator": fitted("KMeans"), "X": X, "n_resamples": 3, **seeded},
        ),
        "selection.Bootstrap.interval": method("bootstrap", "interval", {}, level="real"),
        "selection.Bootstrap.to_frame": method("bootstrap", "to_frame", {}),
        "selection.likelihood_ratio_test": Call(
            selection.likelihood_ratio_test,
            {"estimator": cprime.GaussianMixture(), "X": X, "n_resamples": 2, "n_init": 1, **seeded},
            {"max_components": "size or None"},
        ),
        "selection.standard_errors": Call(selection.standard_errors, {"estimator": fitted("KMeans"), "X": X}),
        "selection.LikelihoodRatioTest.to_frame": method("ratios", "to_frame", {}),
        "selection.StandardErrors.interval": method("errors", "interval", {}, level="real"),
        "selection.StandardErrors.to_frame": method("errors", "to_frame", {}),
        "selection.Sweep.best": method("sweep", "best", {}),
        "selection.Sweep.best_n_components": method("sweep", "best_n_components", {}),
        "selection.Sweep.best_covariance_type": method("families", "best_covariance_type", {}),
        "selection.Sweep.matrix": method("families", "matrix", {"criterion": "bic"}),
        "selection.Sweep.elbow": method("sweep", "elbow", {}),
        "selection.Sweep.to_frame": method("sweep", "to_frame", {}),
        "selection.ClassificationTable.to_frame": method("table", "to_frame", {}),
        "selection.Stability.best_n_clusters": method("stability", "best_n_clusters", {}),
        "selection.Stability.plot": method("stability", "plot", {}),
        "selection.Stability.to_frame": method("stability", "to_frame", {}),
        "selection.InformationCurve.best_n_components": method("information", "best_n_components", {}),
        "selection.InformationCurve.plot": method("information", "plot", {}),
        "selection.InformationCurve.to_frame": method("information", "to_frame", {}),
        "selection.MergeTree.cut": method("tree", "cut", {"n_clusters": 2}),
        "selection.MergeTree.labels": method("tree", "labels", {"n_clusters": 2}),
        "selection.MergeTree.elbow": method("tree", "elbow", {}),
        "selection.MergeTree.to_frame": method("tree", "to_frame", {}),
        "selection.MergeTree.to_linkage": method("tree", "to_linkage", {}),
        "selection.SelectionDisplay.from_sweep": Call(selection.SelectionDisplay.from_sweep, {"sweep": made("sweep")}),
        "selection.SelectionDisplay.plot": Call(lambda: selection.SelectionDisplay(made("sweep")).plot()),
        "selection.SelectionDisplay.from_estimator": Call(
            selection.SelectionDisplay.from_estimator,
            {"estimator": cprime.GaussianMixture(), "X": X, "n_components_range": [2, 3]},
        ),
        "coresets.lightweight": Call(coresets.lightweight, {"X": X, "m": 9, **seeded}, {"m": "effort"}),
        "coresets.sensitivity": Call(
            coresets.sensitivity, {"X": X, "m": 9, "n_clusters": 3, **seeded}, {"m": "effort"}
        ),
        "report.profile": Call(
            report.profile,
            {"estimator": fitted("KMeans"), "X": X, "frame": {"x": X[:, 0], "label": LABELS.astype(str)}},
        ),
        "report.Report.save": method("report", "save", {"path": "report.html"}),
        "callbacks.ProgressBar": Call(ProgressBar),
        "callbacks.RowsProgress": Call(RowsProgress),
        "datasets.assembled": Call(datasets.assembled, {"patches": np.arange(128.0).reshape(2, 64), "shape": (9, 8)}),
        "datasets.birch": Call(datasets.birch, {"n_side": 2, "n_per_cluster": 5, **seeded}),
        "datasets.birch_random": Call(
            datasets.birch_random, {"n_clusters": 2, "n_per_cluster": 5, **seeded}, {"n_clusters": "effort"}
        ),
        "datasets.clusters": Call(
            datasets.clusters, {"n_samples": 20, "n_clusters": 3, "n_features": 2, **seeded}, {"n_clusters": "effort"}
        ),
        "datasets.old_faithful": Call(datasets.old_faithful),
        "datasets.read_song": Call(datasets.read_song, {}),
        "datasets.read_kdd": Call(datasets.read_kdd, {}),
        "datasets.patches": Call(datasets.patches, {"image": IMAGE, "size": 4}),
        "tl.kmeans": Call(annotated(tl.kmeans), {"n_clusters": 3}, {}, tl.kmeans),
        "tl.gaussian_mixture": Call(annotated(tl.gaussian_mixture), {"n_components": 3}, {}, tl.gaussian_mixture),
        "tl.sweep": Call(
            annotated(tl.sweep), {"n_components_range": [2, 3], "estimator": cprime.KMeans()}, {}, tl.sweep
        ),
        "tl.predict": Call(annotated(tl.predict), {"reference": clustered_cells()}, {}, tl.predict),
    }
    found |= theory_calls() | bridge_calls() | regression_calls() | classifier_calls()
    return found


TARGETS = X @ np.array([1.0, -2.0, 0.5]) + 4 * LABELS


@cache
def regression() -> Any:
    return cprime.RegressionMixture(2, n_init=2, random_state=0).fit(X, TARGETS)


def regression_calls() -> dict[str, Call]:
    cls, data = cprime.RegressionMixture, {"X": X, "y": TARGETS}

    def fit(**given: Any) -> Any:
        rows = {name: given.pop(name) for name in ("X", "y", "sample_weight") if name in given}
        return cls(**{"n_components": 2, "n_init": 2, "random_state": 0} | given).fit(**data | rows).predict(X)

    def entry(name: str, usual: dict[str, Any], **kinds: str) -> Call:
        return Call(lambda **given: getattr(regression(), name)(**given), usual, kinds, getattr(cls, name))

    kinds = {"n_init": "effort", "family": "choice", "weights": "choice", "regressors": "counts"}
    kinds |= {"concomitant": "counts", "init_params": "choice"}
    usual = {"n_components": 2, "n_init": 2, "regressors": [0, 1]}
    return {
        "RegressionMixture": Call(fit, usual, kinds, cls),
        "RegressionMixture, init_params": Call(
            fit, {"init_params": LABELS // 2}, {"init_params": "labels"}, partial_of("init_params")
        ),
        "RegressionMixture.fit": Call(fit, data, {"y": "numbers"}, cls.fit),
        **{
            f"RegressionMixture.{name}": entry(name, {"X": X})
            for name in ("predict", "predict_components", "predict_weights")
        },
        **{
            f"RegressionMixture.{name}": entry(name, data, y="numbers")
            for name in ("responsibilities", "assign", "log_likelihood", "aic", "bic")
        },
        "RegressionMixture.score": entry("score", data, y="untried", sample_weight="untried"),  # scikit-learn's
        "RegressionMixture.sample": entry("sample", {"X": X, "random_state": 0}),
        "RegressionMixture.save": entry("save", {"path": "model.cprime"}),
        "selection.standard_errors, y": Call(
            partial(selection.standard_errors, regression(), X),
            {"y": TARGETS},
            {"y": "numbers"},
            partial_of("y"),
        ),
        "RegressionMixture.report": Call(fit, {}, {"X": "untried"}),  # it has none
    }


@cache
def classifier() -> Any:
    return cprime.MixtureClassifier(n_components=1, random_state=0).fit(X, LABELS)


def posteriors(**given: Any) -> Any:
    return cprime.MixtureClassifier(**{"n_components": 1, "random_state": 0} | given).fit(X, LABELS).predict_proba(X)


def classifier_calls() -> dict[str, Call]:
    cls, data = cprime.MixtureClassifier, {"X": X, "y": LABELS}

    def entry(name: str, usual: dict[str, Any], **kinds: str) -> Call:
        return Call(lambda **given: getattr(classifier(), name)(**given), usual, kinds, getattr(cls, name))

    def fit(**given: Any) -> Any:
        return cls(n_components=1, random_state=0).fit(**given).predict_proba(X)

    numbers = Call(partial(posteriors, random_state=0), {"n_components": [1, 2]}, {"n_components": "counts"})
    return {
        "MixtureClassifier": Call(
            posteriors,
            {"priors": SHARES, "n_components": 1},
            {"priors": "numbers", "n_components": "object", "estimator": "object"},
            cls,
        ),
        "MixtureClassifier, n_components": replace(numbers, tried=partial_of("n_components")),
        "MixtureClassifier.fit": Call(fit, data, {"y": "classes"}, cls.fit),
        **{
            f"MixtureClassifier.{name}": entry(name, {"X": X})
            for name in ("predict", "predict_proba", "predict_log_proba", "decision_function")
        },
        "MixtureClassifier.report": Call(lambda X: posteriors(), {"X": X}, {"X": "untried"}),  # it has none
        "MixtureClassifier.score": entry("score", data, y="untried", sample_weight="untried"),  # scikit-learn's
        "MixtureClassifier.bic": entry("bic", data, y="classes"),
        "MixtureClassifier.sample": entry("sample", {"n_samples": 4, "random_state": 0}),
        "MixtureClassifier.save": entry("save", {"path": "model.cprime"}),
    }


def annotated(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(adata: Any = None, **arguments: Any) -> Any:
        cells = AnnData(X.copy()) if adata is None else adata
        found = function(cells, **arguments)
        written = cells if found is None else found
        centers = {key: found["centers"] for key, found in written.uns.items()}
        return {"centers": centers, "labels": {name: list(written.obs[name]) for name in written.obs}}

    return call


def clustered_cells() -> AnnData:
    cells = AnnData(X.copy())
    tl.kmeans(cells, 3)
    return cells


def theory_calls() -> dict[str, Call]:
    mixture, seeded = made("mixture"), {"random_state": 0}
    k_means = fitted("KMeans")
    q = np.eye(3)[LABELS]
    return {
        "theory.Gaussians": Call(
            theory.Gaussians, {"means": CENTERS, "covariances": PRECISIONS, "weights": SHARES}, {"weights": "numbers"}
        ),
        "theory.Gaussians.spherical": Call(
            theory.Gaussians.spherical,
            {"means": CENTERS, "standard_deviations": np.array([1.0, 2, 3]), "weights": SHARES},
            {"weights": "numbers"},
        ),
        "theory.Gaussians.from_estimator": Call(theory.Gaussians.from_estimator, {"estimator": k_means}),
        "theory.Gaussians.log_densities": Call(DENSITY.log_densities, {"X": X}),
        "theory.Gaussians.sample": Call(DENSITY.sample, {"n_samples": 3, **seeded}),
        "theory.Gaussians.breakpoints": Call(ONE.breakpoints),
        "theory.Gaussians.with_equal_weights": Call(DENSITY.with_equal_weights),
        "theory.Univariate": Call(
            theory.Univariate,
            {"distributions": normals(), "weights": np.array([0.25, 0.75])},
            {"weights": "numbers", "distributions": "object"},
        ),
        "theory.Univariate.log_densities": Call(theory.Univariate(normals()).log_densities, {"X": X[:, :1]}),
        "theory.Univariate.sample": Call(theory.Univariate(normals()).sample, {"n_samples": 3, **seeded}),
        "theory.Univariate.breakpoints": Call(theory.Univariate(normals()).breakpoints),
        "theory.Univariate.with_equal_weights": Call(theory.Univariate(normals()).with_equal_weights),
        "theory.fit_assignment": Call(
            theory.fit_assignment,
            {"X": X, "start": DENSITY, "max_iter": 3},
            {"start": "object", "weights": "choice", "step": "real"},
        ),
        "theory.em_loss": Call(theory.em_loss, {"model": DENSITY, "new": DENSITY, "X": X}, {"new": "object"}),
        "theory.mixture_loss": Call(theory.mixture_loss, {"log_densities": -CENTERS}),
        "theory.part_densities": Call(
            theory.part_densities,
            {"model": DENSITY, "Q": DENSITY, "X": X, "n_samples": 100, **seeded},
            {"Q": "object", "weights": "choice"},
        ),
        "theory.free_energy": Call(theory.free_energy, {"mixture": DENSITY, "X": X, "q": q}),
        "theory.kl_divergence": Call(
            theory.kl_divergence, {"Q": DENSITY, "model": DENSITY, "n_samples": 100, **seeded}, {"Q": "object"}
        ),
        "theory.ledger": Call(
            lambda **given: theory.ledger(**given).free_energy, {"estimator": mixture, "X": X}, {}, theory.ledger
        ),
        "theory.lower_bound": Call(theory.lower_bound, {"X": X, "n_clusters": 2, "time_limit": 5.0, **seeded}),
        "theory.lower_bound, labels": Call(
            partial(theory.lower_bound, X=X, n_clusters=3, time_limit=5.0, random_state=0),
            {"labels": LABELS},
            tried=partial_of("labels"),
        ),
        "theory.partition_loss": Call(
            lambda **given: theory.partition_loss(**given).loss,
            {"model": mixture, "Q": X, "n_samples": 100, **seeded},
            {"weights": "choice"},
            theory.partition_loss,
        ),
        "theory.posterior_loss": Call(theory.posterior_loss, {"log_densities": -CENTERS}),
        "theory.posterior_mean": Call(
            theory.posterior_mean, {"mixture": DENSITY, "Y": X, "variance": 2.0}, {"Y": "rows"}
        ),
        "theory.repulsion": Call(theory.repulsion, {"ratio": np.array([0.5, 1.0, 0.25])}),
        "theory.repulsion_zero": Call(theory.repulsion_zero),
        "theory.soft_kmeans_path": Call(
            lambda **given: theory.soft_kmeans_path(**given).centers,
            {"X": X, "n_clusters": 2, "stiffness": np.array([0.001, 0.01]), **seeded},
            {"stiffness": "numbers", "perturbation": "real"},
            theory.soft_kmeans_path,
        ),
        "theory.SoftKMeansPath.plot": method("path", "plot", {}),
        "theory.variation_bounds": Call(
            theory.variation_bounds,
            {"model": ONE, "Q": ONE, "n_samples": 100, **seeded},
            {"weights": "choice", "Q": "object"},
        ),
        "theory.variation_distance": Call(theory.variation_distance, {"model": ONE, "n_samples": 100, **seeded}),
    }


def normals() -> Any:
    from scipy.stats import norm

    return [norm(0, 1), norm(3, 1)]


def bridge_calls() -> dict[str, Call]:
    def pq(**given: Any) -> Any:
        quantizer = faiss.ProductQuantizer(3, 3, 1)
        found = bridge.train_pq(quantizer if "index" not in given else given.pop("index"), **given, random_state=0)
        return [each.cluster_centers_ for each in found]

    def ivf(**given: Any) -> Any:
        return bridge.train_ivf(given.pop("index", None) or index(), **given, random_state=0)

    def trained(**given: Any) -> Any:
        model = bridge.Kmeans(3, 3, min_points_per_centroid=1)
        model.train(**given)
        return model.centroids

    shared = {"x": "rows", "init_centroids": "numbers"}
    return {
        "faiss.Kmeans": Call(lambda **given: bridge.Kmeans(**given).train(X), {"d": 3, "k": 3}, {}, bridge.Kmeans),
        "faiss.Kmeans.train": Call(
            trained, {"x": X, "weights": WEIGHTS, "init_centroids": CENTERS}, shared, bridge.Kmeans.train
        ),
        "faiss.Kmeans.assign": Call(lambda **given: made("faiss").assign(**given), {"x": X}, {}, bridge.Kmeans.assign),
        "faiss.Kmeans.reset": Call(lambda **given: trained_bridge().reset(**given), {"k": 3}, {}, bridge.Kmeans.reset),
        "faiss.Kmeans.set_index": Call(lambda: trained_bridge().set_index()),
        "faiss.train_ivf": Call(ivf, {"X": X}, {"index": "untried"}, bridge.train_ivf),
        "faiss.add_to_lists": Call(
            add, {"X": X, "labels": LABELS, "ids": np.arange(40)}, {"index": "untried"}, bridge.add_to_lists
        ),
        "faiss.train_pq": Call(pq, {"X": X}, {"index": "untried"}, bridge.train_pq),
    }
