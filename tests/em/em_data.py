"""A few points, components and active sets that tests of E-steps and assignments share."""

import numpy as np

from cprime._utils.random import Key
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import as_rows
from cprime.model import TiedSpherical

N, C, D = 60, 5, 3
KEY = Key(3, 1, 2)


def points(n=N, seed=0):
    return np.random.default_rng(seed).standard_normal((n, D)) * 2


def weights_of(n=N, seed=1):
    """Return weights (n,), some of which are zero."""
    rng = np.random.default_rng(seed)
    return rng.exponential(size=n) * (rng.random(n) > 0.2)


def block(weighted=False, first=0):
    return Block(as_rows(points()), weights_of() if weighted else None, first)


def plain(block):
    """Return the weights w_n of a block, ones if it has none."""
    return np.ones(len(block)) if block.sample_weight is None else block.sample_weight


def model(variance=12.0, floor=1e-20):
    return TiedSpherical(points(C, seed=4), variance, floor)


def squares(X, centers):
    X = X.given() if hasattr(X, "given") else X
    return np.square(X[:, np.newaxis] - centers).sum(axis=2)


def kept(X, centers, n_kept):
    """Return the active set of the n_kept nearest centers of each point, with their squared distances."""
    all_costs = squares(X, centers)
    ids = np.argsort(all_costs, axis=1)[:, :n_kept].astype(np.int32)
    return ActiveSet(ids, np.take_along_axis(all_costs, ids, axis=1))
