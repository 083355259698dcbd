"""Standard errors of a fit from one or two passes over its data: Pollard's theorem for k-means, scores for mixtures."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from sklearn.utils.validation import check_is_fitted

from cprime.estimators import GaussianMixture, KMeans, RegressionMixture
from cprime.estimators.constraints import refuse_labels
from cprime.estimators.fitted import centers_of, data_for, model_of
from cprime.execution import Data
from cprime.execution.block import ActiveSet, Block
from cprime.execution.statistics import Sums
from cprime.kernels import computing
from cprime.model import Model, Regression
from cprime.selection.parameters import ParameterErrors

Floats = NDArray[np.float64]
_WHOLE = 2000  # Largest C·D for which Γ of k-means is one matrix; for more, it is one of (D, D) for each center.
_MOST_PARAMETERS = 5000  # of a mixture, whose information matrix has the square of this number of entries
_VALUES = 2**21  # Number of values in the temporary arrays of a piece of rows.
_BANDWIDTH = 2.34  # of Epanechnikov's kernel, in standard deviations times n^(−1/5)
_LEAST_EIGENVALUE = 1e-10  # of a scaled information matrix that has an inverse
# Arguments of estimators, and the values for which the theory holds.
_PLAIN = {
    "metric": "euclidean",
    "fixed": None,
    "size_max": None,
    "size_min": None,
    "epsilon": 0.0,
    "assignment": "soft",
}


@dataclass(frozen=True, eq=False, repr=False)
class StandardErrors(ParameterErrors):
    """Standard errors of the parameters of a fit, by large-sample theory; returned by `standard_errors`.

    The repr is a table.

    Attributes
    ----------
    estimates, standard_errors : dict of str to ndarray
        Fitted parameters by the names of their attributes, and their standard errors: of k-means the centers, of
        mixtures the weights (if they are free), means and covariances, of mixtures of regressions all parameters.
    center_covariances : ndarray of shape (n_components, n_features, n_features)
        Covariance of the estimate of each center or mean, in data unit². For mixtures of regressions it is that of each
        component's coefficients and, last, its intercept, and so has one more row and column than there are regressors.
    method : str
        "Pollard" for k-means, "Pollard, without covariances of different centers" if n_components · n_features is above
        2,000, or "information" for mixtures.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.datasets import old_faithful
    >>> from cprime.selection import standard_errors
    >>> X = old_faithful().data
    >>> found = standard_errors(KMeans(2, random_state=0).fit(X), X)
    >>> found.center_covariances.shape
    (2, 2, 2)
    """

    center_covariances: NDArray[np.float64]
    method: str

    def _title(self) -> str:
        return f"Standard errors ({self.method}); intervals of 95 %"


def standard_errors(
    estimator: KMeans | GaussianMixture | RegressionMixture, X: Any, y: Any = None, *, sample_weight: Any = None
) -> StandardErrors:
    """Compute standard errors of the centers of a k-means, or of the parameters of a mixture, without refits.

    k-means: the centers of N points converge to those of the distribution, and √N times the difference becomes normal
    with covariance Γ⁻¹VΓ⁻¹ (Pollard 1982). V is made of the covariances within the clusters. Γ is the matrix of second
    derivatives of the mean squared distance. It contains integrals of the density over the faces between cells, because
    points near a face are reassigned if centers move. They are estimated from the points near each face, by a kernel of
    the distance to it. Σ_c/N_c, the covariance of a mean, leaves these out and is too small where clusters touch. If
    n_clusters · n_features is above 2,000, blocks of Γ for different centers are left out, because Γ would be large;
    the standard errors are then too small where clusters touch, by 42 % for 20 clusters of one cloud in the plane.

    Mixtures: the inverse of Meilijson's empirical information Σ_n w_n s_n s_nᵀ, with the derivatives s_n of
    log p(x_n) by all parameters. All components count, also if the fit was truncated.

    The theory needs many points, a fit that has converged, and the right number of components. `bootstrap` needs less,
    takes any estimator, and has also intervals that are not symmetric.

    Parameters
    ----------
    estimator : fitted KMeans, GaussianMixture or RegressionMixture
        The `covariance_type` of a Gaussian mixture is "tied_spherical", "spherical", "diag", "tied" or "full".
    X : array-like, source, or sparse array (k-means only), of shape (n_samples, n_features)
        The data of the fit, without missing values.
    y : array-like of shape (n_samples,), default=None
        The y of a fit of a `RegressionMixture`; None for other estimators.
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 is equivalent to the point occurring twice, so the weights sum to the number of points.

    Returns
    -------
    errors : StandardErrors

    Raises
    ------
    TypeError
        If the estimator is of another class.
    ValueError
        If the fit has options for which the theory does not hold, such as fixed centers; a mixture has more than 5,000
        parameters; or Γ or the information has no inverse, for example because a component has too few points.

    References
    ----------
    Pollard (1982), *A central limit theorem for k-means clustering*. Meilijson (1989), *A fast improvement to the EM
    algorithm on its own terms*. McLachlan & Peel (2000), *Finite mixture models*, section 2.15.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import GaussianMixture
    >>> from cprime.selection import standard_errors
    >>> X = np.random.default_rng(0).normal(0.0, 2.0, size=(400, 1))
    >>> standard_errors(GaussianMixture().fit(X), X).standard_errors["means_"].round(1).tolist()  # 2/√400 = 0.1
    [[0.1]]
    """
    if not isinstance(estimator, KMeans | GaussianMixture | RegressionMixture):
        raise TypeError(
            "estimator must be a KMeans, GaussianMixture or RegressionMixture, got "
            f"{type(estimator).__name__}: use `bootstrap`."
        )
    check_is_fitted(estimator)
    if y is not None and not isinstance(estimator, RegressionMixture):
        raise ValueError(f"y must be None for a {type(estimator).__name__}, got {type(y).__name__}.")
    if not isinstance(estimator, RegressionMixture):
        refuse_labels(estimator, "standard_errors")
    for name, value in _PLAIN.items():
        given = getattr(estimator, name, value)
        if given is not value and given != value:
            raise ValueError(f"standard_errors needs {name}={value!r}, got {given!r}: use `bootstrap`.")
    with computing(estimator.n_threads):
        if isinstance(estimator, RegressionMixture):
            return _of_regressions(estimator, estimator._opened(X, y, sample_weight=sample_weight))
        data = data_for(estimator, X, sample_weight)
        if data.has_missing:
            raise ValueError("standard_errors needs complete rows, got missing='marginal': use `bootstrap`.")
        return _of_centers(estimator, data) if isinstance(estimator, KMeans) else _of_mixture(estimator, data)


def _pieces(block: Block, width: int) -> Iterator[tuple[Any, Floats, Floats]]:
    """Yield a few rows of a block at a time: as `Rows`, as float64 (n, D), and their weights (n,).

    width: number of temporary values for each row
    """
    step = max(1, _VALUES // width)
    for begin in range(0, len(block), step):
        X = block.X[begin : begin + step]
        w = np.ones(len(X)) if block.sample_weight is None else block.sample_weight[begin : begin + step]
        yield X, X.dense().astype(np.float64), w


def _groups(keys: NDArray) -> Iterator[tuple[Any, NDArray]]:
    """Yield each distinct key, and the indices of the rows that have it."""
    order = np.argsort(keys, kind="stable")
    found, begins = np.unique(keys[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, begins[1:]), strict=True)


@dataclass(frozen=True)
class _CellSums(Sums):
    """Sums over the points x of each cell, of center μ.

    counts (C,): Σ w    scatter (C, D, D): Σ w (x − μ)(x − μ)ᵀ
    """

    counts: Floats
    scatter: Floats


@dataclass(frozen=True)
class _SumCells:
    """Job that computes the `_CellSums` of a block.    model: the centers"""

    model: Model

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, _CellSums]:
        centers = self.model.centers.astype(np.float64)
        C, D = centers.shape
        counts, scatter = np.zeros(C), np.zeros((C, D, D))
        for rows, X, w in _pieces(block, D):
            labels = self.model.components().best(self.model.embed(rows), 1)[0][:, 0]
            for c, places in _groups(labels):
                centered = X[places] - centers[c]
                counts[c] += w[places].sum()
                scatter[c] += (w[places, np.newaxis] * centered).T @ centered
        return None, _CellSums(counts, scatter)


class _Curvature(NamedTuple):
    """Integrals over the faces, as a partial result: (C, D, C, D), or its blocks of equal centers (C, D, D)."""

    faces: Floats

    def __add__(self, other: "_Curvature") -> "_Curvature":  # type: ignore[override]
        return _Curvature(self.faces + other.faces)


@dataclass(frozen=True)
class _SumFaces:
    """Job that estimates the part of Γ that comes from the faces between cells, times the weight of the data.

    A point x near the face of its two nearest centers c and j, at distance s, counts with the weight w K(s/h)/h as the
    nearest point x + s u of the face, where u is the direction from c to j.
    model: the centers    covariances (C, D, D): of the points within each cell
    reach (C,): factor of the bandwidth, 2.34 N_c^(−1/5), so h is its mean over both cells times the standard deviation
    of the points in direction u    is_whole: whether to compute blocks of different centers
    """

    model: Model
    covariances: Floats
    reach: Floats
    is_whole: bool

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, _Curvature]:
        centers = self.model.centers.astype(np.float64)
        C, D = centers.shape
        faces = np.zeros((C, D, C, D) if self.is_whole else (C, D, D))
        for rows, X, w in _pieces(block, 4 * D):
            pairs = np.sort(self.model.components().best(self.model.embed(rows), 2)[0], axis=1).astype(np.int64)
            for pair, places in _groups(pairs[:, 0] * C + pairs[:, 1]):
                c, j = divmod(pair, C)
                r = np.linalg.norm(centers[j] - centers[c])
                u = (centers[j] - centers[c]) / r
                deviations = np.sqrt(np.einsum("i,kij,j->k", u, self.covariances[[c, j]], u))
                h = float((self.reach[[c, j]] * deviations).mean())
                s = ((centers[c] + centers[j]) / 2 - X[places]) @ u
                near = np.abs(s) < h
                s, places = s[near], places[near]
                share = 2 / r * w[places] * 0.75 * (1 - np.square(s / h)) / h
                on_face = X[places] + s[:, np.newaxis] * u
                to = on_face - centers[c], on_face - centers[j]
                for (a, i), (b, k) in (((c, 0), (c, 0)), ((j, 1), (j, 1)), ((c, 0), (j, 1)), ((j, 1), (c, 0))):
                    product = (share[:, np.newaxis] * to[i]).T @ to[k]
                    if self.is_whole:
                        faces[a, :, b] += product if a != b else -product
                    elif a == b:
                        faces[a] -= product
        return None, _Curvature(faces)


def _of_centers(km: KMeans, data: Data) -> StandardErrors:
    """Return the standard errors of the centers by Pollard's theorem."""
    model, centers = model_of(km), centers_of(km)
    C, D = centers.shape
    cells = data.each(_SumCells(model))
    W, counts = cells.counts.sum(), cells.counts
    if not counts.all():
        raise ValueError(f"X must have points of each cluster, got none of {np.flatnonzero(counts == 0).tolist()}.")
    scatter = cells.scatter / counts[:, np.newaxis, np.newaxis]
    is_whole = C * D <= _WHOLE
    own, identity = np.arange(C), np.eye(D)
    if C == 1:
        faces = np.zeros((C, D, C, D))
    else:
        job = _SumFaces(model, scatter, _BANDWIDTH * counts**-0.2, is_whole)
        faces = data.each(job).faces / W
    V = 4 * cells.scatter / W
    if is_whole:
        faces[own, :, own] += 2 * (counts / W)[:, np.newaxis, np.newaxis] * identity
        curvature = faces.reshape(C * D, C * D)
        middle = np.zeros((C, D, C, D))
        middle[own, :, own] = V
        V = middle.reshape(C * D, C * D)
    else:
        curvature = faces + 2 * (counts / W)[:, np.newaxis, np.newaxis] * identity
    if not (np.linalg.eigvalsh(curvature) > 0).all():
        raise ValueError(
            "X must have enough points at the borders of clusters, got an estimate by which the centers are no minimum "
            "of J: use `bootstrap`, fewer clusters, or more points."
        )
    half = np.linalg.solve(curvature, V)
    covariance = np.linalg.solve(curvature, np.swapaxes(half, -1, -2)) / W
    blocks = covariance.reshape(C, D, C, D)[own, :, own] if is_whole else covariance
    errors = {"cluster_centers_": np.sqrt(np.diagonal(blocks, axis1=1, axis2=2))}
    method = "Pollard" if is_whole else "Pollard, without covariances of different centers"
    return StandardErrors({"cluster_centers_": centers}, errors, blocks, method)


