"""Registry of displays: functions that draw each of them, for fits of few and of many clusters."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from cprime import GaussianMixture, KMeans, SoftKMeans, StudentTMixture, plots
from cprime.estimators.covariances import MCLUST_FAMILIES
from cprime.search import Papers
from cprime.selection import InformationCurve, SelectionDisplay, Sweep, information_curve, stability, sweep
from cprime.theory import soft_kmeans_path

# Points, columns, clusters, unit of the data, and iterations that are shown.
SIZES = {"few": (60, 2, 4, 1.0, [1]), "many": (900, 5, 36, 1000.0, [1, 2, 3])}
OPTIONS: dict[str, Any] = {"random_state": 0, "max_iter": 500}


class Fits(NamedTuple):
    """Rows X, and fits of them: k-means with neighbor lists, a truncated mixture and soft k-means.

    line: one column of numbers    crowd: rows of which most are in a small area    cycles: iterations to show
    r: responsibilities of a point, of which the last is the greatest    parts: terms of a sum    sizes: of clusters
    """

    X: np.ndarray
    line: np.ndarray
    crowd: np.ndarray
    km: KMeans
    gm: GaussianMixture
    soft: SoftKMeans
    cycles: list[int]
    r: np.ndarray
    parts: dict[str, float]
    sizes: np.ndarray


@cache
def fits_of(size: str) -> Fits:
    n, D, C, unit, cycles = SIZES[size]
    few, rng = size == "few", np.random.default_rng(0)
    X = unit * (8 * rng.standard_normal((C, D))[rng.integers(C, size=n)] + rng.standard_normal((n, D)))
    return Fits(
        X=X,
        line=X[:, :1],
        crowd=unit * np.vstack([0.02 * rng.standard_normal((200, 2)), [[-9, 4], [8, -5]]]),
        km=KMeans(C, search=Papers(n_neighbors=3), random_state=0).fit(X),
        gm=GaussianMixture(C // 2, covariance_type="diag", n_active=2, **OPTIONS).fit(X),
        soft=SoftKMeans(C, random_state=0).fit(X),
        cycles=cycles,
        r=np.sort(rng.dirichlet(np.full(4 if few else 1000, 0.3))),
        parts={"a": 1.0, "b": -2.0} if few else {f"term number {i}": -2000.0 + 900.5 * i for i in range(8)},
        sizes=np.array([3, 4000]) if few else 1.3 ** np.arange(40),
    )


def shown(name: str, fit: Callable[[Fits], Any], data: Callable[[Fits], Any] = lambda f: f.X, **options: Any) -> Any:
    """Return a function of fits and `ax` that draws the display of this name for a fit and its data."""

    def draw(f: Fits, ax: Any) -> Any:
        given = {key: value(f) if callable(value) else value for key, value in options.items()}
        rows = data(f)
        return getattr(plots, name).from_estimator(fit(f), *([] if rows is None else [rows]), ax=ax, **given)

    return draw


def swept(n: int) -> Any:
    """Return a sweep of few or of fourteen covariance types with values as large as n rows have."""
    families = ["EII", "VVV"] if n < 100 else list(MCLUST_FAMILIES)
    found = sweep(KMeans(), np.random.default_rng(0).standard_normal((60, 2)), range(1, 4), random_state=0)
    values = -(float(n) ** 2) * np.random.default_rng(1).random((len(families), 3)).ravel()
    rows = {name: np.tile(each, len(families)) for name, each in vars(found).items() if isinstance(each, np.ndarray)}
    return Sweep(
        **rows | {"bic": values},
        weight=found.weight,
        estimators=found.estimators * len(families),
        covariance_type=np.repeat(families, 3),
    )


def informed(f: Fits) -> InformationCurve:
    """Return the terms of the partition loss up to four components more than the k-means of the fits has."""
    return information_curve(KMeans(), f.X, range(1, len(f.km.cluster_centers_) + 4), random_state=0)


# The first word of a name is that of the display.
DRAWINGS: dict[str, Callable[[Fits, Any], Any]] = {
    "ClustersDisplay": shown("ClustersDisplay", lambda f: f.gm),
    "ClustersDisplay, k-means": shown("ClustersDisplay", lambda f: f.km, numbers=True),
    "ClustersDisplay, crowded": shown(
        "ClustersDisplay", lambda f: KMeans(12, random_state=0).fit(f.crowd), lambda f: f.crowd
    ),
    "ClustersDisplay, errors": shown("ClustersDisplay", lambda f: f.km, standard_errors=True),
    "ClustersDisplay, contours": shown("ClustersDisplay", lambda f: f.gm, density=True),
    "ClustersDisplay, line": shown(
        "ClustersDisplay", lambda f: GaussianMixture(3, **OPTIONS).fit(f.line), lambda f: f.line
    ),
    "CodebookDisplay": shown(
        "CodebookDisplay", lambda f: f.km, lambda f: None, image_shape=lambda f: (1, f.X.shape[1])
    ),
    "ConvergenceDisplay": shown("ConvergenceDisplay", lambda f: f.km),
    "ConvergenceDisplay, warm-up": shown(
        "ConvergenceDisplay",
        lambda f: KMeans(4, search=Papers("estimated", start="random", n_warmup=2), random_state=0).fit(f.X),
    ),
    "ConvergenceDisplay, trace": shown(
        "ConvergenceDisplay", lambda f: f.gm, trace=True, panels_shown=["bounds", "error"]
    ),
    "ConvergenceDisplay, soft": shown("ConvergenceDisplay", lambda f: f.soft, panels_shown=["bounds", "error"]),
    "DecompositionDisplay": lambda f, ax: plots.DecompositionDisplay(f.parts).plot(ax),
    "InformationCurve": lambda f, ax: informed(f).plot(ax=ax),
    "InformationCurve, gain": lambda f, ax: informed(f).plot("information_gain", ax=ax),
    "MergeTreeDisplay": shown("MergeTreeDisplay", lambda f: f.km, n_clusters=2),
    "MergeTreeDisplay, entropy": shown("MergeTreeDisplay", lambda f: f.gm, n_clusters=2),
    "ResponsibilitiesDisplay": lambda f, ax: plots.ResponsibilitiesDisplay(f.r, 2).plot(ax),
    "SearchSpaceDisplay": shown("SearchSpaceDisplay", lambda f: f.km, lambda f: f.X[0], max_steps=1),
    "SelectionDisplay": lambda f, ax: SelectionDisplay(
        sweep(KMeans(), f.X, range(1, len(f.km.cluster_centers_) + 4), random_state=0)
    ).plot(ax=ax),
    "SelectionDisplay, covariance types": lambda f, ax: SelectionDisplay(swept(len(f.X))).plot(ax=ax),
    "SizesDisplay": shown("SizesDisplay", lambda f: f.km),
    "SizesDisplay, log": lambda f, ax: plots.SizesDisplay(f.sizes).plot(ax, log=True),
    "Stability": lambda f, ax: stability(
        KMeans(random_state=0), f.X, [2, 3, len(f.km.cluster_centers_)], n_resamples=2, random_state=0
    ).plot(ax=ax),
    "SoftKMeansPath": lambda f, ax: soft_kmeans_path(f.X, 4, random_state=0).plot(ax=ax),
    "StepsDisplay": shown("StepsDisplay", lambda f: f.km, cycles=lambda f: f.cycles),
    "StepsDisplay, soft": shown("StepsDisplay", lambda f: f.soft, cycles=lambda f: f.cycles),
    "StepsDisplay, t": shown(
        "StepsDisplay", lambda f: StudentTMixture(2, **OPTIONS).fit(f.X), cycles=lambda f: f.cycles
    ),
}


def n_panels(name: str, size: str) -> int:
    """Return the number of panels of a drawing."""
    several = {"ConvergenceDisplay": 2, "MergeTreeDisplay": 2, "ResponsibilitiesDisplay": 2}
    several["StepsDisplay"] = 1 + 2 * len(SIZES[size][-1])
    return several.get(name.split(",")[0], 1)


def draw(name: str, size: str, ax: Any = None) -> Any:
    """Draw the display of this name on axes, or in a new figure, and return it."""
    return DRAWINGS[name](fits_of(size), ax)
