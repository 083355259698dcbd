"""Mixture discriminant analysis: a classifier with a mixture for each class."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names, _check_y, _get_feature_names, check_is_fitted

from cprime._utils.arguments import check_integers, naming
from cprime._utils.declared import Array, Texts
from cprime._utils.messages import require
from cprime._utils.random import check_random_state
from cprime.estimators import GaussianMixture
from cprime.estimators.constraints import refuse_labels
from cprime.estimators.covariances import Factors
from cprime.estimators.fitted import data_for, model_of, size_of, with_all_categories, without_names
from cprime.estimators.mixture import Mixture
from cprime.estimators.savable import SavableEstimator
from cprime.estimators.validation import check_choice, check_integer
from cprime.estimators.watching import restore_on_error
from cprime.kernels import computing
from cprime.persistence import model_files
from cprime.selection.families import judged_model
from cprime.selection.sweep import CRITERIA, WeightedData, sweep, weighted_data
from cprime.sources import Source, array_of, is_source_like
from cprime.sources.kinds import library_of


def _are_of_columns(mixtures: Any, sizes: dict[str, int]) -> bool:
    """Return whether there is a fitted mixture for each of the K classes, all of the same D columns."""
    widths = {getattr(each, "n_features_in_", 0) for each in mixtures}
    return len(mixtures) == sizes["K"] and 0 not in widths and widths == {sizes.setdefault("D", min(widths))}


@model_files.register
class MixtureClassifier(ClassifierMixin, SavableEstimator):
    """Classifier with a mixture for each class: p(y = k given x) ∝ π_k p_k(x), mixture discriminant analysis.

    Each class has a mixture of its own, which is fitted to the rows of the class, so a class may have several clusters
    or any other shape. With one full Gaussian for each class this is quadratic discriminant analysis. By default BIC
    chooses the number of components of each class from 1 to 5, as in MclustDA. Mixtures of other families classify
    counts, categories, or tables with columns of several kinds.

    Parameters
    ----------
    estimator : mixture or None, default=None
        Mixture of any class of this library, which is cloned for each class. None is `GaussianMixture()`.
    n_components : int, iterable of int, dict or None, default=(1, 2, 3, 4, 5)
        Number of components of each class, or numbers from which `criterion` chooses for each class; of these,
        numbers above the number of rows of the class are left out. A dict has such a value for each class, by its
        label. None is the number of `estimator`.
    covariance_type : str, Factors, sequence of them, or None, default=None
        Covariance type of the mixtures. With "all" or a sequence, `criterion` chooses one of these types for each
        class; `estimator` must then be a `GaussianMixture` or `StudentTMixture`. None is the type of `estimator`.
    criterion : {"bic", "icl", "aic", "free_energy_bic"}, default="bic"
        Criterion of `cprime.selection.sweep` by which numbers of components and covariance types are chosen.
    priors : array-like of shape (n_classes,) or None, default=None
        Probabilities π_k of the classes, in the order of `classes_`. None is their share of the weight of the rows.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers of all fits, which are the same for each class. None is the `random_state` of
        `estimator`.
    n_threads : int or None, default=None
        Threads to use. None is the number of `estimator`. Results do not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Probabilities π_k of the classes.
    mixtures_ : list of mixtures
        The fitted mixture of each class. The properties `n_components_` and `covariance_types_` list what was chosen.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    If there is a single number of components and a single covariance type, the fit of a class is that of the cloned
    `estimator`. Otherwise it is the best fit of `sweep`, with its starts and its tolerance.

    The likelihood of a component that has collapsed onto a few points is unbounded. So of several fits, only those
    whose components have the fewest collapsed columns are compared (none, unless columns of the class are constant or
    determined by others). `GaussianMixture(prior=Prior())` as `estimator` avoids such components.

    Rows whose weight is zero are left out. Posteriors use the exact densities of all components, also if the fits are
    truncated (`n_active`).

    With `n_components=1` and full covariances the posteriors are those of scikit-learn's
    `QuadraticDiscriminantAnalysis`, up to `reg_covar`, if its covariances have the divisor N_k as in recent versions;
    former versions divide by N_k − 1.

    References
    ----------
    Hastie & Tibshirani (1996), *Discriminant analysis by Gaussian mixtures*. Fraley & Raftery (2002), *Model-based
    clustering, discriminant analysis, and density estimation*: MclustDA.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import MixtureClassifier
    >>> rng = np.random.default_rng(0)
    >>> places = rng.choice([-4.0, 0.0, 4.0], size=300)
    >>> X, y = rng.normal(places)[:, np.newaxis], np.where(places == 0, "inside", "outside")
    >>> mc = MixtureClassifier(random_state=0).fit(X, y)
    >>> mc.classes_.tolist(), mc.n_components_.tolist()
    (['inside', 'outside'], [1, 2])
    >>> mc.predict([[-3.0], [0.0], [3.0]]).tolist()
    ['outside', 'inside', 'outside']
    """

    classes_: Annotated[NDArray, Array("K", "b i u f")] | Annotated[NDArray, Texts("K")]
    class_prior_: Annotated[NDArray, Array("K", least=0, is_first=True)]
    mixtures_: Annotated[list[Mixture], _are_of_columns]

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_components: Any = (1, 2, 3, 4, 5),
        covariance_type: Any = None,
        criterion: str = "bic",
        priors: Any = None,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.criterion = criterion
        self.priors = priors
        self.random_state = random_state
        self.n_threads = n_threads

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, Mixture):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    @property
    def n_components_(self) -> NDArray[np.int64]:
        """Number of components of each class: (n_classes,)."""
        return np.array([len(each.weights_) for each in self.mixtures_])

    @property
    def covariance_types_(self) -> list[str]:
        """Covariance type of each class, by the name with which it was chosen."""
        return [str(each.covariance_type) for each in self.mixtures_]

    @restore_on_error
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit a mixture to the rows of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), table or source
            Rows that `estimator` accepts, without those of Dask.
        y : array-like of shape (n_samples,)
            Labels of the classes: numbers or text.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 counts the row twice; None is 1 for each.

        Returns
        -------
        self : MixtureClassifier

        Raises
        ------
        TypeError
            If `estimator` is not a mixture, or an argument has another type than stated.
        ValueError
            If an argument is out of its range, there are fewer than two classes, or a class has too few rows.
        """
        check_choice(self.criterion, "criterion", CRITERIA)
        data = _data_of(X, sample_weight)
        labels, weights = _labels_of(self, y, data), _weights_of(data)
        rows = np.flatnonzero(weights)
        with naming("y"):
            classes, ids = np.unique(labels[rows], return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y must have at least 2 classes, got {len(classes)} class.")
        counts = np.bincount(ids, weights[rows])
        priors = counts / counts.sum() if self.priors is None else _priors_of(self.priors, len(classes))
        rng = check_random_state(self.random_state)
        template = with_all_categories(self._template(int(rng.randint(2**31))), data.X)
        names = classes.tolist()
        numbers = self._numbers(template, names, np.bincount(ids))
        mixtures = [self._fitted(template, data.part(rows[ids == k]), numbers[k], name) for k, name in enumerate(names)]
        self.classes_, self.class_prior_, self.mixtures_ = classes, priors, mixtures
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(mixtures[0], name):
                setattr(self, name, getattr(mixtures[0], name))
        return self

    def _template(self, seed: int) -> Any:
        """Return the unfitted mixture that is cloned for each class; raise TypeError or ValueError if it is invalid."""
        estimator = GaussianMixture() if self.estimator is None else self.estimator
        if not isinstance(estimator, Mixture):
            raise TypeError(f"estimator must be a mixture, such as a GaussianMixture, got {estimator!r}.")
        refuse_labels(estimator, "MixtureClassifier")
        if estimator.checkpoint is not None:
            raise ValueError(f"estimator must have checkpoint=None, got {estimator.checkpoint!r}.")
        changes: dict[str, Any] = {} if self.random_state is None else {"random_state": seed}
        if self.n_threads is not None:
            changes["n_threads"] = self.n_threads
        if self.covariance_type is not None and not self._has_several_types:
            changes["covariance_type"] = self.covariance_type
        if self.covariance_type is not None and "covariance_type" not in estimator.get_params():
            raise ValueError(
                f"covariance_type must be None for a {type(estimator).__name__}, got {self.covariance_type!r}."
            )
        return clone(estimator).set_params(**changes)

    @property
    def _has_several_types(self) -> bool:
        given = self.covariance_type
        return given is not None and not (isinstance(given, Factors) or (isinstance(given, str) and given != "all"))

    def _numbers(self, template: Any, names: list[Any], n_rows: NDArray[np.intp]) -> list[list[int]]:
        """Return the numbers of components to try for each class, in ascending order.

        names: the K classes    n_rows (K,): number of rows of each class
        """
        given = template.n_components if self.n_components is None else self.n_components
        if not isinstance(given, Mapping):
            given = dict.fromkeys(names, list(given) if isinstance(given, Iterable) else given)
        elif set(given) != set(names):
            raise ValueError(f"n_components must have the keys {names}, the classes of y, got {list(given)}.")
        found = []
        for name, n in zip(names, n_rows, strict=True):
            each = given[name]
            numbers = check_integers(each if isinstance(each, Iterable) else [each], "n_components", 1)
            if numbers[0] > n:
                raise ValueError(
                    f"n_components must be at most the number of rows of each class, got {numbers[0]} for the class "
                    f"{name!r} of {n} rows."
                )
            found.append([number for number in numbers if number <= n])
        return found

    def _fitted(self, template: Any, data: WeightedData, numbers: list[int], name: Any) -> Any:
        """Return the mixture of one class, fitted to its rows, with the best of the numbers of components."""
        if len(numbers) == 1 and not self._has_several_types:
            return clone(template).set_params(**size_of(template, numbers[0])).fit(data.X, None, data.weights)
        with warnings.catch_warnings():  # `n_components_` shows whether a number is at the border.
            warnings.filterwarnings("ignore", "The best number of components", UserWarning)
            found = sweep(
                template,
                data.X,
                numbers,
                covariance_type=self.covariance_type if self._has_several_types else None,
                sample_weight=data.weights,
                holdout=None,
                criteria=[self.criterion],
                random_state=template.random_state,
            )
        values, fits = getattr(found, self.criterion), found.estimators
        if np.isnan(values).all():
            raise ValueError(
                f"n_components={numbers} must have a number without collapsed components for the class {name!r} of "
                f"{data.n_rows} rows: give fewer components, other covariance types, or a greater reg_covar."
            )
        n_collapsed = np.where(np.isnan(values), np.inf, [_n_collapsed(each) for each in fits])
        return fits[int(np.where(n_collapsed > n_collapsed.min(), np.inf, values).argmin())]

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithms of π_k p_k(x), the joint densities of row and class, in nats.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), table or source

        Returns
        -------
        decision : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            For two classes, the log ratio of the posterior of the second class to that of the first one.
        """
        joint = self._log_joint(X)
        return joint[:, 1] - joint[:, 0] if len(self.classes_) == 2 else joint

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithms of the posterior probabilities of the classes: (n_samples, n_classes)."""
        joint = self._log_joint(X)
        joint -= joint.max(axis=1, keepdims=True)  # Far from all classes, numbers are so large that log 2 is lost.
        with np.errstate(under="ignore"):
            return joint - logsumexp(joint, axis=1, keepdims=True)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the posterior probabilities of the classes; rows sum to 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), table or source

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            The priors, for a row whose density is too small to be represented in all classes.
        """
        logarithms = self.predict_log_proba(X)
        with np.errstate(under="ignore"):
            return np.exp(logarithms)

    def predict(self, X: Any) -> NDArray:
        """Return the most probable class of each row: (n_samples,); ties go to the first class of `classes_`."""
        best = self._log_joint(X).argmax(axis=1)
        return self.classes_[best]

    def bic(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the Bayesian information criterion of the joint density π_y p_y(x); lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), table or source
        y : array-like of shape (n_samples,)
            Labels, which are in `classes_`.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 counts the row twice, also in the number of rows N.

        Returns
        -------
        bic : float
            −2 Σ_n log π_y p_y(x_n) + k log N. The number of parameters k contains the n_classes − 1 priors, unless the
            argument `priors` has them.
        """
        check_is_fitted(self)
        data = _data_of(X, sample_weight)
        labels, weights = _labels_of(self, y, data), _weights_of(data)
        with naming("y"):
            ids = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
        unknown = self.classes_[ids] != labels
        if unknown.any():
            raise ValueError(f"y must have labels of {self.classes_.tolist()}, got {labels[unknown][0]!r}.")
        total = weights @ self._log_joint(X)[np.arange(len(ids)), ids]
        n_parameters = sum(model_of(each).n_parameters for each in self.mixtures_)
        n_parameters += 0 if self.priors is not None else len(self.classes_) - 1
        return float(-2 * total + n_parameters * np.log(weights.sum()))

    def sample(self, n_samples: int = 1, *, random_state: Any = None) -> tuple[Any, NDArray]:
        """Draw rows and their labels.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=None
            None is the `random_state` of the classifier.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features), or pandas.DataFrame
            As the method `sample` of the mixtures returns them.
        y : ndarray of shape (n_samples,)
            The class of each row; rows of one class follow each other.
        """
        check_is_fitted(self)
        check_integer(n_samples, "n_samples", 1)
        rng = check_random_state(self.random_state if random_state is None else random_state)
        counts = rng.multinomial(n_samples, self.class_prior_)
        parts = [each.sample(n, random_state=rng)[0] for each, n in zip(self.mixtures_, counts, strict=True) if n]
        is_array = isinstance(parts[0], np.ndarray)
        X = np.concatenate(parts) if is_array else require("pandas", "a table").concat(parts, ignore_index=True)
        return X, np.repeat(self.classes_, counts)

    def _log_joint(self, X: Any) -> NDArray[np.float64]:
        """Return log π_k p_k(x) of every row and class: (n, K); log π_k if all are −∞."""
        check_is_fitted(self)
        mixtures = self.mixtures_
        if not is_source_like(X):
            _check_feature_names(self, X, reset=False)
            if _get_feature_names(X) is None:  # the warning above is enough
                mixtures = [without_names(each) for each in mixtures]
        found = []
        for mixture in mixtures:
            with computing(mixture.n_threads):
                data = data_for(mixture, X)
                found.append(data.map(model_of(mixture, data).log_likelihood, None, np.float64))
        with np.errstate(divide="ignore"):
            log_priors = np.log(self.class_prior_)
        joint = np.column_stack(found) + log_priors
        joint[np.isneginf(joint).all(axis=1)] = log_priors
        return joint


