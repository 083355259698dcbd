"""The papers' searches: a point looks at the lists of all that it keeps, and at some random components [F Alg. 1, 2].

A subclass says where the lists come from.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.kernels.native import Floats
from cprime.search.base import Factors
from cprime.search.cells import Cells
from cprime.search.chunk import Chunk
from cprime.search.components import Components
from cprime.search.lists import random_lists, random_sets, with_self, without_self


class PointMajorSearch:
    """G(n) = ⋃_{c ∈ K(n)} G_c and `n_explore` random components; K(n) becomes the H best of them."""

    exact = False
    needs_evidence = False

    def __init__(
        self,
        n_neighbors: int,
        n_explore: int = 1,
        init_sets: str = "two-level",
        random_state: int = 0,
        n_threads: int | None = None,
    ):
        self.n_neighbors = n_neighbors
        self.n_explore = n_explore
        self.init_sets = init_sets
        self.n_threads = n_threads
        self.rng = np.random.RandomState(random_state)
        self._lists = np.empty((0, 0), dtype=np.int32)

    def start(self, chunks: Sequence[Chunk], components: Components, n_kept: int) -> None:
        C = len(components.centers)
        if self.init_sets == "random":
            self._lists = random_lists(C, self.n_neighbors, self.rng)
            for chunk in chunks:
                chunk.kept = random_sets(len(chunk.points), C, n_kept, self.rng)
            return
        cells = Cells(components.centers, self.n_threads)
        self._lists = without_self(cells.lists(min(max(self.n_neighbors, n_kept), C)))
        for chunk in chunks:
            if chunk.kept is None or chunk.kept.shape[1] != 1:
                chunk.kept = cells.find(chunk.points)[0][:, np.newaxis]
            if n_kept > 1:
                kept = components.among(chunk.points, self._lists, chunk.kept, n_kept).kept
                short = np.flatnonzero(kept[:, -1] < 0)  # where there are fewer than n_kept in the cells around
                if len(short):
                    kept[short] = components.best(chunk.points[short], n_kept)[0]
                chunk.kept = kept

    def refresh(self, components: Components) -> None:
        raise NotImplementedError

    def find(
        self, chunk: Chunk, components: Components, n_kept: int, factors: Factors | None = None
    ) -> tuple[NDArray, Floats, int]:
        if factors is not None:
            raise ValueError("the papers' searches compare plain distances, got factors")
        assert chunk.kept is not None
        shape = (len(chunk.points), self.n_explore)
        extra = self.rng.randint(0, len(components.centers), shape).astype(np.int32)
        found = components.among(chunk.points, self._lists, chunk.kept, n_kept, extra, self.needs_evidence)
        self.learn(found, chunk.sample_weight, components)
        return found.kept, found.distances, int(found.counts.sum(dtype=np.int64))

    def learn(self, found: kernels.Found, sample_weight: NDArray[np.float64] | None, components: Components) -> None:
        """Takes what an E-step has evaluated as evidence of who is near whom."""

    def lists(self) -> NDArray[np.int32]:
        return with_self(self._lists)