class _Shape(NamedTuple):
    """Free entries of the covariances of a family.

    is_full: whether entries beside the diagonal are free    is_round: whether all variances of a matrix are equal
    is_shared: whether all components share one matrix
    """

    is_full: bool = False
    is_round: bool = False
    is_shared: bool = False


_SHAPES: Mapping[str, _Shape] = {
    "tied_spherical": _Shape(is_round=True, is_shared=True),
    "spherical": _Shape(is_round=True),
    "diag": _Shape(),
    "tied": _Shape(is_full=True, is_shared=True),
    "full": _Shape(is_full=True),
}


class _Information(NamedTuple):
    """Σ_n w_n s_n s_nᵀ (P, P), with the derivatives s_n of log p(x_n), as a partial result."""

    matrix: Floats

    def __add__(self, other: "_Information") -> "_Information":  # type: ignore[override]
        return _Information(self.matrix + other.matrix)


@dataclass(frozen=True)
class _SumScores:
    """Job that computes the `_Information` of a block for the parameters means, covariances and, if free, weights.

    model: the mixture    precisions (C, D, D): inverses of the covariances    shape: which entries of these are free
    directions (C, C − 1): orthogonal directions in which weights of sum 1 can change; None if they are fixed
    """

    model: Model
    precisions: Floats
    shape: _Shape
    directions: Floats | None

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, _Information]:
        found: Any = 0.0
        C, D = self.model.centers.shape
        for rows, X, w in _pieces(block, C * (D + len(np.tril_indices(D)[0]) if self.shape.is_full else 2 * D)):
            scores = self.scores(X, self.model.responsibilities(rows).astype(np.float64))
            found = found + (w[:, np.newaxis] * scores).T @ scores
        return None, _Information(found)

    def scores(self, X: Floats, q: Floats) -> Floats:
        """Return the derivatives of log p(x) by all parameters: (n, P).    q (n, C): responsibilities"""
        n, D = X.shape
        z = np.einsum("cij,ncj->nci", self.precisions, X[:, np.newaxis] - self.model.centers)
        rows, columns = np.tril_indices(D) if self.shape.is_full else (np.arange(D), np.arange(D))
        by_entry = z[:, :, rows] * z[:, :, columns] - self.precisions[:, rows, columns]
        by_entry *= q[:, :, np.newaxis] * np.where(rows == columns, 0.5, 1.0)
        by_entry = by_entry.sum(axis=2, keepdims=True) if self.shape.is_round else by_entry
        by_entry = by_entry.sum(axis=1) if self.shape.is_shared else by_entry
        parts = [(q[:, :, np.newaxis] * z).reshape(n, -1), by_entry.reshape(n, -1)]
        if self.directions is not None:
            parts.append(q / np.asarray(self.model.weights) @ self.directions)
        return np.concatenate(parts, axis=1)


