"""Moments that contain the rows of points, for families whose M-steps are no functions of sums over points."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.values import replace
from cprime.execution.block import Block
from cprime.kernels import Floats
from cprime.model.interface import Responsibilities

Ids = NDArray[np.int32]
Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class RowMoments:
    """Points of an M-step, and counts (C,): Σ w q, with weights w and responsibilities q.

    parts: for each chunk of the data, rows (n, D); the mask (n, D) of their observed values, or None; components (n, H)
    of the rows; and w q (n, H)
    """

    counts: Doubles
    parts: tuple[tuple[Floats, NDArray[np.bool_] | None, Ids, Doubles], ...]

    @classmethod
    def of(cls, block: Block, shares: Responsibilities, n_components: int) -> Self:
        """Return the moments of a block of rows, from the responsibilities `shares`."""
        q = np.ones(shares.ids.shape) if shares.responsibilities is None else shares.responsibilities
        if block.sample_weight is not None:
            q = q * block.sample_weight[:, np.newaxis]
        counts = np.bincount(np.maximum(shares.ids, 0).reshape(-1), q.reshape(-1), n_components).astype(np.float64)
        # The rows are copied, because the next chunk of a file may be read into the same memory.
        return cls(counts, ((block.X.dense().copy(), block.X.observed, shares.ids, q),))

    def __add__(self, other: Self) -> Self:
        return replace(self, counts=self.counts + other.counts, parts=self.parts + other.parts)

    def scaled(self, factor: float) -> Self:
        """Return the moments of points whose weights are multiplied by a factor."""
        parts = tuple((X, observed, ids, factor * q) for X, observed, ids, q in self.parts)
        return replace(self, counts=factor * self.counts, parts=parts)

    def by_component(self) -> tuple[Floats, list[tuple[NDArray[np.intp], Doubles]]]:
        """Return all rows (N, D), and for each component the positions of its rows and their weights w q > 0."""
        X = self.parts[0][0] if len(self.parts) == 1 else np.concatenate([X for X, *_ in self.parts])
        n_owners = np.concatenate([np.full(len(ids), ids.shape[1]) for *_, ids, _ in self.parts])
        rows = np.repeat(np.arange(len(X)), n_owners)
        owners = np.concatenate([ids.reshape(-1) for *_, ids, _ in self.parts])
        q = np.concatenate([q.reshape(-1) for *_, q in self.parts])
        there = np.flatnonzero((q > 0) & (owners >= 0))
        there = there[np.argsort(owners[there], kind="stable")]
        bounds = np.searchsorted(owners[there], np.arange(1, len(self.counts)))
        return X, [(rows[own], q[own]) for own in np.split(there, bounds)]
