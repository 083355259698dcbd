"""Every point looks at all C components: Cor. 1 of [L] holds, K(n) are the best there are."""

from collections.abc import Sequence

from numpy.typing import NDArray

from cprime.kernels.native import Floats
from cprime.search.base import Factors
from cprime.search.chunk import Chunk
from cprime.search.components import Components


class FullSearch:
    """The exact search, N·C evaluations an iteration; what was found before only makes it faster."""

    exact = True

    def start(self, chunks: Sequence[Chunk], components: Components, n_kept: int) -> None:
        """Nothing is needed."""

    def refresh(self, components: Components) -> None:
        """There are no lists."""

    def find(
        self, chunk: Chunk, components: Components, n_kept: int, factors: Factors | None = None
    ) -> tuple[NDArray, Floats, int]:
        if factors is not None:
            raise ValueError("the full search compares plain distances, got factors")
        kept, costs = components.best(chunk.points, n_kept, hint=chunk.kept)
        return kept, costs, len(chunk.points) * len(components.centers)

    def lists(self) -> None:
        return None
