"""Distances of all points and components, and searches for the nearest ones."""

import numpy as np

from cprime.kernels import arguments as check
from cprime.kernels.bounds import MARGIN
from cprime.kernels.cells import search_cells


def costs_of(X, centers, factors=None, offsets=None, dof=None):
    """Return the cost of every row under every component, in float64 and from differences: (n, C).

    The cost is ‖x_n − μ_c‖² or, with factors A_c (C, D) or (C, D, D), offset_c + ‖A_c (x_n − μ_c)‖² for Gaussians and
    offset_c + (ν_c + D) log(1 + ‖A_c (x_n − μ_c)‖²/ν_c) for t distributions with degrees of freedom ν_c (dof).
    """
    rows, costs = np.ascontiguousarray(X, dtype=np.float64), np.empty((len(X), len(centers)))
    for c, center in enumerate(centers.astype(np.float64)):
        differences, offset = rows - center, 0.0
        if factors is not None and offsets is not None:
            A, offset = factors[c].astype(np.float64), float(offsets[c])
            differences = differences * A if A.ndim == 1 else differences @ A.T
        squares = np.square(differences).sum(axis=1)
        if dof is not None:
            squares = (float(dof[c]) + X.shape[1]) * np.log1p(squares / float(dof[c]))
        costs[:, c] = offset + squares
    return costs


def best(X, means, factors, offsets, dof, kept, costs, n_threads):
    """Find the components of least cost for every row of X in NumPy, by sorting all costs.

    Components are centers `means` (C, D) or, with the parameters `factors` and `offsets`, Gaussians; with `dof`, they
    are t distributions. Their ids are written to `kept` (n, H), and their costs to `costs` (n, H).
    """
    every = costs_of(X, means, factors, offsets, dof).astype(X.dtype)
    kept[:] = np.argsort(every, axis=1, kind="stable")[:, : kept.shape[1]]
    costs[:] = np.take_along_axis(every, kept, axis=1)


def distances(X, candidates, current, out, n_threads):
    """Write squared distances of n rows to L candidates, limited by `current`, to `out` (L, n); computed in NumPy."""
    out[:] = costs_of(X, candidates).T.astype(X.dtype)
    if current is not None:
        np.minimum(out, current, out=out)


def potentials(squares, candidates, closest, sample_weight, out, n_threads):
    """Compute for each candidate the error J if it is the next center, in NumPy; write the errors to `out` (m,).

    squares (L, n): squared distances of n points to L candidates    candidates (m,): rows of `squares` to use, or None
    closest (n,): squared distance of each point to the nearest center chosen so far
    """
    least = np.minimum(squares if candidates is None else squares[candidates], closest).astype(np.float64)
    out[:] = least @ (np.ones(len(closest)) if sample_weight is None else sample_weight)


def spread_out(candidates, offsets, weights, n_chosen, uniform, out, n_threads):
    """Choose rows by greedy D² sampling in NumPy, group by group and choice by choice; write their indices to `out`.

    Group g consists of the rows offsets[g] … offsets[g + 1] − 1 of `candidates`, with their weights; n_chosen[g] rows
    of it are chosen. uniform: random numbers in [0, 1), one row for each choice, one column for each row tried
    """
    chosen: list[int] = []
    for g, n in enumerate(n_chosen):
        rows, mass = (a[offsets[g] : offsets[g + 1]] for a in (candidates, weights))
        squared = costs_of(rows, rows).astype(rows.dtype)
        closest, taken = np.full(len(rows), np.inf), []
        for i in range(n):
            cumulative = np.cumsum(mass * closest if i else mass)
            if not cumulative[-1] > 0:
                taken += [j for j in range(len(rows)) if j not in taken][: n - i]
                break
            drawn = np.searchsorted(cumulative, np.asarray(uniform[len(chosen) + i] * cumulative[-1]), "right")
            tried = np.minimum(drawn, len(rows) - 1)
            best = tried[np.minimum(closest, squared[tried]).dot(mass).argmin()]
            taken.append(best)
            closest = np.minimum(closest, squared[best])
        chosen += taken
    out[:] = chosen


