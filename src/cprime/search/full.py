"""Every point looks at all C components: Cor. 1 of [L] holds, K(n) are the nearest there are."""

from numpy.typing import NDArray

from cprime import kernels
from cprime.kernels.native import Floats


class FullSearch:
    """The exact search, N·C evaluations an iteration; what was found before only makes it faster."""

    def find(
        self, X: Floats, centers: Floats, n_kept: int, previous: NDArray | None, n_threads: int | None
    ) -> tuple[NDArray, Floats, int]:
        kept, distances = kernels.nearest(X, centers, n_kept, hint=previous, n_threads=n_threads)
        return kept, distances, len(X) * len(centers)
