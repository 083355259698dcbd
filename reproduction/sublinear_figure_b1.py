"""Figure B.1 of Forster & Lücke: four partial E-steps of a point, the last of which finds no closer cluster."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from reproduction import sublinear_illustrated as illustrated
from reproduction.base import Context, Entry, Result, Row
from reproduction.sublinear_runs import SOURCE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STEPS = 4
_RANDOM = 200  # random lists and active sets


def compute(context: Context) -> Result:
    """Follow a point by exact lists, and many points by random lists."""
    centers = illustrated.grid()
    lists = illustrated.exact_lists(centers)
    steps = illustrated.partial_steps(illustrated.POINT, centers, lists, np.array(illustrated.START))
    sums = illustrated.distance_sums(illustrated.POINT, centers, steps)
    sizes = [len(step.space) for step in steps]
    squares = ((centers - illustrated.POINT) ** 2).sum(axis=1)
    nearest = np.argsort(squares)[: illustrated.N_ACTIVE]
    found = np.array_equal(np.sort(steps[-1].kept), np.sort(nearest))
    most = illustrated.N_ACTIVE * illustrated.N_NEIGHBORS
    inside = illustrated.inner(centers)
    crosses = sum(_is_cross(c, lists[c]) for c in inside)
    rises, ends = _with_random_lists(centers, context)
    rows = [
        Row(
            "E-steps until one changes nothing",
            _STEPS,
            len(steps),
            None,
            len(steps) == _STEPS,
            "the source gives no coordinates; our start was chosen to take as many",
            generous=True,
        ),
        Row(f"active set of E-step {_STEPS}", "the nearest 3", "the nearest 3" if found else "others", None, found),
        Row("sum of distances to the active set, by E-step", "falls", _arrows(sums, ".1f"), None, _falls(sums)),
        Row(
            "clusters in the search space, by E-step",
            f"{most}, then fewer",
            _arrows(sizes, "d"),
            None,
            max(sizes[1:]) < most,
            "the lists of the active set overlap from the second E-step on",
        ),
        Row(
            "exact lists of inner clusters that are a cross",
            "all",
            f"{crosses} of {len(inside)}",
            None,
            crosses == len(inside),
        ),
        Row(
            "E-steps with random lists, as Alg. 2 may have, in which that sum rises",
            "none",
            f"{rises} of {ends}",
            None,
            rises == 0,
            f"{_RANDOM} random points, active sets and lists",
        ),
    ]
    content = {
        "point": illustrated.POINT.tolist(),
        "centers": centers.tolist(),
        "lists": lists.tolist(),
        "kept": [step.kept.tolist() for step in steps],
        "space": [step.space.tolist() for step in steps],
        "distance_sums": sums,
    }
    return ENTRY.result(1, rows, content)


def _is_cross(c: int, neighbors: np.ndarray) -> bool:
    """Return whether a list has a center and those left, right, above and below it on the grid."""
    side = illustrated.SIDE
    return set(neighbors.tolist()) == {c, c - 1, c + 1, c - side, c + side}


def _falls(values: list[float]) -> bool:
    return all(later < earlier for earlier, later in pairwise(values))


def _arrows(values: list[float] | list[int], form: str) -> str:
    return " → ".join(f"{value:{form}}" for value in values)


def _with_random_lists(centers: np.ndarray, context: Context) -> tuple[int, int]:
    """Return the number of E-steps whose distance sum rises, and the number of E-steps, for lists of random centers."""
    rng = np.random.default_rng(context.random_state)
    rises, total = 0, 0
    for _ in range(_RANDOM):
        others = np.array([rng.choice(len(centers), illustrated.N_NEIGHBORS - 1, replace=False) for _ in centers])
        lists = np.column_stack([np.arange(len(centers)), others])
        point = rng.uniform(0, illustrated.SIDE - 1, 2) * illustrated.SPACING
        kept = rng.choice(len(centers), illustrated.N_ACTIVE, replace=False)
        sums = illustrated.distance_sums(point, centers, illustrated.partial_steps(point, centers, lists, kept))
        rises += sum(later > earlier for earlier, later in pairwise(sums))
        total += len(sums) - 1
    return rises, total


def draw(result: Result, figure: Figure) -> None:
    """Draw a panel for each E-step."""
    from cprime.plots import SearchSpaceDisplay
    from cprime.plots.search_space import SearchStep

    figure.set_size_inches(7, 7)
    data = result.data
    steps = [SearchStep(np.array(k), np.array(s)) for k, s in zip(data["kept"], data["space"], strict=True)]
    axes = list(figure.subplots(2, 2).flat)
    SearchSpaceDisplay(data["point"], data["centers"], np.array(data["lists"]), steps).plot(axes)


ENTRY = Entry(
    "sublinear-figure-b1",
    "Four partial E-steps of a point",
    f"{SOURCE}, figure B.1",
    1,
    compute,
    draw,
)
