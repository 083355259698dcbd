"""Components that are products of other families, each over a block of columns: p(x given c) = Π_b p_b(x_b given c).

The cost of a component is the sum of its costs in the blocks. If no block has full covariances, all blocks together are
one family with diagonal covariances for compiled kernels. Let z·θ be the log-density of a block of counts or categories
up to a number a_c (`linear.py`). Then −2 z·θ = ‖s z − θ/s‖² − ‖s z‖² − ‖θ/s‖² for any s > 0: a squared distance, minus
a number that depends on the row alone. Costs of rows with missing values, and those with full covariances, are
tables of rows × components, one for each block.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.declared import Array, Texts
from cprime._utils.storable import storable
from cprime._utils.threads import by_pieces
from cprime._utils.values import cached, replace
from cprime.execution.block import Block
from cprime.execution.statistics import Sums
from cprime.kernels import Dense, Floats, GaussianParameters, Responses, Rows, SearchResult, TabulatedCosts, posterior
from cprime.kernels.missing import MissingRows
from cprime.model.base import FAMILIES, Family, log_weights, n_weights, new_weights
from cprime.model.categorical import Categorical
from cprime.model.interface import Expected, Responsibilities, Weights
from cprime.model.linear import Linear
from cprime.model.own_covariance import OwnCovariance, OwnMoments
from cprime.model.poisson import Poisson
from cprime.neighbors import exact_lists, least_lists
from cprime.neighbors.components import EXACT_LISTS, Components, Ids

_PIECE = 2**15  # number of rows whose costs under all components are in memory at a time

# Sums of counts that are less than this share of the numbers from which they are computed are rounding errors of 0.
_ROUNDING = 2.0**-44


class Place(NamedTuple):
    """Place of a block in the rows: its family, the columns of the data, and the range of numbers that they become."""

    family: str
    columns: tuple[int, ...]
    numbers: slice


def block_families() -> dict[str, Any]:
    """Return the families that a block can have, by name: those with a covariance per component, and the discrete."""
    own = {name: family for name, family in FAMILIES.items() if issubclass(family, OwnCovariance)}
    return own | {"poisson": Poisson, "categorical": Categorical}


def places_of(families: Sequence[str], n_categories: Sequence[int]) -> list[Place]:
    """Return the blocks of columns: columns of the same family are a block, in the order of their first columns.

    families: family of each column    n_categories: number of its categories, 0 if it has none
    """
    places, begin = [], 0
    for family in dict.fromkeys(str(name) for name in families):
        columns = tuple(j for j, name in enumerate(families) if name == family)
        end = begin + sum(int(n_categories[j]) or 1 for j in columns)
        places.append(Place(family, columns, slice(begin, end)))
        begin = end
    return places


def part_of(X: Rows, numbers: slice) -> Any:
    """Return a range of the columns of rows, without a copy."""
    array = X.dense()[:, numbers]
    return Dense(array) if X.observed is None else MissingRows(array, X.observed[:, numbers])


@dataclass(frozen=True)
class ProductMoments(Sums):
    """Sufficient statistics: counts (C,) Σ w q with weights w and responsibilities q, and those of each block."""

    counts: NDArray[np.float64]
    blocks: tuple[Any, ...]

    def __add__(self, other: Self) -> Self:
        blocks = tuple(a + b for a, b in zip(self.blocks, other.blocks, strict=True))
        return type(self)(self.counts + other.counts, blocks)

    def scaled(self, factor: float) -> Self:
        return type(self)(self.counts * factor, tuple(block.scaled(factor) for block in self.blocks))


class BlockTables(TabulatedCosts):
    """Costs of products as tables of rows × components: the sums of the tables of the blocks, minus 2 log π.

    blocks: pairs of a model and the range of its columns    offsets (C,): −2 log π_c of the weights π_c
    """

    def __init__(self, centers: Floats, blocks: Sequence[tuple[Any, slice]], offsets: NDArray[np.float64]):
        self.centers, self.offsets = centers, offsets
        self.n_numbers = max([1, *(block.n_features for block, _ in blocks if block.full)])
        self.parts = [(_table_of(block), numbers) for block, numbers in blocks]

    def table(self, points: Any, ids: Ids | slice, origin: NDArray) -> NDArray[np.float64]:
        tables = (find(part_of(points, numbers), ids, origin[numbers]) for find, numbers in self.parts)
        return reduce(add, tables) + self.offsets[ids]


def _table_of(block: Any) -> Callable[[Any, Any, NDArray], Any]:
    """Return the function that computes the costs (n, m) of rows under m components of one block."""
    if isinstance(block, Linear):
        costs = block.components()
        return lambda points, ids, origin: costs.table(block.embed(points), ids)

    def marginal(points: Any, ids: Any, origin: NDArray) -> NDArray[np.float64]:
        every = np.ones(points.shape, dtype=bool) if points.observed is None else points.observed
        rows = MissingRows(points.dense(), every)
        found: NDArray[np.float64] = rows.marginals(block.gaussians).table(rows, ids, origin)
        return found

    if not block.full:
        return marginal
    factors, offsets = block.factors[0], block.gaussians.exact.offsets

    def full(points: Any, ids: Any, origin: NDArray) -> NDArray[np.float64]:
        complete = np.ones(len(points), dtype=bool) if points.observed is None else points.observed.all(axis=1)
        out = np.empty((len(points), len(offsets[ids])))
        if not complete.all():
            out[~complete] = marginal(points[~complete], ids, origin)
        A, (n, D) = factors[ids], (int(complete.sum()), points.shape[1])
        x = Dense(np.subtract(points.dense()[complete], origin, dtype=np.float64))
        y = x.products(np.ascontiguousarray(A.reshape(-1, D)), n_threads=1).reshape(n, len(A), D)
        y -= np.einsum("cij,cj->ci", A, block.centers[ids] - origin)
        out[complete] = np.einsum("ncd,ncd->nc", y, y) + offsets[ids]
        return out

    return full


class ProductCosts(Components):
    """Costs −2 log p(c, x) of the components of a product, up to a constant (float64).

    tables: costs of rows with missing values
    kernel: Gaussians with diagonal covariances, whose costs are those of complete rows, up to a number for each row;
    None if a block has full covariances
    """

    def __init__(self, centers: Floats, blocks: Sequence[tuple[Any, slice]], offsets: NDArray[np.float64]):
        self.centers, self.blocks, self.offsets = centers, blocks, offsets
        complete = [(block.complete() if isinstance(block, Linear) else block, numbers) for block, numbers in blocks]
        self.tables = BlockTables(centers, blocks, offsets)
        self.kernel: GaussianParameters | None = None
        self.constant, self.shifted = 0.0, [each for each in complete if isinstance(each[0], Linear)]
        if not any(block.full for block, _ in blocks):
            parts = [_as_gaussians(block) for block, _ in complete]
            means, factors = (np.concatenate([part[i] for part in parts], axis=1) for i in (0, 1))
            at_means = sum((part[2] for part in parts), offsets)
            self.constant = float(at_means.min())
            self.kernel = GaussianParameters(means, factors, at_means - self.constant)

    def apart(
        self, points: Any, of_complete: Callable[..., tuple[NDArray, ...]], of_others: Callable[..., Any]
    ) -> tuple[NDArray, ...]:
        """Apply a function to the rows that the kernel accepts, and another one to all others; join the results.

        Both functions take m rows and their indices, and return arrays of length m.
        """
        if self.kernel is None:
            found: tuple[NDArray, ...] = of_others(points, slice(None))
            return found
        if points.observed is None:
            return of_complete(points, slice(None))
        joined: tuple[NDArray, ...] = points.by_kind(of_complete, of_others)
        return joined

    def shift(self, points: Rows) -> NDArray[np.float64]:
        """Return the costs of complete rows minus those that the kernel computes: (n,)."""
        out, X = np.full(len(points), self.constant), points.dense()
        for block, numbers in self.shifted:
            if isinstance(block, Categorical):
                out -= len(block.n_categories)  # ‖z‖², because a complete row has a 1 for each column of categories
                continue
            z, D = block.embed(Dense(X[:, numbers])).dense(), block.n_features
            out -= np.einsum("nd,d->n", np.square(z[:, :D]), np.square(_scales(block)))
            out -= 2 * np.einsum("nd,d->n", z[:, D:], block.natural[0][0, D:])  # parameters that all components share
        return out

    def _kept(self, points: Any, found: tuple[Ids, Floats]) -> tuple[Ids, Floats]:
        return found[0], found[1] + self.shift(points)[:, np.newaxis]

    def costs(self, points: Rows, ids: Ids) -> Floats:
        return self.tables.costs(points, ids)

    def best(self, points: Rows, n_kept: int, hint: Ids | None = None) -> tuple[Ids, Floats]:
        ids, costs = self.apart(
            points,
            lambda X, rows: self._kept(X, X.nearest(self.kernel, n_kept, hint=None if hint is None else hint[rows])),
            lambda X, rows: self.tables.best(X, n_kept),
        )
        return ids, costs

    def top_k(self, points: Rows, lists: Ids, previous: Ids, n_kept: int) -> tuple[Ids, Floats]:
        ids, costs = self.apart(
            points,
            lambda X, rows: self._kept(X, X.top_k(self.kernel, lists, previous[rows], n_kept)),
            lambda X, rows: self.tables.top_k(X, lists, previous[rows], n_kept),
        )
        return ids, costs

    def search_lists(
        self,
        points: Rows,
        lists: Ids,
        previous: Ids,
        n_kept: int,
        extra: Ids | None = None,
        evidence: bool = False,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> SearchResult:
        if evidence:  # sums of costs over points need the numbers that the kernel leaves out
            return super().search_lists(points, lists, previous, n_kept, extra, evidence, sample_weight)

        def of_complete(X: Any, rows: Any) -> tuple[NDArray, ...]:
            more = None if extra is None else extra[rows]
            found = X.search_lists(self.kernel, lists, previous[rows], n_kept, more)
            return *self._kept(X, (found.kept, found.costs)), found.counts

        def of_others(X: Any, rows: Any) -> tuple[NDArray, ...]:
            more = None if extra is None else extra[rows]
            found = super(ProductCosts, self).search_lists(X, lists, previous[rows], n_kept, more)
            return found.kept, found.costs, found.counts

        kept, costs, counts = self.apart(points, of_complete, of_others)
        return SearchResult(kept, costs, counts, None)

    def lists(self, n_neighbors: int, previous: Ids | None = None) -> Ids:
        """Return for each component the others of least mean cost for its points: (C, min(n_neighbors, C) − 1)."""
        if len(self.centers) > EXACT_LISTS:
            return exact_lists(self.centers, n_neighbors, previous)
        parts = [block.components().mean_costs() for block, _ in self.blocks]
        left = np.concatenate([part[0] for part in parts] + [np.ones((len(self.centers), 1))], axis=1)
        right = np.concatenate([part[1] for part in parts] + [self.offsets[:, np.newaxis]], axis=1)
        return least_lists(lambda begin, end: Dense(left[begin:end]).products(right), len(left), n_neighbors)


def _as_gaussians(block: Any) -> tuple[Floats, ...]:
    """Return means (C, D), factors (C, D) and offsets (C,) of a block as Gaussians with diagonal covariances.

    The costs of these Gaussians are those of the block, up to a number that depends on the row alone.
    """
    if isinstance(block, OwnCovariance):
        gaussians = block.gaussians
        return gaussians.means, gaussians.factors, gaussians.offsets
    parameters, offsets = block.natural[0][:, : block.n_features], block.components().offsets
    scales = _scales(block)
    means = parameters / np.square(scales)
    return means, np.broadcast_to(scales, means.shape), offsets - np.square(parameters / scales).sum(axis=1)


def _scales(block: Any) -> NDArray[np.float64]:
    """Return the scale s of each column of counts or categories as powers of two: (D,).

    For counts x of rate λ and s² near 1/λ, (s x)² and (θ/s)² = (log λ/s)² are of similar size, so little precision is
    lost.
    """
    scales: NDArray[np.float64] = np.exp2(-np.ceil(np.log2(np.maximum(block.centers.max(axis=0), 1)) / 2))
    return scales


@storable("model.Product")
@dataclass(frozen=True)
class Product(Family):
    """Mixture of products of families over blocks of columns.

    centers (C, W): means of the numbers of a row under each component, block by block: means, rates, probabilities
    blocks: models of the blocks without weights, whose centers are replaced by the columns of `centers`
    families: family of each column of the data    n_categories: number of its categories, 0 if it has none
    reg_covar: number added to the variances in M-steps [data unit²]    weights (C,): π, or None for 1/C each
    """

    centers: Floats
    weights: Weights
    blocks: tuple[Any, ...]
    families: tuple[str, ...]
    n_categories: tuple[int, ...]
    reg_covar: float = 0.0

    covariance_type: ClassVar[str] = "product"
    attribute_names: ClassVar[tuple[str, ...]] = ("families_", "n_categories_", "block_covariances_")
    declared: ClassVar[Mapping[str, Any]] = {
        "families_": Texts("K"),
        "n_categories_": Array("K", "i", least=0, is_first=True),
        "block_covariances_": list[NDArray],
    }
    options: ClassVar[tuple[str, ...]] = ("families_", "n_categories_")
    exact: ClassVar[bool] = True
    scale_free: ClassVar[bool] = True
    starts: ClassVar[tuple[str, ...]] = ("auto", "random", "kmeans")
    has_diverse_starts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        parts = [np.ascontiguousarray(self.centers[:, place.numbers]) for place in self.places]
        blocks = tuple(replace(block, centers=part) for block, part in zip(self.blocks, parts, strict=True))
        object.__setattr__(self, "blocks", blocks)

    @property
    def places(self) -> list[Place]:
        return places_of(self.families, self.n_categories)

    @cached
    def parts(self) -> tuple[tuple[Any, slice], ...]:
        """Return pairs of the model of a block and the range of its columns in `centers`."""
        return tuple(zip(self.blocks, (place.numbers for place in self.places), strict=True))

    @property
    def _gaussian(self) -> list[Any]:
        return [block for block in self.blocks if isinstance(block, OwnCovariance)]

    @property
    def log_scale(self) -> float:
        constant = len(self.blocks) * np.log(self.n_components)  # each block has weights 1/C of its own
        return float(constant + sum(block.log_scale for block in self.blocks))

    @property
    def n_parameters(self) -> int:
        return sum(block.n_parameters for block in self.blocks) + n_weights(self.weights)

    @property
    def n_normals(self) -> int:
        return len(self.families)

    @property
    def n_singular(self) -> int:
        return sum(block.n_singular for block in self._gaussian)

    @property
    def n_collapsed(self) -> int:
        return sum(block.n_collapsed for block in self._gaussian)

    @property
    def variances(self) -> NDArray[np.float64]:
        return np.concatenate([block.variances for block in self.blocks], axis=1)

    def components(self) -> ProductCosts:
        return self._components

    @cached
    def _components(self) -> ProductCosts:
        return ProductCosts(self.centers, self.parts, -2 * log_weights(self.weights, self.centers))

    def _moments_of_kernel(self, found: Responses) -> ProductMoments:
        """Return the moments from sums of differences from the means of the kernel."""
        kernel, blocks = self._components.kernel, []
        assert kernel is not None
        counts, at_means = found.counts, found.counts[:, np.newaxis] * kernel.means
        sums = found.first + at_means
        sums_of_discrete = np.where(sums > _ROUNDING * np.abs(at_means), sums, 0.0)  # no sum of these is negative
        for block, numbers in self.parts:
            if isinstance(block, OwnCovariance):
                blocks.append(OwnMoments(counts, sums[:, numbers], np.ascontiguousarray(found.second[:, numbers])))
            else:
                blocks.append(block.moments_of_sums(counts, sums_of_discrete[:, numbers]))
        return ProductMoments(counts, tuple(blocks))

    def _respond(self, X: Rows, weight: Any, moments: bool) -> tuple[tuple[NDArray, ...], list[ProductMoments]]:
        """Compute an exact E-step: log Σ_c exp(−cost_c/2) and the mean cost of each row, (n,) each, and the moments."""
        costs, found = self._components, list[ProductMoments]()

        def of_complete(X: Any, rows: Any) -> tuple[NDArray, ...]:
            one = X.respond(costs.kernel, None if weight is None else weight[rows], moments=moments)
            if moments:
                found.append(self._moments_of_kernel(one))
            shift = costs.shift(X)
            return one.log_sum - 0.5 * shift, one.mean + shift

        def of_others(X: Any, rows: Any) -> tuple[NDArray, ...]:
            parts = []
            for begin in range(0, len(X), _PIECE):
                piece = X[begin : begin + _PIECE]
                table = np.empty((len(piece), self.n_components))
                _fill(costs.tables, piece, table)
                q, log_sum, mean = posterior(table, -0.5)
                parts.append((log_sum, mean))
                if moments:
                    every = np.arange(self.n_components, dtype=np.int32)
                    ids = np.ascontiguousarray(np.broadcast_to(every, q.shape))
                    mine = None if weight is None else weight[rows][begin : begin + _PIECE]
                    found.append(self.summarise(Block(piece, mine), Responsibilities(ids, q, 0.0)))
            return tuple(np.concatenate(values) for values in zip(*parts, strict=True))

        return costs.apart(X, of_complete, of_others), found

    def expect_all(self, block: Block) -> Expected:
        (log_sums, means), moments = self._respond(block.X, block.sample_weight, moments=True)
        log_sum, cost = block.weighted_sum(log_sums), block.weighted_sum(means)
        return Expected(reduce(add, moments), log_sum, log_sum + 0.5 * cost)

    def log_likelihood(self, X: Rows) -> NDArray[np.float64]:
        return self.log_scale + self._respond(X, None, moments=False)[0][0]

    def summarise(self, block: Block, shares: Responsibilities) -> ProductMoments:
        found = []
        for model, numbers in self.parts:
            found.append(model.summarise(Block(part_of(block.X, numbers), block.sample_weight), shares))
        return ProductMoments(found[0].counts, tuple(found))

    def _with(self, blocks: Iterator[Any], weights: Weights) -> Self:
        new = tuple(blocks)
        centers = np.concatenate([block.centers for block in new], axis=1)
        return replace(self, centers=centers, weights=weights, blocks=new)

    def maximise(self, moments: ProductMoments, prior: None = None) -> Self:
        pairs = zip(self.blocks, moments.blocks, strict=True)
        weights = new_weights(self.weights, moments.counts)
        return self._with((block.maximise(mine) for block, mine in pairs), weights)

    def hold_centers(self, moments: ProductMoments, prior: None = None) -> tuple[ProductMoments, None]:
        pairs = zip(self.blocks, moments.blocks, strict=True)
        held = tuple(block.hold_centers(mine)[0] for block, mine in pairs)
        return ProductMoments(moments.counts, held), None

    def pseudo_moments(self, shares: NDArray[np.float64]) -> tuple[ProductMoments, None]:
        return ProductMoments(shares, tuple(block.pseudo_moments(shares)[0] for block in self.blocks)), None

    def with_missing(self) -> Self:
        return replace(self, blocks=tuple(block.with_missing() for block in self.blocks))

    def imputed(self, X: Rows, ids: NDArray[np.int32], q: NDArray[np.float64], normal: Any = None) -> NDArray:
        if X.observed is None:
            return X.dense()
        return np.concatenate([block.imputed(part_of(X, mine), ids, q, normal) for block, mine in self.parts], axis=1)

    def drawn(self, labels: NDArray, normal: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return drawn rows (n, K) in the columns of the data; categories are indices of the column's categories."""
        out = np.empty(normal.shape)
        for block, place in zip(self.blocks, self.places, strict=True):
            columns = list(place.columns)
            out[:, columns] = block.drawn(labels, np.ascontiguousarray(normal[:, columns]))
        return out

    def distances(self, X: Rows, labels: NDArray[np.int32]) -> NDArray[np.float64]:
        squares = [np.square(block.distances(part_of(X, mine), labels)) for block, mine in self.parts]
        distances: NDArray[np.float64] = np.sqrt(sum(squares))
        return distances

    def covariances_along(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        parts = [block.covariances_along(directions[:, mine]) for block, mine in self.parts]
        return reduce(add, parts)

    def attributes(self) -> dict[str, Any]:
        return {
            "families_": np.array(self.families, dtype=object),
            "n_categories_": np.array(self.n_categories, dtype=np.int64),
            "block_covariances_": [block.covariances for block in self._gaussian],
        }

    @classmethod
    def from_attributes(
        cls, attributes: Mapping[str, Any], centers: Floats, weights: Weights, reg_covar: float = 0.0
    ) -> Self:
        model = cls.starting(centers, weights, reg_covar, None, attributes["families_"], attributes["n_categories_"])
        covariances = iter(attributes["block_covariances_"])
        blocks = [
            replace(block, covariances=np.asarray(next(covariances), dtype=np.float64))
            if isinstance(block, OwnCovariance)
            else block
            for block in model.blocks
        ]
        return replace(model, blocks=tuple(blocks))

    @classmethod
    def starting(
        cls,
        centers: Floats,
        weights: Weights,
        reg_covar: float,
        precisions: Any = None,
        families_: Any = (),
        n_categories_: Any = (),
    ) -> Self:
        families, sizes = tuple(str(name) for name in families_), tuple(int(n) for n in n_categories_)
        blocks = []
        for place in places_of(families, sizes):
            family, mine = block_families()[place.family], centers[:, place.numbers]
            more = {"n_categories_": [sizes[j] for j in place.columns]} if family is Categorical else {}
            blocks.append(family.starting(mine, None, reg_covar, **more))
        return cls(centers, weights, tuple(blocks), families, sizes, reg_covar)


def _fill(tables: BlockTables, points: Any, out: NDArray[np.float64]) -> None:
    """Write the costs of all components for rows to `out` (n, C)."""
    origin = tables.origin()

    def piece(rows: slice) -> None:
        out[rows] = tables.table(points[rows], slice(None), origin)

    by_pieces(piece, tables.blocks(len(points)))


PRODUCT = {"product": Product}
