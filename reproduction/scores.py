"""How well labels agree with the clusters that points were drawn from."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix


class Agreement(NamedTuple):
    """Purity and normalized mutual information, each 1 for the true clusters."""

    purity: float
    nmi: float

    @property
    def combined(self) -> float:
        """Their sum, by which Lücke & Forster choose parameters and runs."""
        return self.purity + self.nmi


def purity(target: NDArray[np.integer], labels: NDArray[np.integer]) -> float:
    """Share of the points that are of the commonest class among those of their label.

    target, labels (n,) integers    Source: Manning, Raghavan, Schütze, *Introduction to Information Retrieval*, (16.1)
    """
    return float(contingency_matrix(target, labels).max(axis=0).sum() / len(target))


def agreement(target: NDArray[np.integer], labels: NDArray[np.integer]) -> Agreement:
    """Both scores; mutual information is divided by the mean of the two entropies, as in the same book."""
    return Agreement(purity(target, labels), float(normalized_mutual_info_score(target, labels)))
