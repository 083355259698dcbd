"""Base class of mixtures of discrete densities (Poisson, categorical), and the check that data are counts.

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


@dataclass(frozen=True)
class CheckCounts:
    """Job that raises ValueError unless all numbers are non-negative integers. Its partial results are 0.

    names: names of the columns for the message, or None
    """

    names: Any

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, int]:
        X = block.X
        if not isinstance(X, SparseRows):
            check_counts(X.dense() if X.observed is None else np.where(X.observed, X.dense(), 0), self.names)
            return None, 0
        values = X.entries[0]
        wrong = (values < 0) | (values != np.floor(values))
        if wrong.any():
            check_counts(X[X.owners[[wrong.argmax()]]].dense(), self.names)
        return None, 0


def check_counts(values: NDArray, names: Any = None) -> None:
    """Raise ValueError that names the first entry of an array (n, D) that is not an integer of at least 0.

    names: names of the columns for the error message, or None
    """
    wrong = ~((values >= 0) & (values == np.floor(values)))
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        name = column if names is None else repr(names[column])
        raise ValueError(f"X must have integers 0, 1, 2, … in column {name}, got {values[row, column]!r}.")


class DiscreteMixture(Mixture):
    """Base of mixtures of discrete densities; a subclass has one model family and an argument for starting values.

    The attribute `means_` has the means of rows after their conversion by the family, for example to zeros and ones.
    Some constructor arguments of Gaussian mixtures are class attributes with constant values here: `precisions_init`,
    `reg_covar` and `momentum`, which have no meaning for discrete densities.

    Parameters
    ----------
    max_memory : Memory or None
        `Memory(spill=folder)` stores active sets in files of a folder; it must have no limit.
    """

    precisions_init = None
    reg_covar = 0.0
    momentum: bool | str = False
    _has_plan = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
