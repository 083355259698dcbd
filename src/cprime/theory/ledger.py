"""Relations (14)-(20) of Lücke & Forster between squared error J, free energy F and log-likelihood L of a fit.

The two sides of each relation are computed independently: one by the estimator's compiled kernels, one here by plain
sums in float64. The checks do not depend on how the parameters were found.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, xlogy
from sklearn.utils.validation import check_is_fitted

from cprime.estimators import BayesianGaussianMixture, KMeans
from cprime.estimators.fitted import model_of, without_preparation
from cprime.estimators.opening import preparation_of
from cprime.estimators.validation import check_weights
from cprime.model import TiedSpherical
from cprime.model.tied_spherical import FixedVariance
from cprime.theory.mixtures import DensityEstimator, Floats, MixtureDensity, as_rows_of, densities_of, log_weights
from cprime.theory.partition import blocks

if TYPE_CHECKING:
    from rich.table import Table

_RESOLUTION = 1e3


@dataclass(frozen=True)
class Identity:
    """An equation or inequality of Lücke & Forster, with both sides as computed.

    Attributes
    ----------
    equation : str
        Number of the equation in the paper.
    statement : str
        The equation or inequality, as text.
    left, right : float
        Values of its two sides.
    relation : {"=", "≥"}
    tolerance : float
        Largest difference that rounding may cause.
    note : str
        Condition under which the statement is true; empty if it always is.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.theory import ledger
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> first = ledger(KMeans(2, random_state=0).fit(X), X).identities[0]
    >>> first.relation, first.holds
    ('=', True)
    """

    equation: str
    statement: str
    left: float
    right: float
    relation: str
    tolerance: float
    note: str = ""

    @property
    def difference(self) -> float:
        """Return the left side of the equation or inequality minus the right side."""
        return self.left - self.right

    @property
    def holds(self) -> bool:
        """Return whether the equation or inequality is true up to rounding."""
        if self.relation == "≥":
            return bool(self.difference >= -self.tolerance)
        return bool(abs(self.difference) <= self.tolerance)


@dataclass(frozen=True)
class Ledger:
    """J, F and L of a fitted model on data, and the identities between them.

    Attributes
    ----------
    model : str
        Class of the estimator.
    weight : float
        N, or the sum of the sample weights.
    n_features, n_components, n_active : int
        D, C and C′.
    quantization_error : float or None
        J = Σ_n min_c ‖x_n − μ_c‖², data unit²; None if components have covariances of their own.
    variance : float or None
        σ² of the model, data unit²; None if components have covariances of their own.
    free_energy, log_likelihood, kl_gap, entropy : float
        F, L, D_KL = L − F and the mean entropy of the truncated posteriors, in nats per point, as `bounds` returns
        them.
    identities : tuple of Identity
        Equations and inequalities between these quantities, with both sides computed.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.theory import ledger
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> entries = ledger(KMeans(2, random_state=0).fit(X), X)
    >>> entries.free_energy + entries.kl_gap == entries.log_likelihood
    True
    """

    model: str
    weight: float
    n_features: int
    n_components: int
    n_active: int
    quantization_error: float | None
    variance: float | None
    free_energy: float
    log_likelihood: float
    kl_gap: float
    entropy: float
    identities: tuple[Identity, ...]

    def _quantities(self) -> list[tuple[str, float]]:
        named = [
            ("J, quantization error", self.quantization_error),
            ("σ², variance", self.variance),
            ("F, free energy", self.free_energy),
            ("L, log-likelihood", self.log_likelihood),
            ("D_KL = L − F", self.kl_gap),
            ("H(q), entropy", self.entropy),
        ]
        return [(name, value) for name, value in named if value is not None]

    def _lines(self) -> list[tuple[str, str, str, str, str]]:
        """Return five texts per equation or inequality: number, statement, left side, right side, whether it holds."""
        return [
            (
                each.equation,
                f"{each.statement} ({each.note})" if each.note else each.statement,
                f"{each.left:.8g}",
                f"{each.right:.8g}",
                "holds" if each.holds else f"differs by {each.difference:.1e}",
            )
            for each in self.identities
        ]

    def _title(self) -> str:
        sizes = f"N = {self.weight:g}, D = {self.n_features}, C = {self.n_components}, C′ = {self.n_active}"
        return f"{self.model}: {sizes}"

    def __str__(self) -> str:
        quantities = [f"{name:<24}{value:16.8g}" for name, value in self._quantities()]
        lines = self._lines()
        wide = max(len(statement) for _, statement, *_ in lines)
        rows = [f"{e:<8}{s:<{wide}}{a:>16}{b:>16}  {verdict}" for e, s, a, b, verdict in lines]
        return "\n".join([self._title(), *quantities, "", *rows])

    def __rich__(self) -> "Table":
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        about = "; ".join(f"{name} {value:.6g}" for name, value in self._quantities())
        table = Table(title=self._title(), caption=about, box=SIMPLE_HEAD)
        for heading, side in (
            ("eq.", "left"),
            ("statement", "left"),
            ("left", "right"),
            ("right", "right"),
            ("", "left"),
        ):
            table.add_column(heading, justify=side)  # type: ignore[arg-type]
        for line in self._lines():
            table.add_row(*line)
        return table


@dataclass
class _Sums:
    """Sums over the points x_n, each term times the weight of the point, from which eqs. (14) to (20) are checked.

    These equations of Lücke & Forster relate the squared error J, the free energy F and the log-likelihood L. Component
    c has the center μ_c; σ² is the variance, if all components share one. A point has the active set K(n), the
    responsibilities q_nc of the components in it, and the exact responsibilities r_nc of all components.
    weight: Σ_n 1    squares: Σ_n ‖x_n − μ‖² with the nearest center μ
    residual: ‖X − ZU‖² with one-hot assignments Z (N, C) and centers U (C, D)
    kept_squares: Σ_nc q_nc ‖x_n − μ_c‖²    joint: Σ_nc q_nc log p(c, x_n)    entropy: −Σ_nc q_nc log q_nc
    log_kept: Σ_n log Σ_{c∈K(n)} p(c, x_n)    log_share: Σ_n log Σ_{c∈K(n)} r_nc
    log_exponentials: Σ_n log Σ_c exp(−‖x_n − μ_c‖²/2σ²)
    """

    weight: float = 0.0
    squares: float = 0.0
    residual: float = 0.0
    kept_squares: float = 0.0
    joint: float = 0.0
    entropy: float = 0.0
    log_kept: float = 0.0
    log_share: float = 0.0
    log_exponentials: float = 0.0


@dataclass
class _Model:
    """Parameters of a fitted mixture or k-means; variance is None if components have covariances of their own."""

    centers: NDArray[np.floating]
    variance: float | None
    n_active: int
    mixture: MixtureDensity | None

    def log_joint(self, X: Floats, squares: Floats | None) -> Floats:
        """Return log p(c, x_n) (n, C) for the rows X (n, D).

        squares (n, C): squared distances to the centers, used instead of X if all components have the same variance
        """
        if squares is None:
            assert self.mixture is not None
            return self.mixture.log_densities(X) + log_weights(self.mixture.weights)
        assert self.variance is not None
        C, D = self.centers.shape
        return -math.log(C) - D / 2 * math.log(2 * math.pi * self.variance) - squares / (2 * self.variance)


def ledger(estimator: DensityEstimator, X: Any, sample_weight: Any = None) -> Ledger:
    """Compute error J, free energy F and log-likelihood L of a fit, and both sides of the equations between them.

    Parameters
    ----------
    estimator : KMeans, SoftKMeans or mixture
        A fitted estimator. J, σ² and the equations (14) to (20) of Lücke & Forster need one variance shared by all
        components; for other fits only (3), (7) and the Kullback-Leibler gap are computed.
    X : array-like of shape (n_samples, n_features)
        The training data. For other data, equations with a note need not hold.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the points; None is 1 for each.

    Returns
    -------
    ledger : Ledger
        `print` shows it as text, the package rich as a table.

    Raises
    ------
    TypeError
        If the estimator is of another class.
    ValueError
        If it is a `KMeans` with another metric than "euclidean", because (14) to (16) need means as centers.

    References
    ----------
    Lücke & Forster, *k-means as a variational EM approximation of Gaussian mixture models*. The matrix form
    J = ‖X − ZU‖² has one-hot rows in Z and the centers in U.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import KMeans
    >>> from cprime.theory import ledger
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> entries = ledger(KMeans(2, random_state=0).fit(X), X)
    >>> entries.quantization_error, entries.variance, all(each.holds for each in entries.identities)
    (1.0, 0.25, True)
    """
    if not isinstance(estimator, DensityEstimator) or isinstance(estimator, BayesianGaussianMixture):
        raise TypeError(f"estimator must be a KMeans, SoftKMeans or mixture without posteriors, got {estimator!r}.")
    metric = getattr(estimator, "metric", "euclidean")
    if metric != "euclidean":
        raise ValueError(f"estimator must have metric='euclidean', got {metric!r}.")
    check_is_fitted(estimator)
    bounds = estimator.bounds(X, sample_weight)
    data = preparation_of(estimator).applied(as_rows_of(estimator, X))
    weights = check_weights(sample_weight, data)
    fitted: Any = model_of(estimator)
    variance = float(fitted.variance) if isinstance(fitted, TiedSpherical) and fitted.weights is None else None
    densities = densities_of(without_preparation(estimator)) if variance is None else None
    model = _Model(fitted.centers, variance, estimator.n_active_, densities)
    sums = _summed(data, np.ones(len(data)) if weights is None else weights, model)
    dtype = model.centers.dtype
    tolerance = _RESOLUTION * float(np.finfo(dtype).eps) * (1 + abs(bounds.free_energy) + data.shape[1])
    identities = _truncated(bounds, sums, tolerance)
    error = None
    if model.variance is not None:
        error = sums.squares
        if isinstance(estimator, KMeans):
            error = -float(estimator.score(X, sample_weight=sample_weight))
            identities = _of_k_means(model, bounds, sums, error, tolerance) + identities
        else:
            of_spherical = _of_spherical(model, bounds, sums, tolerance)
            identities += of_spherical[:1] if isinstance(fitted, FixedVariance) else of_spherical
        scale = float(np.finfo(dtype).eps) * _RESOLUTION * error
        identities = [Identity("matrix", "J = ‖X − ZU‖²", error, sums.residual, "=", scale), *identities]
    return Ledger(
        type(estimator).__name__,
        sums.weight,
        data.shape[1],
        len(model.centers),
        model.n_active,
        error,
        model.variance,
        bounds.free_energy,
        bounds.log_likelihood,
        bounds.kl_gap,
        bounds.entropy,
        tuple(identities),
    )


def _summed(X: Floats, weights: Floats, model: _Model) -> _Sums:
    """Return the sums over the rows X (n, D) from which both sides of eqs. (14) to (20) of Lücke & Forster follow.

    They are computed in blocks of rows, to avoid an N×C array.
    """
    centers = model.centers.astype(np.float64)
    C = len(centers)
    total = _Sums()
    for part in blocks(len(X), C):
        rows, w = X[part], weights[part]
        squares = None if model.variance is None else cdist(rows, centers, "sqeuclidean")
        joint = model.log_joint(rows, squares)
        kept = np.argpartition(-joint, model.n_active - 1, axis=1)[:, : model.n_active]
        kept_joint = np.take_along_axis(joint, kept, axis=1)
        log_kept = logsumexp(kept_joint, axis=1)
        q = np.exp(kept_joint - log_kept[:, np.newaxis])
        total.weight += w.sum()
        total.joint += w @ np.where(q > 0, q * kept_joint, 0.0).sum(axis=1)
        total.entropy -= w @ xlogy(q, q).sum(axis=1)
        total.log_kept += w @ log_kept
        total.log_share += w @ (log_kept - logsumexp(joint, axis=1))
        if squares is not None and model.variance is not None:
            nearest: NDArray[np.intp] = squares.argmin(axis=1)
            Z = csr_array((np.ones(len(rows)), (np.arange(len(rows)), nearest)), shape=(len(rows), C))
            total.squares += w @ squares.min(axis=1)
            total.residual += w @ np.square(rows - Z @ centers).sum(axis=1)
            total.kept_squares += w @ (q * np.take_along_axis(squares, kept, axis=1)).sum(axis=1)
            total.log_exponentials += w @ logsumexp(-squares / (2 * model.variance), axis=1)
    return total


def _truncated(bounds: Any, sums: _Sums, tolerance: float) -> list[Identity]:
    """Return three equations for F and L − F, and L ≥ F, which hold for any mixture and any active sets.

    F is the free energy, L the log-likelihood; the numbers of the equations are those of Lücke & Forster.
    """
    W = sums.weight
    expected = (sums.joint + sums.entropy) / W
    return [
        Identity("(7)", "F = 1/N Σ log Σ_K(n) p(c, x)", bounds.free_energy, sums.log_kept / W, "=", tolerance),
        Identity("(7)", "F = 1/N Σ q log p(c, x) + H(q)", bounds.free_energy, expected, "=", tolerance),
        Identity("KL", "L − F = −1/N Σ log Σ_K(n) r", bounds.kl_gap, -sums.log_share / W, "=", tolerance),
        Identity("(3)", "L ≥ F", bounds.log_likelihood, bounds.free_energy, "≥", tolerance),
    ]


def _entropy_bound(model: _Model, variance: float) -> float:
    """Return −log C − (D/2) log 2πeσ², the free energy of k-means with variance σ²: eq. (15) of Lücke & Forster."""
    C, D = model.centers.shape
    return -math.log(C) - D / 2 * math.log(2 * math.pi * math.e * variance)


def _of_k_means(model: _Model, bounds: Any, sums: _Sums, error: float, tolerance: float) -> list[Identity]:
    """Return eqs. (14), (15), (16) and (19) of Lücke & Forster, between J, σ², F and L of a k-means.

    J is the squared error, σ² the variance, F the free energy, L the log-likelihood; error: J of these data.
    """
    assert model.variance is not None
    W, D = sums.weight, model.centers.shape[1]
    note = "σ² from these data"
    of_error = error / (D * W)
    F, gap = bounds.free_energy, bounds.kl_gap
    smallest = tolerance * model.variance
    log_sum = D / 2 + sums.log_exponentials / W
    return [
        Identity("(14)", "σ² = J/(DN)", model.variance, of_error, "=", smallest, note),
        Identity("(15)", "F = −log C − D/2 log 2πeσ²", F, _entropy_bound(model, model.variance), "=", tolerance, note),
        Identity("(16)", "L − F = D/2 + 1/N Σ log Σ_c exp(−‖x − μ‖²/2σ²)", gap, log_sum, "=", tolerance, note),
        Identity(
            "(19)",
            "L ≥ −log C − D/2 log(2πe J/(DN))",
            bounds.log_likelihood,
            _entropy_bound(model, of_error),
            "≥",
            tolerance,
            note,
        ),
    ]


def _of_spherical(model: _Model, bounds: Any, sums: _Sums, tolerance: float) -> list[Identity]:
    """Return eq. (20) of Lücke & Forster (F of equal variances), with and without a term that is 0 at convergence."""
    assert model.variance is not None
    D = model.centers.shape[1]
    limit = _entropy_bound(model, model.variance) + sums.entropy / sums.weight
    rest = D / 2 * (1 - sums.kept_squares / (D * sums.weight * model.variance))
    F = bounds.free_energy
    statement = "F = −log C − D/2 log 2πeσ² + H(q)"
    return [
        Identity("(20)", f"{statement} + D/2 (1 − σ²_q/σ²)", F, limit + rest, "=", tolerance),
        Identity("(20)", statement, F, limit, "=", tolerance, "at convergence"),
    ]
