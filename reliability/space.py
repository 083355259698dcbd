"""Random cases of the public Python interface: data, weights, estimator and arguments.

A case consists of plain values that JSON can represent. `reliability.data` makes its data, and `reliability.expected`
lists the errors that it may or must raise.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from reliability.drawing import Draw, rarely

KINDS = (
    *("normal", "clusters", "clusters", "lattice", "few", "equal", "flat", "line"),
    *("heavy", "columns", "outlier", "groups", "sparse"),
)
NUMERIC = (
    "float16",
    "longdouble",
    "int8",
    "uint8",
    "int16",
    "int32",
    "int64",
    "uint64",
    "bool",
    "object",
    "complex128",
)
LAYOUTS = (
    *("C", "C", "F", "rows", "columns", "back rows", "back columns", "read-only", "unaligned", "swapped"),
    *("list", "frame", "memmap", "memmap F", "source", "path", "chunks"),
)
WEIGHTS = (
    *("ones", "integers", "zeros", "1e15", "1e-15", "wide", "one", "float32", "list", "equal 3"),
    *("negative", "nan", "all zero", "short", "matrix"),
)
ESTIMATORS = (
    *("KMeans",) * 14,
    *("GaussianMixture",) * 12,
    *("StudentTMixture",) * 6,
    *("SoftKMeans", "FuzzyKMeans", "KMeans1D", "KMedoids") * 3,
    *("XMeans", "GMeans", "lightweight"),
)
MIXTURES = ("GaussianMixture", "StudentTMixture")
OPENS_SOURCES = ("KMeans", *MIXTURES, "SoftKMeans")
COVARIANCES = ("full", "tied", "diag", "spherical", "tied_spherical")
FACTORED = ("factors", "ppca")
GAPS = ("anywhere", "anywhere", "columns", "rows", "whole rows", "nearly columns", "blocks")
ACTS = ("threads", "repeat", "predict", "odd predict", "save", "bounds", "batches", "copy", "weights as repeats")
NARROW = ("float16", "int8", "uint8", "bool")  # types that are stored unchanged and computed with as float32
MERGES = ("merge",)  # for estimators with components
ACTS_OF = {
    "KMeans": MERGES,
    "GaussianMixture": (*MERGES, "impute", "marginal", "condition"),
    "StudentTMixture": (*MERGES, "marginal", "outliers"),
}


@dataclass(frozen=True)
class Points:
    """Description of the rows.

    scale, offset: powers of ten; offset relative to the scale, None for no offset
    bad: an invalid entry in place of a number      gaps: pattern of missing values, None for none
    missing: the share of missing values in percent
    """

    seed: int
    n: int
    D: int
    kind: str = "normal"
    scale: int = 0
    offset: int | None = None
    dtype: str = "float64"
    layout: str = "C"
    bad: str | None = None
    gaps: str | None = None
    missing: int = 0


@dataclass(frozen=True)
class Case:
    """Data, estimator, arguments and weights of a fit, and the checks done with it afterwards (acts)."""

    points: Points
    estimator: str
    params: dict[str, Any] = field(default_factory=dict)
    weights: str | None = None
    acts: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, values: dict[str, Any]) -> "Case":
        return cls(**values | {"points": Points(**values["points"]), "acts": tuple(values["acts"])})


def surface_case(draw: Draw, widest: int = 300, estimators: Sequence[str] = ESTIMATORS) -> Case:
    """Return a random case: usually small and valid, sometimes with oddities; values from 10^-widest to 10^widest."""
    estimator = draw.choice(estimators)
    points = _points(draw, estimator, widest)
    weights = draw.choice(WEIGHTS) if rarely(draw, 40) else None
    params = _PARAMS[estimator](draw, points)
    if points.gaps is not None and not rarely(draw, 5):
        params["missing"] = "marginal"
    acts = tuple(act for act in ACTS if rarely(draw, 12))
    acts += tuple(act for act in ACTS_OF.get(estimator, ()) if rarely(draw, 30))
    if points.dtype in NARROW and points.layout != "list" and rarely(draw, 50):
        acts += ("widened",)
    return Case(points, estimator, params, weights, acts)


def _size(draw: Draw, *ranges: tuple[int, int, int]) -> int:
    """Return a random number; ranges: (cumulative percentage of the range, its least number, its largest number)."""
    at = draw.integer(0, 99)
    return next(draw.integer(least, most) for end, least, most in ranges if at < end)


def _points(draw: Draw, estimator: str, widest: int) -> Points:
    n = _size(draw, (86, 4, 60), (92, 1, 3), (99, 61, 300), (100, 301, 3000))
    D = _size(draw, (70, 1, 5), (96, 6, 40), (99, 41, 300), (100, 301, 2000))
    if estimator == "KMeans1D" and not rarely(draw, 3):
        D = 1
    if estimator in ("KMedoids", "XMeans", "GMeans"):
        n = min(n, 300)
    if estimator in MIXTURES and D > 40:
        n, D = min(n, 60), min(D, 400)
    if estimator in ("XMeans", "GMeans"):
        D = min(D, 100)
    dtype = "float64"
    if rarely(draw, 55):
        dtype = draw.choice(NUMERIC) if rarely(draw, 25) else "float32"
    scale = 0
    if rarely(draw, 35):
        scale = draw.integer(-6, 6)
        if rarely(draw, 25):
            low, high = (-45, 39) if dtype == "float32" else (-300, 300)
            scale = draw.integer(max(low, -widest), min(high, widest))
    if n * D > 60_000:
        D = max(1, 60_000 // n)
    gaps, missing = None, 0
    if estimator == "GaussianMixture" and rarely(draw, 40):
        gaps, missing = draw.choice(GAPS), draw.choice((1, 10, 30, 60, 90))
        n, D = min(n, 120), min(D, 12)
        dtype = dtype if dtype in ("float32", "float16", "object") else "float64"
    return Points(
        seed=draw.integer(0, 10**6),
        n=n,
        D=D,
        kind=draw.choice(KINDS),
        scale=scale,
        offset=draw.integer(0, 8) if rarely(draw, 15) else None,
        dtype=dtype,
        layout=draw.choice(LAYOUTS) if rarely(draw, 45) else "C",
        bad=draw.choice(("nan", "inf", "-inf")) if rarely(draw, 4) else None,
        gaps=gaps,
        missing=missing,
    )


def _n_clusters(draw: Draw, n: int) -> int:
    """Return a number of clusters from 1 to n, usually small; sometimes n, or too many."""
    what = draw.integer(0, 99) if n <= 300 else 0
    if what < 70:
        return draw.integer(1, min(8 if n <= 300 else 64, n))
    if what < 88:
        return draw.integer(1, n)
    return n if what < 95 else max(1, n - 1) if what < 98 else n + draw.integer(1, 3)


def _loop(draw: Draw) -> dict[str, Any]:
    params: dict[str, Any] = {
        "random_state": draw.integer(0, 5),
        "n_threads": draw.choice((1, 1, 2, 3, None)),
        "max_iter": draw.choice((1, 2, 5, 10, 30)),
    }
    if rarely(draw, 10):
        params["n_init"] = 2
    if rarely(draw, 30):
        params["tol"] = draw.choice((0.0, 1e-8, 1e-2, 10.0))
    return params


def _search(draw: Draw, params: dict[str, Any], bounded: bool) -> None:
    if not rarely(draw, 65):
        return
    search = draw.choice(("full", "graph", "exact", "estimated", "Graph", "Papers", *(["bounded"] * 2 * bounded)))
    if search == "Graph":
        options: dict[str, Any] = {}
        if rarely(draw, 60):
            options["n_neighbors"] = draw.integer(2, 12)
        if rarely(draw, 50):
            options["regroup"] = draw.choice((True, False))
        if rarely(draw, 30):
            options["certificate"] = draw.choice((0, 1, 7))
        params["search"] = {"Graph": options}
    elif search == "Papers":
        options = {
            "lists": draw.choice(("exact", "estimated")),
            "n_neighbors": draw.integer(2, 8),
            "n_explore": draw.integer(0, 2),
            "start": draw.choice(("two-level", "random")),
            "certificate": draw.choice((0, 7, 1000)),
        }
        params["search"] = {"Papers": options}
    else:
        params["search"] = search


def _start(draw: Draw, name: str, params: dict[str, Any], choices: tuple[str, ...]) -> None:
    if rarely(draw, 45):
        params[name] = draw.choice(choices)


STARTS = ("k-means++", "k-means||", "random", "afk-mc2", "two-level", "@rows", "@far", "@function")


def _k_means(draw: Draw, points: Points) -> dict[str, Any]:
    params = {"n_clusters": _n_clusters(draw, points.n), **_loop(draw)}
    _search(draw, params, bounded=True)
    if "Graph" in params.get("search", ()) and rarely(draw, 30):
        params["jumps"] = draw.choice((True, False))
    _start(draw, "init", params, STARTS)
    if rarely(draw, 12):
        params["metric"] = "cosine"
    if rarely(draw, 8):
        params["epsilon"] = draw.choice((0.01, 0.5, 1e6))
    return params


def _n_active(draw: Draw, C: int, params: dict[str, Any]) -> None:
    if rarely(draw, 60):
        params["n_active"] = draw.choice((None, 1, draw.integer(1, max(C, 1)), C))


def _mixture(draw: Draw, points: Points) -> dict[str, Any]:
    C = _n_clusters(draw, points.n)
    C = min(C, 4) if points.D > 40 else C
    params = {"n_components": C, "covariance_type": draw.choice(COVARIANCES), **_loop(draw)}
    _n_active(draw, C, params)
    _search(draw, params, bounded=params.get("n_active") == 1)
    _start(draw, "init_params", params, ("kmeans", "k-means++", "random", "afk-mc2", "two-level", "@rows", "@function"))
    if rarely(draw, 40):
        params["weights"] = "equal"
    if rarely(draw, 30):
        params["assignment"] = draw.choice(("hard", "sampled"))
    if rarely(draw, 50):
        params["reg_covar"] = draw.choice((0.0, 0.0, 1e-3, 1.0, 1e-12))
    if rarely(draw, 10):
        params["means_init"] = draw.choice(("@rows", "@far"))
    if params["covariance_type"] in ("full", "tied") and points.D > 40:
        params["max_iter"] = 2
    return params


def _gaussian_mixture(draw: Draw, points: Points) -> dict[str, Any]:
    params = _mixture(draw, points)
    if points.D > 1 and rarely(draw, 20):
        params["covariance_type"] = name = draw.choice(FACTORED)
        if rarely(draw, 60):
            options = {"n_factors": draw.integer(0, min(points.D - 1, 6)), "isotropic": name == "ppca"}
            params["covariance_type"] = {"Factors": options}
    return params


def _student_t_mixture(draw: Draw, points: Points) -> dict[str, Any]:
    params = _mixture(draw, points)
    if rarely(draw, 40):
        params["dof"] = draw.choice((0.01, 0.5, 1.0, 3.0, 30.0, 1e6, 1e12))
    elif rarely(draw, 40):
        params["dof"] = "shared"
    return params


def _soft(draw: Draw, points: Points) -> dict[str, Any]:
    params = {"n_clusters": _n_clusters(draw, points.n), **_loop(draw)}
    _n_active(draw, params["n_clusters"], params)
    _search(draw, params, bounded=params.get("n_active") == 1)
    _start(draw, "init", params, STARTS)
    if rarely(draw, 50):
        params["stiffness"] = draw.choice((1e-3, 0.5, 10.0, 1e6))
    return params


def _fuzzy(draw: Draw, points: Points) -> dict[str, Any]:
    params = {"n_clusters": _n_clusters(draw, points.n), **_loop(draw)}
    _n_active(draw, params["n_clusters"], params)
    _start(draw, "init", params, STARTS)
    if rarely(draw, 40):
        params["m"] = draw.choice((1.01, 1.5, 3.0, 50.0))
    if rarely(draw, 35):
        params["regularizer"] = "entropy"
        params["regularization"] = draw.choice(("auto", 1e-3, 1.0, 1e6))
    return params


def _line(draw: Draw, points: Points) -> dict[str, Any]:
    return {"n_clusters": _n_clusters(draw, points.n), "n_threads": draw.choice((1, 2, None))}


def _medoids(draw: Draw, points: Points) -> dict[str, Any]:
    params = {
        "n_clusters": _n_clusters(draw, points.n),
        **_loop(draw),
        "method": draw.choice(("fasterpam", "alternate")),
    }
    params.pop("tol", None)
    _start(draw, "init", params, ("build", "random"))
    if rarely(draw, 30):
        params["metric"] = draw.choice(("manhattan", "sqeuclidean", "chebyshev"))
    return params


def _splitter(draw: Draw, points: Points) -> dict[str, Any]:
    params: dict[str, Any] = {**_loop(draw), "max_rounds": draw.integer(1, 3)}
    params["min_clusters"] = draw.integer(1, 3)
    params["max_clusters"] = params["min_clusters"] + draw.integer(0, 12)
    if rarely(draw, 25):
        params["n_active"] = draw.integer(1, 3)
    return params


def _coreset(draw: Draw, points: Points) -> dict[str, Any]:
    return {"m": draw.integer(1, 40), "random_state": draw.integer(0, 5)}


_PARAMS = {
    "KMeans": _k_means,
    "GaussianMixture": _gaussian_mixture,
    "StudentTMixture": _student_t_mixture,
    "SoftKMeans": _soft,
    "FuzzyKMeans": _fuzzy,
    "KMeans1D": _line,
    "KMedoids": _medoids,
    "XMeans": _splitter,
    "GMeans": _splitter,
    "lightweight": _coreset,
}
