"""The exact search that remembers: Lloyd's algorithm by bounds on distances, kept from iteration to iteration.

Most points are nearer to their center than any other center can have come, which the triangle inequality tells from how
far centers have moved (Elkan 2003, Hamerly 2010, Drake & Hamerly 2012, Newling & Fleuret 2016). A point costs one
distance then, and a look at all centers only where its bounds have worn out. Memory is of the order N. What is found is
what `FullSearch` finds, bit for bit.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.kernels import Bounds, Moves
from cprime.kernels.native import Floats
from cprime.search.base import Factors
from cprime.search.chunk import Chunk, Remembered
from cprime.search.components import Centers, Components
from cprime.search.lists import without_self

_OTHERS = 3  # centers of a point that have a bound of their own
_CALM = 0.15  # share of points that may move in an iteration for bounds to be worth beginning
_FEW, _MANY = 15, 63  # nearest centers that are looked up for each, in low dimension and in others
_LOW = 4  # dimensions in which few centers are near one
_UP = 1 + 1e-6  # more than the rounding of a sum of squares in double


class BoundedSearch:
    """The exact search by bounds. The first iterations, in which many points move, look at all C."""

    exact = True

    def __init__(self, n_threads: int | None = None):
        self.n_threads = n_threads
        self._lists: NDArray[np.int32] | None = None

    def start(self, chunks: Sequence[Chunk], components: Components, n_kept: int) -> None:
        self._lists = None
        for chunk in chunks:
            chunk.remembered = None

    def refresh(self, components: Components) -> None:
        """Bounds know themselves of which centers they are."""

    def find(
        self, chunk: Chunk, components: Components, n_kept: int, factors: Factors | None = None
    ) -> tuple[NDArray, Floats, int]:
        if factors is not None:
            raise ValueError("the bounded search compares plain distances, got factors")
        centers = components.centers
        if n_kept > 1 or len(centers) == 1 or not isinstance(components, Centers):
            kept, costs = components.best(chunk.points, n_kept, hint=chunk.kept)
            return kept, costs, len(chunk.points) * len(centers)
        if chunk.remembered is None:
            return self._find_all(chunk, components)
        bounds, before = chunk.remembered
        drift = np.sqrt(np.square(centers.astype(np.float64) - before).sum(axis=1)) * _UP
        moves = self._moves(centers, len(chunk.points), _rounded_up(drift, centers.dtype))
        distances, n_evaluations = kernels.nearest_bounded(
            chunk.points, centers, bounds, moves, n_threads=self.n_threads
        )
        chunk.remembered = Remembered(bounds, centers)
        return bounds.labels[:, np.newaxis].copy(), distances[:, np.newaxis], n_evaluations

    def _find_all(self, chunk: Chunk, components: Centers) -> tuple[NDArray, Floats, int]:
        """As the full search; bounds begin once few points move."""
        centers, n = components.centers, len(chunk.points)
        kept, distances = components.best(chunk.points, 1, hint=chunk.kept)
        if chunk.kept is not None and np.count_nonzero(kept != chunk.kept) <= _CALM * n:
            lists, _ = self._neighbors(centers, n)
            labels = kept[:, 0].copy()
            others = np.ascontiguousarray(without_self(lists)[:, :_OTHERS][labels])
            nothing = np.zeros(others.shape, dtype=centers.dtype), np.zeros(n, dtype=centers.dtype)
            chunk.remembered = Remembered(Bounds(labels, others, *nothing), centers)
        return kept, distances, n * len(centers)

    def _neighbors(self, centers: Floats, n_points: int) -> tuple[NDArray[np.int32], Floats]:
        """The nearest centers of each, itself among them, and their squared distances, in rising order: (C, G).

        All C of them where C² is small beside what is done for the points.
        """
        C, D = centers.shape
        G = min(_FEW if D <= _LOW else _MANY, C)
        if G == C or (D > _LOW and n_points > C * C):
            squared = kernels.min_distances(centers, centers, n_threads=self.n_threads)
            order = np.argsort(squared, axis=1)
            return order.astype(np.int32), np.take_along_axis(squared, order, axis=1)
        self._lists, squared = kernels.nearest(centers, centers, G, hint=self._lists, n_threads=self.n_threads)
        return self._lists, squared

    def _moves(self, centers: Floats, n: int, drift: Floats) -> Moves:
        """What moves of `drift` (C,) do to bounds; see `kernels.Moves`."""
        lists, squared = self._neighbors(centers, n)
        C, G = lists.shape
        reach, spread = np.empty((2, C, G + 1), dtype=centers.dtype)
        share = 1 - (centers.shape[1] + 12) * np.finfo(centers.dtype).eps
        reach[:, :G] = np.sqrt(squared) * share
        reach[:, G] = np.inf
        moved = np.where(lists == np.arange(C)[:, np.newaxis], -np.inf, drift[lists])
        spread[:, 0], spread[:, 1:] = -np.inf, np.maximum.accumulate(moved, axis=1)
        most = drift.argmax()
        spread[:, G] = drift[most]
        spread[most, G] = np.delete(drift, most).max()
        return Moves(drift, reach, spread)

    def lists(self) -> None:
        return None


def _rounded_up(values: NDArray[np.float64], dtype: np.dtype) -> Floats:
    """The values in a shorter format, none of them less."""
    return (values * (1 + np.finfo(dtype).eps)).astype(dtype)
