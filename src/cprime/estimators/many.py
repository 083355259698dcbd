"""Fits of many small, independent data sets in one call: the function `fit_many` and its result `Many`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from numbers import Integral
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from cprime import em
from cprime._utils.arguments import naming
from cprime._utils.messages import warn_if_few
from cprime._utils.number_types import check_largest, check_spread, check_total_weight
from cprime._utils.random import Key, Purpose, seed_of
from cprime._utils.threads import by_pieces, resolve_threads
from cprime.estimators.base import Clusterer
from cprime.estimators.categories import is_missing
from cprime.estimators.fitted import size_of
from cprime.estimators.problems import KMeansOptions
from cprime.estimators.quality import warn_if_poor
from cprime.estimators.validation import check_integer, check_real, resolve_search
from cprime.execution import local
from cprime.kernels import Dense, Floats, as_rows, computing, lloyd_many
from cprime.search import Full
from cprime.seeding import KMeansPlusPlus, is_given
from cprime.seeding.kmeans_plusplus import choose_in_problems, most_rows
from cprime.sources.foreign import array_of
from cprime.sources.kinds import precision

_ROWS = 8192  # Largest number of rows of a problem that is fitted by compiled code; `KMeans` fits larger problems.
_PROBLEMS = 64  # Largest number of problems (k-means fits) in a piece, that is, in one call of the compiled code.
_PIECES = 4  # Least number of pieces (lists of problems) per thread, so that all threads stay busy.


class Many(NamedTuple):
    """Result of `fit_many` for B problems of C clusters.

    Attributes
    ----------
    centers : ndarray of shape (B, C, n_features), or list of arrays of shape (C_b, n_features)
        Centers of the clusters, in the dtype of the data; a list if the problems have different numbers of clusters.
    labels : ndarray of shape (B, n_samples), int32, or list of arrays of shape (n_b,), or ndarray of shape (n_samples,)
        The nearest center of each row; a list if X is a list. With `groups` it has one entry for each row of X: the
        number of a cluster of the row's group.
    inertia : ndarray of shape (B,)
        J, the weighted sum of squared distances to the nearest center, in data unit².
    n_iter : ndarray of shape (B,), int64
        Number of iterations.

    Examples
    --------
    >>> import numpy as np
    >>> import cprime
    >>> many = cprime.fit_many(np.array([[[0.0], [1.0], [9.0], [10.0]]]), 2, random_state=0)
    >>> many.inertia
    array([1.])
    """

    centers: Any
    labels: Any
    inertia: NDArray[np.float64]
    n_iter: NDArray[np.int64]


E = TypeVar("E", bound=Clusterer)


@overload
def fit_many(
    X: ArrayLike | Sequence[ArrayLike],
    n_clusters: int | ArrayLike,
    *,
    groups: ArrayLike | None = None,
    estimator: None = None,
    init: Any = "k-means++",
    max_iter: int = 25,
    tol: float = 1e-4,
    sample_weight: ArrayLike | Sequence[ArrayLike] | None = None,
    n_threads: int | None = None,
    random_state: Any = None,
) -> Many: ...


@overload
def fit_many(
    X: ArrayLike | Sequence[ArrayLike],
    n_clusters: int | ArrayLike,
    *,
    groups: ArrayLike | None = None,
    estimator: E,
    sample_weight: ArrayLike | Sequence[ArrayLike] | None = None,
    n_threads: int | None = None,
    random_state: Any = None,
) -> list[E]: ...


def fit_many(
    X: ArrayLike | Sequence[ArrayLike],
    n_clusters: int | ArrayLike,
    *,
    groups: ArrayLike | None = None,
    estimator: Any = None,
    init: Any = "k-means++",
    max_iter: int = 25,
    tol: float = 1e-4,
    sample_weight: ArrayLike | Sequence[ArrayLike] | None = None,
    n_threads: int | None = None,
    random_state: Any = None,
) -> Any:
    """Fit k-means, or another estimator, to each of B small, independent data sets.

    Without `estimator`, problem b is fitted as ``KMeans(n_clusters, init=init, max_iter=max_iter, tol=tol,
    random_state=random_state + b)`` fits X[b], with bit-identical results. The call is faster than B estimators,
    because compiled code fits many problems in one call, in several threads. Typical uses are one model for each user,
    group or time window, codebooks, and simulations.

    The results are not those of ``KMeans(n_clusters)``, which also moves centers to other clusters (jumps) and has more
    iterations: in six kinds of problems of 200 to 512 rows, 2 to 64 features and 8 to 32 clusters, J of this function
    was 2 to 8 % higher in the mean. ``init="auto", max_iter=300`` makes the same jumps, and had the same J as
    ``KMeans(n_clusters)``, in 6 to 22 times the time.

    `KMeans` itself fits problems of more than 8192 rows, problems for which it would not compare each row with all
    centers (see its argument `search`), and problems in which a cluster becomes empty. It fits all problems if `init`
    is neither "k-means++" nor an array of centers.

    Parameters
    ----------
    X : array-like of shape (B, n_samples, n_features), list of B arrays of shape (n_b, n_features), or array-like of \
