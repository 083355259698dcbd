"""The compiled kernels of partial searches, beside those of `native.py`; twins in `reference_local.py`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime import _core
from cprime._threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import Floats
from cprime.kernels.native import median_origin


def reassign(
    X: Floats,
    centers: Floats,
    lists: NDArray[np.int32],
    labels: NDArray[np.int32],
    inside: Floats | None = None,
    outside: Floats | None = None,
    share: float = 0.25,
    active: NDArray[np.bool_] | None = None,
    known: Floats | None = None,
    *,
    n_threads: int | None = None,
) -> tuple[NDArray[np.int32], Floats]:
    """One cluster-major partial E-step with C′ = 1: every point compares its component with that one's neighbours.

    A point of component c moves to the neighbour b of least outside_b ‖x − μ_b‖² if that is less than
    inside_c ‖x − μ_c‖²; without factors that is Algorithms 1 and 2 of [F] for C′ = 1.

    X (n, D), centers (C, D), lists (C, G) int32: neighbours without the component itself, −1 behind the last,
    labels (n,) int32, inside and outside (C,) >= 0 or None for ones  ->  labels (n,) int32, squared distances (n,).
    active (C,) bool: only points of these components are visited; the others stay, at their `known` distances (n,).
    lists may be of the first components only, where the points are in these.
    """
    X = check.rows(X, "X")
    centers = check.centers(centers, X)
    lists = check.kept(lists, "lists", (min(len(lists), len(centers)), check.width(lists, "lists")))
    labels = check.kept(labels, "labels", (len(X),))
    inside, outside = (
        None if factor is None else check.factor(factor, name, X, len(centers))
        for factor, name in ((inside, "inside"), (outside, "outside"))
    )
    if not 0 <= share <= 1:
        raise ValueError(f"share must be between 0 and 1, got {share!r}")
    threads = resolve_threads(n_threads)
    if active is None:
        mask, out, distances = None, np.empty_like(labels), np.empty(len(X), dtype=X.dtype)
    else:
        if known is None or known.shape != (len(X),):
            came = None if known is None else known.shape
            raise ValueError(f"known must have shape ({len(X)},) where active is given, got {came}")
        if np.shape(active) != (len(centers),):
            raise ValueError(f"active must have shape ({len(centers)},), got {np.shape(active)}")
        mask = check.contiguous(active, bool).view(np.uint8)
        out, distances = labels.copy(), np.array(known, dtype=X.dtype)
    try:
        _core.reassign(check.core(X), centers, lists, inside, outside, share, mask, labels, out, distances, threads)
    except ValueError:
        check.refuse_components(len(centers), -1, lists=lists)
        check.refuse_components(len(lists), 0, labels=labels)
        raise
    return out, distances


def keep_nearest(
    X: Floats,
    centers: Floats,
    lists: NDArray[np.int32],
    previous: NDArray[np.int32],
    n_kept: int,
    *,
    n_threads: int | None = None,
) -> tuple[NDArray[np.int32], Floats]:
    """One cluster-major partial E-step with C′ >= 1: the `n_kept` nearest in G(n) = K(n) ∪ G_c, c the nearest in K(n).

    X (n, D), centers (C, D), lists (C, G) int32: neighbours without the component itself, −1 behind the last,
    previous (n, H′) int32: K(n), nearest first, −1 is no component  ->  kept (n, H) int32 by (distance, id), −1 where
    G(n) is smaller, squared distances (n, H), infinite there.
    """
    X = check.matrix(X, "X")
    centers = check.centers(centers, X)
    n_kept = check.count(n_kept, "n_kept")
    lists = check.kept(lists, "lists", (len(centers), check.width(lists, "lists")))
    previous = check.kept(previous, "previous", (len(X), max(1, check.width(previous, "previous"))))
    kept, distances = np.empty((len(X), n_kept), dtype=np.int32), np.empty((len(X), n_kept), dtype=X.dtype)
    try:
        _core.keep(X, centers, lists, previous, kept, distances, resolve_threads(n_threads))
    except ValueError:
        check.refuse_components(len(centers), -1, lists=lists, previous=previous)
        check.refuse_components(len(centers), 0, previous=previous[:, :1])
        raise
    return kept, distances


class Evidence(NamedTuple):
    """Sums over the points n that c wins and that have looked at c̃: what (8) averages, of Forster & Lücke (2018).

    A sparse matrix (C, C): row c has the components indices[indptr[c] : indptr[c + 1]], in rising order.
    sums: Σ w_n times a distance, or a cost    weights: Σ w_n    of points of weight 0 there is nothing
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    sums: NDArray[np.float64]
    weights: NDArray[np.float64]


