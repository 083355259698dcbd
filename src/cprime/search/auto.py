"""`Auto`: the options of a search that is chosen for the data and the number of components when a fit begins."""

from dataclasses import dataclass
from typing import ClassVar

from cprime._utils.arguments import check_integer
from cprime._utils.storable import storable
from cprime.search.base import BaseSearch


@storable("search.Auto")
@dataclass(frozen=True, repr=False)
class Auto(BaseSearch):
    """Search that a fit chooses: `Graph` for many components, otherwise `Bounded` or `Full`, with these options.

    The argument `search` of `KMeans` and of `GaussianMixture` documents the choice for "auto".

    Parameters
    ----------
    n_neighbors : int or None, default=None
        As in `Graph`. It has no effect if the search has no lists.
    certificate : int, default=1000
        As in `Graph`.
    final_assignment : {"auto", "exact", "found"}, default="auto"
        As in `Graph`.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.search import Auto
    >>> KMeans(2, search=Auto(certificate=0), random_state=0).fit([[0.0], [1.0], [9.0], [10.0]]).inertia_
    1.0
    """

    n_neighbors: int | None = None

    exchanges: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_neighbors is not None:
            check_integer(self.n_neighbors, "n_neighbors", 2)
