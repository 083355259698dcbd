"""Calls of every kernel, as functions of rows X and a dict g of all other arguments."""

from functools import partial

import numpy as np
from kernel_data import gaussians, moves_between, neighbours, nothing, random_ids, same_bits, weights

from cprime.kernels import CenterCells, FactorAnalysers
from cprime.kernels.distances import potentials
from cprime.kernels.exact import posterior
from cprime.kernels.line import cut_line
from cprime.kernels.partial import changed
from cprime.kernels.rows import gather
from cprime.kernels.student_t_weights import scaled_responsibilities
from cprime.kernels.sums import grouped_order, means, weighted_sum
from cprime.kernels.transport import assign_bounded

SHAPES = ("diag", "full")


def given(n, m, variance=2.0):
    """Return the arguments of the kernels for n rows and centers m (C, D): components, lists, active sets and more."""
    (C, D), dtype, rng = m.shape, m.dtype.type, np.random.default_rng(1)
    costs, moved = np.sort(rng.random((n, 2)), axis=1), m + dtype(0.01)
    kept = np.argsort(rng.random((n, C)), axis=1)[:, :2].astype(np.int32)
    few = min(n, 4)
    return {
        "m": m,
        "moved": moved,
        "variance": variance,
        **{kind: gaussians(C, D, dtype, kind == "full")._replace(means=m) for kind in SHAPES},
        "dof": np.linspace(1, 9, C).astype(dtype),
        "labels": rng.integers(C, size=n).astype(np.int32),
        "lists": neighbours(C, 33),
        "kept": kept,
        "backwards": kept[::-1].copy(),
        "previous": random_ids(n, 3, C),
        "extra": random_ids(n, 1, C, seed=5),
        "costs": costs.astype(dtype),
        "n_kept": min(3, C),
        "q": rng.random(kept.shape),
        "w": weights(n),
        "factors": np.linspace(0.9, 1.1, C).astype(dtype),
        "active": np.arange(C) % 3 > 0,
        "known": np.ones(n, dtype),
        "some": np.arange(n)[::-3].copy(),
        "all": np.arange(n)[::-1].copy(),
        "candidates": np.arange(C)[::-1].copy(),
        "distances": rng.random((C, n)).astype(dtype),
        "ends": np.array([0, n]),
        "drawn": np.array([few]),
        "uniform": rng.random((few, 2)),
        "line": np.arange(n) + rng.random(n) / 2,
        "least": np.zeros(C, int),
        "most": np.bincount(kept[:, 0], minlength=C),
        "prices": np.zeros(C),
        "bounds": nothing(n, C, min(2, C - 1), dtype),
        "here": moves_between(m, m),
        "there": moves_between(m, moved, 4),
        "analysers": analysers(C, D, m),
        "copy": lambda array: np.array(array, order="C"),  # of arrays that a kernel changes or takes in one layout
        "cells": (np.concatenate([m[:2], m]), np.array([0, C // 2, C]), np.full((2, 2), D**0.5, dtype)),
    }


def analysers(C, D, m):
    rng = np.random.default_rng(3)
    loadings = 0.1 * rng.random((C, 2, D), dtype=m.dtype)
    return FactorAnalysers(m, 1 + rng.random((C, D)), loadings, np.tile(np.eye(2), (C, 1, 1)), rng.random(C))


def placed(g, place):
    """Return arguments whose arrays, also those in tuples, the function `place` has copied to a place in memory."""
    if isinstance(g, dict):
        return {name: placed(value, place) for name, value in g.items()}
    if isinstance(g, np.ndarray):
        return place(g)
    if isinstance(g, tuple):
        parts = [placed(value, place) for value in g]
        return g._make(parts) if hasattr(g, "_make") else tuple(parts)
    return g


def bounded(X, g):
    """Return the results of two calls with the same bounds, between which the centers move."""
    bounds = placed(g["bounds"], g["copy"])
    first = X.nearest_bounded(g["m"], bounds, g["here"])
    return first, X.nearest_bounded(g["moved"], bounds, g["there"]), bounds


SPARSE = {
    "nearest": lambda X, g: X.nearest(g["m"]),
    "nearest, several kept": lambda X, g: X.nearest(g["m"], g["kept"].shape[1]),
    "nearest, hinted": lambda X, g: X.nearest(g["m"], g["kept"].shape[1], hint=g["kept"]),
    "assign": lambda X, g: [X.assign(g["m"]), X.assign(g["m"], g["labels"][:, None], g["w"])],
    "reassign": lambda X, g: [
        X.reassign(g["m"], g["lists"], g["labels"]),
        X.reassign(g["m"], g["lists"], g["labels"], active=g["active"], known=g["known"]),
    ],
    "reassign, exchange": lambda X, g: X.reassign(g["m"], g["lists"], g["labels"], g["factors"], g["factors"]),
    "own_distances": lambda X, g: X.own_distances(g["m"], g["labels"]),
    "search_lists": lambda X, g: X.search_lists(
        g["m"], g["lists"], g["previous"], g["n_kept"], g["extra"], evidence=True, sample_weight=g["w"]
    ),
    "distances": lambda X, g: [X.distances(g["m"]), X.distances(g["m"][:5], g["known"])],
    "extent": lambda X, g: [X.extent(), X.extent(g["m"][0])],
    "accumulate": lambda X, g: [
        X.accumulate(g["kept"], g["q"], g["w"], n_components=len(g["m"])),
        X.accumulate(g["labels"][:, None], n_components=10 * len(g["m"])),
        X.accumulate(g["kept"][g["some"], :1], None, g["w"], n_components=len(g["m"]), rows=g["some"]),
    ],
    "along": lambda X, g: X.along(g["m"], g["moved"], g["labels"]),
    "spread_out": lambda X, g: X.spread_out(g["ends"], g["w"], g["drawn"], g["uniform"]),
    "log_sum_exp": lambda X, g: X.log_sum_exp(g["m"], g["variance"]),
    "normalized": lambda X, g: [
        (units.dense(), lengths) for units, lengths in (X.normalized(), X.normalized(g["all"]))
    ],
    "projected": lambda X, g: [X.projected(g["m"][0].astype(np.float64)), X.projected(*g["m"][:2].astype(np.float64))],
}
DENSE = {
    "nearest_bounded": bounded,
    "cells": lambda X, g: [
        CenterCells(*placed(g["cells"], g["copy"]), kernels=X.kernels).find(X, n_kept, 2)[:2] for n_kept in (1, 2)
    ],
    "lloyd": lambda X, g: [
        X.lloyd(g["copy"](X[:2].dense()), 4, 1e-9),
        X.lloyd(g["copy"](X[:1].dense()), 2, 0.5, g["w"] + 0.1, least_shift=1e-9),
    ],
    "top_k": lambda X, g: X.top_k(g["m"], g["lists"], g["previous"], g["n_kept"]),
    "what is kept alone": lambda X, g: X.search_lists(g["m"], g["lists"][:, :0], g["kept"], 2),
    "products": lambda X, g: [X.products(g["m"]), X.products(g["m"], g["m"][0])],
    "jumped": lambda X, g: X.jumped(g["m"], g["w"]),
    "moments": lambda X, g: [
        [
            X.moments(g["m"], g["kept"], g["q"], g["w"], full=full),
            X.moments(g["m"], g["labels"][:, None], full=full),
        ]
        for full in (False, True)
    ],
    "expect_all": lambda X, g: X.expect_all(g["m"], g["variance"], g["w"]),
    "factor_costs": lambda X, g: X.factor_costs(g["analysers"], g["kept"]),
    "top_k_factors": lambda X, g: X.top_k_factors(g["analysers"], g["lists"], g["previous"], g["n_kept"]),
    "factor_moments": lambda X, g: [
        X.factor_moments(g["m"], None, g["analysers"].loadings, None, g["kept"], g["q"], g["w"]),
        X.factor_moments(g["m"], *g["analysers"][1:4], g["labels"][:, None]),
    ],
    "principal": lambda X, g: X.principal(g["w"] + 0.1, np.zeros(X.shape[1])),
    "widened": lambda X, g: X.widened().distances(np.pad(g["m"], ((0, 0), (0, 1)))),
    "ordered": lambda X, g: X.ordered(g["all"]).dense(),
    "alike": lambda X, g: X.alike(g["m"]).dense(),
    "imputed": lambda X, g: X.imputed(g["diag"], g["kept"], g["q"]),
    "converted": lambda X, g: [X.converted(n).dense() for n in (len(X), 2**40)],
    "times": lambda X, g: X.times(g["m"][0]).dense(),
    "first": lambda X, g: X.first(),
}


def of_gaussians(shape, tails):
    """Return calls for Gaussians, or t distributions (`tails`), with covariance matrices of a shape."""

    def components(g):
        return g[shape]._replace(dof=g["dof"]) if tails else g[shape]

    return {
        f"{name}, {shape}{', tails' * tails}": partial(call, components)
        for name, call in {
            "nearest": lambda its, X, g: X.nearest(its(g), 2),
            "top_k": lambda its, X, g: X.top_k(its(g), g["lists"], g["previous"], g["n_kept"]),
            "search_lists": lambda its, X, g: X.search_lists(
                its(g), g["lists"], g["previous"], g["n_kept"], g["extra"], evidence=True, sample_weight=g["w"]
            ),
            "what is kept alone": lambda its, X, g: X.search_lists(its(g), g["lists"][:, :0], g["kept"], 2),
            "respond": lambda its, X, g: X.respond(its(g), g["w"]),
            "responsibilities": lambda its, X, g: X.responsibilities(its(g)),
        }.items()
    }


def pull(X, g):
    components = g["diag"]._replace(dof=g["dof"])
    costs = g["copy"](X.search_lists(components, g["lists"][:, :0], g["kept"], 2).costs)
    return scaled_responsibilities(components, g["kept"], costs, g["q"], g["w"], kernels=X.kernels)


def mean(X, g):
    sums = placed(X.accumulate(g["kept"], g["q"], g["w"], n_components=len(g["m"])), g["copy"])
    return means(*sums, g["m"], kernels=X.kernels)


ARRAYS = {
    "gather": lambda X, g: gather(X, g["some"]),
    "posterior": lambda X, g: posterior(g["costs"], -0.5, kernels=X.kernels),
    "potentials": lambda X, g: potentials(
        g["distances"], g["known"], g["w"], candidates=g["candidates"], kernels=X.kernels
    ),
    "changed": lambda X, g: changed(g["kept"], g["backwards"], kernels=X.kernels),
    "grouped_order": lambda X, g: grouped_order(g["labels"], len(g["m"]), kernels=X.kernels),
    "cut_line": lambda X, g: cut_line(g["line"], g["w"] + 1, min(len(X), 50), kernels=X.kernels),
    "assign_bounded": lambda X, g: assign_bounded(
        g["kept"], g["costs"], g["least"], g["most"], g["prices"], kernels=X.kernels
    ),
    "scaled_responsibilities": pull,
    "means": mean,
    "weighted_sum": lambda X, g: weighted_sum(g["known"], g["w"], kernels=X.kernels),
}
GAUSSIANS = {
    name: call for shape in SHAPES for tails in (False, True) for name, call in of_gaussians(shape, tails).items()
}
CALLS = SPARSE | DENSE | GAUSSIANS | ARRAYS


def flat(found):
    """Return all arrays and numbers in a nested result as a flat list."""
    if isinstance(found, list | tuple):
        return [one for part in found for one in flat(part)]
    return [] if found is None else [np.asarray(found)]


def results(X, g, names=CALLS):
    """Return the arrays of the results of the calls of the given names."""
    return {name: flat(CALLS[name](X, g)) for name in names}


def different(left, right):
    """Return the names of the results that are not bit-identical."""
    return [name for name in left if not same_bits(tuple(left[name]), tuple(right[name]))]
