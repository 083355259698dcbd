"""Checks of estimators' arguments, with messages like scikit-learn's, and conversion of strings to search objects."""

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np

# Modules of estimators and above import all checks of arguments from this module.
from cprime._utils.arguments import check_choice as check_choice
from cprime._utils.arguments import check_flag as check_flag
from cprime._utils.arguments import check_integer as check_integer
from cprime._utils.arguments import check_path
from cprime._utils.arguments import check_positive as check_positive
from cprime._utils.arguments import check_real as check_real
from cprime._utils.threads import resolve_threads
from cprime.em import ASSIGNMENTS, StartingPartitions
from cprime.estimators.covariances import check_family
from cprime.estimators.memory_limit import as_memory, writable_folder
from cprime.execution import Data
from cprime.search import Auto, Bounded, Full, Graph, Papers, Search
from cprime.search.base import BaseSearch
from cprime.seeding import is_given
from cprime.sources.checked import check_weights as check_weights

MIXTURE_STARTS = ("auto", "kmeans", "k-means++", "random", "random_from_data", "afk-mc2", "two-level")
# n_active="auto" is C (exact EM) for mixtures of C ≤ EXACT_AUTO components, and KEPT_AUTO for larger mixtures.
EXACT_AUTO, KEPT_AUTO = 16, 5
# search="auto" is partial from this number of components, and this number of pairs of a point and a component, on.
PARTIAL_COMPONENTS, PARTIAL_EVALUATIONS = 128, 2**20
# init="auto" is "two-level" from this number of components on, because k-means++ of many components is slow.
TWO_LEVEL_COMPONENTS = 4096
# Limits within which search="auto" is "bounded": most features, fewest clusters, fewest pairs of point and cluster.
BOUNDED_FEATURES, BOUNDED_COMPONENTS, BOUNDED_EVALUATIONS = 4, 32, 2**21
SPARSE_COMPONENTS = 4096  # Largest number of components whose neighbor lists contain all components if rows are sparse.
SEARCHES = {  # For each name that the argument `search` accepts: the search, with default options.
    "auto": Auto(),
    "full": Full(),
    "bounded": Bounded(),
    "exact": Papers("exact"),
    "estimated": Papers("estimated"),
    "graph": Graph(),
}


def check_flag_or_auto(value: Any, name: str, others: tuple[str, ...] = ()) -> bool | None:
    """Return `value` as a bool, or None if it is "auto"; raise TypeError or ValueError for other values.

    others: further words that the caller accepts, for the message
    """
    if isinstance(value, str):
        check_choice(value, name, ("auto", *others))
        return None
    if not isinstance(value, bool | np.bool_):
        words = " or ".join(f'"{word}"' for word in ("auto", *others))
        raise TypeError(f"{name} must be {words} or a bool, got {value!r}.")
    return bool(value)


def check_jumps(value: Any) -> bool | None:
    """Return whether centers jump by the argument `jumps`; None if it is "auto".

    Raises TypeError or ValueError if it is neither a bool nor "auto" nor "never".
    """
    return False if isinstance(value, str) and value == "never" else check_flag_or_auto(value, "jumps", ("never",))


def check_loop(estimator: Any) -> int:
    """Check the arguments n_init, max_iter and n_clusters of an estimator; return n_clusters as an int."""
    check_integer(estimator.n_init, "n_init", 1)
    check_integer(estimator.max_iter, "max_iter", 1)
    return check_integer(estimator.n_clusters, "n_clusters", 1)


def check_n_active(n_active: Any, n_clusters: int) -> int:
    """Return C′, the size of active sets, for the argument `n_active`: at most n_clusters; None is all clusters."""
    if n_active is None:
        return n_clusters
    return check_at_most(n_active, "n_active", n_clusters, "n_clusters")


def check_word_or_positive(value: Any, name: str, *words: str) -> float | None:
    """Return `value` as a float > 0, or None if it is one of the words; raise TypeError or ValueError otherwise."""
    if isinstance(value, str) and value in words:
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        error = ValueError if isinstance(value, str) else TypeError
        raise error(f"{name} must be {', '.join(map(repr, words))} or a number > 0, got {value!r}.")
    if value <= 0:
        raise ValueError(f"{name} must be > 0, got {value}.")
    return check_real(value, name, 0.0)


