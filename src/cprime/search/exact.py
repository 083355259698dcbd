"""Neighbour lists from all centre-to-centre distances: var-GMM-X and var-k-means-X [F Alg. 1], O(N C′ G D + C² D)."""

from cprime.kernels.native import Floats
from cprime.search.lists import exact_lists
from cprime.search.point_major import PointMajorSearch


class ExactSearch(PointMajorSearch):
    """G_c are the G nearest components of c by the distances of the centres, every iteration."""

    def refresh(self, centers: Floats) -> None:
        self._lists = exact_lists(centers, self.n_neighbors, self.n_threads, self._lists)
