"""Mixtures of factor analyzers (Ghahramani & Hinton 1996): x = μ_c + Λ_c z + ε, with z of H dimensions, H ≪ D.

Λ_c are the loadings, the factors are z ~ N(0, I), the noise is ε ~ N(0, Ψ_c) with Ψ_c diagonal. So the covariance
Σ_c = Λ_cΛ_cᵀ + Ψ_c has D·(H + 1) parameters, and a cost takes O(D·H) time. In the family "ppca", mixtures of
probabilistic principal components (Tipping & Bishop 1999), Ψ_c is ψ_c I. Fits form no D × D matrix.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.declared import Array
from cprime._utils.storable import storable
from cprime._utils.threads import by_pieces, plain_products
from cprime._utils.values import cached, replace
from cprime.execution.block import Block
from cprime.kernels import Dense, Floats, Rows, posterior
from cprime.kernels.marginals import root_of
from cprime.kernels.tables import Givers, givers, groups, mixed
from cprime.model.base import Gaussian, log_weights, n_weights, new_weights, register
from cprime.model.conditional import Conditional, others
from cprime.model.covariance import DataScale, are_singular, fewer_factors, of_empty, positive, scaled_along, within
from cprime.model.factor_costs import FactorCosts, parts
from cprime.model.factor_steps import (
    FactorMoments,
    FactorRoots,
    above_one,
    add_missing_moments,
    completed,
    explained,
    leading,
    random_directions,
    regressed,
    times_root,
)
from cprime.model.interface import Expected, Responsibilities, Weights
from cprime.model.own_covariance import FullCovariance

# Moments about an origin are inaccurate if Σ_d (mean_d − origin_d)² / (noise variance)_d of a mean exceeds this number.
_FAR = 2.0**24


@register
@storable("model.Factors")
@dataclass(frozen=True)
class FactorAnalyzers(Gaussian):
    """Parameters Θ of a mixture of factor analyzers with H factors.

    centers (C, D), loadings Λ (C, D, H) [data units]    noise_variances ψ (C, D) [data unit²]    weights (C,) or None
    known: whether loadings are known; if not, the next M-step computes loadings from directions of high variance
    Loadings and noise have the dtype of the data. Fits keep loadings in the memory of a contiguous array (C, H, D),
    transposed, because kernels read them so.
    """

    centers: Floats
    loadings: Floats
    noise_variances: Floats
    reg_covar: float = 0.0
    weights: Weights = None
    known: bool = True

    covariance_type: ClassVar[str] = "factors"
    attribute_names: ClassVar[tuple[str, ...]] = ("factors_", "noise_variances_")
    declared: ClassVar[Mapping[str, Any]] = {
        "factors_": Annotated[NDArray, Array("C D ?"), lambda value, sizes: value.shape[2] < sizes["D"]],
        "noise_variances_": Array("C D", above=0),
    }
    sklearn_type: ClassVar[str] = "full"
    options: ClassVar[tuple[str, ...]] = ("n_factors",)
    settles: ClassVar[bool] = False
    in_place: ClassVar[bool] = True
    scale_free: ClassVar[bool] = True
    isotropic: ClassVar[bool] = False  # whether the noise of a component has the same variance in all columns

    @property
    def n_factors(self) -> int:
        return self.loadings.shape[2]

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: means, loadings up to a rotation, noise variances, and weights if free."""
        C, D, H = self.loadings.shape
        noise = C if self.isotropic else C * D
        return C * (D + D * H - H * (H - 1) // 2) + noise + n_weights(self.weights)

    @cached
    def _inner(self) -> FactorRoots:
        C, _, H = self.loadings.shape
        found = FactorRoots(np.empty((C, H, H)), np.empty(C))

        def piece(part: slice) -> None:
            loadings, noise = self.loadings[part].astype(np.float64), self.noise_variances[part].astype(np.float64)
            scaled = loadings / noise[:, :, np.newaxis]
            lower = root_of(
                np.eye(H) + np.matmul(loadings.transpose(0, 2, 1), scaled),
                partial(above_one, loadings, noise),
            )
            found.roots[part] = np.tril(np.linalg.inv(lower)).transpose(0, 2, 1)
            found.log_determinants[part] = 2 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
            found.log_determinants[part] += np.log(noise).sum(axis=1)

        by_pieces(piece, parts(C))
        return found

    @cached
    def _offsets(self) -> NDArray[np.float64]:
        """Costs at the means, called offsets: log |2πΣ_c| − 2 log π_c (C,) for covariances Σ_c and weights π_c."""
        constant = self.n_features * math.log(2 * math.pi)
        return constant + self._inner.log_determinants - 2 * log_weights(self.weights, self.centers)

    def components(self) -> FactorCosts:
        return self._components

    @cached
    def _components(self) -> FactorCosts:
        least = self._offsets.min()
        empty = -2 * log_weights(self.weights, self.centers) - least  # costs of rows without observed values
        return FactorCosts(
            self.centers, self.loadings, self.noise_variances, self._inner.roots, self._offsets - least, empty
        )

    @cached
    def _projections(self) -> NDArray[np.float64]:
        """Matrices W (C, H, D) with E[z | x] = W(x − μ) for factors z; random directions before loadings are known."""
        if self.known:
            return np.matmul(self._inner.roots, self._components.directions_of(slice(None)))
        random = self._random_directions()
        return np.broadcast_to(random, (self.n_components, *random.shape))

    def _random_directions(self) -> NDArray[np.float64]:
        return random_directions(self.n_features, self.n_factors, self.centers.dtype)

    def summarise(self, block: Block, shares: Responsibilities) -> FactorMoments:
        if block.X.observed is not None:
            return self._of_observed(block, shares)
        precisions = roots = None
        if self.known:
            _, precisions, loadings, roots, _ = self._components.factors
        else:
            loadings = self._random_directions()[np.newaxis]
        counts, sums, squares, cross, means, second = block.X.factor_moments(
            self.centers, precisions, loadings, roots, shares.ids, shares.responsibilities, block.sample_weight
        )
        return FactorMoments(counts, sums, squares, cross.transpose(0, 2, 1), means, second)

    def _of_observed(self, block: Block, shares: Responsibilities) -> FactorMoments:
        """Return the moments of a block of rows with missing values, computed from the observed values."""
        X, W, observed = block.X.dense(), self._projections, block.X.observed
        assert observed is not None
        found = FactorMoments.none(*self._projections.shape)
        q = np.ones(shares.ids.shape) if shares.responsibilities is None else shares.responsibilities
        q = q if block.sample_weight is None else q * block.sample_weight[:, np.newaxis]

        def add(given: Givers) -> None:
            c, rows, share = given
            found.counts[c] = share.sum()
            # Expectations of missing values need loadings and noise, which are unknown until the first M-step.
            if self.known and shares.cost is not None:
                of = self._components.component(c)
                add_missing_moments(found, c, X[rows], observed[rows], share, of, self._inner.roots[c])
                return
            y = np.subtract(X[rows], self.centers[c], dtype=np.float64) * observed[rows]
            z = y @ W[c].T
            weighted = share[:, np.newaxis] * z
            found.sums[c], found.squares[c] = share @ y, share @ np.square(y)
            found.cross[c], found.means[c], found.second[c] = y.T @ weighted, weighted.sum(axis=0), z.T @ weighted

        by_pieces(add, givers(shares.ids, q, self.n_components))
        return found

    def with_missing(self) -> Self:
        return self

    def imputed(self, X: Rows, ids: NDArray[np.int32], q: NDArray[np.float64], normal: Any = None) -> NDArray:
        rows, observed = X.dense(), X.observed
        assert observed is not None

        def filled(c: int, piece: NDArray[np.intp]) -> NDArray[np.float64]:
            draws = None if normal is None else normal[piece]
            return completed(rows[piece], observed[piece], self._components.component(c), draws) + self.centers[c]

        return np.where(observed, rows, mixed(ids, q, rows.shape, filled))

    @plain_products()
    def expect_all(self, block: Block) -> Expected:
        """Return the result of an exact E-step of a block, computed by matrix products of all rows and components.

        Rows are relative to one origin, and their moments about it are converted to moments about the means. If
        components are so far apart that this would lose precision, the E-step is computed component by component.
        """
        if block.X.observed is not None or self._components.reach > _FAR:
            return self._expect_each(block)
        costs, roots = self._components, self._inner.roots
        C, D, H = self.loadings.shape
        terms = costs.terms
        origin = terms.origin
        found, cross = FactorMoments.none(C, H, D), np.zeros((D, C * H))
        log_sum = cost = 0.0
        for rows in costs.blocks(len(block), H + 1):
            X = block.X[rows].dense()
            each, along = costs.measured(X, terms)
            likely = posterior(each, self.scale)
            r = likely.responsibilities
            weight = None if block.sample_weight is None else block.sample_weight[rows]
            q = r if weight is None else r * weight[:, np.newaxis]
            log_sum += float(likely.log_sum.sum() if weight is None else weight @ likely.log_sum)
            cost += float((q * each).sum())
            found.accumulate(cross, np.subtract(X, origin, dtype=np.float64), q, along, roots)
        moments = found.about(np.subtract(self.centers, origin, dtype=np.float64), cross)
        return Expected(moments, log_sum, log_sum + 0.5 * cost)

    def _expect_each(self, block: Block) -> Expected:
        ids, costs = self._components.best(block.X, self.n_components)
        likely = posterior(costs, self.scale)
        log_sum, cost = block.weighted_sum(likely.log_sum), block.weighted_sum(likely.mean)
        moments = self.summarise(block, Responsibilities(ids, likely.responsibilities, cost))
        return Expected(moments, log_sum, log_sum + 0.5 * cost)

    def maximise(self, moments: FactorMoments, prior: None = None) -> Self:
        """Return the model after an M-step: loadings and means (Λ, μ) are the regression of x on (z, 1) with factors z.

        The noise Ψ is the variance of the residual plus `reg_covar`; weights are shares of the points. Mean and
        loadings of a component without points are unchanged.
        """
        self._components.forget()  # frees arrays that are as large as parameters; fits do not need them again
        dtype = self.centers.dtype
        shift, loadings, noise = moments.buffer(self.n_factors, dtype)

        def piece(part: slice) -> None:
            of = moments.select(part)
            if self.known:
                shift[part], found, noise[part] = regressed(of, self._inner.roots[part])
            else:
                shift[part], found, noise[part] = leading(of, self._random_directions(), self.n_factors)
            loadings[part] = within(found, dtype)

        by_pieces(piece, parts(self.n_components))
        empty = moments.counts <= 0
        shift[empty], loadings[empty] = 0.0, self.loadings[empty]
        means = np.add(shift, self.centers, out=shift)
        noise = self._pooled(np.maximum(noise, 0, out=noise))
        noise += self.reg_covar
        spread = explained(loadings)
        spread += noise
        scale = DataScale.measure(moments.counts, means, spread, dtype)
        scale = replace(scale, resolution=self._pooled(scale.resolution))
        del spread
        return replace(
            self,
            centers=np.ascontiguousarray(means, dtype),
            loadings=loadings,
            noise_variances=within(positive(of_empty(moments.counts, noise), dtype, scale), dtype),
            weights=new_weights(self.weights, moments.counts),
            known=True,
        )

    def hold_centers(self, moments: FactorMoments, prior: None = None) -> tuple[FactorMoments, None]:
        return replace(moments, sums=np.zeros_like(moments.sums), means=np.zeros_like(moments.means)), None

    def _pooled(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return variances of the noise (C, D), replaced by their mean over all columns if the noise is isotropic."""
        if not self.isotropic:
            return noise
        return np.repeat(noise.mean(axis=1, keepdims=True), noise.shape[1], axis=1)

    def extrapolated(self, before: Self, share: float) -> Self:
        noise = scaled_along(self._noise, before._noise, share)
        loadings = self.loadings - before.loadings
        loadings *= share
        loadings += self.loadings
        noise = positive(noise, self.centers.dtype)
        return self._with(loadings, noise, **self._means_extrapolated(before, share))

    @property
    def _noise(self) -> NDArray[np.float64]:
        """Variances of the noise in double precision: (C, D)."""
        return self.noise_variances.astype(np.float64)

    def _with(self, loadings: NDArray, noise: NDArray[np.float64], **others: Any) -> Self:
        """Return a copy with other loadings and noise variances, converted to the dtype of the data, and `others`."""
        dtype = self.centers.dtype
        loadings = loadings if loadings.dtype == dtype else within(loadings, dtype)
        return replace(self, loadings=loadings, noise_variances=within(noise, dtype), **others)

    def pseudo_moments(self, shares: NDArray[np.float64]) -> tuple[FactorMoments, None]:
        """Return moments from which an M-step computes this model's parameters: factors z have mean 0 and variance I.

        Stepwise EM averages them with the moments of a batch.
        shares (C,): counts of the moments, with sum 1
        """
        C, D, H = self.loadings.shape
        each = shares[:, np.newaxis, np.newaxis]
        rest = np.matmul(self._inner.roots, self._inner.roots.transpose(0, 2, 1))
        spread = np.maximum(self._noise - self.reg_covar, 0) + explained(self.loadings)
        first = shares, np.zeros((C, D)), shares[:, np.newaxis] * spread
        return FactorMoments(*first, each * self.loadings, np.zeros((C, H)), each * (np.eye(H) - rest)), None

    @property
    def n_singular(self) -> int:
        return int(are_singular(self._noise, 1 / self._noise).sum())

    @property
    def least_variances(self) -> NDArray[np.float64]:
        least = np.empty(self.n_components)

        def piece(part: slice) -> None:
            of_factors = np.square(self._components.directions_of(part)).sum(axis=1)
            least[part] = 1 / (self._components.precisions[part] - of_factors).max(axis=1)

        by_pieces(piece, parts(self.n_components))
        return least

    def noise(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return x − μ of points x drawn from components `labels` (n,), from standard normal numbers (n, D).

        The result is Ψ^½ (I + WWᵀ)^½ times normal numbers, where W = Ψ^−½Λ for loadings Λ and noise variances Ψ.
        """
        root = np.sqrt(self._noise)
        out = np.empty(normal.shape)
        for c, rows in groups(np.asarray(labels, dtype=np.int32), self.n_components):
            out[rows] = root[c] * times_root(self.loadings[c] / root[c][:, np.newaxis], normal[rows])
        return out

    def latent(self, X: Rows, labels: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the expected factors E[z | x] of every row under its component in `labels` (n,): (n, H)."""
        moved, out = self._moved(X, labels), np.empty((len(labels), self.n_factors))
        for c, piece in groups(labels, self.n_components):
            out[piece] = moved[piece] @ self._projections[c].T
        return out

    def distances(self, X: Rows, labels: NDArray[np.int32]) -> NDArray[np.float64]:
        no_offsets = np.zeros(self.n_components)
        costs = FactorCosts(
            self.centers, self.loadings, self.noise_variances, self._inner.roots, no_offsets, no_offsets
        )
        # Missing values are replaced by expected ones, which leave the distance of the observed values unchanged.
        if X.observed is not None:
            X = Dense((self._moved(X, labels) + self.centers[labels]).astype(X.dtype))
        return np.sqrt(costs.costs(X, labels[:, np.newaxis])[:, 0].astype(np.float64))

    def covariances_along(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        turned = np.matmul(directions, self.loadings)
        own = np.einsum("id,cd,jd->cij", directions, self.noise_variances, directions)
        return own + np.matmul(turned, turned.transpose(0, 2, 1))

    @property
    def variances(self) -> NDArray[np.float64]:
        return explained(self.loadings) + self.noise_variances

    def marginal(self, columns: NDArray[np.intp]) -> Self:
        return self._among(columns, self.loadings)._below_full()

    def conditional(self, columns: NDArray[np.intp]) -> Conditional:
        """Return the conditional distributions of the other columns m, given known `columns` o.

        With loadings Λ, noise Ψ and M = LLᵀ = I + Λ_oᵀΨ_o⁻¹Λ_o, the regression matrix is Λ_m M⁻¹ Λ_oᵀ Ψ_o⁻¹, and the
        conditional distributions are factor analyzers with loadings Λ_m L⁻ᵀ.
        """
        known, rest = self._among(columns, self.loadings), others(columns, self.n_features)
        turned = np.matmul(self.loadings, known._inner.roots)
        regression = turned[:, rest], known._components.directions_of(slice(None))
        return Conditional(known._below_full(), self._among(rest, turned)._below_full(), regression)

    def _among(self, columns: NDArray[np.intp], loadings: NDArray) -> Self:
        """Return this model with other loadings (C, D, H), restricted to the columns with the indices `columns`."""
        return self._with(loadings[:, columns], self._noise[:, columns], centers=self._places(columns))

    def _below_full(self) -> Self:
        return self._with(*fewer_factors(self.loadings.astype(np.float64), self._noise))

    def attributes(self) -> dict[str, Any]:
        dtype = self.centers.dtype
        loadings = np.ascontiguousarray(within(self.loadings, dtype))
        return {"factors_": loadings, "noise_variances_": within(self.noise_variances, dtype)}

    def as_sklearn(self) -> dict[str, Any]:
        """Return the parameters as attributes of scikit-learn's mixture with full covariances (C·D² numbers)."""
        full = FullCovariance(self.centers, self.covariances_along(np.eye(self.n_features)), 0.0, self.weights)
        return full.attributes()

    @classmethod
    def from_attributes(
        cls, attributes: Mapping[str, Any], centers: Floats, weights: Weights, reg_covar: float = 0.0
    ) -> Self:
        loadings, noise = (np.asarray(attributes[name], dtype=centers.dtype) for name in cls.attribute_names)
        return cls(centers, loadings, noise, reg_covar, weights)

    @classmethod
    def starting(
        cls, centers: Floats, weights: Weights, reg_covar: float, precisions: Any = None, n_factors: int | str = "auto"
    ) -> Self:
        C, D = centers.shape
        if precisions is not None:
            family = f"covariance_type={cls.covariance_type!r}"
            raise ValueError(f"precisions_init must be None for {family}, whose loadings start from the data.")
        H = min(5, D - 1) if n_factors == "auto" else int(n_factors)
        if H >= D:
            raise ValueError(f"n_factors must be below the number of features, {D}, got {H}.")
        loadings, noise = np.zeros((C, H, D), centers.dtype).transpose(0, 2, 1), np.ones((C, D), centers.dtype)
        return cls(centers, loadings, noise, reg_covar, weights, known=H == 0)


@register
@storable("model.PrincipalComponents")
@dataclass(frozen=True)
class PrincipalComponents(FactorAnalyzers):
    """Factor analyzers with isotropic noise; noise_variances (C, D): equal for all coordinates of a component."""

    covariance_type: ClassVar[str] = "ppca"
    scale_free: ClassVar[bool] = False
    isotropic: ClassVar[bool] = True
