"""What every estimator here can do: be written to a file."""

import os

from sklearn.base import BaseEstimator

from cprime import storage
from cprime.estimators.soundness import check_fitted


class Stored(BaseEstimator):
    """Base of estimators that `cprime.load` brings back."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a safetensors file, whole or not at all; `cprime.load` brings it back.

        Parameters
        ----------
        path : path-like
            Where to write; an existing file is replaced once the new one is complete.
        """
        storage.save(self, path)

    def _check_fitted(self) -> None:
        """Raise ValueError for an attribute that no fit leaves so: of a file that another has written."""
        check_fitted(self)