def _n_collapsed(mixture: Any) -> int:
    """Return the number of columns whose variance, given the others, is `reg_covar` in the most degenerate component.

    A component of a few points has more such columns than the data, of which some may be constant.
    """
    model = judged_model(mixture)
    least = model.least_variances
    if least is None:
        return 0
    given = getattr(mixture, "precisions_", None)
    precisions = 1 / least if given is None else np.asarray(given)
    if precisions.ndim == 3:
        precisions = np.diagonal(precisions, axis1=1, axis2=2)
    variances = 1 / precisions.reshape(len(least), -1)
    return int((variances <= 2 * mixture.reg_covar).sum(axis=1).max()) + (model.n_collapsed > 0)


def _data_of(X: Any, sample_weight: Any) -> WeightedData:
    """Return rows and weights; X without indexing becomes an array.    Raises TypeError for Dask collections."""
    if library_of(X) == "dask":
        raise TypeError("X must be in memory or in files for a MixtureClassifier, got a Dask collection.")
    return weighted_data(X if hasattr(X, "__getitem__") or is_source_like(X) else array_of(X, "X"), sample_weight)


def _weights_of(data: WeightedData) -> NDArray[np.float64]:
    """Return the weights of all rows, (N,); ones if there are none."""
    weights = data.X.weights(0, len(data.X)) if isinstance(data.X, Source) else data.weights
    return np.ones(data.n_rows) if weights is None else np.asarray(weights, dtype=np.float64)


def _labels_of(classifier: Any, y: Any, data: WeightedData) -> NDArray:
    """Return the argument y as an array (N,) after checks."""
    with naming("y"):
        labels: NDArray = _check_y(y, estimator=classifier)
        check_classification_targets(labels)
    if len(labels) != data.n_rows:
        raise ValueError(f"y must have a label for each of {data.n_rows} rows, got {len(labels)}.")
    return labels


def _priors_of(given: Any, n_classes: int) -> NDArray[np.float64]:
    """Return the argument `priors` as an array (K,) after checks."""
    priors = array_of(given, "priors", np.float64)
    if priors.shape != (n_classes,):
        raise ValueError(f"priors must have a number for each of {n_classes} classes, got the shape {priors.shape}.")
    if not (priors >= 0).all() or abs(priors.sum() - 1) > 1e-6:
        raise ValueError(f"priors must be >= 0 and sum to 1, got {priors.tolist()}.")
    return priors
