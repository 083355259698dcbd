"""Lists of the fitted parameters of any estimator, and the base class of results that say how certain they are."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cprime.estimators.fitted import model_of
from cprime.estimators.validation import check_real
from cprime.selection.results import frame_of, text_of

Parameters = dict[str, NDArray[np.float64]]
# Attributes of model families that other attributes determine, or that have no unique value (factors can be rotated).
_NO_PARAMETERS = ("precisions_", "precisions_cholesky_", "n_categories_", "factors_")
_SAME = {"rates_": "means_", "probabilities_": "means_", "covariances_": "variance_"}  # attributes of equal content


def parameters_of(estimator: Any) -> Parameters:
    """Return the fitted parameters of a k-means or a mixture by the names of their attributes, as float64 arrays.

    An attribute that is a list of arrays has an entry for each of them. Weights that are not estimated are left out.
    """
    names = ["weights_", "cluster_centers_", "means_", *model_of(estimator).attribute_names]
    found = {name: getattr(estimator, name) for name in names if name in vars(estimator) and name not in _NO_PARAMETERS}
    omitted = {_SAME.get(name) for name in found} | (
        {"weights_"} if getattr(estimator, "equal_weights_", False) else set()
    )
    parameters: Parameters = {}
    for name, value in found.items():
        if isinstance(value, list):
            parameters |= {f"{name}[{i}]": np.asarray(part, np.float64) for i, part in enumerate(value)}
        elif name not in omitted:
            parameters[name] = np.asarray(value, np.float64)
    return parameters


def shared_parameters(estimator: Any) -> set[str]:
    """Return the names of the parameters that all components share, so that they have no axis of components."""
    model: Any = model_of(estimator)
    C, D = model.centers.shape
    is_shared = model.shape(C, D) == model.shape(C + 1, D)
    scalars = {name for name, value in parameters_of(estimator).items() if value.ndim == 0}
    return scalars | ({"covariances_"} if is_shared else set())


def check_level(level: Any) -> float:
    """Return the probability of an interval as a float; raise ValueError unless it is between 0 and 1."""
    if not 0 < check_real(level, "level", 0.0) < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}.")
    return float(level)


def _entries(name: str, shape: tuple[int, ...]) -> Iterator[str]:
    """Yield the name of each number of an array of parameters, such as "means_[0, 1]"; the name itself for a scalar."""
    for index in np.ndindex(*shape):
        yield f"{name}[{', '.join(map(str, index))}]" if index else name


@dataclass(frozen=True, eq=False)
class ParameterErrors:
    """Base of results with standard errors of fitted parameters. The repr is a table.

    Attributes
    ----------
    estimates, standard_errors : dict of str to ndarray
        Fitted parameters by the names of their attributes, and their standard errors, of the same shapes and units.
    """

    estimates: Mapping[str, NDArray[np.float64]]
    standard_errors: Mapping[str, NDArray[np.float64]]

    def interval(self, level: float = 0.95) -> dict[str, NDArray[np.float64]]:
        """Return normal intervals: each estimate ± a multiple of its standard error, which is 1.96 for 95 %.

        Parameters
        ----------
        level : float, default=0.95
            Probability with which an interval contains the parameter, between 0 and 1.

        Returns
        -------
        intervals : dict of str to ndarray of shape (2, ...)
            Lower and upper limits of each parameter.
        """
        reach = ndtri((1 + check_level(level)) / 2)
        return {
            name: np.stack([self.estimates[name] - reach * error, self.estimates[name] + reach * error])
            for name, error in self.standard_errors.items()
        }

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a data frame with a row for each number among the parameters, with the limits of 95 % intervals.

        Parameters
        ----------
        library : {"pandas", "polars"}, default="pandas"

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
            Columns parameter, estimate, standard_error, lower and upper, and others that the repr shows.
        """
        return frame_of(self._columns(), library)

    def _arrays(self) -> dict[str, Mapping[str, NDArray[np.float64]]]:
        """Return the columns of the table by name; each is a dict of arrays, one for each parameter."""
        limits = self.interval()
        return {
            "estimate": self.estimates,
            "standard_error": self.standard_errors,
            "lower": {name: found[0] for name, found in limits.items()},
            "upper": {name: found[1] for name, found in limits.items()},
        }

    def _columns(self) -> dict[str, Any]:
        shapes = {name: np.shape(errors) for name, errors in self.standard_errors.items()}
        names = [entry for name, shape in shapes.items() for entry in _entries(name, shape)]
        columns = {
            column: np.concatenate([np.ravel(arrays[name]) for name in shapes])
            for column, arrays in self._arrays().items()
        }
        return {"parameter": names, **columns}

    def _title(self) -> str:
        """Return the first line of the repr."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n".join([self._title(), *text_of(self._columns())])
