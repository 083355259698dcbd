"""Searches, which choose the candidate components of each point. Each search has its own file.

Instances of `Auto`, `Full`, `Bounded`, `Graph` and `Papers` are values of the argument `search` of estimators. The
strings that this argument accepts are shorthands for such instances. Equality, repr and `clone` compare or copy the
options.

- `auto.py`: the options of a search that the fit chooses.
- `full.py`: all C.
- `bounded.py`: those that distance bounds from earlier iterations do not exclude; the result is that of `full.py`.
- `labelled.py`: all C, but points with a label have its component only (`fit(X, y)`).
- `papers.py`: the lists of all components of the active set, and random components. "exact" lists need all C²
  distances, or mean costs in closed form, in every iteration; "estimated" ones come from the distances of E-steps,
  eq. (8) of Lücke & Forster.
- `graph.py`: the list of the nearest center; with C′ > 1 the active set, and the list of one component of it, whose
  second half beyond 32 entries is random. Lists come from all C² distances up to C = 32,768 and from neighbors of
  neighbors for larger C, and only after enough points were reassigned. Components whose candidates and points have not
  changed since the last pass are skipped, and the lists are audited on a sample.
- `nearby.py`: the search of approximate predictions, in cells (groups of near centers, `neighbors/near.py`) and, for
  Gaussians, from there along neighbor lists.

`base.py` has the protocol: `begin`, `refresh`, `look` (returns the callable that runs on each chunk), `learn`,
`jumped`, `undone`. Partial searches start from the two-level structure of `neighbors/cells.py`.
"""

from cprime.search.auto import Auto
from cprime.search.base import Look, Lookup, Sample, Search, SearchStats
from cprime.search.bounded import Bounded
from cprime.search.full import Full
from cprime.search.graph import Graph
from cprime.search.papers import Papers

__all__ = [
    "Auto",
    "Bounded",
    "Full",
    "Graph",
    "Look",
    "Lookup",
    "Papers",
    "Sample",
    "Search",
    "SearchStats",
]


def __dir__() -> list[str]:
    return __all__