class Found(NamedTuple):
    """What a point-major partial search has found; see `nearest_among`."""

    kept: NDArray[np.int32]
    distances: Floats
    counts: NDArray[np.int32]
    squares: Floats | None
    evidence: Evidence | None


def nearest_among(
    X: Floats,
    centers: Floats,
    lists: NDArray[np.int32],
    previous: NDArray[np.int32],
    n_kept: int,
    extra: NDArray[np.int32] | None = None,
    *,
    costs: tuple[Floats, Floats] | None = None,
    evidence: bool = False,
    sample_weight: Floats | None = None,
    n_threads: int | None = None,
) -> Found:
    """One point-major partial E-step: the `n_kept` nearest in G(n) = K(n) ∪ ⋃_{c ∈ K(n)} G_c ∪ extra(n).

    X (n, D), centers (C, D), lists (C, G) int32, previous (n, H′) int32: K(n), extra (n, E) int32; −1 is no component
    ->  kept (n, H) int32 by (distance, id), −1 where G(n) is smaller, squared distances (n, H), infinite there,
    counts (n,): |G(n)|, each of its components evaluated once; with `evidence` the sums of their distances, points
    being of `sample_weight` (n,).
    costs: factors and offsets of Gaussians whose costs are meant in place of squared distances, and are summed in place
    of distances; see `best_among`. Then the squared distances to the first of what is kept come too, (n,).
    """
    X = check.rows(X, "X")
    n = len(X)
    centers = check.centers(centers, X)
    n_kept = check.count(n_kept, "n_kept")
    lists = check.kept(lists, "lists", (len(centers), check.width(lists, "lists")))
    previous = check.kept(previous, "previous", (n, check.width(previous, "previous")))
    extra = (
        np.empty((n, 0), dtype=np.int32)
        if extra is None
        else check.kept(extra, "extra", (n, check.width(extra, "extra")))
    )
    kept, distances = np.empty((n, n_kept), dtype=np.int32), np.empty((n, n_kept), dtype=X.dtype)
    counts = np.empty(n, dtype=np.int32)
    weights = check.weights(sample_weight, n)
    factors, offsets = costs or (None, None)
    squares = None if costs is None else np.empty(n, dtype=X.dtype)
    threads = resolve_threads(n_threads)
    try:
        looked = _core.nearest_among(
            check.core(X),
            centers,
            lists,
            previous,
            extra,
            kept,
            distances,
            counts,
            evidence,
            weights,
            factors,
            offsets,
            squares,
            threads,
        )
    except ValueError:
        check.refuse_components(len(centers), -1, lists=lists, previous=previous, extra=extra)
        raise
    return Found(kept, distances, counts, squares, None if looked is None else Evidence(*looked))


class Walked(NamedTuple):
    """Where rows have come to; see `walk`."""

    labels: NDArray[np.int32]
    distances: Floats
    counts: NDArray[np.int32]


def walk(
    X: Floats,
    centers: Floats,
    lists: NDArray[np.int32],
    starts: NDArray[np.int32],
    width: int,
    *,
    n_threads: int | None = None,
) -> Walked:
    """A near centre of every row by walks along lists: the nearest that has been met when they end.

    A row looks at what it starts with, then at the list of the nearest that it has met and whose list it has not looked
    at, as long as that is one of the `width` nearest it has met, by (distance, id), and not beyond one and a half times
    the least squared distance.

    X (n, D), centers (C, D), lists (C, G) int32, starts (n, S) int32, at least one for each row; −1 behind the last
    ->  labels (n,) int32, squared distances (n,), counts (n,): centres looked at, each once.
    """
    X = check.rows(X, "X")
    centers = check.centers(centers, X)
    width = min(check.count(width, "width"), len(centers))
    lists = check.kept(lists, "lists", (len(centers), check.width(lists, "lists")))
    starts = check.kept(starts, "starts", (len(X), max(1, check.width(starts, "starts"))))
    labels, counts = np.empty(len(X), dtype=np.int32), np.empty(len(X), dtype=np.int32)
    distances = np.empty(len(X), dtype=X.dtype)
    threads = resolve_threads(n_threads)
    try:
        _core.walk(check.core(X), centers, lists, starts, width, labels, distances, counts, threads)
    except ValueError:
        check.refuse_components(len(centers), -1, lists=lists, starts=starts)
        check.refuse_components(len(centers), 0, starts=starts[:, :1])
        raise
    return Walked(labels, distances, counts)


