"""Neighbour lists from all centre-to-centre distances: var-GMM-X and var-k-means-X [F Alg. 1], O(N C′ G D + C² D)."""

from cprime.search.components import Components
from cprime.search.point_major import PointMajorSearch


class ExactSearch(PointMajorSearch):
    """G_c are the G nearest components of c by the distances of the centres, every iteration."""

    def refresh(self, components: Components) -> None:
        self._lists = components.lists(self.n_neighbors, self._lists)
