"""Random cases for the laws: estimator, search, family, source, and data for which a law holds.

Sizes vary from 5 to some thousands of rows and from 1 to 200 components, so that every sample, share and step of a fit
sometimes contains all data and sometimes none. Names come from the library's own registers, so a new search or family
is among the cases.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cprime.estimators.validation import SEARCHES
from cprime.model import FAMILIES, STUDENT_T
from reliability.drawing import Draw, rarely
from reliability.laws import EXACT
from reliability.space import GAPS, MIXTURES, OPENS_SOURCES, Case, Points

LAWS = ("weight zero", "units", "chunks")
ASKED_FOR = ("rows alone",)  # not in every run: it does not hold yet for ties between centers
ESTIMATORS = (
    *("KMeans",) * 8,
    *("GaussianMixture",) * 8,
    *("StudentTMixture",) * 4,
    *("SoftKMeans", "FuzzyKMeans", "KMedoids", "KMeans1D", "XMeans", "GMeans"),
)
STARTS = {"KMeans": "init", "SoftKMeans": "init", "FuzzyKMeans": "init"} | dict.fromkeys(MIXTURES, "init_params")
ANY_SOURCE = (
    "random",
    "two-level",
    "k-means||",
)  # initializations that work with any number of chunks; mixtures have the first two
KINDS = {
    # Kinds of data for which rounding decides no assignment.
    "weight zero": ("normal", "clusters", "line"),
    "chunks": ("normal", "clusters", "lattice", "few", "equal", "flat", "heavy", "columns", "outlier", "sparse"),
    "rows alone": ("lattice", "lattice", "few", "sparse", "normal", "clusters", "groups"),
}


def law_case(draw: Draw, laws: tuple[str, ...] = LAWS, estimators: Sequence[str] = ESTIMATORS) -> Case:
    """Return a case: an estimator, its data, and one law that must hold."""
    law = draw.choice(laws)
    capable = [name for name in estimators if law != "chunks" or name in OPENS_SOURCES]
    estimator = draw.choice(capable)
    n = draw.integer(*draw.choice(((5, 60), (61, 600), (61, 600), (601, 4000))))
    n = min(n, 300) if estimator in ("KMedoids", "XMeans", "GMeans") else n
    C = draw.integer(1, min(draw.choice((4, 20, 200)), n if rarely(draw, 20) else max(1, n // 4)))
    least = 2 if estimator == "KMedoids" else 1  # on a line, many sums of distances tie
    D = 1 if estimator == "KMeans1D" else draw.integer(least, draw.choice((3, 8)))
    layout = draw.choice(("C", "chunks", "path", "source")) if estimator in OPENS_SOURCES else "C"
    kinds = _kinds(law, estimator)
    if estimator == "KMedoids":
        kinds = tuple(kind for kind in kinds if kind != "line")
    points = Points(
        seed=draw.integer(0, 10**6),
        n=n,
        D=D,
        kind=draw.choice(kinds),
        dtype=draw.choice(("float64", "float32")) if law != "weight zero" else "float64",
        layout=layout,
    )
    weights = draw.choice((None, "ones", "integers", "zeros", "float32"))
    params = _params(draw, estimator, C, layout, law)
    able = estimator == "GaussianMixture" and D > 1 and "means_init" not in params
    # Estimated lists average costs, and rows with fewer values have lower costs.
    if able and "estimated" not in str(params["search"]) and rarely(draw, 40):
        gaps, missing = draw.choice(GAPS[:4]), draw.choice((5, 20, 40))
        points = replace(points, n=min(n, 600), dtype="float64", gaps=gaps, missing=missing)
        params |= {"missing": "marginal", "weights": "free"}  # rows without values tie if weights are equal
        params["n_components"] = min(C, 20, points.n)
    if points.kind == "line" or D == 1:
        params.pop("metric", None)  # a line has two directions only, so all points of one tie
    return Case(points, estimator, params, weights, (law,))


def _kinds(law: str, estimator: str) -> tuple[str, ...]:
    if law == "units" and estimator in EXACT:
        return tuple(kind for kind in KINDS["chunks"] if kind != "outlier")  # float32 would round others away
    return KINDS.get(law, KINDS["weight zero"])


def _params(draw: Draw, estimator: str, C: int, layout: str, law: str) -> dict[str, Any]:
    params: dict[str, Any] = {}
    if estimator in ("XMeans", "GMeans"):
        return {"max_clusters": max(2, C), "max_rounds": 3, "random_state": draw.integer(0, 5)}
    params["n_components" if estimator in MIXTURES else "n_clusters"] = C
    if estimator == "KMeans1D":
        return params
    params |= {"random_state": draw.integer(0, 5), "max_iter": draw.choice((3, 8, 20))}
    if estimator in OPENS_SOURCES:
        params["n_threads"] = draw.choice((1, 2))
        params |= _searched(draw, estimator, C)
    if estimator in STARTS:
        some = ANY_SOURCE[:2] if estimator in MIXTURES else ANY_SOURCE
        whole = layout == "C" and law != "chunks"  # rows must also be different, because equal components tie
        params[STARTS[estimator]] = draw.choice((*some, "@different rows", *(("k-means++", "afk-mc2") * whole)))
    if params.get("init_params") == "@different rows":
        params["means_init"] = params.pop("init_params")
    if estimator == "KMeans":
        if rarely(draw, 15):
            params["metric"] = "cosine"
        if rarely(draw, 15):
            params["epsilon"] = 0.05
    if law == "units" and estimator == "SoftKMeans":
        params["stiffness"] = draw.choice(("auto", 0.5))
    return params


def _searched(draw: Draw, estimator: str, C: int) -> dict[str, Any]:
    params: dict[str, Any] = {}
    n_active = 1
    if estimator != "KMeans":
        n_active = params["n_active"] = draw.integer(1, min(C, 6))
    if estimator in MIXTURES:
        params |= {
            "covariance_type": draw.choice(tuple(FAMILIES if estimator == "GaussianMixture" else STUDENT_T)),
            "assignment": draw.choice(("soft", "soft", "hard", "sampled")),
            "weights": draw.choice(("free", "equal")),
            "reg_covar": draw.choice((1e-6, 1e-3)),
        }
        if params["assignment"] == "hard" and n_active == C:
            n_active = 1
    searches = [name for name in SEARCHES if name not in ("bounded",) or n_active == 1]
    if n_active == C > 1 or C == 1:
        searches = ["full"]
    search: Any = draw.choice(searches)
    if search == "graph" and rarely(draw, 50):
        search = {"Graph": {"n_neighbors": draw.integer(2, 12), "regroup": draw.choice((True, False))}}
    if search in ("exact", "estimated") and rarely(draw, 50):
        start = draw.choice(("two-level", "random"))
        search = {"Papers": {"lists": search, "n_neighbors": draw.integer(2, 8), "n_explore": 1, "start": start}}
    return params | {"search": search}
