"""Rows measured with known Gaussian errors, as in extreme deconvolution (Bovy, Hogg & Roweis 2011).

A row x is a true row plus noise of covariance S. Under a component of mean μ and covariance Σ, with r = x − μ, it has
the covariance T = Σ + S, and its true row the mean μ + ΣT⁻¹r and the covariance Σ − ΣT⁻¹Σ. Moments are those of true
rows, so an M-step estimates the density without noise.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime.kernels.marginals import Doubles, Ids, MarginalCosts, Sums
from cprime.kernels.measures import Floats, GaussianParameters, exact_parts
from cprime.kernels.missing import MarginalRows
from cprime.kernels.rows import Rows
from cprime.kernels.tables import mixed

_LOG_2PI = math.log(2 * math.pi)
_NUMBERS = 2**20  # maximum number of entries of covariances of rows in memory, by which tables are cut


@dataclass(frozen=True, eq=False)
class ReadNoisy:
    """Picklable function that converts an array of rows x beside the entries of their noise S to `NoisyRows`.

    n_features: D, the number of columns of x. D further columns are variances, D² are covariance matrices.
    """

    n_features: int

    def __call__(self, array: Floats) -> "NoisyRows":
        D = self.n_features
        noise = np.ascontiguousarray(array[:, D:], dtype=np.float64)
        shape = (len(array), D) if array.shape[1] == 2 * D else (len(array), D, D)
        return NoisyRows(np.ascontiguousarray(array[:, :D]), noise.reshape(shape))


class NoisyRows(MarginalRows):
    """Rows of an array with the covariances of their noise: variances (n, D) or matrices (n, D, D) [data unit²]."""

    def __init__(self, array: Floats, noise: Doubles):
        super().__init__(array)
        self.noise = noise
        self.nbytes += noise.nbytes

    def __getitem__(self, rows: slice | NDArray, /) -> Self:
        return type(self)(np.ascontiguousarray(self.array[rows]), self.noise[rows])

    def alike(self, array: Floats) -> Self:
        return type(self)(array, self.noise)

    def marginals(self, components: GaussianParameters) -> "NoisyGaussians":
        return NoisyGaussians(components, self.noise.ndim == 2)


class NoisyGaussians(MarginalCosts):
    """Gaussians for noisy rows. The cost of a row is −2 log of its density, the one of true rows with noise added.

    is_diagonal: whether the noise of a row has only variances
    """

    def __init__(self, gaussians: GaussianParameters, is_diagonal: bool):
        self.centers, D = gaussians.means, gaussians.means.shape[1]
        _, self.empty, factors, _ = exact_parts(gaussians)
        self.full = factors is not None
        if factors is None:
            self.covariances = 1 / np.square(gaussians.factors.astype(np.float64))
        else:
            inverses = np.linalg.inv(factors)
            self.covariances = inverses @ inverses.transpose(0, 2, 1)
        self.is_diagonal = is_diagonal and not self.full
        self.n_numbers = D if self.is_diagonal else D * D

    def table(self, points: Any, ids: Ids | slice, origin: NDArray) -> Doubles:
        numbers = np.arange(len(self.centers))[ids].tolist()
        return np.column_stack([self._costs(points, c) for c in numbers])

    def _costs(self, points: NoisyRows, c: int) -> Doubles:
        """Return the costs (n,) of rows under component c."""
        r = np.subtract(points.array, self.centers[c], dtype=np.float64)
        constant = self.empty[c] + r.shape[1] * _LOG_2PI
        if self.is_diagonal:
            total = self.covariances[c] + points.noise
            scaled: Doubles = (np.log(total) + np.square(r) / total).sum(axis=1)
            return constant + scaled
        out, step = np.empty(len(r)), max(1, _NUMBERS // r.shape[1] ** 2)
        for begin in range(0, len(r), step):
            rows = slice(begin, begin + step)
            lower = np.linalg.cholesky(self._matrix(c) + _matrices(points.noise[rows]))
            y = np.linalg.solve(lower, r[rows, :, np.newaxis])[:, :, 0]
            logs = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
            out[rows] = constant + 2 * logs + np.square(y).sum(axis=1)
        return out

    def _matrix(self, c: int) -> Doubles:
        """Return the covariance of component c as a matrix (D, D)."""
        return self.covariances[c] if self.full else np.diag(self.covariances[c])

    def _true(self, points: NoisyRows, c: int) -> tuple[Doubles, Doubles]:
        """Return the mean of each true row minus that of component c (n, D), and its covariance or variances."""
        r = np.subtract(points.array, self.centers[c], dtype=np.float64)
        if self.is_diagonal:
            share = self.covariances[c] / (self.covariances[c] + points.noise)
            return share * r, share * points.noise
        own = self._matrix(c)
        gains = np.linalg.solve(own + _matrices(points.noise), np.broadcast_to(own, (len(r), *own.shape)))
        means = np.einsum("nde,nd->ne", gains, r)
        spread: Doubles = own - own @ gains
        return means, spread

    def add(self, points: Rows, c: int, share: Doubles, sums: Sums) -> None:
        assert isinstance(points, NoisyRows)
        counts, first, second = sums
        counts[c] += share.sum()
        step = max(1, _NUMBERS // points.shape[1] ** 2)
        for begin in range(0, len(points), step):
            rows = slice(begin, begin + step)
            q = share[rows]
            means, spread = self._true(points[rows], c)
            first[c] += q @ means
            if self.full:
                second[c] += (q[:, np.newaxis] * means).T @ means + np.einsum("n,nde->de", q, spread)
            else:
                second[c] += q @ (np.square(means) + (spread if self.is_diagonal else np.einsum("ndd->nd", spread)))

    def imputed(self, points: NoisyRows, ids: Ids, q: Doubles, normal: Doubles | None) -> Doubles:
        """Return the expected true rows (n, D), or random ones.

        ids, q (n, H): components of each row and their responsibilities
        normal (n, D): standard normal numbers; if given, true rows are drawn from the only component (H = 1)
        """

        def true_rows(c: int, rows: NDArray[np.intp]) -> Doubles:
            means, spread = self._true(points[rows], c)
            if normal is not None and self.is_diagonal:
                means += np.sqrt(spread) * normal[rows]
            elif normal is not None:
                values, vectors = np.linalg.eigh(spread)  # covariances may be singular
                means += np.einsum("nde,ne->nd", vectors * np.sqrt(np.maximum(values, 0))[:, np.newaxis], normal[rows])
            return means + self.centers[c]

        return mixed(ids, q, points.shape, true_rows)


def _matrices(noise: Doubles) -> Doubles:
    """Return the covariances of noise as matrices (n, D, D)."""
    return noise[:, :, np.newaxis] * np.eye(noise.shape[1]) if noise.ndim == 2 else noise
