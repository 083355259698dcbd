"""Methods of fitted mixtures: best components, probabilities, densities, information criteria and samples."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from cprime import em
from cprime._utils.random import check_random_state
from cprime.estimators.approximate import approximate_search, near_best
from cprime.estimators.opening import preparation_of
from cprime.estimators.quality import say_truncated
from cprime.estimators.validation import check_flag, check_integer
from cprime.execution.results import kept_entries
from cprime.kernels import Rows, computing, posterior
from cprime.model import Model
from cprime.model.base import rows_of_piece
from cprime.search.nearby import Nearby


def best_of(model: Model, X: Rows) -> NDArray[np.int32]:
    """Return the index of the most probable component of each row: (n,)."""
    return model.components().best(model.embed(X), 1)[0][:, 0]


def _best_with_distances(model: Model, X: Rows) -> tuple[NDArray[np.int32], NDArray]:
    """Return the index of each row's most probable component, and the Mahalanobis distance to its mean, (n,) each."""
    labels = best_of(model, X)
    return labels, model.distances(X, labels)


def _truncated(model: Model, nearby: Nearby | None, n_kept: int, sparse: bool, X: Rows) -> NDArray | csr_array:
    """Return the posterior probabilities of each row, (n, C), truncated to the row's C′ best components.

    nearby: search structure that finds approximately best components; None is an exact search    n_kept: C′
    sparse: whether to return a CSR array of the C′ nonzero entries of each row
    """
    points = model.embed(X)
    ids, costs = model.components().best(points, n_kept) if nearby is None else nearby.find(points, n_kept)
    responsibilities = posterior(costs, model.scale).responsibilities
    return kept_entries(ids, responsibilities, len(model.centers), sparse)


def _uncertainty(model: Model, X: Rows) -> NDArray[np.float64]:
    """Return 1 − max_c p(c | x) of each row, with the exact posterior over all components: (n,)."""
    step = rows_of_piece(model.n_components)
    largest = [model.responsibilities(X[i : i + step]).max(axis=1) for i in range(0, len(X), step)]
    return np.maximum(1 - np.concatenate(largest, dtype=np.float64), 0.0)


def predict(self: Any, X: Any, approximate: bool = False, *, out: Any = None) -> NDArray[np.int32]:
    """Return the index of the most probable component of each row; ties go to the lower index.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    approximate : bool, default=False
        False searches all components. True searches only components near each row, if there are more than 8,192
        components (4,096 for tied_spherical and tied covariances); `certify` measures the quality.
    out : ndarray, str or path-like, default=None
        Destination of the result: an array of its shape and dtype (for example a memory map), or the path of a .npy
        file, which is written completely or not at all and returned as a memory map.

    Returns
    -------
    labels : ndarray of shape (n_samples,), int32
    """
    with computing(self.n_threads):
        data = self._opened(X)
        model = self._model_of(data)
        approximate = check_flag(approximate, "approximate")
        job = partial(near_best, model, approximate_search(self, model)) if approximate else partial(best_of, model)
        return data.map(job, None, np.int32, out)


