"""What every search offers to the EM loop."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from numpy.typing import NDArray

from cprime.kernels.native import Floats
from cprime.search.chunk import Chunk
from cprime.search.components import Components


class Factors(NamedTuple):
    """What a squared distance is multiplied by before components are compared; both (C,) and >= 0.

    inside: for the component that a point is in    outside: for any other
    """

    inside: NDArray
    outside: NDArray


class Search(Protocol):
    """Finds, for every point, components that are good for it.

    Neighbour lists are global state and stay with the search; kept sets are per-point state and stay with the chunk.
    An iteration is `refresh` with the new components, then `find` for every chunk.
    """

    exact: bool  # whether what is found are the best of all C

    def start(self, chunks: Sequence[Chunk], components: Components, n_kept: int) -> None:
        """Before the first iteration: gives every chunk kept sets, where the search needs some."""
        ...

    def refresh(self, components: Components) -> None:
        """Before the E-steps of an iteration: brings the neighbour lists up to date."""
        ...

    def find(
        self, chunk: Chunk, components: Components, n_kept: int, factors: Factors | None = None
    ) -> tuple[NDArray, Floats, int]:
        """New kept sets (n, H) int32, best first, their costs (n, H), and the number of evaluations."""
        ...

    def lists(self) -> NDArray | None:
        """G_c of every component as (C, G) int32, c itself first, −1 behind the last; None where all are looked at."""
        ...
