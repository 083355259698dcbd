"""A near center of every row without a look at all: walks along lists, and cells whose centers are packed once."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime._threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.compiled import _core
from cprime.kernels.measures import Floats, costs_of


class Walked(NamedTuple):
    """Where rows have come to; see `walk`."""

    labels: NDArray[np.int32]
    distances: Floats
    counts: NDArray[np.int32]


def walk(
    X: CoreRows,
    centers: Floats,
    lists: NDArray[np.int32],
    starts: NDArray[np.int32],
    width: int,
    *,
    n_threads: int | None = None,
) -> Walked:
    """The nearest center that a row meets on its walk along lists (Malkov & Yashunin 2020, without levels).

    A row looks at what it starts with, then at the list of the nearest that it has met and whose list it has not looked
    at, as long as that is one of the `width` nearest it has met, by (distance, id), and not beyond one and a half times
    the least squared distance.

    centers (C, D), lists (C, G) int32, starts (n, S) int32, at least one for each row; −1 behind the last
    ->  labels (n,) int32, squared distances (n,), counts (n,): centres looked at, each once.
    """
    centers = check.centers(centers, X)
    n, C = len(X), len(centers)
    width = min(check.count(width, "width"), C)
    lists = check.kept(lists, "lists", (C, check.width(lists, "lists")))
    starts = check.kept(starts, "starts", (n, max(1, check.width(starts, "starts"))))
    out = Walked(np.empty(n, dtype=np.int32), np.empty(n, dtype=X.dtype), np.empty(n, dtype=np.int32))
    with check.naming(C, lists=(lists, -1), starts=(starts, -1)), check.naming(C, starts=(starts[:, :1], 0)):
        X.kernels.walk(X.core, centers, lists, starts, width, *out, resolve_threads(n_threads))
    return out


def walk_twin(
    X: Floats,
    centers: Floats,
    lists: NDArray,
    starts: NDArray,
    width: int,
    labels: NDArray,
    distances: Floats,
    counts: NDArray,
    n_threads: int,
) -> None:
    """Row by row, with all that it has met and whose lists it has asked for."""
    check.inside(lists, -1, len(centers))
    check.inside(starts[:, 1:], -1, len(centers))
    check.inside(starts[:, :1], 0, len(centers))
    for i, x in enumerate(X):
        met: dict[int, float] = {}
        asked: set[int] = set()
        look = starts[i]
        while True:
            new = np.array(list(dict.fromkeys(c for c in look.tolist() if c >= 0 and c not in met)), dtype=np.int32)
            squared = costs_of(x[None], centers[new])[0].astype(X.dtype)
            met |= zip(new.tolist(), squared.tolist(), strict=True)
            nearest = sorted(met, key=lambda c: (met[c], c))[:width]
            open_ = [c for c in nearest if c not in asked and not met[c] > 1.5 * met[nearest[0]]]
            if not open_:
                break
            asked.add(open_[0])
            look = lists[open_[0]]
        labels[i], distances[i], counts[i] = nearest[0], met[nearest[0]], len(met)


def thin(
    centers: Floats, lists: NDArray[np.int32], spread: float, *, n_threads: int | None = None, kernels: Any = _core
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
    with check.naming(len(centers), lists=(lists, -1)):
        kernels.thin(centers, lists, spread, out, resolve_threads(n_threads))
    return out


def thin_twin(centers: Floats, lists: NDArray, spread: float, out: NDArray, n_threads: int) -> None:
    """List by list."""
    check.inside(lists, -1, len(centers))
    out[:] = -1
    for c, listed in enumerate(lists):
        listed, kept = listed[listed >= 0], list[int]()
        own = costs_of(centers[c][None], centers[listed])[0].astype(centers.dtype)
        between = costs_of(centers[listed], centers[listed]).astype(centers.dtype)
        for i, squared in enumerate(own):
            if not (centers.dtype.type(spread) * between[i, kept] < squared).any():
                kept.append(i)
        out[c, : len(kept)] = listed[kept]


class CenterCells:
    """Centers in the order of the cells that they lie in, packed once for many searches of rows in cells.

    centers (C, D); begins (g + 1,) int64, rising: cell i holds the centers begins_i … begins_{i+1} − 1.
    """

    def __init__(
        self, centers: Floats, begins: NDArray[np.int64], *, n_threads: int | None = None, kernels: Any = _core
    ):
        self.centers, self.begins = check.matrix(centers, "centers"), begins
        packed = kernels.CenterCells32 if centers.dtype == np.float32 else kernels.CenterCells64
        self._cells = packed(self.centers, begins, resolve_threads(n_threads))

    def __reduce__(self) -> tuple[type, tuple[Floats, NDArray[np.int64]]]:
        return CenterCells, (self.centers, self.begins)

    def improve(
        self,
        X: CoreRows,
        cells: NDArray[np.int32],
        least: Floats,
        kept: NDArray[np.int32],
        squares: Floats,
        *,
        n_threads: int | None = None,
    ) -> None:
        """The nearest centers of each row's cell take the places of what it keeps and is farther by (distance, number).

        Nothing is looked at where the cell is −1, or where `least` is greater than the last distance so far.
        cells (n,) int32, least (n,) distances [data unit]
        kept (n, H) int32, nearest first, −1 behind the last, and squares (n, H) their squared distances [data unit²],
        infinite where there is none: both are written to
        """
        check.matrix(self.centers, "centers", X)
        n_cells, n_centers = len(self.begins) - 1, len(self.centers)
        with check.naming(n_cells, cells=(cells, -1)), check.naming(n_centers, kept=(kept, -1)):
            self._cells.improve(X.core, cells, least, kept, squares, resolve_threads(n_threads))


class CenterCellsTwin:
    """What is packed of centers for `CenterCells`: nothing."""

    def __init__(self, centers: Floats, begins: NDArray, n_threads: int):
        if len(begins) < 1 or begins[0] != 0 or begins[-1] != len(centers) or (np.diff(begins) < 0).any():
            raise ValueError("begins must rise from 0 to the number of centers")
        self.centers, self.begins = centers, begins

    def improve(
        self, X: Floats, cells: NDArray, least: NDArray, kept: NDArray, squares: NDArray, n_threads: int
    ) -> None:
        check.inside(cells, -1, len(self.begins) - 1)
        check.inside(kept, -1, len(self.centers))
        for n in np.flatnonzero((cells >= 0) & ~(least > np.sqrt(squares[:, -1]))):
            inside = np.setdiff1d(np.arange(self.begins[cells[n]], self.begins[cells[n] + 1]), kept[n])
            squared = costs_of(X[n : n + 1], self.centers[inside])[0].astype(X.dtype)
            ids, all_squares = np.append(kept[n], inside), np.append(squares[n], squared)
            first = np.lexsort((ids, all_squares))[: kept.shape[1]]
            kept[n], squares[n] = ids[first], all_squares[first]
