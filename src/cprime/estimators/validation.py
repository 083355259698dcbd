"""Checks of arguments, worded as scikit-learn words them; strings become objects here and nowhere below."""

import os
from numbers import Integral, Real
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import (
    _check_sample_weight,
    check_scalar,
)

from cprime._range import check_total_weight
from cprime._threads import resolve_threads
from cprime.execution import Data
from cprime.search import Bounded, Full, Graph, Papers, Search
from cprime.sources.foreign import plain

MIXTURE_STARTS = ("auto", "kmeans", "k-means++", "random", "random_from_data", "afk-mc2", "two-level")
# With n_active="auto", mixtures of at most EXACT_AUTO components are fitted by exact EM, larger ones keep KEPT_AUTO.
EXACT_AUTO, KEPT_AUTO = 16, 5
# With search="auto", the exact search is left at so many components and so many evaluations an iteration.
PARTIAL_COMPONENTS, PARTIAL_EVALUATIONS = 128, 2**20
TWO_LEVEL_COMPONENTS = 4096  # from which on k-means++ takes too long, whatever follows
# Below, k-means goes by bounds in so few dimensions, from so many components and so many evaluations an iteration.
BOUNDED_FEATURES, BOUNDED_COMPONENTS, BOUNDED_EVALUATIONS = 4, 32, 2**21
SPARSE_COMPONENTS = 4096  # whose lists are complete, where rows are sparse
LARGEST_COPY = 4 * 2**30  # bytes of data that are regrouped by default
SEARCHES = ("auto", "full", "bounded", "exact", "estimated", "graph")


def check_integer(value: Any, name: str, least: int) -> int:
    """`value` as an int, or an error that says what came."""
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an instance of int, not bool.")
    return int(check_scalar(value, name, Integral, min_val=least))


def check_real(value: Any, name: str, least: float) -> float:
    """`value` as a finite float, or an error that says what came."""
    try:
        value = float(check_scalar(value, name, Real, min_val=least))
    except OverflowError:  # of integers
        raise ValueError(f"{name} must be at most {np.finfo(np.float64).max:.4g}, got a larger integer.") from None
    if not np.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}.")
    return value


def check_flag(value: Any, name: str) -> bool:
    """`value` as a bool, or an error that says what came."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be an instance of bool, not {type(value).__name__}.")
    return bool(value)


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """`value` if it is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}.")
    return value


def check_loop(estimator: Any) -> int:
    """The arguments of every member that iterates from several starts; returns the number of clusters."""
    check_integer(estimator.n_init, "n_init", 1)
    check_integer(estimator.max_iter, "max_iter", 1)
    resolve_threads(estimator.n_threads)
    return check_integer(estimator.n_clusters, "n_clusters", 1)


def check_n_active(n_active: Any, n_clusters: int) -> int:
    """C′ from the argument: None is all clusters."""
    if n_active is None:
        return n_clusters
    return check_at_most(n_active, "n_active", n_clusters, "n_clusters")


def check_auto_or_positive(value: Any, name: str) -> float | None:
    """A number > 0, or None where the argument is "auto"."""
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f"{name} must be 'auto' or a number > 0, got {value!r}.")
        return None
    value = check_real(value, name, 0.0)
    if value == 0:
        raise ValueError(f"{name} must be > 0, got {value}.")
    return value


def check_at_most(value: Any, name: str, most: int, of: str) -> int:
    """`value` as an int from 1 to another argument's."""
    value = check_integer(value, name, 1)
    if value > most:
        raise ValueError(f"{name} must be at most {of}={most}, got {value}.")
    return value


def check_common(estimator: Any) -> None:
    """The arguments that every estimator here has."""
    check_integer(estimator.n_init, "n_init", 1)
    check_integer(estimator.max_iter, "max_iter", 1)
    check_real(estimator.tol, "tol", 0.0)
    if isinstance(estimator.n_neighbors, str):
        check_choice(estimator.n_neighbors, "n_neighbors", ("auto",))
    else:
        check_integer(estimator.n_neighbors, "n_neighbors", 2)
    check_choice(getattr(estimator, "missing", "error"), "missing", ("error", "marginal"))
    check_integer(estimator.certificate, "certificate", 0)
    check_choice(estimator.final_assignment, "final_assignment", ("auto", "exact", "found"))
    check_spill(estimator.spill)
    resolve_threads(estimator.n_threads)


def check_spill(value: Any) -> Path | None:
    """The folder for what points keep, one in which files can be made; None where none is given."""
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"spill must be a path or None, got {type(value).__name__}.")
    folder = Path(value)
    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        text = f"spill={str(value)!r} must be a folder that files can be made in: {error.strerror}."
        raise ValueError(text) from error
    return folder


