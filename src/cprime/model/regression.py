"""Components that are regressions of a last column y on others: log p(y given x, c) by a linear predictor η = β·x + β₀.

Rows are (x, y), or (x, y, w) with concomitant variables w on which the weights depend: log π_c(w) = γ_c·w + γ_c0 up to
a constant (Dayton & Macready 1988). M-steps are weighted regressions: linear ones in closed form, those of counts by
Newton steps. These need the rows, so the moments contain them.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, log_softmax

from cprime._utils.threads import by_pieces
from cprime._utils.values import cached, replace
from cprime.execution.block import Block
from cprime.kernels import Dense, Floats, Rows
from cprime.model.base import Family, log_weights, n_weights, new_weights
from cprime.model.interface import Responsibilities, Weights
from cprime.model.row_moments import RowMoments
from cprime.neighbors.components import Components

Ids = NDArray[np.int32]
Doubles = NDArray[np.float64]

_VALUES = 2**20  # number of costs (rows × components) in memory at a time
_LEAST_SHARE = 1e-12  # least eigenvalue of a scaled design, relative to the largest one, that counts as above 0
# Maximum numbers of Newton's steps in an M-step, for coefficients and for gates, and of halvings of a step. Gates start
# near their optimum in all but the first M-steps.
_MOST_STEPS, _MOST_OF_GATES, _MOST_HALVINGS = 50, 2, 30
_TOL = 1e-14  # relative gain of an objective at which Newton's method ends


class RegressionCosts(Components):
    """Components with the cost −2 log p(c, y given x) of rows (x, y) or (x, y, w)."""

    def __init__(self, model: "Regression"):
        self.model, self.centers = model, model.centers

    def costs(self, points: Rows, ids: Ids) -> Floats:
        found = np.empty(ids.shape)
        for rows in _pieces(len(points), len(self.centers)):
            found[rows] = np.take_along_axis(self.table(points[rows]), ids[rows], axis=1)
        return found

    def table(self, points: Rows) -> Doubles:
        """Return the costs of n rows under all components: (n, C)."""
        x, y, w = self.model.split(points.dense())
        found: Doubles = self.model.deviances(y, self.model.predictors(x)) - 2 * self.model.log_mixing(w)
        return found

    def best(self, points: Rows, n_kept: int, hint: Ids | None = None) -> tuple[Ids, Floats]:
        kept, costs = np.empty((len(points), n_kept), dtype=np.int32), np.empty((len(points), n_kept))

        def search(rows: slice) -> None:
            every = self.table(points[rows])
            some = np.broadcast_to(np.arange(every.shape[1]), every.shape)
            if n_kept < every.shape[1]:
                some = np.sort(np.argpartition(every, n_kept - 1, axis=1)[:, :n_kept], axis=1)
            values = np.take_along_axis(every, some, axis=1)
            order = np.argsort(values, axis=1, kind="stable")
            kept[rows], costs[rows] = (np.take_along_axis(each, order, axis=1) for each in (some, values))

        by_pieces(search, _pieces(len(points), len(self.centers)))
        return kept, costs


def _pieces(n: int, n_values: int) -> list[slice]:
    """Return slices of n rows, with `n_values` numbers for each row, that are computed at a time."""
    step = max(1, _VALUES // max(1, n_values))
    return [slice(begin, begin + step) for begin in range(0, n, step)]


@dataclass(frozen=True)
class Regression(Family, ABC):
    """Base class of families of regressions.

    centers (C, D + 1): coefficients β, and intercepts β₀ in the last column
    gates (C, V + 1): coefficients γ of concomitant variables, and intercepts γ₀ in the last column, with zeros for the
    first component; None if weights are the same for all rows
    weights (C,): π, or None for 1/C each; used without gates only
    """

    centers: Floats
    weights: Weights = None
    gates: Doubles | None = None

    @abstractmethod
    def deviances(self, y: Doubles, eta: Doubles) -> Doubles:
        """Return −2 log p(y given x, c) (n, C) from y (n,) and predictors η (n, C)."""

    @abstractmethod
    def mean(self, eta: Doubles) -> Doubles:
        """Return the expected value of y for predictors η."""

    @abstractmethod
    def refitted(self, x: Doubles, y: Doubles, q: Doubles, c: int) -> tuple[Doubles, float]:
        """Return new coefficients (D + 1,) of component c, and its new σ², from its rows and their weights q > 0."""

    @abstractmethod
    def residual_scores(self, y: Doubles, eta: Doubles) -> list[Doubles]:
        """Return derivatives of log p(y given x, c) by η and, if there is one, by σ²: (n, C) each."""

    @property
    def n_exact(self) -> int:
        """Number of components that fit their rows exactly, so that the likelihood has no maximum."""
        return 0

    @property
    def n_parameters(self) -> int:
        n = n_weights(self.weights) if self.gates is None else self.gates[1:].size
        return self.centers.size + n

    def split(self, Z: Floats) -> tuple[Doubles, Doubles, Doubles]:
        """Return x (n, D), y (n,) and w (n, V) of rows Z."""
        D, rows = self.centers.shape[1] - 1, np.asarray(Z, dtype=np.float64)
        return rows[:, :D], rows[:, D], rows[:, D + 1 :]

    def predictors(self, x: Doubles) -> Doubles:
        """Return η (n, C) of rows x (n, D)."""
        eta: Doubles = x @ self.centers[:, :-1].T + self.centers[:, -1]
        return eta

    def log_mixing(self, w: Doubles) -> Doubles:
        """Return log π_c (1, C), or log π_c(w) (n, C) for concomitant variables w (n, V)."""
        if self.gates is None:
            return log_weights(self.weights, self.centers)[np.newaxis]
        logs: Doubles = log_softmax(w @ self.gates[:, :-1].T + self.gates[:, -1], axis=1)
        return logs

    def scores(self, Z: Floats, directions: Doubles) -> Doubles:
        """Return the derivatives of log p(y given x) of rows Z by all parameters: (n, P).

        Parameters are β and β₀ of each component, then σ² if there is one, then weights along `directions` (C, C − 1)
        if they are free, or γ and γ₀ of each component but the first.
        """
        x, y, w = self.split(Z)
        q = self.responsibilities(Dense(np.asarray(Z, np.float64)))
        by_eta, *others = (q * each for each in self.residual_scores(y, self.predictors(x)))
        parts = [(by_eta[:, :, np.newaxis] * _with_ones(x)[:, np.newaxis]).reshape(len(y), -1), *others]
        if self.gates is not None:
            moved = (q - np.exp(self.log_mixing(w)))[:, 1:]
            parts.append((moved[:, :, np.newaxis] * _with_ones(w)[:, np.newaxis]).reshape(len(y), -1))
        elif self.weights is not None:
            parts.append(q / self.weights @ directions)
        return np.concatenate(parts, axis=1)

    @cached
    def _components(self) -> RegressionCosts:
        return RegressionCosts(self)

    def components(self) -> RegressionCosts:
        return self._components

    def summarise(self, block: Block, shares: Responsibilities) -> RowMoments:
        return RowMoments.of(block, shares, self.n_components)

    def maximise(self, moments: RowMoments, prior: None = None) -> Self:
        Z, owned = moments.by_component()
        x, y, _ = self.split(Z)

        def refit(c: int) -> tuple[Doubles, float]:
            rows, q = owned[c]
            return self.refitted(x[rows], y[rows], q, c) if len(rows) else (self.centers[c], np.nan)

        found = by_pieces(refit, range(self.n_components))
        new = self.with_coefficients(np.array([center for center, _ in found]), np.array([v for _, v in found]))
        return replace(new, weights=new_weights(self.weights, moments.counts), gates=self._new_gates(moments))

    def with_coefficients(self, centers: Doubles, variances: Doubles) -> Self:
        """Return the model with other coefficients, and variances σ² (C,); NaN keeps that of a component."""
        return replace(self, centers=centers)

    def _new_gates(self, moments: RowMoments) -> Doubles | None:
        """Return gates (C, V + 1) of greater Σ_n Σ_c w_n q_nc log π_c(w_n), a multinomial logistic regression."""
        if self.gates is None or self.n_components == 1:
            return self.gates
        C, P = self.gates.shape
        parts = [
            (self.split(Z[rows])[2], ids[rows], q[rows])
            for Z, _, ids, q in moments.parts
            for rows in _pieces(len(Z), C * P)
        ]

        def value(gates: Doubles) -> float:
            model = replace(self, gates=gates)

            def total(part: Any) -> float:
                w, ids, q = part
                return float((q * np.take_along_axis(model.log_mixing(w), ids, axis=1)).sum())

            return sum(by_pieces(total, parts))

        def step(gates: Doubles) -> tuple[Doubles, float]:
            model = replace(self, gates=gates)

            def derivatives(part: Any) -> tuple[Doubles, Doubles]:
                w, ids, q = part
                W, pi, m = _with_ones(w), np.exp(model.log_mixing(w)), q.sum(axis=1)
                rest, curvature = -m[:, np.newaxis] * pi, np.empty((C, P, C, P))
                np.add.at(rest, (np.arange(len(w))[:, np.newaxis], ids), q)
                for i, j in np.ndindex(P, P):
                    h = m * W[:, i] * W[:, j]
                    curvature[:, i, :, j] = np.diag(h @ pi) - (h[:, np.newaxis] * pi).T @ pi
                return rest.T @ W, curvature.reshape(C * P, C * P)

            made = by_pieces(derivatives, parts)
            slope, curvature = (np.sum(each, axis=0) for each in zip(*made, strict=True))
            free = np.linalg.lstsq(curvature[P:, P:], slope[1:].reshape(-1), rcond=_LEAST_SHARE)[0]
            return np.vstack([np.zeros(P), free.reshape(C - 1, P)]), float(free @ slope[1:].reshape(-1))

        return _newton(self.gates, value, step, _MOST_OF_GATES)


def _with_ones(x: Doubles) -> Doubles:
    """Return the columns x with a column of ones after them."""
    return np.column_stack([x, np.ones(len(x))])


def _newton(start: Doubles, value: Any, step: Any, n_steps: int) -> Doubles:
    """Maximise a concave function `value` by at most `n_steps` of Newton's method, halved so that it never falls.

    step: function of the parameters that returns the full step, and its scalar product with the gradient
    """
    now, best = start, value(start)
    for _ in range(n_steps):
        direction, gain = step(now)
        if not gain > _TOL * abs(best):  # The step is at the limit of rounding, so halving cannot compare values.
            return now + direction if gain > 0 else now
        for _ in range(_MOST_HALVINGS):
            found = value(now + direction)
            if found >= best:  # false for NaN
                now, best = now + direction, found
                break
            direction = direction / 2
        else:
            break
    return now


def _solved(x: Doubles, h: Doubles, g: Doubles) -> Doubles:
    """Return the minimizer (δ, δ₀) of ½ Σ h_n (δ·x_n + δ₀)² − Σ g_n (δ·x_n + δ₀), with weights h ≥ 0: (D + 1,).

    Columns are centered and scaled first. Directions that the rows do not determine get 0.
    """
    total = h.sum()
    if not total > 0:
        return np.zeros(x.shape[1] + 1)
    mean = h @ x / total
    moved = x - mean
    S, b = (h[:, np.newaxis] * moved).T @ moved, g @ moved
    unit = np.sqrt(S.diagonal())
    unit[unit <= 1e-14 * np.sqrt(total) * np.abs(x).max(axis=0, initial=0)] = np.inf
    values, axes = np.linalg.eigh(S / unit / unit[:, np.newaxis])
    share = np.divide(1, values, out=np.zeros(len(values)), where=values > _LEAST_SHARE * max(1, len(values)))
    delta = axes @ (share * (axes.T @ (b / unit))) / unit
    return np.append(delta, g.sum() / total - delta @ mean)


@dataclass(frozen=True)
class GaussianRegression(Regression):
    """Linear regressions y = η + ε with normal noise ε of variance σ_c².

    noise_variances (C,): σ²    reg_covar: their least value, so that F never falls
    """

    noise_variances: Any = None
    reg_covar: float = 0.0

    @property
    def n_parameters(self) -> int:
        return super().n_parameters + self.n_components

    @property
    def n_exact(self) -> int:
        return max(self.n_collapsed, int(np.count_nonzero(self.noise_variances <= self._floor)))

    @property
    def _floor(self) -> float:
        return max(self.reg_covar, float(np.finfo(float).tiny))

    @property
    def least_variances(self) -> Any:
        return self.noise_variances

    def deviances(self, y: Doubles, eta: Doubles) -> Doubles:
        logs = np.log(2 * np.pi * self.noise_variances)
        found: Doubles = np.square(y[:, np.newaxis] - eta) / self.noise_variances + logs
        return found

    def mean(self, eta: Doubles) -> Doubles:
        return eta

    def residual_scores(self, y: Doubles, eta: Doubles) -> list[Doubles]:
        scaled = (y[:, np.newaxis] - eta) / self.noise_variances
        return [scaled, 0.5 * (np.square(scaled) - 1 / self.noise_variances)]

    def refitted(self, x: Doubles, y: Doubles, q: Doubles, c: int) -> tuple[Doubles, float]:
        beta = self.centers[c]
        for _ in range(2):  # The second solution corrects the rounding of the first.
            beta = beta + _solved(x, q, q * (y - x @ beta[:-1] - beta[-1]))
        return beta, float(q @ np.square(y - x @ beta[:-1] - beta[-1]) / q.sum())

    def with_coefficients(self, centers: Doubles, variances: Doubles) -> Self:
        old = np.nanmax(np.append(variances, 0.0)) if self.noise_variances is None else self.noise_variances
        new = np.maximum(np.where(np.isnan(variances), old, variances), self._floor)
        return replace(self, centers=centers, noise_variances=new)


@dataclass(frozen=True)
class PoissonRegression(Regression):
    """Regressions of counts y with Poisson distributions of mean exp(η)."""

    def deviances(self, y: Doubles, eta: Doubles) -> Doubles:
        with np.errstate(over="ignore"):
            found: Doubles = 2 * (np.exp(eta) - y[:, np.newaxis] * eta + gammaln(y + 1)[:, np.newaxis])
        return found

    def mean(self, eta: Doubles) -> Doubles:
        with np.errstate(over="ignore"):
            return np.exp(eta)

    def residual_scores(self, y: Doubles, eta: Doubles) -> list[Doubles]:
        return [y[:, np.newaxis] - np.exp(eta)]

    def refitted(self, x: Doubles, y: Doubles, q: Doubles, c: int) -> tuple[Doubles, float]:
        def predictors(beta: Doubles) -> Doubles:
            eta: Doubles = x @ beta[:-1] + beta[-1]
            return eta

        def value(beta: Doubles) -> float:
            eta = predictors(beta)
            return float(q @ (y * eta - np.exp(eta)))

        def step(beta: Doubles) -> tuple[Doubles, float]:
            rates = np.exp(predictors(beta))
            slopes = q * (y - rates)
            direction = _solved(x, q * rates, slopes)
            return direction, float(slopes @ predictors(direction))

        with np.errstate(over="ignore", invalid="ignore"):
            return _newton(self.centers[c], value, step, _MOST_STEPS), np.nan


REGRESSION = {"gaussian": GaussianRegression, "poisson": PoissonRegression}