def check_at_most(value: Any, name: str, limit: int, of: str) -> int:
    """Return `value` as an int; raise an error unless it is from 1 to `limit`, the value of the argument named `of`."""
    value = check_integer(value, name, 1)
    if value > limit:
        raise ValueError(f"{name} must be at most {of}={limit}, got {value}.")
    return value


def check_common(estimator: Any) -> None:
    """Check the arguments that all estimators fitted by EM have; raise TypeError or ValueError if one is invalid."""
    check_integer(estimator.n_init, "n_init", 1)
    check_integer(estimator.max_iter, "max_iter", 1)
    check_real(estimator.tol, "tol", 0.0)
    check_choice(getattr(estimator, "missing", "error"), "missing", ("error", "marginal"))
    check_flag(getattr(estimator, "semi_supervised", False), "semi_supervised")
    as_search(estimator.search)
    check_real(getattr(estimator, "epsilon", 0.0), "epsilon", 0.0)
    memory = as_memory(estimator.max_memory)
    if memory.limit is not None and not estimator._has_plan:
        raise ValueError(
            f"max_memory={memory!r} must have no limit: the memory of a {type(estimator).__name__} is not planned."
        )
    writable_folder(memory)
    if estimator.checkpoint is not None:
        check_path(estimator.checkpoint, "checkpoint")
    check_decay(getattr(estimator, "learning_decay", 1.0))
    check_flag(getattr(estimator, "warm_start", False), "warm_start")
    resolve_threads(estimator.n_threads)
    if not isinstance(estimator.verbose, Integral):
        raise TypeError(f"verbose must be an instance of int, not {type(estimator.verbose).__name__}.")


def check_enough(estimator: Any, n_points: int, method: str = "fit") -> None:
    """Raise ValueError if there are fewer points than components.    method: "fit" or "partial_fit" """
    if n_points < (C := getattr(estimator, estimator._size_name)):
        remedy = "" if method == "fit" else f" in the first batch: collect {C} rows or more, and give them together"
        raise ValueError(f"n_samples={n_points} should be >= {estimator._size_name}={C}{remedy}.")


def as_search(value: Any) -> Any:
    """Return the argument `search`, a name or an object of `cprime.search`, as an object, which may be an `Auto`.

    Raises TypeError or ValueError for other values.
    """
    if isinstance(value, str):
        check_choice(value, "search", tuple(SEARCHES))
        return SEARCHES[value]
    if not isinstance(value, BaseSearch):
        raise TypeError(f"search must be one of {list(SEARCHES)} or an object of cprime.search, got {value!r}.")
    return value


def check_decay(value: Any) -> float:
    """Return the argument `learning_decay`, κ, as a float; raise ValueError unless 1/2 < κ ≤ 1.

    Batch updates use the learning rate n^−κ after points of total weight n. For such κ, the sum of the rates diverges
    and the sum of their squares converges, as Robbins & Monro (1951) require.
    """
    value = check_real(value, "learning_decay", 0.5)
    if not 0.5 < value <= 1:
        raise ValueError(f"learning_decay must be above 0.5 and at most 1, got {value}.")
    return value


def check_mixture(estimator: Any) -> None:
    """Check the arguments of a mixture, including the options of its model family; raise TypeError or ValueError."""
    check_common(estimator)
    C = check_integer(estimator.n_components, "n_components", 1)
    check_real(estimator.reg_covar, "reg_covar", 0.0)
    if isinstance(estimator.init_params, str):
        check_choice(estimator.init_params, "init_params", MIXTURE_STARTS)
    family = check_family(estimator.covariance_type, estimator._families)
    for name in ("dof", "concentration"):
        if hasattr(estimator, name):
            check_word_or_positive(getattr(estimator, name), name, "estimate", "shared")
    check_choice(estimator.weights, "weights", ("equal", "free"))
    check_choice(estimator.assignment, "assignment", tuple(ASSIGNMENTS))
    resolve_n_active(estimator.n_active, C, estimator.assignment)
    if check_flag_or_auto(estimator.momentum, "momentum"):
        if not ASSIGNMENTS[estimator.assignment].is_posterior:
            raise ValueError(f'momentum=True needs assignment="soft", got assignment={estimator.assignment!r}.')
        if not estimator._families[family].accelerates:
            raise ValueError(
                "momentum=True needs a family whose parameters can be extrapolated, got "
                f"covariance_type={estimator.covariance_type!r}."
            )


