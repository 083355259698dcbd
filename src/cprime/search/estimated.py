"""Neighbour lists from distances already computed: var-GMM-S and var-k-means-S [F Alg. 2], O(N C′ G D).

With c_o(n) the nearest component of n and I_c the points that c wins, the distance of c and c̃ is estimated by the mean
of ‖x_n − μ_c̃‖ over the n ∈ I_c that have looked at c̃ (8), each of its weight; G_c are the G of least estimate, c
itself first. For Gaussians of their own covariances the mean is that of the costs, −2 log p(c̃, x_n).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cprime import kernels
from cprime.search.chunk import Chunk
from cprime.search.components import Components
from cprime.search.lists import without_self
from cprime.search.point_major import PointMajorSearch


class EstimatedSearch(PointMajorSearch):
    """G_c from the evidence of the E-steps since the last refresh."""

    needs_evidence = True
    _evidence: csr_array | None = (
        None  # Σ w_n of what is averaged in the real part, Σ w_n in the imaginary, by (c_o, c̃)
    )

    def start(self, chunks: Sequence[Chunk], components: Components, n_kept: int) -> None:
        self._evidence = None
        super().start(chunks, components, n_kept)

    def learn(self, found: kernels.Found, sample_weight: NDArray[np.float64] | None, components: Components) -> None:
        assert found.evaluated is not None
        assert found.evaluations is not None
        C = len(components.centers)
        seen = kernels.evidence(
            np.ascontiguousarray(found.kept[:, 0]),
            found.evaluated,
            components.dissimilarity(found.evaluations),
            sample_weight,
            n_components=C,
            n_threads=self.n_threads,
        )
        evidence = csr_array((seen.sums + 1j * seen.weights, seen.indices, seen.indptr), shape=(C, C))
        self._evidence = evidence if self._evidence is None else self._evidence + evidence

    def refresh(self, components: Components) -> None:
        if self._evidence is None:
            return
        evidence, self._evidence = self._evidence, None
        C = len(components.centers)
        G = min(self.n_neighbors, C)
        mean = evidence.data.real / evidence.data.imag
        row = np.repeat(np.arange(C), np.diff(evidence.indptr))
        mean[row == evidence.indices] = -np.inf  # d_cc = 0, and first
        order = np.lexsort((evidence.indices, mean, row))
        rank = np.arange(len(order)) - evidence.indptr[row]
        first = rank < G
        lists = np.full((C, G), -1, dtype=np.int32)
        lists[row[first], rank[first]] = evidence.indices[order][first]
        self._lists = without_self(lists)
