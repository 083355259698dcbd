"""The library's own search: cluster-major, on lists of neighbours, renewed only where points move.

Every point compares the component it is in with that one's neighbours; the points of a component share their
candidates, which makes the E-step a few dense tiles (`kernels.reassign`, `keep_nearest`, `keep_best`). A point that
keeps several components looks at the neighbours of the best, and every other time at those of another. Lists come from
all C² pairs while these are few beside N, from neighbours of neighbours beyond. An audit searches a sample of points
exactly, and doubles the lists while what the search misses costs more than a small share of J.
"""

import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.kernels.native import Floats
from cprime.search.base import Factors
from cprime.search.cells import Cells
from cprime.search.chunk import Chunk
from cprime.search.components import Centers, Components
from cprime.search.lists import refined_lists, with_self, without_self

logger = logging.getLogger("cprime")

_EXACT_LISTS = 32768  # most components whose lists come from all C² distances
_STALE = 0.3  # share of points that may move before lists are renewed
_AUDITS = (6, 10)  # iterations after which a sample is searched exactly
_AUDIT_POINTS = 1024
_MISSED = 0.007  # share of J that a search may miss before its lists are doubled
_FIRST_NEIGHBORS, _MOST_NEIGHBORS = 33, 65  # the component itself, and one or two tiles; Gaussians begin with two


class _Seen(NamedTuple):
    """What the last E-step looked at."""

    centers: Floats
    factors: Factors | None
    lists: NDArray[np.int32]


