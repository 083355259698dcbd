"""Every point looks at all C components: Cor. 1 of [L] holds, K(n) are the nearest there are."""

from collections.abc import Sequence

from numpy.typing import NDArray

from cprime import kernels
from cprime.kernels.native import Floats
from cprime.search.base import Factors
from cprime.search.chunk import Chunk


class FullSearch:
    """The exact search, N·C evaluations an iteration; what was found before only makes it faster."""

    exact = True

    def __init__(self, n_threads: int | None = None):
        self.n_threads = n_threads

    def start(self, chunks: Sequence[Chunk], centers: Floats, n_kept: int) -> None:
        """Nothing is needed."""

    def refresh(self, centers: Floats) -> None:
        """There are no lists."""

    def find(
        self, chunk: Chunk, centers: Floats, n_kept: int, factors: Factors | None = None
    ) -> tuple[NDArray, Floats, int]:
        if factors is not None:
            raise ValueError("the full search compares plain distances, got factors")
        kept, distances = kernels.nearest(chunk.X, centers, n_kept, hint=chunk.kept, n_threads=self.n_threads)
        return kept, distances, len(chunk.X) * len(centers)

    def lists(self) -> None:
        return None
