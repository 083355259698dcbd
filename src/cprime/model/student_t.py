"""Components with multivariate t densities, whose parameters outliers do not pull far (Peel & McLachlan 2000).

    p(x | c) = Γ((ν + D)/2) / (Γ(ν/2) (νπ)^(D/2) |Σ|^½) · (1 + δ/ν)^(−(ν + D)/2),    δ = (x − μ)ᵀ Σ⁻¹ (x − μ)

These are Gaussians whose precision is Σ⁻¹ u with u ~ Gamma(ν/2, ν/2); given x, the mean of u is (ν + D)/(ν + δ). So an
M-step is that of the Gaussians for points that count q u in place of q. Scatter is divided by Σ q u and not by Σ q,
which is faster, and lowers F no more: it is as if u were α times such a number, with the α that fits best (PX-EM: Kent,
Tyler & Vardi 1994; Liu, Rubin & Wu 1998). Components of one Σ have one α = Σ_c ν_c Σ q u / Σ_c ν_c Σ q.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv, gammaincinv, ndtr

from cprime._storable import storable
from cprime._threads import by_pieces, limited, resolve_threads
from cprime._values import replace
from cprime.block import Block, Kept
from cprime.components import Components, GaussianCosts, Ids
from cprime.kernels import Floats, Rows, posterior
from cprime.model.base import Expected, Shares
from cprime.model.covariance import scaled_along
from cprime.model.degrees_of_freedom import LEAST, MOST, gap, log_normalizer, solved
from cprime.model.diag import Diag
from cprime.model.full import Full
from cprime.model.own_covariance import OwnCovariance, OwnMoments
from cprime.model.spherical import Spherical
from cprime.model.student_t_costs import AT_ONCE, StudentTCosts
from cprime.model.weights import Weights, new_weights
from cprime.statistics import Sums, merge

_FIRST_DOF = 4.0  # of an estimate: outliers in the start count less from the first iteration on
_MOST_LOG = 1e4  # of 1 + δ/ν
_NEGLIGIBLE = 1e-18  # of a share: it adds nothing to sums in double precision
_RUNS, _NUMBERS = 16, 2**25  # of an exact E-step, whose moments are together in memory
_NORMAL = 1e6  # ν from which on u is drawn as the normal number that it nearly is

STUDENT_T: dict[str, Any] = {}  # by the covariance_type of the Gaussians that they are made of


@dataclass(frozen=True)
class StudentTMoments(Sums):
    """counts (C,): Σ w q    weighted: moments of the Gaussians, of points that count w q u

    logs (C,): Σ w q log u
    """

    counts: NDArray[np.float64]
    weighted: OwnMoments
    logs: NDArray[np.float64]

    @property
    def error(self) -> float:
        """J."""
        return self.weighted.error

    def scaled(self, factor: float) -> Self:
        return type(self)(self.counts * factor, self.weighted.scaled(factor), self.logs * factor)


@dataclass(frozen=True)
class _Part(Sums):
    """Of an exact E-step: moments, Σ w log Σ_c p(c, x) less log_scale, Σ w Σ_c q_c cost_c."""

    moments: StudentTMoments
    log_sum: float
    cost: float


@dataclass(frozen=True)
class StudentT(OwnCovariance):
    """What a family of Gaussians becomes; its `covariances` are Σ, the scale of the densities.

    dof (C,): ν    estimated: whether M-steps find ν    shared: whether they find one for all
    """

    dof: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    estimated: bool = True
    shared: bool = False

    attribute_names: ClassVar[tuple[str, ...]] = (*OwnCovariance.attribute_names, "dof_")
    sklearn_type: ClassVar[str] = ""
    options: ClassVar[tuple[str, ...]] = ("dof", "shared_dof")
    settles: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        STUDENT_T[cls.covariance_type] = cls

    @property
    def n_parameters(self) -> int:
        return super().n_parameters + (0 if not self.estimated else 1 if self.shared else len(self.dof))

    @property
    def n_normals(self) -> int:
        return self.n_features + 1

    @cached_property
    def _offsets(self) -> NDArray[np.float64]:
        """−2 log of the weight and the greatest density of each component: (C,)."""
        return super()._offsets + log_normalizer(self.dof, self.n_features)

    @cached_property
    def _table(self) -> StudentTCosts:
        near, offsets = GaussianCosts(self.gaussians, self.spread), self._offsets - self._offsets.min()
        squares = self.gaussians._replace(offsets=np.zeros_like(self.gaussians.offsets))
        return StudentTCosts(squares, near, self.dof, offsets)

    def conditional(self, columns: NDArray[np.intp]) -> NoReturn:
        raise ValueError("Conditionals need Gaussian components, got t distributions: their extent depends on the row.")

    def with_gaps(self) -> NoReturn:
        raise ValueError("missing='marginal' needs Gaussian components, got t distributions.")

    def components(self) -> Components:  # type: ignore[override]
        return self._table

    @cached_property
    def _most_log_u(self) -> NDArray[np.float64]:
        """log u where δ is 0: (C,)."""
        return np.log1p(self.n_features / self.dof)

    def _log_u(self, ids: Ids, costs: Floats) -> NDArray[np.float64]:
        """log u, u = (ν + D)/(ν + δ), of components ids (n, m) from their costs; of none it means nothing."""
        logs = (costs - self._table.offsets.take(ids)) / self._table.powers.take(ids)
        return self._most_log_u.take(ids) - np.clip(logs, 0, _MOST_LOG)

    def summarise(self, block: Block, kept: Kept, shares: Shares) -> StudentTMoments:  # type: ignore[override]
        """Shares of unknown costs are those of a start: every u is 1, and ν stays."""
        if shares.costs is None:
            moments = super().summarise(block, kept, shares)
            return StudentTMoments(moments.counts, moments, self._standing(moments.counts))
        parts = (slice(begin, begin + AT_ONCE) for begin in range(0, max(1, len(block)), AT_ONCE))
        return merge(self._summed(block, kept, shares, rows) for rows in parts)

    def _summed(self, block: Block, kept: Kept, shares: Shares, rows: slice) -> StudentTMoments:
        """Of some of the rows, by the costs of their shares."""
        assert shares.costs is not None
        ids, q = shares.ids[rows], None if shares.responsibilities is None else shares.responsibilities[rows]
        weight = None if block.sample_weight is None else block.sample_weight[rows]
        log_u = self._log_u(ids, shares.costs[rows])
        u = np.exp(log_u)
        some, own = Block(block.X[rows], weight), Kept(kept.ids[rows])
        moments = super().summarise(some, own, Shares(ids, u if q is None else q * u, None))
        if weight is not None:
            q = np.broadcast_to(weight[:, np.newaxis], ids.shape) if q is None else q * weight[:, np.newaxis]
        places, C = ids.reshape(-1), self.n_components
        counts = np.bincount(places, None if q is None else q.reshape(-1), C).astype(np.float64)
        logs = np.bincount(places, (log_u if q is None else q * log_u).reshape(-1), C).astype(np.float64)
        return StudentTMoments(counts, moments, logs)

    def expect_all(self, block: Block) -> Expected:
        """By tables of some rows and all components; of these tables a few runs, each summed in order."""
        blocks = list(self._table.blocks(len(block)))
        n_runs = min(len(blocks), max(1, min(_RUNS, _NUMBERS // self.spread.size)))
        found: list[Any] = [None] * n_runs

        def expect(run: int) -> None:
            some = blocks[run * len(blocks) // n_runs : (run + 1) * len(blocks) // n_runs]
            with limited(n_threads):
                found[run] = merge(self._expected(block, rows) for rows in some)

        n_threads = max(1, resolve_threads(None) // n_runs)
        if n_runs == 1:
            expect(0)
        else:
            by_pieces(expect, range(n_runs))
        total = merge(found)
        return Expected(total.moments, total.log_sum, total.log_sum + 0.5 * total.cost)

    def _expected(self, block: Block, rows: slice) -> _Part:
        """Tables (C, n). The greatest u of a component, 1 + D/ν, is left out of sums until the end."""
        weight = None if block.sample_weight is None else block.sample_weight[rows]
        some, C, table = Block(block.X[rows], weight), self.n_components, self._table
        ratios = table.ratios(some.X)
        logs = np.log1p(ratios)
        q = logs * table.column(self.scale * table.powers)
        q += table.column(self.scale * table.offsets)
        most = q.max(axis=0)
        q -= most
        labels = np.zeros(len(some), dtype=np.int32)
        for c in range(C - 1, -1, -1):
            np.copyto(labels, c, where=q[c] == 0)
        np.exp(q, out=q)
        total = q.sum(axis=0)
        q /= total
        ratios += 1
        pulled = np.divide(q, ratios, out=ratios)
        if self.full:
            pulled[q < _NEGLIGIBLE] = 0
        shares = Shares(table.every(len(some)), pulled.T.astype(np.float64, order="C"), None)
        found = super().summarise(some, Kept(labels[:, np.newaxis]), shares)
        if weight is not None:
            q = q * weight
        np.minimum(logs, _MOST_LOG, out=logs)
        counts, sum_logs = q.sum(axis=1, dtype=np.float64), np.einsum("cn,cn->c", q, logs, dtype=np.float64)
        u = 1 + self.n_features / self.dof
        weighted = replace(
            found,
            counts=u * found.counts,
            sums=u[:, np.newaxis] * found.sums,
            second=u.reshape(-1, *[1] * (found.second.ndim - 1)) * found.second,
        )
        moments = StudentTMoments(counts, weighted, counts * np.log(u) - sum_logs)
        cost = float((counts * table.offsets + sum_logs * table.powers).sum())
        log_sum = np.log(total, dtype=np.float64) + most
        return _Part(moments, some.weighted_sum(log_sum), cost)

    def maximise(self, moments: StudentTMoments, prior: None = None) -> Self:  # type: ignore[override]
        """M-step: that of Gaussians with shares q u, but π_c = N_c / N; and ν.

        With N_c = Σ q, and h(x) = log x − ψ(x), ν solves h(ν/2) = h((ν_old + D)/2) + Σ q (u − 1 − log u) / N_c; one for
        all the mean of that, by N_c. It ends in [0.1, 10⁹]. A component without points keeps its own.
        """
        dof, N = self._new_dof(moments) if self.estimated else self.dof, moments.counts
        new = super()._updated(moments.weighted, float(dof @ moments.weighted.counts * N.sum() / (dof @ N)))
        return replace(new, weights=new_weights(self.weights, N), dof=dof)

    def _new_dof(self, moments: StudentTMoments) -> NDArray[np.float64]:
        counts = moments.counts
        there = counts > 0
        target = counts * gap((self.dof + self.n_features) / 2) + (moments.weighted.counts - counts - moments.logs)
        target = np.maximum(target, 0)
        if self.shared:
            return np.full(len(counts), solved(target.sum() / counts.sum()))
        return np.where(there, solved(target / np.where(there, counts, 1)), self.dof)

    def _standing(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of log u that leaves ν as it is, where that of u is Σ q."""
        return counts * (gap((self.dof + self.n_features) / 2) - gap(self.dof / 2))

    def extrapolated(self, before: Self, share: float) -> Self:
        dof = np.clip(scaled_along(self.dof, before.dof, share), LEAST, MOST) if self.estimated else self.dof
        return replace(super().extrapolated(before, share), dof=dof)

    def remembered(self, shares: NDArray[np.float64]) -> tuple[StudentTMoments, None]:  # type: ignore[override]
        """As if the mean of u were 1 for each component, where EM stands still."""
        return StudentTMoments(shares, super().remembered(shares)[0], self._standing(shares)), None

    def log_likelihood(self, X: Rows) -> NDArray[np.float64]:
        out = np.empty(len(X))

        def some(rows: slice) -> None:
            out[rows] = posterior(self._table.table(X[rows]), self.scale, n_threads=1).log_sum

        by_pieces(some, self._table.blocks(len(X)))
        return self.log_scale + out

    def responsibilities(self, X: Rows) -> NDArray[np.float64]:
        out = np.empty((len(X), self.n_components))

        def some(rows: slice) -> None:
            out[rows] = posterior(self._table.table(X[rows]), self.scale, n_threads=1).responsibilities

        by_pieces(some, self._table.blocks(len(X)))
        return out

    def pulls(self, X: Rows, n_kept: int) -> NDArray[np.float64]:
        """Σ_c q_nc u_nc over the n_kept best components of each row: (n,)."""
        ids, costs = self.components().best(X, n_kept)
        u = np.exp(self._log_u(ids, costs))
        pulls: NDArray[np.float64] = (posterior(costs, self.scale).responsibilities * u).sum(axis=1)
        return pulls

    def noise(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        """That of the Gaussians divided by √u; the last normal number says which quantile of Gamma(ν/2, ν/2) u is."""
        half, last = self.dof[labels] / 2, normal[:, -1]
        exact = np.minimum(half, _NORMAL)
        share = ndtr(-np.abs(last))
        u = np.where(last < 0, gammaincinv(exact, share), gammainccinv(exact, share)) / exact
        u = np.where(half > _NORMAL, 1 + last / np.sqrt(half), u)
        rest = super().noise(labels, np.ascontiguousarray(normal[:, :-1]))  # type: ignore[misc]
        most = float(np.finfo(self.centers.dtype).max) / 2  # few degrees of freedom go beyond it
        return np.clip(rest / np.sqrt(np.maximum(u, np.finfo(np.float64).tiny))[:, np.newaxis], -most, most)

    def attributes(self) -> dict[str, Any]:
        return {**super().attributes(), "dof_": self.dof.astype(self.centers.dtype)}

    @classmethod
    def of(cls, attributes: Mapping[str, Any], centers: Floats, weights: Weights, reg_covar: float = 0.0) -> Self:
        dof = np.asarray(attributes["dof_"], dtype=np.float64)
        return replace(super().of(attributes, centers, weights, reg_covar), dof=dof)

    @classmethod
    def starting(
        cls,
        centers: Floats,
        weights: Weights,
        reg_covar: float,
        precisions: Any = None,
        dof: float | str = "estimate",
        shared_dof: bool = False,
    ) -> Self:
        model, estimated = super().starting(centers, weights, reg_covar, precisions), isinstance(dof, str)
        first = np.full(len(centers), _FIRST_DOF if estimated else float(dof))
        return replace(model, dof=first, estimated=estimated, shared=bool(shared_dof))


@storable
@dataclass(frozen=True)
class StudentTFull(StudentT, Full):
    """covariances (C, D, D): Σ [data unit²]."""


@storable
@dataclass(frozen=True)
class StudentTDiag(StudentT, Diag):
    """covariances (C, D): diagonals of Σ [data unit²]."""


@storable
@dataclass(frozen=True)
class StudentTSpherical(StudentT, Spherical):
    """covariances (C,): Σ = σ² I [data unit²]."""