def thin(
    centers: Floats, lists: NDArray[np.int32], spread: float, *, n_threads: int | None = None
) -> NDArray[np.int32]:
    """Lists thinned, so that walks along them go far in every direction: (C, G) int32, −1 behind the last.

    A neighbour stays unless one before it in the list, that stays, is nearer to it than the component is, by the factor
    `spread` of squared distances.

    centers (C, D), lists (C, G) int32: neighbours without the component itself, nearest first, −1 behind the last
    """
    centers = check.contiguous(check.matrix(centers, "centers"))
    lists = check.kept(lists, "lists", (len(centers), check.width(lists, "lists")))
    if not spread > 0:
        raise ValueError(f"spread must be positive, got {spread!r}")
    out = np.empty_like(lists)
    try:
        _core.thin(centers, lists, spread, out, resolve_threads(n_threads))
    except ValueError:
        check.refuse_components(len(centers), -1, lists=lists)
        raise
    return out


class CenterCells:
    """Centers in the order of the cells that they lie in, packed once for many searches of rows in cells.

    centers (C, D); begins (g + 1,) int64, rising: cell i holds the centers begins_i … begins_{i+1} − 1.
    """

    def __init__(self, centers: Floats, begins: NDArray[np.int64], *, n_threads: int | None = None):
        self.centers, self.begins = check.matrix(centers, "centers"), begins
        packed = _core.CenterCells32 if centers.dtype == np.float32 else _core.CenterCells64
        self._cells = packed(self.centers, median_origin(self.centers), begins, resolve_threads(n_threads))

    def __reduce__(self) -> tuple[type, tuple[Floats, NDArray[np.int64]]]:
        return CenterCells, (self.centers, self.begins)

    def improve(
        self,
        X: Floats,
        cells: NDArray[np.int32],
        least: Floats,
        kept: NDArray[np.int32],
        squares: Floats,
        *,
        n_threads: int | None = None,
    ) -> None:
        """The nearest centers of each row's cell take the places of what it keeps and is farther by (distance, number).

        Nothing is looked at where the cell is −1, or where `least` is greater than the last distance so far.
        X (n, D), cells (n,) int32, least (n,) distances [data unit]
        kept (n, H) int32, nearest first, −1 behind the last, and squares (n, H) their squared distances [data unit²],
        infinite where there is none: both are written to
        """
        self._cells.improve(check.matrix(X, "X", self.centers), cells, least, kept, squares, resolve_threads(n_threads))


def grouped_order(labels: NDArray[np.int32], n_components: int, *, n_threads: int | None = None) -> NDArray[np.int64]:
    """The order that puts points of one component together, stable: a counting sort; labels (n,) int32 -> (n,)."""
    labels = check.kept(labels, "labels", (np.size(labels),))
    n_components = check.count(n_components, "n_components")
    order = np.empty(len(labels), dtype=np.int64)
    try:
        _core.grouped_order(labels, n_components, order, resolve_threads(n_threads))
    except ValueError:
        check.refuse_components(n_components, 0, labels=labels)
        raise
    return order


def changed(
    after: NDArray[np.int32],
    before: NDArray[np.int32],
    n_columns: int | None = None,
    *,
    n_threads: int | None = None,
) -> NDArray[np.bool_]:
    """Which points do not keep what they have kept before: (n,).

    after (n, H), before (n, H') int32    n_columns: how many are compared, None for all, which must be as many then
    """
    widths = check.width(after, "after"), check.width(before, "before")
    after = check.kept(after, "after", (len(after), widths[0]))
    before = check.kept(before, "before", (len(after), widths[0 if n_columns is None else 1]))
    n_columns = widths[0] if n_columns is None else check.count(n_columns, "n_columns")
    if n_columns > min(widths):
        raise ValueError(f"n_columns must be at most {min(widths)}, the columns of both, got {n_columns}")
    out = np.empty(len(after), dtype=bool)
    _core.changed(after, before, n_columns, out, resolve_threads(n_threads))
    return out


def gather(X: Floats, order: NDArray[np.int64], *, n_threads: int | None = None) -> Floats:
    """X[order] for rows, by several threads: a C-contiguous copy (len(order), D)."""
    X = check.matrix(X, "X")
    order = check.positions(order, "order")
    out = np.empty((len(order), X.shape[1]), dtype=X.dtype)
    _core.gather(X, order, out, resolve_threads(n_threads))
    return out
