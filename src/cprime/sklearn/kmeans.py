"""`KMeans` with scikit-learn's signature, fitted by `cprime.KMeans`."""

import math
import sys
from collections.abc import Callable, Mapping
from copy import deepcopy
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
import sklearn.cluster
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_array

import cprime
from cprime._utils.threads import resolve_threads
from cprime.estimators.validation import are_many
from cprime.kernels import as_rows, computing
from cprime.seeding import OwnStart, is_given
from cprime.sklearn.draws import Draws, Greedy, draws_here
from cprime.sklearn.nearest import Nearest, variances, weighted
from cprime.sklearn.parameters import with_generator

# Largest product rows · features · clusters · (2 + log clusters) for which k-means++ is that of scikit-learn, and the
# search of the fit is full.
SAME_DRAWS = 2**27


def is_small(X: Any, n_clusters: int) -> bool:
    """Return whether the rows X (n, D) are so few that k-means++ is computed with the random draws of scikit-learn."""
    return math.prod(X.shape) * n_clusters * (2 + math.log(n_clusters)) <= SAME_DRAWS


def given_centers(estimator: Any, X: Any) -> NDArray:
    """Return the initial centers (C, D) that were passed as `init`, validated, in the data type of the rows X."""
    centers = check_array(estimator.init, dtype=X.dtype, copy=True, order="C")
    estimator._validate_center_shape(X, centers)
    return centers


class Centered(NamedTuple):
    """Rows (n, D) minus the mean of all rows, for scikit-learn's initialization, and this mean (D,)."""

    mean: NDArray
    rows: NDArray

    @classmethod
    def from_rows(cls, X: NDArray) -> "Centered":
        mean = X.mean(axis=0)
        return cls(mean, X - mean)

    @property
    def variances(self) -> NDArray:
        """Return the variances of the columns (D,), from the stored centered rows, bit-identical to `numpy.var`."""
        return np.add.reduce(self.rows * self.rows, axis=0) / len(self.rows)


def check_with_tolerance(estimator: Any, X: Any, of_columns: NDArray) -> None:
    """Check the parameters against the data as scikit-learn does, and set `_tol`, the absolute tolerance.

    `_tol` is `tol` times the mean variance of the columns. of_columns (D,): variance of each column
    """
    # scikit-learn's method must check only the number of rows, not compute variances, so it gets one column of zeros.
    estimator._check_params_vs_input(np.broadcast_to(X.dtype.type(0), (len(X), 1)))
    estimator._tol = np.mean(of_columns) * estimator.tol


def start_of(
    estimator: Any,
    X: Any,
    sample_weight: NDArray | None,
    random_state: np.random.RandomState,
    centered: Centered | None,
) -> Any:
    """Return the argument `init` for cprime's estimator: centers, a function, or the name of a cprime method.

    A function draws centers as scikit-learn does, or calls the user's function `init`. As in scikit-learn, k-means++
    and the user's function get centered data (mean 0) if the data are dense, and unchanged data if they are sparse.
    centered: the centered rows X, or None if these have not been computed
    """
    init = estimator.init
    if is_given(init):
        return given_centers(estimator, X)
    if isinstance(init, str) and init == "k-means++" and not is_small(X, estimator.n_clusters):
        return "auto"
    weights = np.ones(X.shape[0], dtype=X.dtype) if sample_weight is None else sample_weight
    if isinstance(init, str) and init == "random":
        # scikit-learn only draws rows for init="random", so it gets the row numbers in place of the data.
        numbers = np.arange(X.shape[0])[:, np.newaxis]

        def drawn(*_: Any, **__: Any) -> NDArray:
            more = {"init": init, "random_state": random_state, "sample_weight": weights}
            chosen = estimator._init_centroids(numbers, x_squared_norms=None, **more)
            return as_rows(X)[chosen[:, 0]].dense()

        return OwnStart(drawn)
    mean, points = (0, X) if sp.issparse(X) else centered or Centered.from_rows(X)
    norms = row_norms(points, squared=True)
    if draws_here(points, init, weights):
        greedy = Greedy(points, norms, weights)
        return OwnStart(lambda: mean + greedy.centers(estimator.n_clusters, random_state))

    def centers_of(*_: Any, **__: Any) -> NDArray:
        return mean + estimator._init_centroids(
            points, x_squared_norms=norms, init=init, random_state=random_state, sample_weight=weights
        )

    return OwnStart(centers_of) if isinstance(init, str) else centers_of


