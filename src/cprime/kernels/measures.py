"""What points are compared with: centers, by squared distances, or Gaussians, by costs; and both in plain NumPy."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]


class Gaussians(NamedTuple):
    """Components whose cost for a point x is offset_c + ‖A_c (x − μ_c)‖², −2 log p(c, x) in (31) of Lücke & Forster.

    means (C, D)    factors: A_c, its diagonal (C, D) or a lower triangle with zeros above (C, D, D)    offsets (C,);
    all of the dtype of the data.
    """

    means: Floats
    factors: Floats
    offsets: Floats


Measure = Floats | Gaussians  # an array are centers (C, D), compared by squared distances


def costs_of(
    X: NDArray, centers: NDArray, factors: NDArray | None = None, offsets: NDArray | None = None
) -> NDArray[np.float64]:
    """What every component costs every row, in float64 and from differences: (n, C).

    ‖x_n − μ_c‖², or offset_c + ‖A_c (x_n − μ_c)‖², A_c a diagonal (D,) or a matrix (D, D)
    """
    rows, costs = np.ascontiguousarray(X, dtype=np.float64), np.empty((len(X), len(centers)))
    for c, center in enumerate(centers.astype(np.float64)):
        differences, offset = rows - center, 0.0
        if factors is not None and offsets is not None:
            A, offset = factors[c].astype(np.float64), float(offsets[c])
            differences = differences * A if A.ndim == 1 else differences @ A.T
        costs[:, c] = offset + np.square(differences).sum(axis=1)
    return costs
