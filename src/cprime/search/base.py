"""What every search offers to the EM loop."""

from typing import Protocol

from numpy.typing import NDArray

from cprime.kernels.native import Floats


class Search(Protocol):
    """Finds, for every row, components that are near; `find` may be given what it found for the same rows before."""

    def find(
        self, X: Floats, centers: Floats, n_kept: int, previous: NDArray | None, n_threads: int | None
    ) -> tuple[NDArray, Floats, int]:
        """X (n, D), centers (C, D)  ->  kept (n, H) int32 by (distance, id), squared distances (n, H), evaluations."""
        ...
