"""Base class of mixtures of discrete densities (Poisson, categorical), and the check that their data are counts.

Code that all mixtures share reads arguments that these two do not have, such as `reg_covar`. The base class defines
each of these as a class attribute with a constant value.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime.estimators.mixture import Mixture
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import SparseRows
from cprime.model.categorical import check_codes


@dataclass(frozen=True)
class LargestCounts:
    """Greatest number in each column (D,) of some rows, found by the job `CheckCounts`.

    `CategoricalMixture` computes the number of categories of each column from it. For sparse rows, which only
    `PoissonMixture` accepts, it is not needed and all its entries are 0.
    """

    largest: NDArray[np.float64]

    def __add__(self, other: "LargestCounts") -> "LargestCounts":
        return LargestCounts(np.maximum(self.largest, other.largest))


@dataclass(frozen=True)
class CheckCounts:
    """Job that raises ValueError unless all numbers are non-negative integers, and finds the largest of each column.

    names: names of the columns for the message, or None
    """

    names: Any

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, LargestCounts]:
        X = block.X
        if isinstance(X, SparseRows):
            values = X.entries[0]
            wrong = (values < 0) | (values != np.floor(values))
            if wrong.any():
                check_codes(X[X.owners[[wrong.argmax()]]].dense(), None, self.names)
            return None, LargestCounts(np.zeros(X.shape[1]))
        check_codes(X.dense(), None, self.names)
        return None, LargestCounts(X.dense().max(axis=0).astype(np.float64))


class DiscreteMixture(Mixture):
    """Base of mixtures of discrete densities; a subclass has one model family and an argument for starting values.

    The attribute `means_` has the means of rows after their conversion by the family, for example to zeros and ones.
    Some constructor arguments of Gaussian mixtures are class attributes with constant values here: `precisions_init`,
    `reg_covar` and `momentum`, which have no meaning for discrete densities, and `max_memory`.
    """

    precisions_init = None
    reg_covar = 0.0
    momentum = False
    max_memory = None
    _has_diverse_starts = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