shape (n_samples, n_features) with `groups`
        Finite numbers. The computation uses float32 if this type can represent all values of the types of X, otherwise
        float64. All arrays of a list are computed in the same type. A list is copied, and so are rows with groups.
    n_clusters : int or array-like of shape (B,)
        Number of clusters C of all problems, or of each; at most the number of its rows.
    groups : array-like of shape (n_samples,), default=None
        Problem of each row, such as the id of its user: numbers or texts. Problem b has the rows of the b-th of the
        sorted ids, ``numpy.unique(groups)``, in the order of X.
    estimator : KMeans, a mixture or another estimator of the same parameters, default=None
        Estimator whose copies are fitted, with `n_clusters` and the seed of each problem. Its arguments replace `init`,
        `max_iter` and `tol`. There is no compiled code for many such fits: the time is that of a loop.
    init : str, array-like of shape (B, C, n_features) or (C, n_features), or other, default="k-means++"
        Initialization of each problem: as in `KMeans`, or centers for each problem, or centers for all. Centers need
        the same number of clusters for all problems.
    max_iter : int, default=25
        Maximum number of iterations.
    tol : float, default=1e-4
        A problem has converged if J changes by no more than this share of J, or if no row is reassigned.
    sample_weight : array-like of shape (B, n_samples), list of B arrays of shape (n_b,), or None, default=None
        A weight of 2 counts the row twice; None is 1 for each. With `groups`, an array of shape (n_samples,).
    n_threads : int or None, default=None
        Threads to use; None is every processor that the process may use. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Problem b uses the seed random_state + b. If it is not an int, an int below 2³¹ is drawn from it first.

    Returns
    -------
    many : Many, or list of B fitted estimators
        A tuple (centers, labels, inertia, n_iter) of the results of all problems; or, with `estimator`, its fitted
        copies.

    Raises
    ------
    ValueError
        If shapes do not fit, an argument is out of its range, or a problem has fewer rows than clusters. Messages name
        the problem.
    TypeError
        If an argument has a wrong type.

    Examples
    --------
    >>> import numpy as np
    >>> import cprime
    >>> X = np.array([[[0.0], [1.0], [9.0], [10.0]], [[0.0], [4.0], [20.0], [24.0]]])
    >>> many = cprime.fit_many(X, 2, random_state=0)
    >>> many.centers.shape, many.labels.shape, many.inertia
    ((2, 2, 1), (2, 4), array([ 1., 16.]))

    Groups of rows, with different numbers of clusters:

    >>> rows = np.array([[0.0], [7.0], [1.0], [10.0], [3.0]])
    >>> many = cprime.fit_many(rows, [2, 1], groups=["a", "b", "a", "a", "b"], random_state=0)
    >>> [np.sort(centers[:, 0]).tolist() for centers in many.centers], many.inertia
    ([[0.5, 10.0], [5.0]], array([0.5, 8. ]))
    """
    threads = resolve_threads(n_threads)
    problems = _Problems.checked(X, sample_weight, n_clusters, groups)
    B = len(problems)
    seed = _first_seed(random_state, B)
    if estimator is not None:
        if not (isinstance(init, str) and init == "k-means++" and max_iter == 25 and tol == 1e-4):
            raise ValueError("init, max_iter and tol must be left out with estimator: set those of the estimator.")
        with computing(threads):
            return _copies(estimator, problems, seed)
    max_iter, tol = check_integer(max_iter, "max_iter", 1, 2**31 - 1), check_real(tol, "tol", 0.0)
    step, n_threads = max(1, min(_PROBLEMS, B // (_PIECES * threads))), max(1, threads // B)
    fits = _Fits(problems, _checked_init(init, problems), max_iter, tol, seed, n_threads)
    changes = (np.flatnonzero(np.diff(fits.plain) | (np.diff(problems.n_clusters) != 0)) + 1).tolist()
    pieces = [
        (begin, min(begin + step, end))
        for first, end in pairwise([0, *changes, B])
        for begin in range(first, end, step)
    ]
    with computing(threads):
        found = by_pieces(fits.of_piece, pieces)
    parts, labels, errors, n_iter = zip(*found, strict=True)
    each, order = [centers for part in parts for centers in part], problems.order
    centers = np.concatenate(parts) if problems.n_clusters[0] == problems.n_clusters[-1] else [each[i] for i in order]
    in_order = (np.concatenate(values)[order] for values in (errors, n_iter))
    return Many(centers, problems.as_given(np.concatenate(labels)), *in_order)


@dataclass(frozen=True)
class _Problems:
    """Rows and weights of B problems, concatenated in ascending order of their numbers of clusters.

    array (N, D): rows of all problems, float32 or float64
    offsets (B + 1,): problem b has the rows offsets[b] … offsets[b + 1] − 1 of `array`
    weights (N,): weights of the rows, or None
    n_clusters (B,): number of clusters of each problem
    numbers (B,): index of each problem in the user's order
    names: names of the problems for messages, by their index in the user's order
    places: index of each row (N,) in the user's array of groups of rows; None if there are no groups
    is_list: whether the user gave the problems as a list of arrays, not as one array (B, n, D)
    """

    array: Floats
    offsets: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    n_clusters: NDArray[np.int64]
    numbers: NDArray[np.intp]
    names: "_Names"
    places: NDArray[np.intp] | None
    is_list: bool

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def checked(cls, X: Any, sample_weight: Any, n_clusters: Any, groups: Any) -> "_Problems":
        """Return `_Problems` made of the arguments of `fit_many`, after checks of these.

        Raises TypeError or ValueError if types, shapes or weights are invalid, or a problem has too few rows.
        """
        names, places, whole = _Names(None), None, None
        is_list = isinstance(X, list | tuple) and groups is None
        if groups is not None:
            rows = array_of(X, "X")
            if rows.ndim != 2 or not rows.size:
                raise ValueError(f"X must have shape (N, D) with groups, and no axis of length 0, got {rows.shape}.")
            names, members = _members(groups, len(rows))
            arrays, places = [rows[each] for each in members], np.concatenate(members)
            if sample_weight is not None:
                of_rows = array_of(sample_weight, "sample_weight")
                if of_rows.shape != (len(rows),):
                    raise ValueError(f"sample_weight must have shape {(len(rows),)}, got {of_rows.shape}.")
                sample_weight = [of_rows[each] for each in members]
        elif is_list:
            arrays = [array_of(one, f"X[{b}]") for b, one in enumerate(X)]
        else:
            whole = array_of(X, "X")
            if whole.ndim != 3 or not whole.size:
                raise ValueError(f"X must have shape (B, N, D) and no axis of length 0, got {whole.shape}.")
            arrays = list(whole)
        if not arrays:
            raise ValueError("X must have at least one problem, got an empty list.")
        for b, one in enumerate(arrays):
            if one.ndim != 2 or not one.size or one.shape[1] != arrays[0].shape[-1]:
                expected = "(n_b, D), with D equal for all, and no axis of length 0"
                raise ValueError(f"X[{b}] must have shape {expected}, got {one.shape}.")
        sizes, D = np.array([len(one) for one in arrays]), arrays[0].shape[1]
        numbers_of_clusters = _numbers_of_clusters(n_clusters, len(arrays))
        if (sizes < numbers_of_clusters).any():
            b = int((sizes - numbers_of_clusters).argmin())
            expected = f"which should be >= n_clusters={numbers_of_clusters[b]}"
            raise ValueError(f"{names('X', b)} has n_samples={sizes[b]}, {expected}.")
        weights = _checked_weights(sample_weight, np.concatenate([[0], np.cumsum(sizes)]), names)
        numbers = np.argsort(numbers_of_clusters, kind="stable")
        if (np.diff(numbers) != 1).any():  # Problems of equal C are neighbors, so compiled code fits many at once.
            starts = np.concatenate([[0], np.cumsum(sizes)])
            moved = np.concatenate([np.arange(starts[b], starts[b + 1]) for b in numbers])
            weights, places = (None if each is None else each[moved] for each in (weights, places))
            arrays, whole = [arrays[b] for b in numbers], None
        dtype = precision([one.dtype for one in arrays])
        with np.errstate(over="ignore"):  # Numbers too large for `dtype` become infinite; `check` raises an error.
            flat = np.concatenate(arrays, dtype=dtype) if whole is None else whole.reshape(-1, D)
            flat = np.ascontiguousarray(flat, dtype=dtype)
        offsets = np.concatenate([[0], np.cumsum(sizes[numbers])])
        return cls(flat, offsets, weights, numbers_of_clusters[numbers], numbers, names, places, is_list)

    @property
    def order(self) -> NDArray[np.intp]:
        """Positions (B,) of the problems in the user's order among those of this object."""
        return np.argsort(self.numbers)

    def as_given(self, labels: NDArray[np.int32]) -> Any:
        """Return labels of all rows (N,) in the form and order in which the user gave the rows."""
        if self.places is not None:
            given = np.empty_like(labels)
            given[self.places] = labels
            return given
        if self.is_list:
            parts = np.split(labels, self.offsets[1:-1])
            return [parts[b] for b in self.order]
        return labels.reshape(len(self), -1)[self.order]

    def rows(self, begin: int, end: int) -> tuple[Floats, NDArray[np.float64] | None]:
        """Return the rows (n, D) of problems begin … end − 1 together, and the weights of these rows (n,) or None."""
        own = slice(self.offsets[begin], self.offsets[end])
        return self.array[own], None if self.weights is None else self.weights[own]

    @cached_property
    def n_weighted(self) -> NDArray[np.int64]:
        """Return the number of rows of positive weight of each problem: (B,)."""
        if self.weights is None:
            return np.diff(self.offsets)
        return np.add.reduceat(self.weights > 0, self.offsets[:-1], dtype=np.int64)

    def check(self, b: int) -> None:
        """Raise ValueError unless all numbers of problem b are finite and their squares can be represented."""
        rows, name = Dense(self.rows(b, b + 1)[0]), self.names("X", int(self.numbers[b]))
        largest, spread = rows.extent()
        if not np.isfinite(largest):
            n, k, value = rows.not_finite() or (0, 0, largest)
            n = n if self.places is None else self.places[self.offsets[b] + n]
            raise ValueError(f"{name} must be finite, got {value} in row {n}, column {k}: fill or drop such rows.")
        check_largest(largest, rows.dtype, rows.shape[1], name)
        check_spread(spread, rows.dtype, name)


