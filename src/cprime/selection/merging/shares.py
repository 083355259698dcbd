"""Truncated responsibilities of all rows, from one E-step; stored only for rows with several components."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime.em.joins import sums_by
from cprime.estimators.base import Clusterer
from cprime.estimators.fitted import data_for, model_of
from cprime.estimators.validation import check_weights
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import computing, posterior
from cprime.model import Model
from cprime.selection.merging.entropy import LEAST_SHARE, SharedPoints
from cprime.sources.checked import checked

_VALUES = 2**22  # number of probabilities that are computed at a time, which limits memory


class ComponentShares(NamedTuple):
    """Truncated responsibilities of n rows.

    components (n,): best component of each row    weights (C,): sum of the weighted responsibilities of each component
    several: `SharedPoints`, the rows that have several components with positive responsibility
    """

    components: NDArray[np.int32]
    weights: NDArray[np.float64]
    several: SharedPoints


@dataclass(frozen=True)
class SeenShares:
    """Job over the data that computes, for each row, the truncated posterior of its n_kept best components.

    The posterior is eq. (5) of Lücke & Forster. The result for a chunk of rows is a list of one `ComponentShares`, so
    that the results for all chunks form one list.
    """

    model: Model
    n_kept: int

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, list[ComponentShares]]:
        ids, costs = self.model.components().best(block.embedded(self.model.embed), self.n_kept)
        shares = posterior(costs, self.model.scale).responsibilities
        return None, [found(ids, shares, block.sample_weight, self.model.n_components)]


def found(
    ids: NDArray[np.int32], shares: NDArray[np.float64], sample_weight: NDArray[np.float64] | None, n_components: int
) -> ComponentShares:
    """Return `ComponentShares`: best components and responsibilities of n rows, and sums over the rows.

    ids (n, H): the best components of each row, the best first    shares (n, H): their responsibilities
    """
    weights = np.ones(len(ids)) if sample_weight is None else sample_weight
    sums = sums_by(ids.ravel(), (weights[:, np.newaxis] * shares).ravel(), n_components)
    has = shares >= LEAST_SHARE
    several = (has.sum(axis=1) > 1) & (weights > 0)
    rest = SharedPoints(ids[several], np.where(has[several], shares[several], 0.0), weights[several])
    return ComponentShares(ids[:, 0].copy(), sums, rest)


def has_model(fitted: Any) -> bool:
    """Return whether a fitted estimator has a model of this library, whose E-step gives responsibilities."""
    return isinstance(fitted, Clusterer)


def shares_of(fitted: Any, X: Any, sample_weight: Any, n_kept: int, n_components: int) -> ComponentShares:
    """Return the n_kept greatest responsibilities of each row as `ComponentShares`.

    Responsibilities come from an E-step of the fit's model or, for a fit without one, from `predict_proba`.
    """
    if has_model(fitted):
        data = data_for(fitted, X, sample_weight)
        with computing(fitted.n_threads):
            return _together(data.each(SeenShares(model_of(fitted, data), n_kept)))
    return _together(list(_by_probabilities(fitted, X, sample_weight, n_kept, n_components)))


def _by_probabilities(
    fitted: Any, X: Any, sample_weight: Any, n_kept: int, n_components: int
) -> Iterator[ComponentShares]:
    X = X if hasattr(X, "iloc") else checked(X, dtype=[np.float64, np.float32])
    weights = check_weights(sample_weight, X)
    step = max(1, _VALUES // n_components)
    for begin in range(0, len(X), step):
        rows = slice(begin, begin + step)
        shares = np.asarray(fitted.predict_proba(X.iloc[rows] if hasattr(X, "iloc") else X[rows]), dtype=np.float64)
        ids = np.argsort(-shares, axis=1, kind="stable")[:, :n_kept].astype(np.int32)
        kept = np.take_along_axis(shares, ids, axis=1)
        kept /= kept.sum(axis=1, keepdims=True)
        yield found(ids, kept, None if weights is None else weights[rows], n_components)


def _together(parts: list[ComponentShares]) -> ComponentShares:
    components, weights, several = zip(*parts, strict=True)
    fields = ([getattr(each, name) for each in several] for name in ("ids", "shares", "weights"))
    return ComponentShares(
        np.concatenate(components), np.sum(weights, axis=0), SharedPoints(*map(np.concatenate, fields))
    )
