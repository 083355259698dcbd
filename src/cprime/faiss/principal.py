"""Principal coordinates: coordinates of vectors along the directions of greatest variance."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime import KMeans
from cprime.estimators.opening import opened
from cprime.faiss.vectors import Vectors
from cprime.kernels import Dense, computing
from cprime.model.scatter import ScatterOf
from cprime.sources import Source
from cprime.sources.derived import DerivedSource


@dataclass(frozen=True)
class Coordinates:
    """Coordinate system: x = mean + Σ_j y_j a_j with coordinates y_j and orthonormal directions a_j.

    mean (d,)    directions (d, d): row j is a_j, in decreasing order of variance
    """

    mean: NDArray[np.float64]
    directions: NDArray[np.float64]

    @classmethod
    def principal(cls, X: Vectors, weights: NDArray | None, n_threads: int | None) -> Self:
        """Return `Coordinates` along the eigenvectors of X's covariance matrix, in decreasing order of variance.

        X (n, d) is read once, and validated at the same time. weights (n,) or None
        """
        with computing(n_threads):
            scatter = opened(KMeans(), X, weights).each(ScatterOf(full=True))
        squares = np.asarray(scatter.squares)
        _, vectors = np.linalg.eigh((squares + squares.T) / (2 * scatter.weight))
        return cls(scatter.mean, np.ascontiguousarray(vectors.T[::-1]))

    def first(self, X: Vectors, m: int) -> Vectors:
        """Return the first m coordinates of the vectors X (n, d).

        The result is a source if X is a source, otherwise an array (n, m).
        """
        if isinstance(X, Source):
            return _CoordinatesSource(X, self, m)
        return self._of(X, m)

    def vectors(self, y: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the vectors (k, d) whose first m coordinates are y (k, m) and whose other coordinates are 0."""
        return (self.mean + y.astype(np.float64) @ self.directions[: y.shape[1]]).astype(np.float32)

    def _of(self, X: NDArray[np.float32], m: int) -> NDArray[np.float32]:
        directions, mean = self.directions[:m].astype(np.float32), self.mean.astype(np.float32)
        return np.asarray(Dense(X).products(directions, mean))


class _CoordinatesSource(DerivedSource):
    """Source whose rows are the first m principal coordinates of the rows of another source, in the same chunks."""

    def __init__(self, base: Source, coordinates: Coordinates, m: int) -> None:
        super().__init__(base.name, base.n_rows, (np.dtype(np.float32),) * m, None, base._files)
        self._base, self._coordinates = base, coordinates
        self.in_memory = base.in_memory
        self._weights = base._weights
        # Chunks have no more rows than those of `base`, although rows are shorter, because all of its columns are read.
        self._chunk_rows = base.chunk_rows

    def _fill(self, begin: int, end: int, out: NDArray) -> None:
        out[...] = self._found(self._base.read(begin, end))

    def _gather(self, rows: NDArray[np.int64], out: NDArray) -> None:
        out[...] = self._found(self._base.take(rows))

    def _identity(self) -> bytes:
        kept = self._coordinates
        return self._base.fingerprint() + kept.mean.tobytes() + kept.directions[: len(self._kinds)].tobytes()

    def _found(self, X: Any) -> NDArray:
        return self._pick(self._coordinates._of(np.ascontiguousarray(X, dtype=np.float32), len(self._kinds)))