@dataclass(frozen=True)
class _Fits:
    """Fits of k-means problems: the problems, the options, and the methods that fit a few of them.

    init: initial centers (B, C, D) of problems of one C, or the initialization as an object or a name
    seed: seed of the user's problem 0; problem b has seed + b
    n_threads: number of threads with which `KMeans` fits one problem
    """

    problems: _Problems
    init: Any
    max_iter: int
    tol: float
    seed: int
    n_threads: int

    def of_piece(self, piece: tuple[int, int]) -> tuple[Floats, NDArray, NDArray[np.float64], NDArray[np.int64]]:
        """Fit problems begin … end − 1 in one thread; return their centers, labels, J and numbers of iterations.

        piece: the pair (begin, end). All of these problems have one C, and `plain` is true for all or none of them.
        """
        problems, (begin, end) = self.problems, piece
        C = int(problems.n_clusters[begin])
        array, weights = problems.rows(begin, end)
        offsets = problems.offsets[begin : end + 1] - problems.offsets[begin]
        n_problems, D = end - begin, array.shape[1]
        with computing(1):
            for number in range(begin, end):
                problems.check(number)
            centers, labels = np.empty((n_problems, C, D), dtype=array.dtype), np.empty(len(array), dtype=np.int32)
            errors, n_iter = np.empty(n_problems), np.full(n_problems, -1)
            if self.plain[begin]:
                X = Dense(array)
                centers, omitted = self._starts(X, offsets, weights, begin)
                found = lloyd_many(X, offsets, centers, self.max_iter, self.tol, weights, omitted=omitted)
                centers, labels, _, errors, n_iter = found
            for b in np.flatnonzero(n_iter < 0).tolist():
                run, labels[offsets[b] : offsets[b + 1]] = self._solved(begin + b)
                centers[b], errors[b], n_iter[b] = run.model.centers, run.error, len(run.rows)
        return centers, labels, errors, n_iter

    @cached_property
    def plain(self) -> NDArray[np.bool_]:
        """Return the mask (B,) of the problems that compiled code fits.

        These problems are small, begin with k-means++ or given centers, and compare each row with all centers (Lloyd).
        """
        sizes, array = np.diff(self.problems.offsets), self.problems.array
        if not isinstance(self.init, np.ndarray | KMeansPlusPlus):
            return np.zeros(len(sizes), dtype=bool)
        each = np.column_stack([self.problems.n_clusters, self.problems.n_weighted])
        pairs, places = np.unique(each, axis=0, return_inverse=True)
        searches = [resolve_search(KMeansOptions(C), C, 1, n, array.shape[1]) for C, n in pairs.tolist()]
        most = [min(_ROWS, most_rows(C, array.itemsize, self._n_trials)) for C in pairs[:, 0].tolist()]
        limits = np.where([search == Full() for search in searches], most, -1)
        return sizes <= limits[places.reshape(-1)]

    @property
    def _n_trials(self) -> int | None:
        """Return the number of rows that k-means++ tries for each center; None means the default of k-means++."""
        if isinstance(self.init, np.ndarray):
            return 1
        return self.init.n_local_trials if self.init.greedy else 1

    def _starts(
        self, X: Dense, offsets: NDArray[np.int64], weights: NDArray[np.float64] | None, first: int
    ) -> tuple[Floats, NDArray[np.bool_] | None]:
        """Return initial centers (b, C, D) of b consecutive problems, and a mask (b,) of problems without such centers.

        The centers are those that the user gives, or rows chosen by k-means++. The mask is true for a problem in which
        this fast form of k-means++ fails, for example because fewer than C rows are different; its centers in the
        result are meaningless, and the caller fits it by `KMeans`. The mask is None if the user gives the centers.
        X: rows of these problems    offsets (b + 1,): problem i has the rows offsets[i] … offsets[i + 1] − 1 of X
        weights: weights of the rows of X, or None    first: index of the first of the b problems among all problems
        """
        if isinstance(self.init, np.ndarray):
            return self.init[first : first + len(offsets) - 1], None

        def draw(b: int, n: int) -> NDArray[np.float64]:
            with Key(seed_of(self.seed + int(numbers[first + b]))).drawing(Purpose.START) as rng:
                return rng.uniform(size=n)

        numbers, C = self.problems.numbers, int(self.problems.n_clusters[first])
        chosen = choose_in_problems(X, offsets, C, weights, draw, self._n_trials)
        omitted = chosen[:, 0] < 0
        chosen[omitted] = 0
        return X.array[chosen + offsets[:-1, np.newaxis]], omitted

    def _solved(self, b: int) -> tuple[em.Run, NDArray[np.int32]]:
        """Fit problem b as `KMeans` does, with all threads; return the final state of its run, and its labels (n,)."""
        rows, weights = self.problems.rows(b, b + 1)
        init = self.init[b] if isinstance(self.init, np.ndarray) else self.init
        C, seed = int(self.problems.n_clusters[b]), self.seed + int(self.problems.numbers[b])
        options = KMeansOptions(C, init=init, max_iter=self.max_iter, tol=self.tol)
        with computing(self.n_threads):
            data = local(as_rows(rows), weights)
            run, found = em.solve(data, options.problem(data), Key(seed_of(seed)))
        assert run.counts is not None
        warn_if_few(int(np.count_nonzero(run.counts)), C)
        warn_if_poor(found["certificate"], found["neighbors"])
        return run, found["labels"]