def nearest(self: Any, X: Any, *, out: Any = None) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the index of the most probable component of each row and the distance to its mean.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    out : tuple of two, default=None
        Destinations of labels and distances, each like `out` of `predict`.

    Returns
    -------
    labels : ndarray of shape (n_samples,), int32
        The same as those of `predict`.
    distances : ndarray of shape (n_samples,), float64
        Mahalanobis distances √((x − μ)ᵀ Σ⁻¹ (x − μ)), in standard deviations of the component.
    """
    with computing(self.n_threads):
        data = self._opened(X)
        model = self._model_of(data)
        return data.map(partial(_best_with_distances, model), None, (np.int32, np.float64), out)


@overload
def predict_proba(
    self: Any, X: Any, sparse: Literal[False] = False, approximate: bool = False, *, out: Any = None
) -> NDArray: ...


@overload
def predict_proba(self: Any, X: Any, sparse: Literal[True], approximate: bool = False) -> csr_array: ...


@overload
def predict_proba(
    self: Any, X: Any, sparse: bool, approximate: bool = False, *, out: Any = None
) -> NDArray | csr_array: ...


def predict_proba(
    self: Any, X: Any, sparse: bool = False, approximate: bool = False, *, out: Any = None
) -> NDArray | csr_array:
    """Return the truncated posterior of each row, eq. (5) of Lücke & Forster; the exact one if `n_active_` is C.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    sparse : bool, default=False
        True returns a CSR array of the `n_active_` entries of each row; False a dense N×C array, zero elsewhere.
    approximate : bool, default=False
        False searches all components for the best ones of each row. True searches only components near each row, if
        there are more than 8,192 components (4,096 for tied_spherical and tied covariances) and `n_active_` is less
        than C; `certify` measures the quality.
    out : ndarray, str or path-like, default=None
        Destination of the result: an array of its shape and dtype (for example a memory map), or the path of a .npy
        file, which is written completely or not at all and returned as a memory map. It must be None if `sparse`.

    Returns
    -------
    probabilities : ndarray or csr_array of shape (n_samples, n_components)
        In the dtype of the means. Rows sum to 1.
    """
    check_flag(sparse, "sparse")
    check_flag(approximate, "approximate")
    if sparse and out is not None:
        raise ValueError("out must be None where sparse=True: a CSR array has no file or array of its own.")
    with computing(self.n_threads):
        data = self._opened(X)
        H, C = self.n_active_, len(self.means_)
        say_truncated(self, "predict_proba")
        model = self._model_of(data)
        nearby = approximate_search(self, model) if approximate and H < C else None
        truncated = partial(_truncated, model, nearby, H, sparse)
        job = model.responsibilities if not sparse and C == H else truncated
        return data.map(job, C, model.centers.dtype, out)


def score_samples(self: Any, X: Any, *, out: Any = None) -> NDArray:
    """Return the exact log-likelihood of each row, log Σ_c π_c p(x | c) over all components, in nats.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    out : ndarray, str or path-like, default=None
        Destination of the result: an array of its shape and dtype (for example a memory map), or the path of a .npy
        file, which is written completely or not at all and returned as a memory map.

    Returns
    -------
    log_likelihood : ndarray of shape (n_samples,)
        In the dtype of the means.
    """
    with computing(self.n_threads):
        data = self._opened(X)
        model = self._model_of(data)
        return data.map(model.log_likelihood, None, model.centers.dtype, out)


def uncertainty(self: Any, X: Any, *, out: Any = None) -> NDArray:
    """Return the uncertainty of each row's label: 1 − max_c p(c | x), its probability of another component.

    The posterior is the exact one over all components, also if `n_active_` is less than their number.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    out : ndarray, str or path-like, default=None
        Destination of the result, as in `score_samples`.

    Returns
    -------
    uncertainty : ndarray of shape (n_samples,)
        From 0 to (C − 1)/C, in the dtype of the means.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import GaussianMixture
    >>> gm = GaussianMixture(2, random_state=0).fit([[0.0], [1.0], [9.0], [10.0]])
    >>> gm.uncertainty([[0.5], [5.0]]).round(2).tolist()
    [0.0, 0.5]
    """
    with computing(self.n_threads):
        data = self._opened(X)
        model = self._model_of(data)
        return data.map(partial(_uncertainty, model), None, model.centers.dtype, out)


def bic(self: Any, X: Any, sample_weight: Any = None) -> float:
    """Return the Bayesian information criterion −2 N L + k log N; lower is better.

    L: mean exact log-likelihood of the rows [nats]    k: number of free parameters    N: number of rows

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 counts the row twice, also in N; None is 1 for each.

    Returns
    -------
    bic : float
    """
    return of_log_likelihood(self, X, sample_weight, lambda total, k, n: -2 * total + k * np.log(n))


def aic(self: Any, X: Any, sample_weight: Any = None) -> float:
    """Return the Akaike information criterion −2 N L + 2 k; lower is better.

    L: mean exact log-likelihood of the rows [nats]    k: number of free parameters    N: number of rows

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 counts the row twice; None is 1 for each.

    Returns
    -------
    aic : float
    """
    return of_log_likelihood(self, X, sample_weight, lambda total, k, n: -2 * total + 2 * k)


def of_log_likelihood(self: Any, X: Any, sample_weight: Any, value: Callable[[float, int, float], float]) -> float:
    """Return `value` of: log-likelihood of all rows [nats], number of free parameters, total weight."""
    with computing(self.n_threads):
        data = self._opened(X, sample_weight)
        model = self._model_of(data)
        total, weight = data.each(em.LogLikelihood(model))
        return float(value(total, model.n_parameters, weight))


def sample(self: Any, n_samples: int = 1, *, random_state: Any = None) -> tuple[NDArray, NDArray[np.int32]]:
    """Draw points from the fitted mixture.

    Parameters
    ----------
    n_samples : int, default=1
    random_state : int, RandomState, Generator or None, default=None
        None is the `random_state` of the estimator. If that is an int, every call draws the same points; if it is
        None or a generator, every call draws new ones.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        In the dtype of the means and the units of the data.
    components : ndarray of shape (n_samples,), int32
        The component that each point was drawn from, in ascending order.
    """
    check_is_fitted(self)
    check_integer(n_samples, "n_samples", 1)
    rng = check_random_state(self.random_state if random_state is None else random_state)
    with computing(self.n_threads):
        model, weights = self._parameters(), np.asarray(self.weights_, dtype=np.float64)
        counts = rng.multinomial(n_samples, weights / weights.sum())
        components = np.repeat(np.arange(len(model.centers), dtype=np.int32), counts)
        normal = rng.standard_normal((n_samples, model.n_normals))
        drawn = model.drawn(components, normal).astype(model.centers.dtype, copy=False)
        return preparation_of(self).restored(drawn), components