def check_decay(value: Any) -> float:
    """κ of rates n^−κ that fall neither too fast nor too slowly (Robbins & Monro 1951)."""
    value = check_real(value, "learning_decay", 0.5)
    if not 0.5 < value <= 1:
        raise ValueError(f"learning_decay must be above 0.5 and at most 1, got {value}.")
    return value


def check_mixture(estimator: Any) -> None:
    """The arguments of a mixture, of its components too where it has any."""
    check_common(estimator)
    C = check_integer(estimator.n_components, "n_components", 1)
    check_real(estimator.reg_covar, "reg_covar", 0.0)
    if isinstance(estimator.init_params, str):
        check_choice(estimator.init_params, "init_params", MIXTURE_STARTS)
    check_choice(estimator.covariance_type, "covariance_type", tuple(estimator._families))
    for name, check in _OPTIONS.items():
        if hasattr(estimator, name):
            check(getattr(estimator, name), name)
    check_choice(estimator.weights, "weights", ("equal", "free"))
    check_choice(estimator.assignment, "assignment", ("soft", "hard", "posterior"))
    resolve_n_active(estimator.n_active, C, estimator.assignment)
    if isinstance(estimator.momentum, str):
        check_choice(estimator.momentum, "momentum", ("auto",))
    elif not isinstance(estimator.momentum, bool | np.bool_):
        raise TypeError(f'momentum must be "auto" or a bool, got {estimator.momentum!r}.')
    elif estimator.momentum and estimator.assignment != "soft":
        raise ValueError(f'momentum=True needs assignment="soft", got assignment={estimator.assignment!r}.')


def _check_n_factors(value: Any, name: str) -> None:
    if value != "auto":
        check_integer(value, name, 0)


def _check_dof(value: Any, name: str) -> None:
    if isinstance(value, str):
        if value != "estimate":
            raise ValueError(f"{name} must be 'estimate' or a number > 0, got {value!r}.")
    elif isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be 'estimate' or a number > 0, got {value!r}.")
    elif value <= 0:
        raise ValueError(f"{name} must be > 0, got {value}.")
    else:
        check_real(value, name, 0.0)


def _check_flag(value: Any, name: str) -> None:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be a bool, got {value!r}.")


_OPTIONS = {"n_factors": _check_n_factors, "dof": _check_dof, "shared_dof": _check_flag}  # of components


def resolve_momentum(momentum: bool | str, n_components: int, n_active: int, assignment: str, search: Search) -> bool:
    """Whether EM steps go on beyond; "auto" leaves small mixtures, those of C′ = 1, which are k-means, and the papers'
    searches as they are written.
    """
    if isinstance(momentum, str):
        graded = assignment == "soft" and n_active > 1
        return n_components > EXACT_AUTO and graded and not isinstance(search, Papers)
    return bool(momentum)


def resolve_n_active(n_active: Any, n_components: int, assignment: str = "soft") -> int:
    """The components that a point keeps: C′, or with assignment="hard", which counts one, those kept for the search.

    None is all components, "auto" all of a small mixture and a few of a large one; hard ones keep one then.
    """
    if isinstance(n_active, str):
        check_choice(n_active, "n_active", ("auto",))
        n_active = n_components if n_components <= EXACT_AUTO or assignment == "hard" else KEPT_AUTO
    elif n_active is None:
        n_active = n_components
    n_active = check_at_most(n_active, "n_active", n_components, "n_components")
    return 1 if assignment == "hard" and n_active == n_components else n_active


