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