def extent(X, origin, n_threads):
    """Return the greatest |x_nk| and |x_nk − origin_k| over rows n and columns k of X, computed in NumPy."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.abs(X).max()), float(np.fmax.reduce(np.abs(X - origin), axis=None))


def products(X, B, shift, out, n_threads):
    """Compute the products (X − shift) Bᵀ in NumPy, in float64, and write them to `out`."""
    rows = np.ascontiguousarray(X, dtype=np.float64) - (0 if shift is None else shift)
    out[:] = rows @ np.ascontiguousarray(B, dtype=np.float64).T


def nearest_bounded(X, centers, drift, reach, spread, distances, labels, others, lows, rest, n_threads):
    """Find nearest centers by bounds in NumPy, row by row; return the number of evaluated distances.

    drift, reach, spread: upper bounds of the moves of centers, as in `Moves`
    distances (n,): array to which the squared distances to nearest centers are written
    These arrays are updated in place: labels (n,), nearest centers; others, lows (n, B), other centers and the lower
    bounds of their distances; rest (n,), lower bound of the distances to all remaining centers.
    """
    C, n_others = len(centers), others.shape[1]
    check.ids(C, **{"bounds.labels": (labels, 0), "bounds.others": (others, 0)})
    up, down = 1 + MARGIN * np.finfo(X.dtype).eps, 1 - MARGIN * np.finfo(X.dtype).eps
    n_evaluations = 0
    for n, squared in enumerate(costs_of(X, centers).astype(X.dtype)):
        own = int(labels[n])
        u = np.sqrt(squared[own]) * up
        n_evaluations += 1
        new_rest = np.minimum(rest[n] - spread[own], reach[own] - u).max()
        new_lows, new_others = lows[n] - drift[others[n]], others[n].copy()
        for b in range(n_others):
            if new_lows[b] > np.sqrt(squared[own]) * up:
                continue
            n_evaluations += 1
            if (squared[new_others[b]], new_others[b]) < (squared[own], own):
                own, new_others[b] = int(new_others[b]), own
            new_lows[b] = np.sqrt(squared[new_others[b]]) * down
        if not new_rest > np.sqrt(squared[own]) * up:
            n_evaluations += C
            own, *new_others = np.argsort(squared, kind="stable")[: n_others + 1]
            new_lows = np.sqrt(squared[new_others]) * down
            new_rest = new_lows.max(initial=0.0) if n_others + 1 < C else np.inf
        labels[n], others[n], lows[n], rest[n], distances[n] = own, new_others, new_lows, new_rest, squared[own]
    return n_evaluations


class CenterCells:
    """NumPy version (twin) of the compiled class that searches centers in cells (groups of centers)."""

    def __init__(self, places, begins, between, n_threads):
        g = len(begins) - 1
        if g < 1 or begins[0] != g or begins[-1] != len(places) or len(places) == g or (np.diff(begins) < 0).any():
            raise ValueError("begins must rise from 0 to the number of centers")
        if between.shape != (g, g):
            raise ValueError("between must have a row and a column for each cell")
        self.places, self.begins, self.between = places, begins, between

    def find(self, X, n_searched, kept, squares, n_threads):
        """Find near centers of every row in its `n_searched` nearest cells; return the number of evaluated distances.

        The ids of the centers found are written to `kept` (n, n_kept), and their squared distances to `squares` (same
        shape), nearest first.
        """

        def improve(rows, cells, kept, squares):
            for n, cell in zip(rows, cells, strict=True):
                inside = np.arange(self.begins[cell], self.begins[cell + 1])
                squared = costs_of(X[n : n + 1], self.places[inside])[0].astype(X.dtype)
                ids, all_squares = np.append(kept[n], inside), np.append(squares[n], squared)
                first = np.lexsort((ids, all_squares))[: kept.shape[1]]
                kept[n], squares[n] = ids[first], all_squares[first]
            return int(np.diff(self.begins)[cells].sum())

        to_cells = costs_of(X, self.places[: self.begins[0]]).astype(X.dtype)
        cells = np.argsort(to_cells, axis=1, kind="stable")[:, :n_searched].astype(np.int32)
        near = cells, np.take_along_axis(to_cells, cells, axis=1)
        kept[:], squares[:], n = search_cells(near, self.between, improve, kept.shape[1])
        return n
