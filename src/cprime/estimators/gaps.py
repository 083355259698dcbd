"""Data in which numbers are missing: what the starts of a fit find in their places, and what a fitted mixture makes of
them.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cprime._random import Key, Purpose, seed_of
from cprime._threads import plain_products
from cprime.block import Block, Kept
from cprime.estimators.validation import check_flag
from cprime.execution import Data
from cprime.kernels import Dense, ReadGaps, Rows, computing, posterior
from cprime.model import Model
from cprime.statistics import Sums


@dataclass(frozen=True)
class Observed(Sums):
    """Of every column Σ w_n and Σ w_n x_n of the rows that have it (D,); how many numbers are missing."""

    weights: NDArray[np.float64]
    sums: NDArray[np.float64]
    n_missing: int


@dataclass(frozen=True)
class Observe:
    """What is there of the data: a pass."""

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: Kept | None) -> tuple[None, Observed]:
        X, observed, one = block.X, block.X.observed, np.zeros((len(block), 1), dtype=np.int32)
        if observed is None:
            counts, sums = X.accumulate(one, None, block.sample_weight, n_components=1)
            return None, Observed(np.full(X.shape[1], counts[0]), sums[0], 0)
        there = Dense(np.where(observed, X.dense(), X.dtype.type(0)))
        _, sums = there.accumulate(one, None, block.sample_weight, n_components=1)
        weights = np.ones(len(block)) if block.sample_weight is None else block.sample_weight
        with plain_products():
            return None, Observed(weights @ observed.astype(np.float64), sums[0], int((~observed).sum()))


def filled_by_means(data: Data, names: Any) -> Data:
    """The same data, the means of their columns standing where numbers are missing, for whoever compares with centers.

    names (D,): of the columns, or None
    """
    found: Observed = data.each(Observe())
    if not found.n_missing:
        return data.read_by(ReadGaps(), gaps=False)
    if not (found.weights > 0).all():
        j = int(np.flatnonzero(~(found.weights > 0))[0])
        column = j if names is None else repr(names[j])
        raise ValueError(f"X must have a value in every column, got none in column {column}.")
    return data.read_by(ReadGaps(found.sums / found.weights), gaps=True)


class Imputing:
    """Base of estimators that say what missing numbers may be."""

    _opened: Any
    _model_of: Any
    n_active_: int
    n_threads: int | None
    missing: str

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = self.missing == "marginal"
        return tags

    def impute(self, X: Any, sample: bool = False, random_state: Any = None) -> NDArray:
        """The rows with what is missing filled in, by what is observed of each.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a source
            NaN, or a null of a table, is a missing number.
        sample : bool, default=False
            False puts conditional means, Σ_c q_c E[x_m | x_o, c] over the `n_active_` components that fit a row best,
            which has the least expected squared error, of a k-means its center; True draws from the conditional
            density, one component and then from that, which keeps variances and correlations.
        random_state : int, RandomState, Generator or None, default=None
            Where the draws come from.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            In the dtype of the means. What is observed is as it was; a row without any value takes the mean of these.

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
        data = self._opened(X)
        with computing(self.n_threads):
            model: Model = self._model_of(data)
            key = Key(seed_of(random_state)) if sample else None
            job = partial(_imputed, model, self.n_active_, key)
            return data.map(job, model.n_features, model.centers.dtype, numbered=True)


def _imputed(model: Model, n_kept: int, key: Key | None, X: Rows, first: int) -> NDArray:
    """The rows of a block whose first has this number; draws are by a row of numbers that belong to each."""
    if X.observed is None:
        return X.dense()
    ids, costs = model.components().best(X, n_kept)
    q = posterior(costs, model.scale).responsibilities
    if key is None:
        return model.imputed(X, ids, q)
    width = X.shape[1] + 1
    uniform = key.uniform(Purpose.MISSING, first * width, len(X) * width).reshape(len(X), width)
    drawn = (np.cumsum(q, axis=1) <= uniform[:, :1]).sum(axis=1).clip(max=n_kept - 1)[:, np.newaxis]
    normal = ndtri(uniform[:, 1:] + 2.0**-54)  # none is 0
    return model.imputed(X, np.take_along_axis(ids, drawn, axis=1), np.ones((len(X), 1)), normal)