@dataclass(frozen=True)
class _Names:
    """Names of an argument's parts for messages: "X[3]", or "X of group 'a'" if rows have groups.

    ids: ids of the groups, or None
    """

    ids: list[Any] | None

    def __call__(self, argument: str, b: int) -> str:
        return f"{argument}[{b}]" if self.ids is None else f"{argument} of group {self.ids[b]!r}"


def _members(groups: Any, n_rows: int) -> tuple[_Names, list[NDArray[np.intp]]]:
    """Return the names of the groups in ascending order of their ids, and the indices of the rows of each group.

    Raises ValueError or TypeError unless the argument `groups` has an id for each row.
    """
    with naming("groups"):
        ids = np.asarray(groups)
        if ids.shape != (n_rows,):
            raise ValueError(f"groups must have shape {(n_rows,)}, one id for each row of X, got {ids.shape}.")
        if ids.dtype.kind in "fmMO" and any(map(is_missing, ids.tolist())):
            raise ValueError("groups must have no missing ids: leave out their rows.")
        found, codes = np.unique(ids, return_inverse=True)
    ends = np.cumsum(np.bincount(codes))
    return _Names(found.tolist()), np.split(np.argsort(codes, kind="stable"), ends[:-1])


def _numbers_of_clusters(n_clusters: Any, n_problems: int) -> NDArray[np.int64]:
    """Return the argument n_clusters as an array (B,) with a number >= 1 for each of the B problems."""
    with naming("n_clusters"):
        shape = np.shape(n_clusters)
    if not shape:
        return np.full(n_problems, check_integer(n_clusters, "n_clusters", 1))
    if shape != (n_problems,):
        raise ValueError(f"n_clusters must be one number, or one for each of {n_problems}, got shape {shape}.")
    return np.array([check_integer(C, f"n_clusters[{b}]", 1) for b, C in enumerate(n_clusters)])