def _of_mixture(gm: GaussianMixture, data: Data) -> StandardErrors:
    """Return the standard errors of the parameters of a mixture by the empirical information."""
    family = gm.covariance_type_
    if family not in _SHAPES:
        raise ValueError(f"covariance_type must be one of {list(_SHAPES)}, got {family!r}: use `bootstrap`.")
    model, shape = model_of(gm), _SHAPES[family]
    C, D = model.centers.shape
    _check_size(model)
    precisions: Floats = np.asarray(np.linalg.inv(model.covariances_along(np.eye(D))), np.float64)
    directions = None if model.weights is None or C == 1 else helmert(C).T
    job = _SumScores(model, precisions, shape, directions)
    covariance = _inverse(data.each(job).matrix)
    place = np.arange(C * D, C * D + (1 if shape.is_shared else C) * (D * (D + 1) // 2 if shape.is_full else D))
    if shape.is_full:
        entry = np.zeros((D, D), np.int64)
        entry[np.tril_indices(D)] = np.arange(D * (D + 1) // 2)
        place = place.reshape(-1, D * (D + 1) // 2)[:, np.maximum(entry, entry.T)]
    elif shape.is_round:
        place = np.arange(C * D, C * D + (1 if shape.is_shared else C))
    variances = np.diagonal(covariance)
    means = slice(0, C * D)
    own = np.arange(C)
    estimates = {"means_": centers_of(gm), "covariances_": np.asarray(gm.covariances_, np.float64)}
    errors = {
        "means_": np.sqrt(variances[means]).reshape(C, D),
        "covariances_": np.sqrt(variances[place]).reshape(estimates["covariances_"].shape),
    }
    if model.weights is not None:
        estimates = {"weights_": np.asarray(gm.weights_, np.float64)} | estimates
        of_weights = np.zeros(C)
        if directions is not None:
            last = covariance[-(C - 1) :, -(C - 1) :]
            of_weights = np.sqrt(np.einsum("ci,ij,cj->c", directions, last, directions))
        errors = {"weights_": of_weights} | errors
    blocks = covariance[means, means].reshape(C, D, C, D)[own, :, own]
    return StandardErrors(estimates, errors, blocks, "information")


def _check_size(model: Any) -> None:
    """Raise ValueError if a model has too many parameters for an information matrix."""
    if model.n_parameters > _MOST_PARAMETERS:
        raise ValueError(
            f"the mixture must have at most {_MOST_PARAMETERS:,} parameters, because the information matrix has the "
            f"square of this number, got {model.n_parameters:,}: use `bootstrap`, or fewer components or columns."
        )


@dataclass(frozen=True)
class _SumRegressionScores:
    """Job that computes the `_Information` of a block of rows (x, y, w).    directions: as in `Regression.scores`"""

    model: Regression
    directions: Floats

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, _Information]:
        found: Any = 0.0
        for _, Z, w in _pieces(block, 2 * self.model.n_parameters):
            scores = self.model.scores(Z, self.directions)
            found = found + (w[:, np.newaxis] * scores).T @ scores
        return None, _Information(found)


def _of_regressions(rm: RegressionMixture, data: Data) -> StandardErrors:
    """Return the standard errors of the parameters of a mixture of regressions by the empirical information."""
    model: Any = rm._parameters()
    _check_size(model)
    C, P = model.centers.shape
    directions = helmert(C).T if C > 1 else np.empty((1, 0))
    covariance = _inverse(data.each(_SumRegressionScores(model, directions)).matrix, "X and y")
    deviations, own = np.sqrt(np.diagonal(covariance)), np.arange(C)
    lines = deviations[: C * P].reshape(C, P)
    errors, n = {"coefs_": lines[:, :-1], "intercepts_": lines[:, -1]}, C * P
    if hasattr(rm, "variances_"):
        errors, n = errors | {"variances_": deviations[n : n + C]}, n + C
    if model.gates is not None:
        gates = np.vstack([np.zeros(model.gates.shape[1]), deviations[n:].reshape(C - 1, -1)])
        errors |= {"concomitant_coefs_": gates[:, :-1], "concomitant_intercepts_": gates[:, -1]}
    elif model.weights is not None:
        of_weights = np.einsum("ci,ij,cj->c", directions, covariance[n:, n:], directions)
        errors = {"weights_": np.sqrt(of_weights)} | errors
    blocks = covariance[: C * P, : C * P].reshape(C, P, C, P)[own, :, own]
    return StandardErrors({name: getattr(rm, name) for name in errors}, errors, blocks, "information")


def _inverse(information: Floats, data: str = "X") -> Floats:
    """Return the inverse of an information matrix; raise ValueError if it has none.    data: names of the arguments"""
    scale = np.sqrt(np.diagonal(information))
    if scale.all():
        values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
        if values[0] > _LEAST_EIGENVALUE:
            return (vectors / values) @ vectors.T / np.outer(scale, scale)
    raise ValueError(
        f"{data} must determine all parameters, got a singular information matrix: a component has too few "
        "points, or two components are equal. Use fewer components."
    )