def resolve_momentum(options: Any, n_active: int, search: Search) -> bool:
    """Return whether the fit of a mixture extrapolates parameters between EM steps, for its option `momentum`.

    "auto" is False unless assignment="soft", for the searches "exact" and "estimated", and for families that cannot be
    extrapolated. Otherwise it is True if the degrees of freedom of t distributions are estimated, or if C′ > 1 and
    there are more than 16 components or several starting partitions, of which short runs select the best.
    n_active: C′, the size of active sets
    """
    if not isinstance(options.momentum, str):
        return bool(options.momentum)
    family = options.family
    if not ASSIGNMENTS[options.assignment].is_posterior or search.published or not family.accelerates:
        return False
    several = isinstance(options.init_params, StartingPartitions)
    is_flat = family.is_flat or options.n_components > EXACT_AUTO or several
    return isinstance(options.family_options.get("dof"), str) or (n_active > 1 and is_flat)


def resolve_n_active(n_active: Any, n_components: int, assignment: str = "soft") -> int:
    """Return C′, the size of active sets, for the argument `n_active` of a mixture.

    None is all components. "auto" is all components if there are at most 16 (EXACT_AUTO), otherwise 5 (KEPT_AUTO). If
    assignment="hard", only the best component counts, and larger active sets only help the search for candidates. None
    and "auto" are therefore 1.
    """
    is_single = ASSIGNMENTS[assignment].is_single
    if isinstance(n_active, str):
        check_choice(n_active, "n_active", ("auto",))
        n_active = n_components if n_components <= EXACT_AUTO or is_single else KEPT_AUTO
    elif n_active is None:
        n_active = n_components
    n_active = check_at_most(n_active, "n_active", n_components, "n_components")
    return 1 if is_single and n_active == n_components else n_active


def resolve_search(
    estimator: Any,
    n_components: int,
    n_active: int,
    n_points: int,
    n_features: int | None = None,
    sparse: bool = False,
) -> Search:
    """Return the search object for the argument `search` of an estimator.

    Raises TypeError or ValueError if it is invalid, or incompatible with n_active.
    "auto" is the graph search if there are many components and an exact search would be expensive. Otherwise it is the
    bounded search if `n_features` (given for k-means only) is small, and the full search if not. In few dimensions only
    few centers are near a point, so distance bounds exclude the others for many iterations, and the full search gains
    little from matrix products. For sparse data and at most 4096 components, neighbor lists contain all
    components. Lists that suffice to find nearest centers would be almost complete there, because in many dimensions
    the two nearest centers of a point are seldom near each other.
    n_active: C′, the size of active sets    n_points: number of points    sparse: whether rows are sparse
    """
    search = as_search(estimator.search)
    if isinstance(search, Auto):
        low = n_features is not None and n_features <= BOUNDED_FEATURES
        enough = n_components >= BOUNDED_COMPONENTS and n_components * n_points >= BOUNDED_EVALUATIONS
        if are_many(n_components, n_points) and n_active < n_components:
            search = Graph(**search.get_params())
        else:
            exact = Bounded if low and enough else Full
            search = exact(certificate=search.certificate, final_assignment=search.final_assignment)
    if isinstance(search, Graph) and search.n_neighbors is None and sparse and n_components <= SPARSE_COMPONENTS:
        search = search.with_params(n_neighbors=max(2, n_components))
    if search.stores_bounds and n_active != 1:
        raise ValueError(f"search='bounded' needs n_active=1, got {n_active}.")
    if n_components == 1:
        return Full()
    if not search.exact and n_active == n_components:
        raise ValueError(
            f"search={estimator.search!r} needs n_active < n_components, got {n_active} of {n_components}; exact EM "
            "looks at all."
        )
    return search


