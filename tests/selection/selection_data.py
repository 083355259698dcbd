"""Data with a known number of components, used by several tests of selection."""

import numpy as np


def apart(C, D, n_per_cluster=100, seed=0, least=7.0, equal=True, dtype=np.float64):
    """Return points and labels of unit Gaussians whose means are at least `least` apart (rejection from a cube)."""
    rng = np.random.default_rng(seed)
    side, places = least * max(1.3 * C ** (1 / D), 1.5), []
    while len(places) < C:
        place = rng.uniform(0, side, D)
        if all(np.linalg.norm(place - other) >= least for other in places):
            places.append(place)
        side *= 1.001
    sizes = np.ones(C) if equal else rng.uniform(0.4, 1.6, C)
    labels = rng.choice(C, size=C * n_per_cluster, p=sizes / sizes.sum())
    return (np.array(places)[labels] + rng.standard_normal((len(labels), D))).astype(dtype), labels
