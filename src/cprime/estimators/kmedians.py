"""k-medians: clusters with the least sum of absolute (L1) distances to their centers, which are medians."""

from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.declared import Columns, Presence
from cprime._utils.messages import warn_if_few
from cprime._utils.random import check_random_state
from cprime.em.medians import HISTORY, Medians, improve, l1_distances, nearest_by_l1
from cprime.estimators.missing import filled_by_means
from cprime.estimators.opening import names_of
from cprime.estimators.prototypes import Prototypes
from cprime.estimators.validation import check_choice, check_loop, check_real, check_weights
from cprime.estimators.watching import CallbackSupportMixin, Watch, restore_on_error, unfitted_copy, with_callbacks
from cprime.execution import local
from cprime.execution.block import Block
from cprime.kernels import Dense, Rows, computing
from cprime.persistence import model_files
from cprime.seeding import is_given, seed


@model_files.register
class KMedians(CallbackSupportMixin, Prototypes):
    """k-medians clustering: minimize J = Σ_n w_n min_c ‖x_n − μ_c‖₁, the sum of absolute differences to medians.

    Each iteration assigns points to the center of least L1 distance; then each center becomes the (weighted) median of
    its points in every column. The fit ends if no point is reassigned. This is maximum likelihood of Laplace densities
    of one scale with hard assignment. Distant points change a median less than a mean. Data must be in memory.

    Parameters
    ----------
    n_clusters : int, default=8
    missing : {"error", "marginal"}, default="error"
        How NaN and nulls are treated: as an error, or as missing values, whose columns leave the sum of differences.
    init : str, value of cprime.seeding, array-like, fitted estimator or callable, default="k-means++"
        Initialization, as in `KMeans`; "auto" is "k-means++".
    n_init : int, default=1
    max_iter : int, default=300
    tol : float, default=0.0
        A start has converged if J falls by no more than this share of J, or if no point is reassigned.
    callbacks : callback or sequence of them, default=None
    n_threads : int or None, default=None
        Threads of the initialization; None is every processor that the process may use. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
    verbose : int, default=0

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Medians, in the dtype of the data. The median of an even number of values is the mean of the two middle ones.
    labels_ : ndarray of shape (n_samples,), int32
        The nearest center of each training point; ties go to the lower index.
    inertia_ : float
        J, the weighted sum of L1 distances to the nearest center, in data units.
    n_iter_ : int
    converged_ : bool
    history_ : structured ndarray of shape (`n_iter_`,)
        One row per iteration: inertia (J at its assignment), n_moved (number of reassigned points), seconds. J never
        rises.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    References
    ----------
    Bradley, Mangasarian & Street (1997), *Clustering via concave minimization*.

    Examples
    --------
    >>> from cprime import KMedians
    >>> X = [[0.0], [1.0], [2.0], [50.0], [51.0], [90.0]]
    >>> km = KMedians(2, init=[[0.0], [50.0]]).fit(X)
    >>> km.cluster_centers_[:, 0].tolist(), km.inertia_
    ([1.0, 51.0], 42.0)
    """

    metric: ClassVar[str] = "cityblock"
    history_: Annotated[NDArray, Columns(HISTORY), Presence.RECORD]

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        missing: str = "error",
        init: Any = "k-means++",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 0.0,
        callbacks: Any = None,
        n_threads: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.missing = missing
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.callbacks = callbacks
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "marginal"
        return tags

    @restore_on_error
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Compute the medians.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers, and missing values as the argument `missing` says. Types of up to 16 bits and float32 become
            float32, wider ones float64.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 counts the point twice; None is 1 for each.

        Returns
        -------
        self : KMedians

        Raises
        ------
        ValueError
            If an argument is out of its range, there are fewer points than clusters, or a column has no value.
        """
        C = check_loop(self)
        check_real(self.tol, "tol", 0.0)
        check_choice(self.missing, "missing", ("error", "marginal"))
        watch = Watch(self, (X, y, sample_weight), lambda run: unfitted_copy(self)._set_run(run))
        rows = self._validated(X, reset=True)
        weights = check_weights(sample_weight, rows.given())
        if rows.observed is not None:
            found = filled_by_means(local(rows, weights), names_of(self)).whole()
            assert found is not None
            rows = found[0]
        points = Block(rows, weights)
        random_state = check_random_state(self.random_state)
        options: dict[str, Any] = {"sample_weight": weights, "random_state": random_state, "n_threads": self.n_threads}

        def run(callback: Any) -> tuple[float, bool, Medians]:
            run = Medians(seed(rows.dense(), C, self.init, **options))
            stopped = improve(run, points, self.max_iter, self.tol, callback)
            return run.inertia, stopped, run

        best = watch.best_of(1 if is_given(self.init) else self.n_init, self.max_iter, run)
        self._set_run(best)
        self.labels_, costs = nearest_by_l1(rows, best.centers)
        self.inertia_ = points.weighted_sum(costs)
        warn_if_few(len(np.unique(self.labels_)), C)
        return self

    def _set_run(self, run: Medians) -> Self:
        self.cluster_centers_ = run.centers
        self.history_ = np.array(run.rows, dtype=HISTORY)
        self.n_iter_, self.converged_, self.inertia_ = len(run.rows), run.converged, run.inertia
        return self

    def _validated(self, X: Any, reset: bool) -> Rows:
        """Return X as checked rows of float32 or float64. reset: whether X is training data"""
        rows: Rows = super()._validated(X, reset)
        return Dense(rows.dense()) if rows.observed is None else rows

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the index of the center of least L1 distance to each row; ties go to the lower index.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
        """
        with computing(self.n_threads):
            return nearest_by_l1(self._validated(X, reset=False), self.cluster_centers_)[0]

    def transform(self, X: Any) -> NDArray:
        """Return the L1 distance of each row to each center.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            In data units, in the dtype of the data. This is a dense N×C array.
        """
        with computing(self.n_threads):
            rows = self._validated(X, reset=False)
            return l1_distances(rows, self.cluster_centers_).astype(rows.dtype, copy=False)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return −J: minus the weighted sum of L1 distances to the nearest center.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
        """
        with computing(self.n_threads):
            rows = self._validated(X, reset=False)
            points = Block(rows, check_weights(sample_weight, rows.given()))
            return -points.weighted_sum(nearest_by_l1(rows, self.cluster_centers_)[1])
