"""k-means with jumps of centers, which leave local optima of the error J.

J is the sum of weighted squared distances of points to their nearest centers. A jump removes a center whose removal
raises J little, and places it in a cluster whose division lowers J much.

Removal of the center μ_a of cluster a, of weight W_a, raises J by at most the lesser of two numbers. The first is
‖μ_a − μ_b‖² / (1/W_a + 1/W_b), the increase if a is united with another cluster b (Ward 1963). The second is
Σ w (d₂² − d₁²), the increase if each point of a, of weight w, at distance d₁ from its center, is reassigned to its
second nearest center at distance d₂. A cut of a cluster into parts of weights W₊, W₋ and means μ₊, μ₋ lowers J by
‖μ₊ − μ₋‖² / (1/W₊ + 1/W₋).

First, several jumps that certainly lower J are made at once, in a few rounds. Then single jumps are tried on the points
around the two clusters, like random swaps (Fränti 2018), but in descending order of the predicted decrease of J. The
search ends when several consecutive single jumps have failed.
"""

import numpy as np

from cprime._utils.threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.measures import Floats


def jumped(
    X: CoreRows,
    centers: Floats,
    sample_weight: Floats | None = None,
    *,
    n_tries: int = 5,
    n_iterations: int = 30,
    tol: float = 1e-3,
    n_threads: int | None = None,
) -> tuple[Floats, float]:
    """Return centers (C, D) improved by jumps and k-means steps, and their error J = Σ w ‖x − μ‖² (weights w).

    A jump removes a center whose removal raises J little, and places it in another cluster. Steps before single jumps,
    and after the last one, have momentum: centers are extrapolated beyond the means, as in `em.Exchange`.
    n_tries: number of consecutive single jumps that may fail before the search ends; 0 makes only jumps that certainly
    lower J
    n_iterations: number of Lloyd's iterations on the points around each single jump
    tol: the last steps end once one of them lowers J by at most this share of J, 1e-3 at most
    """
    centers = check.matrix(centers, "centers", X, 1).copy()
    if len(centers) < 2:
        raise ValueError(f"centers must be two at least, got {len(centers)}")
    weights, threads = check.array(sample_weight, "sample_weight", np.float64, len(X)), resolve_threads(n_threads)
    n_iterations = check.count(n_iterations, "n_iterations")
    return centers, X.kernels.jump(X.core, weights, centers, n_tries, n_iterations, float(tol), threads)
