"""Base class of all estimators, for copies, pickles, model files, reports, and links to the documentation."""

import copy
import os
import re
from functools import cache
from importlib import metadata
from inspect import cleandoc
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Self, TypeVar

from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from cprime._utils.arguments import check_file, check_flag
from cprime._utils.declared import Presence, Size, Texts, attribute_types, check_values
from cprime.callbacks.copying import all_callbacks, deep_copied, picklable
from cprime.estimators.solutions import CACHES
from cprime.persistence import model_files
from cprime.sources.prepared import PreparationArrays

if TYPE_CHECKING:
    from cprime.report import Report

T = TypeVar("T", bound=type)

# Entries of a docstring with a description, which is indented, and without one.
_DESCRIBED = re.compile(r"^(\w+) : .*\n((?: {4}.*\n)+)", re.MULTILINE)
_BARE = re.compile(r"^(\w+) : .*\n(?! {4})", re.MULTILINE)
# Attributes with the callbacks of an estimator; scikit-learn's method `set_callbacks` sets the second one.
_CALLBACKS = ("callbacks", "_skl_callbacks")


def address() -> str:
    """Return the URL of the project's documentation without a slash at its end, or "" if none is known.

    The URL is the value of the environment variable CPRIME_DOCS, for example `file:///…/build/docs` after `make docs`.
    If it is not set, the URL is that in the metadata of the installed package.
    """
    return os.environ.get("CPRIME_DOCS", _of_package()).rstrip("/")


@cache
def _of_package() -> str:
    for line in metadata.metadata("cprime").get_all("Project-URL") or ():
        label, _, url = line.partition(", ")
        if label.lower() == "documentation":
            return url
    return ""


def documented(cls: T) -> T:
    """Decorate a class of estimators so that their HTML representations link to their pages in the API documentation.

    It sets attributes of the class that scikit-learn's `BaseEstimator` reads to make the links.
    """
    attributes: Any = cls
    attributes._doc_link_module = "cprime"
    attributes._doc_link_template = property(_link_template)
    attributes._doc_link_url_param_generator = _link_parameters
    return cls


def _link_template(estimator: Any) -> str:
    site = address()
    return f"{site}/generated/{{package}}.{{name}}.html" if site else ""


def _link_parameters(estimator: Any) -> dict[str, str]:
    package = "cprime.sklearn" if type(estimator).__module__.startswith("cprime.sklearn.") else "cprime"
    return {"package": package, "name": type(estimator).__name__}


def _completed(doc: str, bases: tuple[type, ...]) -> str:
    """Return a docstring in which each entry without a description has that of the nearest base class with such one.

    An entry is a parameter or attribute: a line with its name and type. In the source of a docstring an editor shows
    these, and that base classes describe the rest; `help` and the documentation show everything.
    """
    texts: dict[str, str] = {}
    for base in reversed(bases):
        if base.__module__.startswith("cprime."):
            texts |= dict(_DESCRIBED.findall(cleandoc(vars(base).get("__doc__") or "") + "\n"))
    return _BARE.sub(lambda entry: entry[0] + texts.get(entry[1], ""), cleandoc(doc))


