"""Agreement of labels with the true clusters of points."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import normalized_mutual_info_score

from cprime.selection import purity


class Agreement(NamedTuple):
    """Purity and normalized mutual information, each 1 for the true clusters."""

    purity: float
    nmi: float

    @property
    def combined(self) -> float:
        """Sum of both scores, by which Lücke & Forster choose parameters and runs."""
        return self.purity + self.nmi


def agreement(target: NDArray[np.integer], labels: NDArray[np.integer]) -> Agreement:
    """Return both scores; mutual information is divided by the mean of the two entropies, as in the same book."""
    return Agreement(purity(target, labels), float(normalized_mutual_info_score(target, labels)))
