"""The look of a search at points that come once: walks along lists that are kept from batch to batch."""

from dataclasses import dataclass

import numpy as np

from cprime.block import Block, Kept
from cprime.kernels.native import Floats
from cprime.neighbors import Walks
from cprime.search.base import Components, Found, Seen


@dataclass(frozen=True)
class LookAlong:
    """What walks find among the components, which are where it has them."""

    walks: Walks

    def __call__(self, block: Block, points: Floats, kept: Kept | None, components: Components, n_kept: int) -> Found:
        labels, costs, n_distances = self.walks.find(points)
        return Found(Kept(labels[:, np.newaxis], costs[:, np.newaxis]), n_distances, Seen(len(points), block.count()))