@documented
class SavableEstimator(BaseEstimator):
    """Base of estimators that can be copied, saved to a file, read by `cprime.load`, and described by a report.

    A pickle of a fitted estimator omits callbacks that cannot be pickled, and a log line names these. A pickle of an
    unfitted estimator contains all callbacks, because its fit needs them. A copy or a clone uses the same callback
    objects as the original if they cannot be copied. A fitted attribute with an annotation has this type; the check of
    model files reads it (`_utils/declared.py`). An entry of a docstring without a description, only with name and type,
    gets the description of the next base class that has one (`_completed`).

    Parameters
    ----------
    n_clusters : int
        Number of clusters C, at most the number of points.
    random_state : int, RandomState, Generator or None
        Source of the random numbers of the initialization.
    n_threads : int or None
        Threads to use; None is every processor that the process may use. Results do not depend on it.
    checkpoint : path or None
        A new or empty folder in which `fit` stores its state. An interrupted fit is continued by `cprime.resume` or by
        the same call of `fit`, with bit-identical results. At the end the folder contains the model.
    max_memory : int, str, Memory or None
        Most memory that `fit` may take beyond what the process uses: bytes, a text such as "8GB", or `Memory`, which
        also names a folder for active sets. Sources are read in smaller chunks if necessary; a fit that takes more
        raises an error first. None is the limit of the container, above which a fit warns. See `cprime.plan`.
    callbacks : callback or sequence of them
        Functions that are called after every iteration with a row of `history_`, as a dictionary, and the estimator
        with its current parameters, or objects with such a method `on_iteration`; see `cprime.callbacks.Callback`. The
        fit ends if one returns True. Model files do not contain callbacks.
    verbose : int
        1 shows a progress bar: the objective, the quality of the search and the estimated time left. If no bar can be
        drawn, for example in a file, the library's log is shown instead, one line per iteration.

    Attributes
    ----------
    inertia_ : float
        J, the weighted sum of squared distances to the nearest center, in data unit².
    n_iter_ : int
        Number of iterations of the best start.
    converged_ : bool
        Whether the best start converged within max_iter.
    n_features_in_ : int
        Number of columns of the training data.
    feature_names_in_ : ndarray of str
        Present if the columns of the data have names.
    list_column_ : str
        Name of the column of lists of numbers that was fitted; present after a fit of such a column of a file.
    """

    n_features_in_: Annotated[int, Size("D")]
    feature_names_in_: Annotated[NDArray, Texts("D"), Presence.OPTIONAL]
    preparation_: Annotated[PreparationArrays, Presence.OPTIONAL]
    list_column_: Annotated[str, Presence.OPTIONAL]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__doc__ is not None:
            cls.__doc__ = _completed(cls.__doc__, cls.__mro__[1:])

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in super().__getstate__().items() if name not in CACHES}
        if not any(name[-1] == "_" for name in state):
            return state
        owner = type(self).__name__
        return state | {name: picklable(state[name], owner) for name in _CALLBACKS if name in state}

    def __copy__(self) -> Self:
        new = type(self).__new__(type(self))
        with all_callbacks():
            new.__dict__.update(self.__getstate__())
        return new

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        new = memo[id(self)] = type(self).__new__(type(self))
        with all_callbacks():
            state = self.__getstate__()
        for name, value in state.items():
            new.__dict__[name] = deep_copied(value, memo) if name in _CALLBACKS else copy.deepcopy(value, memo)
        return new

    def __sklearn_clone__(self) -> Self:
        if not hasattr(self, "callbacks"):
            return BaseEstimator.__sklearn_clone__(self)
        bare: Any = copy.copy(self)
        bare.callbacks = None
        new: Self = BaseEstimator.__sklearn_clone__(bare)
        new.callbacks = deep_copied(self.callbacks, {})
        return new

    def save(self, path: str | os.PathLike[str] | BinaryIO, *, training_labels: bool = True) -> None:
        """Write the fitted estimator to a safetensors file, completely or not at all; `cprime.load` reads it.

        Parameters
        ----------
        path : path-like or binary file object
            Path of the file, which replaces an existing one when it is complete; or an open file.
        training_labels : bool, default=True
            Whether to store `labels_` (and `codes_` of `ResidualKMeans`), which have a value for each training row.
        """
        check_flag(training_labels, "training_labels")
        model_files.save(self, check_file(path, "path", "write"), training_labels=training_labels)

    def report(
        self,
        X: Any,
        sample_weight: Any = None,
        *,
        profile: Any = None,
        compare: Any = None,
        image_shape: Any = None,
        title: str | None = None,
        max_rows: int | str = "auto",
    ) -> "Report":
        """Describe the fitted model on one page: `estimator.report(X).save("report.html")`.

        The page shows checks with advice, a map of the clusters, how each cluster differs from the rest, the sizes of
        clusters, the quality of the search, the certainty of assignments, and J and F at each iteration. The page loads
        nothing from the network. The method needs Jinja2 and Pillow, and pandas for `profile`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a source
            The training data or other data, in the units of the training data.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the points; None is 1 for each.
        profile : table, dict of columns, path, or None, default=None
            Columns by which the page describes each cluster in sentences, with the same rows as X. They may be text,
            categories or dates, and columns that were not fitted, in any units. See `cprime.report.profile`.
        compare : fitted estimator or None, default=None
            Another model of the same features, whose labels are compared with those of this one.
        image_shape : tuple of two or three int, or None, default=None
            (height, width) or (height, width, 3) if rows are images; centers are then shown as images.
        title : str or None, default=None
            The heading; None is the number of clusters.
        max_rows : int or "auto", default="auto"
            Number of rows used, a random sample if the data have more. "auto" is as many as can be compared with all
            components in a second or two. The page states the number; cluster sizes are those of the fit.

        Returns
        -------
        report : Report
            Has `html`, `save` and the values of every section; notebooks show the page.

        Raises
        ------
        ImportError
            If Jinja2 or Pillow is missing.
        TypeError
            If the model has no centers in the space of the data, such as k-medoids of precomputed dissimilarities.
        """
        from cprime.report import report_of

        return report_of(
            self,
            X,
            sample_weight=sample_weight,
            profile=profile,
            compare=compare,
            image_shape=image_shape,
            title=title,
            max_rows=max_rows,
        )

    def _attribute_types(self) -> dict[str, Any]:
        """Return the types of the fitted attributes by name, see `_utils/declared.py`."""
        return attribute_types(type(self))

    def _check_fitted(self) -> None:
        """Raise ValueError if a fitted attribute is missing or invalid, for example after a damaged file was read."""
        check_values(vars(self), self._attribute_types())
