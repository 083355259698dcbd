"""Missing values: column means for initializations, k-means of such rows, and the method `impute` of fitted estimators.

k-means of rows with missing values is hard assignment to components of equal variance, by the observed values.
Distances between points and centers are sums over the observed columns of the point. In the update of the centers, the
missing values of a point are those of its nearest center (k-pod: Chi, Chi & Baraniuk 2016). This is classification EM
of a Gaussian mixture with equal weights and one variance.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cprime import em
from cprime._utils.random import Key, Purpose, seed_of
from cprime._utils.threads import plain_products
from cprime.estimators.opening import as_given, preparation_of
from cprime.estimators.validation import check_flag, check_real, resolve_search
from cprime.execution import Data
from cprime.execution.block import ActiveSet, Block
from cprime.execution.statistics import Sums
from cprime.kernels import Dense, MarginalRows, ReadMissing, Rows, computing, posterior
from cprime.model import Model, PooledSpherical
from cprime.model.tied_spherical import variance_floor


@dataclass(frozen=True)
class ColumnSums(Sums):
    """Weighted sums over the observed values of each column, from which the column means follow.

    weights (D,): Σ w_n over the observed values    sums (D,): Σ w_n x_n over these [data units]
    n_missing: number of missing values in all columns
    """

    weights: NDArray[np.float64]
    sums: NDArray[np.float64]
    n_missing: int


@dataclass(frozen=True)
class SumColumns:
    """Job of a pass over the data that computes `ColumnSums`, the sums over the observed values of each column."""

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, ColumnSums]:
        X, observed, one = block.X, block.X.observed, np.zeros((len(block), 1), dtype=np.int32)
        if observed is None:
            counts, sums = X.accumulate(one, None, block.sample_weight, n_components=1)
            return None, ColumnSums(np.full(X.shape[1], counts[0]), sums[0], 0)
        there = Dense(np.where(observed, X.dense(), X.dtype.type(0)))
        _, sums = there.accumulate(one, None, block.sample_weight, n_components=1)
        weights = np.ones(len(block)) if block.sample_weight is None else block.sample_weight
        with plain_products():
            return None, ColumnSums(weights @ observed.astype(np.float64), sums[0], int((~observed).sum()))


def filled_by_means(data: Data, names: Any) -> Data:
    """Return the data in a form in which distances to centers are computed with column means for missing values.

    The rows still mark missing values as such. If no value is missing, the returned data are read as complete rows.
    names (D,): column names, or None    Raises ValueError if a column has no observed value of positive weight.
    """
    found: ColumnSums = data.each(SumColumns())
    if not found.n_missing:
        return data.read_by(ReadMissing(), has_missing=False)
    if not (found.weights > 0).all():
        j = int(np.flatnonzero(~(found.weights > 0))[0])
        column = j if names is None else repr(names[j])
        raise ValueError(f"X must have a value in every column, got none in column {column}.")
    return data.read_by(ReadMissing(found.sums / found.weights), has_missing=True)


def impute(self: Any, X: Any, sample: bool = False, random_state: Any = None) -> NDArray:
    """Return the rows with each missing value replaced by its mean, or by a draw, given the observed values of the row.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or a source
        NaN, or a null of a table, is a missing value.
    sample : bool, default=False
        False inserts the conditional means Σ_c q_c E[x_m | x_o, c] of the missing values x_m, given the observed
        values x_o and with the posterior q_c of the `n_active_` best components c of the row. They have the least
        expected squared error. For k-means these are the values of the nearest center. True draws from the
        conditional density (first a component, then values), which preserves variances and correlations.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers of the draws; used only if `sample` is True.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        In the dtype of the means and the units of X. Observed values are unchanged. If `sample` is False, a row
        without observed values becomes the mean of its `n_active_` best components.

    References
    ----------
    Little & Rubin, *Statistical Analysis with Missing Data*. Ghahramani & Jordan (1994), *Supervised learning from
    incomplete data via an EM approach*.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import GaussianMixture
    >>> x = np.linspace(0, 1, 50)
    >>> X = np.column_stack([x, 2 * x])
    >>> X[7, 1] = np.nan
    >>> gm = GaussianMixture(1, missing="marginal").fit(X)
    >>> bool(abs(gm.impute(X)[7, 1] - 2 * X[7, 0]) < 1e-3)
    True
    """
    sample = check_flag(sample, "sample")
    with computing(self.n_threads):
        data = self._opened(X)
        model: Model = self._model_of(data)
        seed = seed_of(random_state)
        key = Key(seed) if sample else None
        job = partial(_imputed, model, self.n_active_, key)
        found: NDArray = data.map(job, model.n_features, model.centers.dtype, numbered=True)
        preparation = preparation_of(self)
        if preparation.is_identity:
            return found
        found, begin = preparation.restored(found), 0
        given = as_given(self, X)
        for size in given.sizes:  # Rounding in the scaling must not change observed values.
            rows = given.read(begin, begin + size)
            np.copyto(found[begin : begin + size], rows, where=~np.isnan(rows), casting="same_kind")
            begin += size
        return found


def _imputed(model: Model, n_kept: int, key: Key | None, X: Rows, first: int) -> NDArray:
    """Return some consecutive rows (n, D) of the data with missing values imputed.

    n_kept: number of a row's best components that are used    first: index of the first of these rows in the data
    key: counter-based random key of draws from the conditional density; None inserts conditional means instead
    The random numbers of a row depend only on the key and the row's index in the data.
    """
    if not isinstance(X, MarginalRows):
        return X.dense()
    ids, costs = model.components().best(X, n_kept)
    q = posterior(costs, model.scale).responsibilities
    if key is None:
        return model.imputed(X, ids, q)
    width = model.n_normals + 1
    uniform = key.uniform(Purpose.MISSING, first * width, len(X) * width).reshape(len(X), width)
    drawn = (np.cumsum(q, axis=1) <= uniform[:, :1]).sum(axis=1).clip(max=n_kept - 1)[:, np.newaxis]
    # A uniform number may be 0, whose normal quantile is −∞, so a tiny number is added.
    normal = ndtri(uniform[:, 1:] + 2.0**-54)
    return model.imputed(X, np.take_along_axis(ids, drawn, axis=1), np.ones((len(X), 1)), normal)


def plan_of_missing(k_means: Any, data: Data) -> em.FitPlan:
    """Return the options of a k-means fit of rows with missing values.

    The fit has neither jumps of centers nor exchange steps (single reassignments that account for the shift of both
    centers), and its search does not use bounds on distances.

    Raises ValueError if an argument of the estimator does not allow missing values.
    """
    if k_means.metric != "euclidean":
        raise ValueError(f"missing='marginal' needs metric='euclidean', got {k_means.metric!r}.")
    if check_real(k_means.epsilon, "epsilon", 0.0):
        raise ValueError(f"missing='marginal' needs epsilon=0 where numbers are missing, got {k_means.epsilon}.")
    if k_means.jumps is True or k_means.jumps == "never":
        raise ValueError(
            f"missing='marginal' needs jumps='auto' or False where numbers are missing, got {k_means.jumps!r}."
        )
    search = resolve_search(k_means, k_means.n_clusters, 1, data.n_weighted)
    if search.stores_bounds:
        raise ValueError("missing='marginal' needs another search than 'bounded' where numbers are missing.")
    # `tol` limits relative changes t of J; they change the free energy −(D/2) log J + constant by (D/2) t per point.
    tol = k_means.tol * data.n_features / 2
    stage = em.EM(em.MixtureSettings(k_means.max_iter, tol, 1, "hard", settles=False))
    return em.FitPlan(
        1,
        search,
        stage,
        search.regroups(data),
    )


def first_of_missing(data: Data, centers: NDArray, exact: bool) -> Any:
    """Return the starting parameters of k-means with missing values, as a model.

    The centers of the model are the means of the points nearest to each of the starting `centers` (C, D). Its variance
    is that of the points about these means.    exact: whether points are compared with all starting centers
    """
    start = PooledSpherical(centers, np.ones(len(centers)), variance_floor(centers))
    return em.hard_start(data, start, exact)