class Printer:
    """Callback that writes scikit-learn's output for `verbose=1` to standard output.

    least_shift: squared shift of all centers together [data unit²] up to which an iteration is reported as converged
    """

    def __init__(self, least_shift: float):
        self.least_shift = least_shift
        self._before: NDArray | None = None

    def starting(self, init: Any) -> Callable[..., NDArray] | Any:
        """Return the argument `init` of k-means, such that "Initialization complete" is printed as by scikit-learn.

        A function is replaced by one that prints this after its call. Other values are returned unchanged, and the text
        is printed at once.
        """

        def centers_of(*args: Any, **kwargs: Any) -> NDArray:
            centers = init(*args, **kwargs)
            sys.stdout.write("Initialization complete\n")
            return centers

        if callable(init):
            return centers_of
        sys.stdout.write("Initialization complete\n")
        return init

    def on_iteration(self, row: Mapping[str, Any], estimator: cprime.KMeans) -> None:
        i = row["iteration"] - 1
        sys.stdout.write(f"Iteration {i}, inertia {row['quantization_error']}.\n")
        before, self._before = self._before if i else None, estimator.cluster_centers_
        if before is None:
            return
        shift = float(np.square(np.subtract(estimator.cluster_centers_, before, dtype=np.float64)).sum())
        if row["n_moved"] == 0:
            sys.stdout.write(f"Converged at iteration {i}: strict convergence.\n")
        elif shift <= self.least_shift:
            sys.stdout.write(f"Converged at iteration {i}: center shift {shift} within tolerance {self.least_shift}.\n")


class KMeans(Nearest, Draws, sklearn.cluster.KMeans):
    """k-means with the arguments, attributes and errors of scikit-learn's `KMeans`, fitted by `cprime.KMeans`.

    Parameters are scikit-learn's. As there, a run has converged once the squared shift of all centers, relative to the
    mean variance of the features, is at most `tol`. Differences:

    - Up to about 2²⁷ products (rows · features · clusters · log clusters), a fit starts from scikit-learn's own draws
      and evaluates all centers, so the same `random_state` gives the same clusters. For larger data, initialization and
      search are those of `cprime.KMeans`: init="two-level" and search="graph" for at least 128 clusters and 2²⁰
      distances per iteration. ``algorithm="elkan"`` selects the exact search by bounds at any size.
    - `copy_x` has no effect, because data are not changed.

    Attributes
    ----------
    cluster_centers_, labels_, inertia_, n_iter_, n_features_in_, feature_names_in_
        Fitted attributes with the same meaning as in scikit-learn.
    cprime_ : cprime.KMeans
        The estimator underneath, with its `certificate_`, `history_`, `bounds` and `save`.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime.sklearn import KMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> km = KMeans(n_clusters=2, random_state=0, n_init="auto").fit(X)
    >>> km.labels_, km.predict([[0, 0], [12, 3]])
    (array([1, 1, 1, 0, 0, 0], dtype=int32), array([1, 0], dtype=int32))
    """

    cprime_: cprime.KMeans

    @with_generator
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the centers to the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row; None means equal weights.

        Returns
        -------
        self : KMeans
        """
        with computing(None), self._drawing() as random_state:
            X, sample_weight = self._training_data(
                X, sample_weight, keeps=lambda X: not callable(self.init) and not is_small(X, self.n_clusters)
            )
            return self._fit(X, sample_weight, random_state)

    def _fit(self, X: Any, sample_weight: NDArray | None, random_state: np.random.RandomState) -> Self:
        """Fit the centers to validated rows X with weights (n,) or None; return the estimator."""
        centered = None
        if self.tol == 0 or sp.issparse(X):
            self._check_params_vs_input(X)
        else:
            centered = Centered.from_rows(X) if is_small(X, self.n_clusters) else None
            check_with_tolerance(self, X, variances(X) if centered is None else centered.variances)
        init = start_of(self, X, sample_weight, random_state, centered)
        printer = Printer(self._tol) if self.verbose else None
        core = cprime.KMeans(
            self.n_clusters,
            init=init if printer is None else printer.starting(init),
            n_init=self._n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            search="bounded" if self._algorithm == "elkan" else "full" if is_small(X, self.n_clusters) else "auto",
            jumps="auto" if are_many(self.n_clusters, X.shape[0]) else False,
            random_state=self._own_random_state(X, init, random_state),
            callbacks=printer,
        )
        core._least_shift = self._tol
        core.n_features_in_ = X.shape[1]
        core._fit_to(weighted(X, sample_weight), (as_rows(X).given(), None, sample_weight))
        # The attribute `cprime_` gets the user's arguments back, because functions used for the fit cannot be pickled.
        core.init, core.callbacks, core.random_state = self.init, None, self.random_state
        self.cluster_centers_, self.labels_ = core.cluster_centers_, core.labels_
        self.inertia_, self.n_iter_ = core.inertia_, core.n_iter_
        self._n_features_out, self._n_threads = self.n_clusters, resolve_threads(None)
        self.cprime_ = core
        return self

    def _own_random_state(self, X: Any, init: Any, random_state: np.random.RandomState) -> Any:
        """Return the argument `random_state` of the `cprime.KMeans` that does the work of this estimator.

        It is 0 if `is_small` is true, because the full search of such fits draws nothing. Otherwise it is this
        estimator's own `random_state` if that is an int; else the generator `random_state`, or a copy of it if `init`
        is not a name, because a function `init` draws from the same generator.
        """
        if is_small(X, self.n_clusters):
            return 0
        if isinstance(self.random_state, Integral):
            return self.random_state
        return random_state if isinstance(init, str) else deepcopy(random_state)
