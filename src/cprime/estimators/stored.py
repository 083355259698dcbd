"""What every estimator here can do: be written to a file."""

import os
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator

from cprime import storage
from cprime._documentation import Documented
from cprime.estimators.soundness import check_fitted

if TYPE_CHECKING:
    from cprime.report import Report


class Stored(Documented, BaseEstimator):
    """Base of estimators that `cprime.load` brings back."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a safetensors file, whole or not at all; `cprime.load` brings it back.

        Parameters
        ----------
        path : path-like
            Where to write; an existing file is replaced once the new one is complete.
        """
        storage.save(self, path)

    def report(
        self,
        X: Any,
        sample_weight: Any = None,
        *,
        compare: Any = None,
        image_shape: Any = None,
        title: str | None = None,
        max_rows: int | str = "auto",
    ) -> "Report":
        """What the fit came to, as one page: `estimator.report(X).save("report.html")`.

        Whether all is as it should be and what to change, a map of the clusters, how each differs from the rest, sizes,
        search quality, certainty, J and F by second. The page needs no network. Needs ``pip install cprime[report]``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a source
            Data, in the units of the training data: these, or others.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the points; None is 1 for each.
        compare : fitted estimator or None, default=None
            Another model of the same features, whose labels are set beside these.
        image_shape : tuple of two or three int, or None, default=None
            (height, width) or (height, width, 3), where rows are images: centers are shown as such.
        title : str or None, default=None
            The heading; None says how many clusters there are.
        max_rows : int or "auto", default="auto"
            Rows that are looked at, at random where there are more. "auto" is as many as can be compared with all
            components in a second or two. The page says how many they are; sizes are those of the fit.

        Returns
        -------
        report : Report
            With `html`, `save`, and the values of every section; notebooks show the page.

        Raises
        ------
        ImportError
            If Jinja2 or Pillow is missing.
        TypeError
            If the model has no centers in the space of the data, as k-medoids of dissimilarities.
        """
        from cprime.report import report_of

        return report_of(
            self,
            X,
            sample_weight=sample_weight,
            compare=compare,
            image_shape=image_shape,
            title=title,
            max_rows=max_rows,
        )

    def _check_fitted(self) -> None:
        """Raise ValueError for an attribute that no fit leaves so: of a file that another has written."""
        check_fitted(self)