class GraphSearch:
    """Neighbours of the winner, and what is kept already.

    n_neighbors: G, or None to begin with one tile of neighbours and let the audit decide
    """

    exact = False

    def __init__(self, n_neighbors: int | None, random_state: int = 0, n_threads: int | None = None):
        self.given = n_neighbors
        self.n_neighbors = 0
        self.n_threads = n_threads
        self.rng = np.random.RandomState(random_state)
        self._lists: NDArray[np.int32] | None = None
        self._moved = 0.0
        self._iteration = 0
        self._seen: _Seen | None = None
        self._touched = np.zeros(0, dtype=bool)

    def start(self, chunks: Sequence[Chunk], components: Components, n_kept: int) -> None:
        centers = components.centers
        self._iteration, self._moved, self._seen = 0, 0.0, None
        self._touched = np.zeros(len(centers), dtype=bool)
        cells = None
        if len(centers) > _EXACT_LISTS or any(chunk.kept is None for chunk in chunks):
            cells = Cells(centers, self.n_threads)
        first = _FIRST_NEIGHBORS if isinstance(components, Centers) else _MOST_NEIGHBORS
        self.n_neighbors = max(min(self.given or first, len(centers)), n_kept)
        if cells is not None and len(centers) > _EXACT_LISTS:
            lists = without_self(cells.lists(self.n_neighbors))
            self._lists = refined_lists(centers, lists, self.n_neighbors, self.n_threads)
        else:
            self._lists = components.lists(self.n_neighbors)
        for chunk in chunks:
            if chunk.kept is None:
                assert cells is not None
                chunk.kept = cells.find(chunk.points)[0][:, np.newaxis]
            if n_kept > 1:
                chunk.kept, _ = components.keep(chunk.points, self._lists, chunk.kept, n_kept)

    def refresh(self, components: Components) -> None:
        if self._moved < _STALE:
            return
        assert self._lists is not None
        if len(components.centers) <= _EXACT_LISTS:
            self._lists = components.lists(self.n_neighbors, self._lists)
        else:
            self._lists = refined_lists(components.centers, self._lists, self.n_neighbors, self.n_threads)
        self._moved = 0.0

    def find(
        self, chunk: Chunk, components: Components, n_kept: int, factors: Factors | None = None
    ) -> tuple[NDArray, Floats, int]:
        assert chunk.kept is not None
        assert self._lists is not None
        centers = components.centers
        before = chunk.kept[:, 0]
        looked_at = 1 + (self._lists >= 0).sum(axis=1)
        if n_kept > 1 or not isinstance(components, Centers):
            previous = self._led(chunk.kept)
            kept, distances = components.keep(chunk.points, self._lists, previous, n_kept)
            evaluations = len(before) * (n_kept - 1)
        else:
            active = self._stirred(chunk, centers, factors)
            inside, outside = factors or (None, None)
            labels, nearest = kernels.reassign(
                chunk.points,
                centers,
                self._lists,
                before,
                inside,
                outside,
                active=active,
                known=None if active is None or chunk.distances is None else chunk.distances[:, 0],
                n_threads=self.n_threads,
            )
            kept, distances, evaluations = labels[:, np.newaxis], nearest[:, np.newaxis], 0
            if active is not None:
                looked_at *= active
        self._touched[:] = False
        gone = kept[:, 0] != before
        self._touched[before[gone]] = self._touched[kept[gone, 0]] = True
        evaluations += int(np.bincount(before, minlength=len(centers)) @ looked_at)
        self._moved += np.count_nonzero(gone) / len(gone)
        self._iteration += 1
        if self._iteration in _AUDITS and self.given is None and self.n_neighbors < min(_MOST_NEIGHBORS, len(centers)):
            evaluations += self._audit(chunk.points, kept[:, 0], components)
        return kept, distances, evaluations

    def _led(self, kept: NDArray[np.int32]) -> NDArray[np.int32]:
        """K(n) with the component first whose neighbours are looked at: the best one, and every other time another."""
        turn, other = divmod(self._iteration, 2)
        place = 1 + turn % max(kept.shape[1] - 1, 1)
        if not other or place >= kept.shape[1]:
            return kept
        led = kept.copy()
        led[:, [0, place]] = led[:, [place, 0]]
        missing = led[:, 0] < 0
        led[missing] = kept[missing]
        return led

    def _stirred(self, chunk: Chunk, centers: Floats, factors: Factors | None) -> NDArray[np.bool_] | None:
        """Components whose points have anything new to look at, None for all.

        A point stays where it is as long as its component, that one's neighbours, their factors and the list are those
        of the last E-step, and the component has won and lost nothing since.
        """
        assert self._lists is not None
        now = _Seen(centers, factors, self._lists)
        last, self._seen = self._seen, now
        if (
            last is None
            or chunk.distances is None
            or last.lists is not now.lists
            or (last.factors is None) != (factors is None)
        ):
            return None
        changed = self._touched | (centers != last.centers).any(axis=1)
        if factors is not None and last.factors is not None:
            changed |= (factors.inside != last.factors.inside) | (factors.outside != last.factors.outside)
        if changed.all():
            return None
        return changed | np.append(changed, False)[self._lists].any(axis=1)  # −1 is the one appended

    def _audit(self, points: Floats, labels: NDArray[np.int32], components: Components) -> int:
        """Doubles the lists if a sample of points shows that they miss too much; returns its evaluations."""
        assert self._lists is not None
        C = len(components.centers)
        rows = np.sort(self.rng.choice(len(points), min(_AUDIT_POINTS, len(points)), replace=False))
        sample, label = points[rows], labels[rows, np.newaxis]
        found = components.among(sample, self._lists, label, 1)
        _, truth = components.best(sample, 1, hint=found.kept)
        excess = float((found.distances.astype(np.float64) - truth).sum())
        if excess > _MISSED * components.scale_of(truth):
            self.n_neighbors = min(2 * self.n_neighbors - 1, _MOST_NEIGHBORS, C)
            self._moved = 1.0
            logger.info("audit: lists miss more than %g of J, now %d neighbours", _MISSED, self.n_neighbors)
        return len(rows) * C

    def lists(self) -> NDArray[np.int32]:
        assert self._lists is not None
        return with_self(self._lists)