def _copies(estimator: E, problems: _Problems, seed: int) -> list[E]:
    """Return a fitted copy of an estimator for each problem, in the user's order.

    seed: seed of the user's problem 0; problem b has seed + b
    """
    if not isinstance(estimator, Clusterer) or not hasattr(estimator, estimator._size_name):
        raise TypeError(f"estimator must be a KMeans or a mixture of this library, got {type(estimator).__name__}.")
    if estimator.checkpoint is not None:
        raise ValueError("estimator must have checkpoint=None: its fits would write to one folder.")

    def fitted(b: int) -> E:
        number, (rows, weights) = int(problems.numbers[b]), problems.rows(b, b + 1)
        copy = clone(estimator)
        copy.set_params(**size_of(copy, int(problems.n_clusters[b])), random_state=seed + number)
        with naming(problems.names("X", number)):
            return copy.fit(rows, sample_weight=weights)

    return by_pieces(fitted, problems.order.tolist())


def _checked_weights(sample_weight: Any, offsets: NDArray[np.int64], names: _Names) -> NDArray[np.float64] | None:
    """Return the argument sample_weight as one array (N,) for the rows of all problems; None stays None.

    Raises ValueError unless there is one finite weight >= 0 per row, and each problem has a positive, finite sum.
    """
    if sample_weight is None:
        return None
    sizes = np.diff(offsets)
    with naming("sample_weight"):
        many = sample_weight if isinstance(sample_weight, list | tuple) else list(sample_weight)
    each = [array_of(one, f"sample_weight[{b}]") for b, one in enumerate(many)]
    if [one.shape for one in each] != [(n,) for n in sizes]:
        b = next((b for b, (one, n) in enumerate(zip(each, sizes, strict=False)) if one.shape != (n,)), None)
        found = f"{len(each)} for {len(sizes)} problems" if b is None else f"{each[b].shape} for X[{b}]"
        raise ValueError(f"sample_weight must have a weight for each row of X, got {found}.")
    weights = np.concatenate(each, dtype=np.float64)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        b = int(np.searchsorted(offsets, bad[0], side="right")) - 1
        raise ValueError(f"{names('sample_weight', b)} must be finite and >= 0, got {weights[bad[0]]}.")
    with np.errstate(over="ignore"):
        totals = np.add.reduceat(weights, offsets[:-1])
    if not totals.all():
        b = int(totals.argmin())
        raise ValueError(f"{names('sample_weight', b)} must have at least one positive entry, got zeros only.")
    for total in (totals.min(), totals.max()):
        check_total_weight(float(total))
    return weights


