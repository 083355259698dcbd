"""Law: in every way to fit, each constructor option acts as documented, or an error names it.

Ways to fit are the methods `fit`, `fit_predict`, `partial_fit` and `update`, the functions `combine` and `sweep`, and
the command line, whose fits have the bits of the method's. Those of `fit_many` are compared with a loop elsewhere.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from registry import POOR_FITS_PASS, check_same_bits, fitted
from sklearn.base import clone

import cprime
from cprime import selection
from cprime.cli.app import app
from cprime.search import Graph
from marks import long_but

pytestmark = [*POOR_FITS_PASS, pytest.mark.filterwarnings("ignore:The fit")]

SIZES = {"few": (90, 5), "many": (1200, 40)}  # rows, C: full search and one step; graph search and jumps
SWEPT = 5  # number of components that a sweep tries


def points(size: str, cls: type) -> Any:
    """Return rows around C centers (n, 4) in random order: counts for Poisson mixtures, codes for categorical ones."""
    n, C = SIZES[size]
    rng = np.random.default_rng(C)
    own = np.minimum(rng.integers(2 * C, size=n), C - 1)  # half of the rows belong to one center
    X = 4 * rng.standard_normal((C, 4))[own] + rng.standard_normal((n, 4)) + 20
    if cls in (cprime.PoissonMixture, cprime.MixedMixture):
        return np.round(X)
    return np.round(X).astype(int) % 4 if cls is cprime.CategoricalMixture else X


def fit(estimator: Any, X: Any, y: Any) -> Any:
    return estimator.fit(X, y)


def fit_predict(estimator: Any, X: Any, y: Any) -> Any:
    labels = estimator.fit_predict(X, y)
    np.testing.assert_array_equal(labels, estimator.labels_)
    return estimator


def partial_fit(estimator: Any, X: Any, y: Any) -> Any:
    half = len(X) // 2
    return estimator.partial_fit(X[:half], y if y is None else y[:half]).partial_fit(X[half:])


def update(estimator: Any, X: Any, y: Any) -> Any:
    return estimator.fit(X, y).update(X[len(X) // 9 :])


def combine(estimator: Any, X: Any, y: Any) -> Any:
    half = len(X) // 2
    parts = [clone(estimator).fit(X[:half], y if y is None else y[:half]), clone(estimator).fit(X[half:])]
    found = cprime.combine(parts, random_state=0)
    found.labels_ = found.predict(X)
    return found


def sweep(estimator: Any, X: Any, y: Any) -> Any:
    return selection.sweep(estimator, X, [SWEPT], holdout=None, n_init=1, random_state=0).best()


WAYS = {way.__name__: way for way in (fit, fit_predict, partial_fit, update, combine, sweep)}


def sizes(estimator: Any) -> int:
    return estimator.get_params().get("n_clusters") or estimator.get_params()["n_components"]


@dataclass(frozen=True)
class Option:
    """Value of a constructor option that is not the default, and how a fitted estimator shows that the option acted.

    value: function of the rows (n, D) and C that returns the value    acts: function of a fitted estimator and the
    value; None if it suffices that the fit differs from that without the option
    given: other arguments of both fits    only: the ways to fit that the option concerns, if not all
    """

    value: Callable[[Any, int], Any]
    acts: Callable[[Any, Any], bool] | None = None
    given: dict[str, Any] = field(default_factory=dict)
    only: tuple[str, ...] = tuple(WAYS)
    rows: Callable[[Any], Any] = lambda X: X
    labels: Callable[[Any, int], Any] = lambda X, C: None


class Wrong:
    """Object of a type that no option accepts."""


def with_missing(X: Any) -> Any:
    X = X.astype(float)
    X[::7, 1] = np.nan
    return X


def of_first_rows(X: Any, C: int) -> Any:
    """Return labels (N,) of which the first four are 1 and the others unknown."""
    return np.where(np.arange(len(X)) < 4, 1, -1)


def always(value: Any) -> Callable[[Any, int], Any]:
    return lambda X, C: value


def counts(estimator: Any) -> Any:
    return np.bincount(estimator.labels_, minlength=sizes(estimator))


class Recorder:
    """Callback that counts the iterations that it has seen in all copies of it."""

    seen = 0

    def on_iteration(self, row: Any, estimator: Any) -> None:
        Recorder.seen += 1

    def __deepcopy__(self, memo: Any) -> "Recorder":
        return self


PARTIAL, FEW_ACTIVE = {"search": Graph(3)}, {"n_active": 2}
RANDOM = {"init": "random", "jumps": False}
# Options that have no effect in a way to fit, because it makes one step, takes fitted models, or sets them itself.
OF_FITS = {"search", "n_init", "max_iter", "tol", "momentum", "callbacks"}
UNUSED = {
    "partial_fit": OF_FITS,
    "combine": OF_FITS,
    "sweep": {"n_clusters", "n_components", "n_init", "random_state", "tol", "max_iter"},
}
COMMON = {
    "search": Option(always(Graph(3))),
    "max_iter": Option(always(1)),
    "tol": Option(always(9.0), given={"max_iter": 40}),
    "learning_decay": Option(always(0.6), only=("partial_fit",)),
    "random_state": Option(always(7)),
    "callbacks": Option(lambda X, C: [Recorder()], lambda fit, value: Recorder.seen > 0),
}
K_MEANS = COMMON | {
    "n_clusters": Option(lambda X, C: C + 1, lambda fit, value: len(fit.cluster_centers_) == value),
    "init": Option(lambda X, C: X[:C]),
    "n_init": Option(always(30), given=RANDOM),
    "metric": Option(always("cosine"), lambda fit, value: np.allclose(np.linalg.norm(fit.cluster_centers_, axis=1), 1)),
    "epsilon": Option(always(10.0)),
    "jumps": Option(always(True), given={"init": "random"}),
    "size_max": Option(lambda X, C: len(X) // C + 1, lambda fit, value: counts(fit).max() <= value),
    "size_min": Option(lambda X, C: len(X) // C - 1, lambda fit, value: counts(fit).min() >= value),
    "fixed": Option(lambda X, C: X[:2], lambda fit, value: np.array_equal(fit.cluster_centers_[:2], value)),
    "random_state": Option(always(7), given=RANDOM),
    "tol": Option(always(9.0), given=RANDOM | {"max_iter": 40}),
    "learning_decay": Option(always(0.6), given=RANDOM, only=("partial_fit",)),
}
POOR_START = {"init_params": "random_from_data"}
SLOW = {"max_iter": 8, "tol": 1e-9} | POOR_START
ITERATING = ("fit", "fit_predict", "update")  # fits of a sweep may end at once, with or without momentum
MIXTURE = {
    **{name: replace(option, given=option.given | FEW_ACTIVE) for name, option in COMMON.items()},
    "n_components": Option(lambda X, C: C + 1, lambda fit, value: len(fit.weights_) == value),
    "weights": Option(always("equal"), lambda fit, value: np.ptp(fit.weights_) < 1e-6),
    "n_active": Option(always(1)),
    "assignment": Option(always("hard"), given=FEW_ACTIVE),
    "init_params": Option(always("random_from_data")),
    "n_init": Option(always(9), given=POOR_START),
    "tol": Option(always(9.0), given=POOR_START | {"max_iter": 40}),
    "weights_init": Option(lambda X, C: np.arange(1, C + 1) * 2 / C / (C + 1)),
}
GAUSSIAN = MIXTURE | {
    "covariance_type": Option(always("spherical"), lambda fit, value: fit.covariances_.ndim == 1),
    "momentum": Option(lambda X, C: C < 9, given=SLOW, only=ITERATING),
    "reg_covar": Option(always(9.0), lambda fit, value: fit.covariances_.min() >= value),
    "means_init": Option(lambda X, C: X[:C]),
    "precisions_init": Option(lambda X, C: np.full((C, X.shape[1]), 4.0)),
}
K_MEANS["missing"] = MISSING = Option(always("marginal"), lambda fit, value: True, rows=with_missing)
K_MEANS["semi_supervised"] = LABELS = Option(
    always(True), lambda fit, value: set(fit.labels_[:4].tolist()) == {1}, labels=of_first_rows
)
ESTIMATORS = {
    cprime.KMeans: K_MEANS,
    cprime.GaussianMixture: GAUSSIAN
    | {
        "fixed": Option(
            lambda X, C: (X[:2], np.ones((2, X.shape[1]))),
            lambda fit, value: np.array_equal(fit.means_[:2], value[0]),
            given={"covariance_type": "diag"},
        ),
        "missing": MISSING,
        "prior": Option(always(cprime.Prior())),
        "semi_supervised": LABELS,
    },
    cprime.StudentTMixture: GAUSSIAN
    | {
        "momentum": Option(always(False), given=SLOW, only=ITERATING),
        "dof": Option(always(4.0), lambda fit, value: (fit.dof_ == value).all()),
        "missing": MISSING,
    },
    cprime.LaplaceMixture: {name: GAUSSIAN[name] for name in GAUSSIAN.keys() - {"momentum", "precisions_init"}}
    | {
        "reg_covar": Option(always(9.0), lambda fit, value: 2.001 * fit.scales_.min() ** 2 >= value),
        "missing": MISSING,
    },
    cprime.MixedMixture: MIXTURE
    | {
        "columns": Option(always({"poisson": range(4)}), lambda fit, value: set(fit.families_) == {"poisson"}),
        "categories": Option(
            lambda X, C: [range(60), [], [], []], lambda fit, value: fit.n_categories_.tolist() == [60, 0, 0, 0]
        ),
        "reg_covar": Option(always(9.0), lambda fit, value: fit.block_covariances_[0].min() >= value),
        "missing": MISSING,
        "means_init": Option(lambda X, C: X[:C]),
    },
    cprime.VonMisesFisherMixture: MIXTURE
    | {
        "means_init": GAUSSIAN["means_init"],
        "concentration": Option(always(4.0), lambda fit, value: (fit.concentrations_ == value).all()),
    },
    cprime.PoissonMixture: MIXTURE | {"rates_init": Option(lambda X, C: X[:C] + 0.5), "missing": MISSING},
    cprime.CategoricalMixture: MIXTURE
    | {
        "categories": Option(
            lambda X, C: [range(6)] * 4, lambda fit, value: [len(each[0]) for each in fit.probabilities_] == [6] * 4
        ),
        "missing": MISSING,
        "probabilities_init": Option(
            lambda X, C: [np.random.default_rng(0).dirichlet(np.ones(4), C) for _ in range(4)]
        ),
    },
}
USUAL = {"random_state": 1, "n_threads": 1, "max_iter": 4}
USUAL_OF = {
    cprime.KMeans: {},
    cprime.GaussianMixture: {"covariance_type": "diag"},
    cprime.StudentTMixture: {"covariance_type": "diag"},
    cprime.LaplaceMixture: {},
    cprime.VonMisesFisherMixture: {},
    cprime.PoissonMixture: {},
    cprime.CategoricalMixture: {"n_init": 1},
    cprime.MixedMixture: {"n_init": 1, "columns": {"diag": range(4)}},
}
# Options of resources and of output, which do not change a result; wrong values are errors all the same.
NO_RESULT = {"checkpoint", "max_memory", "n_threads", "verbose", "warm_start", "handle_unknown"}
# Mixtures share the code of most options, so each is tried for one class of mixtures, and where it was redefined.
CASES = [
    (cls, name)
    for cls, options in ESTIMATORS.items()
    for name, option in options.items()
    if cls in (cprime.KMeans, cprime.GaussianMixture) or option not in GAUSSIAN.values()
]


def outcome(way: str, estimator: Any, X: Any, y: Any) -> tuple[Any, Exception | None]:
    """Return the estimator that one of the `WAYS` has fitted and None, or None and the error that it raised."""
    try:
        return WAYS[way](estimator, X, y), None
    except (TypeError, ValueError) as error:
        return None, error


def names(error: Exception | None, name: str) -> bool:
    return re.search(rf"\b{name}\b", str(error)) is not None


def test_every_option_has_a_case():
    for cls, options in ESTIMATORS.items():
        assert set(inspect.signature(cls).parameters) - NO_RESULT == set(options)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("cls", "name"), CASES)
def test_an_option_acts_or_is_refused_by_name(cls, name, way, size):
    option, C = ESTIMATORS[cls][name], SWEPT if way == "sweep" else SIZES[size][1]
    if way not in option.only or (way == "combine" and cls not in (cprime.KMeans, cprime.GaussianMixture)):
        return
    if name in UNUSED.get(way, ()):
        if way != "combine":
            assert re.search(rf"`{name}\b", (selection.sweep if way == "sweep" else getattr(cls, way)).__doc__)
        return
    X = points(size, cls)
    value, plain = option.value(X, C), cls(C).set_params(**USUAL | USUAL_OF[cls] | option.given)
    rows, y = option.rows(X), option.labels(X, C)
    changed, error = outcome(way, clone(plain).set_params(**{name: value}), rows, y)
    if error is not None:
        assert any(names(error, each) for each in (name, *option.given))
        return
    if option.acts is not None:
        assert option.acts(changed, value)
        Recorder.seen = 0
        assert option.acts is MISSING.acts or not option.acts(WAYS[way](plain, X, None), value)
    else:
        with pytest.raises(AssertionError):
            check_same_bits(fitted(changed), fitted(WAYS[way](plain, rows, y)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_a_wrong_value_is_refused_by_name_in_every_way_to_fit(cls, way):
    X = points("few", cls)
    found = []
    for name in inspect.signature(cls).parameters:
        if name == "callbacks" or (name in UNUSED["sweep"] and way == "sweep"):
            continue  # scikit-learn's `set_callbacks` checks callbacks
        error = outcome(way, cls(3).set_params(**USUAL | {name: Wrong()}), X, None)[1]
        if not names(error, name):
            found.append(f"{name}: {error}")
    assert found == []


MODELS = {
    "kmeans": cprime.KMeans,
    "gmm": cprime.GaussianMixture,
    "student-t": cprime.StudentTMixture,
    "poisson": cprime.PoissonMixture,
    "categorical": cprime.CategoricalMixture,
    "mixed": cprime.MixedMixture,
}
IN_COMMANDS = {"search": "graph", "missing": "marginal"}  # values of other options are those of the cases
# Options of commands that are written otherwise, or not offered. The others have the argument's name.
COMMANDS = {"n_clusters": "n-components", "init_params": "init", "random_state": "seed"}


def as_commands(options: dict[str, Any]) -> list[str]:
    return [
        text
        for name, value in options.items()
        for text in (f"--{COMMANDS.get(name, name).replace('_', '-')}", str(value))
    ]


@pytest.mark.parametrize("size", long_but(["few"], SIZES))
@pytest.mark.parametrize("model", MODELS)
def test_options_of_the_command_line_are_those_of_fits(model, size, tmp_path):
    cls, C = MODELS[model], SIZES[size][1]
    offered = {name for param in app.commands["fit"].params for name in param.opts}
    X = points(size, cls)
    np.save(tmp_path / "gaps.npy", with_missing(X))
    np.save(tmp_path / "x.npy", X)
    tried = set()
    for name, option in ESTIMATORS[cls].items():
        value = IN_COMMANDS.get(name, option.value(X, C))
        if as_commands({name: value})[0] not in offered or not isinstance(value, str | int | float):
            continue
        given = {key: "graph" if key == "search" else one for key, one in option.given.items()}
        given = {"max_iter": 4, "random_state": 1, **given, name: value}
        given = {key: one for key, one in given.items() if as_commands({key: one})[0] in offered}
        path = tmp_path / ("gaps.npy" if name == "missing" else "x.npy")
        estimator = cls(C).set_params(n_threads=1, **given).fit(np.load(path))
        size_given = {} if name in ("n_clusters", "n_components") else {"n_components": C}
        words = [
            "fit",
            str(path),
            "-m",
            model,
            *as_commands(size_given | given),
            "--threads",
            "1",
            "-o",
            str(tmp_path / "m.safetensors"),
        ]
        result = CliRunner().invoke(app, [*words, "--quiet"])
        assert result.exit_code == 0, (name, result.output)
        check_same_bits(fitted(cprime.load(tmp_path / "m.safetensors")), fitted(estimator))
        tried.add(name)
    assert len(tried) > 8