def are_many(n_components: int, n_points: int) -> bool:
    """Return whether there are so many components and points that it is expensive to evaluate all their pairs."""
    return n_components >= PARTIAL_COMPONENTS and n_components * n_points >= PARTIAL_EVALUATIONS


def resolve_jumps(estimator: Any, search: Search, epsilon: float, sparse: bool) -> bool:
    """Return whether centers jump in a k-means fit, for the estimator's argument `jumps`.

    A jump merges two clusters and uses the center that becomes free to split another cluster.
    "auto" is True for a graph search. For other searches it is True if the arguments `search` and `init` are "auto" as
    well and rows are not sparse, because an algorithm chosen by name (such as Lloyd's) must not be altered, and jumps
    are slow for sparse rows. If there is only one cluster, or some centers are fixed, the result is False.
    epsilon: tolerance of lazy-k-means, which must be 0 if centers jump    sparse: whether rows are sparse
    """
    wanted = check_jumps(estimator.jumps)
    if wanted and epsilon:
        raise ValueError(f"jumps=True needs epsilon=0, got {epsilon}.")
    fixed = getattr(estimator, "fixed", None) is not None
    if wanted and fixed:
        raise ValueError("jumps=True needs fixed=None, because centers jump.")
    if estimator.n_clusters == 1 or fixed:
        return False
    if wanted is None:
        is_auto = isinstance(as_search(estimator.search), Auto)
        nothing_named = is_auto and isinstance(estimator.init, str) and estimator.init == "auto"
        return epsilon == 0 and (search.exchanges or (nothing_named and not sparse))
    return wanted


def resolve_init(init: Any, n_components: int, data: Data, quick: bool, improved: bool = False) -> Any:
    """Return the initialization that the argument `init` selects; values other than "auto" are returned unchanged.

    "auto" is "two-level" if there are many components or the data are not in memory. Otherwise it is "jumps" (k-means++
    of a sample, improved by jumps of centers) if `improved` is true, and "k-means++" if not.
    quick: whether a faster initialization suffices, because jumps of centers during the fit correct missed clusters, or
    because the data are only a batch; "two-level" is then selected for fewer components
    improved: whether centers jump before the first iteration
    """
    if isinstance(init, str) and init == "auto":
        many = are_many(n_components, data.n_weighted) and (quick or n_components >= TWO_LEVEL_COMPONENTS)
        if many or not data.in_memory:
            return "two-level"
        return "jumps" if improved else "k-means++"
    return init


def unused_arguments(estimator: Any, n_components: int, search: Search, init: Any) -> Iterator[str]:
    """Yield a line of text for each argument that the user has set, but that has no effect on the fit.

    search: search object of the fit    init: initialization of the fit, such as a name or an array of means
    """
    given = estimator.get_params(deep=False)
    n_neighbors = getattr(as_search(given["search"]), "n_neighbors", None)
    if n_neighbors is not None and not search.has_lists:
        why = "there is one component" if n_components == 1 else f"the search is {search!r}, which keeps no lists"
        yield f"search={given['search']!r}: n_neighbors={n_neighbors} has no effect: {why}"
    if is_given(init):
        if given.get("n_init", 1) > 1:
            yield f"n_init={given['n_init']} has no effect: the start is given, so there is one run"
        if isinstance(given.get("init_params"), str) and given["init_params"] != "auto":
            yield f"init_params={given['init_params']!r} has no effect: the means of the start are given"
    if given.get("warm_start") and hasattr(estimator, "means_"):
        for name in ("weights_init", "precisions_init", estimator._means_argument):
            if given.get(name) is not None:
                yield f"{name} has no effect: warm_start=True continues the previous fit"
    if given.get("jumps") is True and n_components == 1:
        yield "jumps=True has no effect: there is one cluster"