def _checked_init(init: Any, problems: _Problems) -> Any:
    """Return the initialization of the problems that the argument `init` selects.

    An array becomes initial centers (B, C, D) in the dtype of the data; "k-means++" becomes an object `KMeansPlusPlus`.
    Other values are returned unchanged. Raises ValueError if the array has a wrong shape or extreme values.
    """
    if isinstance(init, str):
        return KMeansPlusPlus() if init == "k-means++" else init
    if isinstance(init, KMeansPlusPlus) or not is_given(init) or hasattr(init, "fit"):
        return init
    array, (B, D) = array_of(init, "init"), (len(problems), problems.array.shape[1])
    n_clusters = int(problems.n_clusters[0])
    if (problems.n_clusters != n_clusters).any():
        raise ValueError("init must be a method if the problems have different n_clusters, got centers.")
    if array.shape not in ((B, n_clusters, D), (n_clusters, D)):
        raise ValueError(f"init must have shape {(B, n_clusters, D)} or {(n_clusters, D)}, got {array.shape}.")
    with np.errstate(over="ignore"):
        array = np.ascontiguousarray(array, dtype=problems.array.dtype)
    largest = Dense(array.reshape(-1, D)).extent()[0]
    if not np.isfinite(largest):
        raise ValueError("init must be finite, got NaN or infinite centers.")
    check_largest(largest, array.dtype, D, "init")
    return np.broadcast_to(array, (B, n_clusters, D))


def _first_seed(random_state: Any, n_problems: int) -> int:
    """Return the seed of the first problem: `random_state` if it is an int, otherwise an int drawn from it.

    The seed of each further problem is greater by 1 than that of the problem before.
    """
    if not isinstance(random_state, Integral) or isinstance(random_state, bool):
        return seed_of(random_state)
    seed = int(random_state)
    if not 0 <= seed <= 2**32 - n_problems:
        raise ValueError(
            f"random_state must be between 0 and {2**32 - n_problems} for {n_problems} problems, got {seed}."
        )
    return seed
