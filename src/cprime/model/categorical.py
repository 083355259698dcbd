"""Components with independent categorical columns: log p(x given c) = Σ_d log p_cd(x_d).

p_cd(k) is the probability of category k in column d under component c. Column d has the codes 0 … K_d − 1. A row of D
codes is converted to one-hot form: Σ_d K_d zeros and ones. The mean of such rows under a component consists of the
probabilities of all its categories.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from cprime._utils.storable import storable
from cprime.kernels import Dense, Floats, Rows
from cprime.model.base import n_weights
from cprime.model.interface import Weights
from cprime.model.linear import Linear

_LEAST = 1e-15  # least probability in densities, so that the log-density of an absent category is finite


@dataclass(frozen=True)
class OneHot:
    """Picklable function that converts rows of codes (n, D) to rows of zeros and ones (n, Σ K_d).

    n_categories: number of categories K_d of each column d    names: names of the columns for error messages, or None
    """

    n_categories: tuple[int, ...]
    names: tuple[str, ...] | None = None

    def __call__(self, array: Any) -> Rows:
        codes = np.asarray(array)
        check_codes(codes, self.n_categories, self.names)
        dtype = codes.dtype if codes.dtype in (np.float32, np.float64) else np.dtype(np.float32)
        out = np.zeros((len(codes), sum(self.n_categories)), dtype=dtype)
        begins = np.cumsum([0, *self.n_categories[:-1]])
        out[np.arange(len(codes))[:, np.newaxis], codes.astype(np.intp) + begins] = 1
        return Dense(out)


def check_codes(codes: NDArray, n_categories: Any, names: Any = None) -> None:
    """Raise ValueError that names the first entry that is no code of a category: an integer from 0 to K_d − 1.

    n_categories (D,): number of categories K_d of each column d, or None for no upper limit
    names: names of the columns for the error message, or None
    """
    limit: Any = np.inf if n_categories is None else np.asarray(n_categories)
    wrong = ~((codes >= 0) & (codes < limit) & (codes == np.floor(codes)))
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        name = column if names is None else repr(names[column])
        limits = "0, 1, 2, …" if n_categories is None else f"from 0 to {int(limit[column]) - 1}"
        raise ValueError(f"X must have integers {limits} in column {name}, got {codes[row, column]!r}.")


@storable("model.Categorical")
@dataclass(frozen=True)
class Categorical(Linear):
    """Mixture of categorical columns; centers (C, Σ K_d): probabilities of all categories, column by column.

    n_categories: number of categories K_d of each column d
    """

    n_categories: tuple[int, ...] = ()

    covariance_type: ClassVar[str] = "categorical"
    attribute_names: ClassVar[tuple[str, ...]] = ("probabilities_", "n_categories_")
    options: ClassVar[tuple[str, ...]] = ("n_categories_",)

    @property
    def n_parameters(self) -> int:
        return self.n_components * (self.n_features - len(self.n_categories)) + n_weights(self.weights)

    @property
    def n_normals(self) -> int:
        return len(self.n_categories)

    @property
    def natural(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.log(np.maximum(self.centers.astype(np.float64), _LEAST)), np.zeros(self.n_components)

    def drawn(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        share, out = ndtr(normal), np.empty(normal.shape)
        for column, probabilities in enumerate(self.by_column()):
            below = np.cumsum(probabilities, axis=1, dtype=np.float64)[labels, :-1]
            out[:, column] = (share[:, column, np.newaxis] >= below).sum(axis=1)
        return out

    @property
    def variances(self) -> NDArray[np.float64]:
        p = self.centers.astype(np.float64)
        return p * (1 - p)

    def by_column(self) -> list[Floats]:
        """Return a list of the probabilities of the categories: (C, K_d) for each column d with K_d categories."""
        return np.split(self.centers, np.cumsum(self.n_categories)[:-1], axis=1)

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