def check_weights(sample_weight: Any, X: NDArray) -> NDArray[np.float64] | None:
    """Weights as float64, or None; not negative and not all zero."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(plain(sample_weight, "sample_weight"), X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight must have at least one positive entry, got zeros only.")
    with np.errstate(over="ignore"):
        check_total_weight(float(weights.sum()))
    return weights


def resolve_search(
    estimator: Any,
    n_components: int,
    n_active: int,
    n_points: int,
    n_features: int | None = None,
    sparse: bool = False,
) -> Search:
    """The search that the arguments ask for.

    "auto" is the graph search where there are many components and the exact search is not cheap anyway. Below, it is
    the bounded search where `n_features`, given for k-means, are few: a point then has few centers around it, so that
    its bounds last, while the dense products of the full search are short and do not pay. Lists of the graph search are
    complete for sparse data of up to SPARSE_COMPONENTS: in so many dimensions the nearest center of a point is seldom
    near its second nearest, and to look at all costs little more than to look at the lists that would be needed.
    """
    search, given = estimator.search, None if estimator.n_neighbors == "auto" else int(estimator.n_neighbors)
    if not isinstance(search, str):
        if not isinstance(search, Full | Bounded | Graph | Papers):
            raise TypeError(f"search must be one of {list(SEARCHES)} or an object of cprime.search, got {search!r}.")
        if given is not None:
            raise ValueError(f"n_neighbors={given} has no effect beside search={search!r}: give it to that.")
    else:
        check_choice(search, "search", SEARCHES)
        if given is not None and search in ("full", "bounded"):
            raise ValueError(f"n_neighbors={given} has no effect with search={search!r}, which has no lists.")
        search = _search_of(search, given, n_components, n_active, n_points, n_features)
        if sparse and isinstance(search, Graph) and given is None and n_components <= SPARSE_COMPONENTS:
            search = Graph(max(2, n_components))
    if isinstance(search, Bounded) and n_active != 1:
        raise ValueError(f"search='bounded' needs n_active=1, got {n_active}.")
    if n_components == 1:
        return Full()
    if not search.exact and n_active == n_components:
        raise ValueError(
            f"search={estimator.search!r} needs n_active < n_components, got {n_active} of {n_components}; exact EM "
            "looks at all."
        )
    return search


def _search_of(
    name: str, n_neighbors: int | None, n_components: int, n_active: int, n_points: int, n_features: int | None
) -> Search:
    """The search by its name."""
    if name == "auto":
        low = n_features is not None and n_features <= BOUNDED_FEATURES
        enough = n_components >= BOUNDED_COMPONENTS and n_components * n_points >= BOUNDED_EVALUATIONS
        exact = "bounded" if low and enough else "full"
        name = "graph" if are_many(n_components, n_points) and n_active < n_components else exact
    if name == "graph":
        return Graph(n_neighbors)
    if name in ("exact", "estimated"):
        return Papers(name) if n_neighbors is None else Papers(name, n_neighbors=n_neighbors)
    return Full() if name == "full" else Bounded()


def are_many(n_components: int, n_points: int) -> bool:
    """Whether there are so many components that looking at all of them is not cheap."""
    return n_components >= PARTIAL_COMPONENTS and n_components * n_points >= PARTIAL_EVALUATIONS


def resolve_exchange(estimator: Any, search: Search, epsilon: float, sparse: bool) -> bool:
    """Whether centers jump in a k-means fit by this search, which the estimator's argument means.

    A search or a start that is named stays what it is known as, Lloyd's algorithm for one; jumps of sparse rows take
    longer than all else, but in a graph search. One cluster has none.
    """
    exchange, graph = estimator.exchange, isinstance(search, Graph)
    if isinstance(exchange, str):
        check_choice(exchange, "exchange", ("auto",))
    elif not isinstance(exchange, bool | np.bool_):
        raise TypeError(f'exchange must be "auto" or a bool, got {exchange!r}.')
    wanted: bool | None = None if isinstance(exchange, str) else bool(exchange)
    if isinstance(search, Graph) and search.exchange is not None:  # as it was said before
        wanted = bool(search.exchange)
    if wanted and epsilon:
        raise ValueError(f"exchange=True needs epsilon=0, got {epsilon}.")
    if estimator.n_clusters == 1:
        return False
    if wanted is None:
        nothing_named = all(isinstance(given, str) and given == "auto" for given in (estimator.search, estimator.init))
        return epsilon == 0 and (graph or (nothing_named and not sparse))
    return wanted


def refuse_exchange(search: Search) -> None:
    """A mixture has no exchange steps."""
    if isinstance(search, Graph) and search.exchange:
        raise ValueError("exchange=True has no effect on a mixture: exchange steps are those of k-means.")


def resolve_regroup(search: Search, data: Data) -> bool:
    """Whether a partial search may copy chunks into the order of their components."""
    if not isinstance(search, Graph):
        return False
    if search.regroup is None:
        one = len(data.sizes) == 1  # chunks that are read are copied in each pass
        return one and data.n_bytes <= LARGEST_COPY
    return bool(search.regroup)


def resolve_init(init: Any, n_components: int, data: Data, quick: bool, improved: bool = False) -> Any:
    """The start that "auto" means: in two levels for many components and for data on disk, else k-means++ or jumps.

    quick: whether a start that takes longer is not worth it: jumps follow, which mend one that misses clusters, or it
    is of a batch; else "many" are those for which k-means++ takes too long
    improved: whether jumps before the first iteration are asked for
    """
    if isinstance(init, str) and init == "auto":
        many = are_many(n_components, data.n_weighted) and (quick or n_components >= TWO_LEVEL_COMPONENTS)
        if many or not data.in_memory:
            return "two-level"
        return "jumps" if improved else "k-means++"
    return init
