"""Components with independent categorical columns: log p(x given c) = Σ_d log p_cd(x_d).

p_cd(k) is the probability of category k in column d under component c. Rows are sparse, with Σ_d K_d columns, one for
each category, and a 1 in the column of each category that they have. A row has no 1 for a missing value, so this column
of the data leaves the sum. The mean of such rows under a component consists of the probabilities of all its categories.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from cprime._utils.declared import Array
from cprime._utils.storable import storable
from cprime._utils.values import replace
from cprime.execution.block import Block
from cprime.kernels import Floats, Rows, SparseRows
from cprime.model.base import means_of, n_weights, new_weights
from cprime.model.interface import Responsibilities, Weights
from cprime.model.linear import Linear, LinearMoments

_LEAST = 1e-15  # least probability in densities, so that the log-density of an absent category is finite


@storable("model.Categorical")
@dataclass(frozen=True)
class Categorical(Linear):
    """Mixture of categorical columns; centers (C, Σ K_d): probabilities of all categories, column by column.

    n_categories: number of categories K_d of each column d
    Categories without points have probability 0 in all components and are no parameters.
    """

    n_categories: tuple[int, ...] = ()

    covariance_type: ClassVar[str] = "categorical"
    attribute_names: ClassVar[tuple[str, ...]] = ("probabilities_", "n_categories_")
    declared: ClassVar[Mapping[str, Any]] = {
        "n_categories_": Annotated[
            NDArray,
            Array("K", "i", above=0, is_first=True),
            lambda value, sizes: value.sum() == sizes["D"],
        ],
        "probabilities_": Annotated[
            list[Annotated[NDArray, Array("C ?", least=0)]],
            lambda value, sizes: sum(each.shape[1] for each in value) == sizes["D"],
        ],
    }
    options: ClassVar[tuple[str, ...]] = ("n_categories_",)
    starts: ClassVar[tuple[str, ...]] = ("auto",)  # k-means ends at worse likelihoods here than single rows do

    @property
    def n_parameters(self) -> int:
        n_found = int((self.centers > 0).any(axis=0).sum())
        return self.n_components * (n_found - len(self.n_categories)) + n_weights(self.weights)

    @property
    def n_normals(self) -> int:
        return len(self.n_categories)

    @property
    def natural(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.log(np.maximum(self.centers.astype(np.float64), _LEAST)), np.zeros(self.n_components)

    def embed(self, X: Rows, before: Rows | None = None) -> Rows:
        return X if X.observed is None else self.without_missing(X)

    def summarise(self, block: Block, shares: Responsibilities) -> LinearMoments:
        is_partial = shares.responsibilities is None or shares.ids.shape[1] < self.n_components
        if is_partial or not isinstance(block.X, SparseRows):
            return super().summarise(block, shares)
        assert shares.responsibilities is not None
        q = np.empty(shares.ids.shape)
        np.put_along_axis(q, shares.ids, shares.responsibilities, axis=1)
        if block.sample_weight is not None:
            q *= block.sample_weight[:, np.newaxis]
        return LinearMoments(q.sum(axis=0), np.ascontiguousarray((block.X.given().T @ q).T))

    def maximise(self, moments: LinearMoments, prior: None = None) -> Self:
        # The total of a column is N_c, less the responsibilities of points whose value is missing in this column.
        totals = np.add.reduceat(moments.sums, self._begins, axis=1)
        counts = np.repeat(totals, self.n_categories, axis=1)
        centers = means_of(counts, moments.sums, self.centers).astype(self.centers.dtype)
        return replace(self, centers=centers, weights=new_weights(self.weights, moments.counts))

    def drawn(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        share, out = ndtr(normal), np.empty(normal.shape)
        for column, probabilities in enumerate(self.by_column()):
            n_below = probabilities.shape[1] - 1
            below = np.cumsum(probabilities, axis=1, dtype=np.float64)[:, :n_below]
            below += 2.0 * np.arange(self.n_components)[:, np.newaxis]  # one sorted array for all components
            out[:, column] = np.searchsorted(below.ravel(), share[:, column] + 2.0 * labels, "right") - labels * n_below
        return out

    @property
    def variances(self) -> NDArray[np.float64]:
        p = self.centers.astype(np.float64)
        return p * (1 - p)

    @property
    def _begins(self) -> NDArray[np.int64]:
        """Return the index of the first category of each column: (D,)."""
        return np.cumsum([0, *self.n_categories[:-1]])

    def by_column(self) -> list[Floats]:
        """Return a list of the probabilities of the categories: (C, K_d) for each column d with K_d categories."""
        return np.split(self.centers, self._begins[1:], axis=1)

    def attributes(self) -> dict[str, Any]:
        return {"probabilities_": self.by_column(), "n_categories_": np.array(self.n_categories, dtype=np.int64)}

    @classmethod
    def from_attributes(
        cls, attributes: Mapping[str, Any], centers: Floats, weights: Weights, reg_covar: float = 0.0
    ) -> Self:
        sizes = tuple(int(k) for k in attributes["n_categories_"])
        return cls(np.ascontiguousarray(np.concatenate(attributes["probabilities_"], axis=1)), weights, sizes)

    @classmethod
    def starting(
        cls, centers: Floats, weights: Weights, reg_covar: float, precisions: Any = None, n_categories_: Any = ()
    ) -> Self:
        return cls(centers, weights, tuple(int(k) for k in n_categories_))


CATEGORICAL = {"categorical": Categorical}
