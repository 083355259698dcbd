"""Formulas for the memory that a fit needs in addition to what the process uses already; no row of the data is read.

Bytes that follow from shapes are exact: active sets, chunks, neighbor lists, labels. Two kinds of constants were
measured (see `docs/plan.md`): how many copies of parameters and of sufficient statistics exist at the same time, and
the temporary bytes per row of a pass. The bytes of a component are measured on a small model of the same family when
the formulas are used, so the formulas are the same for all families.
"""

import copy
import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cprime import em
from cprime._utils.random import Key
from cprime._utils.threads import resolve_threads
from cprime._utils.values import replace
from cprime.em.expectation import HardMoments
from cprime.em.sizes import n_bytes as bounded_sizes_bytes
from cprime.estimators.memory_limit import as_memory
from cprime.estimators.opening import is_plain
from cprime.estimators.problems import options_of
from cprime.estimators.validation import resolve_init
from cprime.estimators.watching import unfitted_copy
from cprime.execution import Data, Local, local
from cprime.kernels import TabulatedCosts, as_rows, wide_bytes
from cprime.kernels.tables import TABLE
from cprime.model.base import rows_of_piece
from cprime.neighbors import EXACT_LISTS
from cprime.neighbors.components import KernelComponents
from cprime.search import Full
from cprime.seeding.jumps import PER_CLUSTER
from cprime.seeding.kmeans_plusplus import trial_bytes
from cprime.seeding.methods import name_of
from cprime.sources import Source, is_source_like, open_data
from cprime.sources.arrays import ArraySource, SparseSource
from cprime.sources.base import CHUNK_BYTES
from cprime.sources.foreign import plain
from cprime.sources.kinds import library_of

# Copies of the parameters, and of the sufficient statistics, that exist at a time in an M-step with momentum.
PARAMETERS, SUMS = 3, 5
# Copies of the parameters, and of the sufficient statistics, at a time if M-steps overwrite these statistics.
_PARAMETERS_IN_PLACE, _SUMS_IN_PLACE = 2, 1.3
_TABLE_ENTRY = 16  # Bytes per entry of a table of costs (of rows under components) while a thread computes it.
_LIST_ENTRY = 39  # Temporary bytes per entry of the neighbor lists during their update.
_LIST_ROWS = 65536  # Largest number of components whose neighbor lists are updated at a time.
# Neighbor lists of some models are found from the mean cost of each component for the points of each other one: bytes
# for such a pair of components, and largest number of pairs that are computed at a time.
_MEAN_COSTS, _MOST_MEAN_COSTS = 20, 2**24
_MARGINALS = 100 * 10**6  # Largest size in bytes of tables of marginal densities, which rows with missing values need.
_FIXED = 3 * 2**20  # Bytes of temporary arrays of compiled kernels, of samples and of Python objects.
_SMALL = 32  # Least number of features of the small models from whose sizes those of a large model are extrapolated.
_ID = 4  # Bytes of a component's index.
_ORDER, _LENGTH = 12, 20  # Bytes per row of a narrow type (e.g. uint8) for its position in sorted order, and its norm.
_ANY = {  # Arguments of an estimator that do not change the size of its model, with values valid for small models.
    "means_init": None,
    "weights_init": None,
    "precisions_init": None,
    "warm_start": False,
    "n_active": "auto",
    "search": "full",
    "init": "random",
    "init_params": "random",
    "max_memory": None,
    "missing": "error",
    "fixed": None,
    "size_max": None,
    "size_min": None,
}


@dataclass(frozen=True)
class PlannedRows:
    """Description of the data of a planned fit, made without reading rows.

    data: the rows as `Data`, with their shape and type
    loaded: bytes of the rows if the fit loads or copies all of them into memory, otherwise 0
    resident: whether all rows are in memory during the fit; if not, they are read chunk by chunk
    here: whether the rows are on this machine, not on the workers of a cluster
    """

    data: Data
    loaded: int = 0
    resident: bool = True
    here: bool = True

    @classmethod
    def from_data(cls, estimator: Any, X: Any) -> Self:
        """Return `PlannedRows` that describe X, which may be any type of data that the estimator accepts.

        Data in memory are opened as the fit opens them, with its checks.
        """
        if library_of(X) == "dask":
            from cprime.execution.dask_collections import collected

            return cls.opened(collected(X, None, None, list(X.columns) if hasattr(X, "columns") else None), X)
        if not is_source_like(X):
            return cls.opened(unfitted_copy(estimator)._opened(X, None, reset=True), X)
        source = open_data(X)
        resident = isinstance(source, ArraySource)
        return cls(Local(source), _n_bytes_stored(source) if resident and source is not X else 0, resident)

    @classmethod
    def opened(cls, data: Data, X: Any) -> Self:
        """Return `PlannedRows` of data that were opened from X: data in memory, or a Dask collection."""
        if library_of(X) == "dask":
            return cls(data, 0, False, data.is_local)
        assert isinstance(data, Local)
        if isinstance(data.source, SparseSource):
            as_it_is = getattr(X, "format", "") == "csr" and X.dtype == data.dtype
            return cls(data, 0 if as_it_is else data.n_bytes)
        as_it_is = not isinstance(X, list) and is_plain(plain(X), (data.source.stored,))
        return cls(data, 0 if as_it_is else _n_bytes_stored(data.source))

    @classmethod
    def of_shape(cls, shape: tuple[int, int], dtype: DTypeLike) -> Self:
        """Return `PlannedRows` of an array of this shape and dtype, to estimate the memory of a fit without data."""
        source = ShapeSource(shape, dtype, resident=True)
        return cls(Local(source), _n_bytes_stored(source))

    @property
    def source(self) -> Source:
        assert isinstance(self.data, Local)
        return self.data.source

    @property
    def stored(self) -> np.dtype:
        """Return the data type in which the rows are stored in memory."""
        return self.source.stored if isinstance(self.data, Local) else self.data.dtype

    @property
    def is_cut(self) -> bool:
        """Return whether the fit reads rows in chunks, and the size of the chunks can be chosen."""
        return not self.resident and self.here and type(self.source).sizes is Source.sizes

    def with_chunk_rows(self, chunk_rows: int) -> Self:
        """Return `PlannedRows` of the same data, read in chunks of `chunk_rows` rows."""
        return self._of(self.source.with_chunk_rows(chunk_rows))

    def with_copies(self, copies: bool) -> Self:
        """Return `PlannedRows` of the same data; `copies` is whether a fit may copy chunks with their rows sorted."""
        data = copy.copy(self.data)
        data.copies = copies
        return replace(self, data=data)

    def in_a_file(self) -> Self:
        """Return `PlannedRows` of data of the same shape and type that are in a file and read in chunks."""
        data = self.data
        source = ShapeSource((data.n_points, data.n_features), self.stored, resident=False)
        return replace(self._of(source), loaded=0, resident=False)

    def as_float32(self) -> Self:
        """Return `PlannedRows` of the same data after a conversion to float32."""
        return replace(self._of(self.source.as_type(np.float32)), loaded=self.loaded // 2)

    def _of(self, source: Source) -> Self:
        return replace(self, data=Local(source)).with_copies(self.data.copies)


def _n_bytes_stored(source: Source) -> int:
    return source.n_rows * source.n_features * source.stored.itemsize


class Sizes(NamedTuple):
    """Bytes of a model and of its sufficient statistics, and properties of the model that the memory formulas use.

    component: bytes of the parameters of one component
    made: bytes per component of values that are derived from the parameters for the computation of costs
    sums: bytes of the sufficient statistics of one component
    shared: bytes of parameters that all components share
    embedded: bytes of a row after its transformation into the space of the components; 0 if it is not transformed
    in_place: whether M-steps overwrite the memory of the sufficient statistics
    by_distances: whether neighbor lists are computed from distances between centers, not from mean costs
    steady: whether the transformed rows of a chunk stay in memory from one pass to the next
    kernels: whether compiled kernels compute the costs; if not, rows are copied in double precision
    n_numbers: how many numbers a table of costs has for each row and component; 0 if the model has no such tables
    """

    component: float
    made: float
    shared: float
    sums: float
    embedded: float
    in_place: bool
    by_distances: bool
    steady: bool
    kernels: bool
    n_numbers: int


def needed(
    estimator: Any, rows: PlannedRows, sizes: Sizes | None = None, regroup: bool | None = None
) -> dict[str, int]:
    """Return the peak memory of a fit in bytes, as a dictionary with an entry for each use ("rows", "sums", …).

    rows: description of the data
    sizes: bytes of the model and its sufficient statistics; None measures them on small models
    regroup: whether a graph search copies each chunk with its rows sorted by component; None is the fit's own choice
    """
    data = rows.data
    options = options_of(estimator)
    plan: em.FitPlan = options.plan(data)
    regroup = plan.regroup if regroup is None else regroup
    N, D, C, s = data.n_points, data.n_features, options.n_components, data.dtype.itemsize
    narrow = rows.stored.itemsize < s and not data.has_missing
    chunk, width = max(data.sizes), D * (rows.stored.itemsize if narrow else s)
    width = data.n_bytes // max(1, N) if data.sparse else width
    sizes = sizes or sizes_of(estimator, D, data.dtype)
    exact = 1 < plan.n_kept == C
    graph = hasattr(plan.search, "regroup")
    many, spilled = len(data.sizes) > 1, as_memory(estimator.max_memory).spill is not None

    found = dict.fromkeys(("rows", "kept", "parameters", "sums", "lists", "labels", "temporary"), 0)
    if rows.here:
        found["rows"] = rows.loaded + (0 if rows.resident else sum(sorted(data.sizes)[-2:]) * width)
        found["rows"] += chunk * (_ORDER if narrow else width + _ID) if regroup else 0
        found["rows"] += wide_bytes(N, D, data.dtype) if narrow else 0
        found["rows"] += int((chunk if sizes.steady or not exact else min(chunk, rows_of_piece(D))) * sizes.embedded)
        if getattr(estimator, "missing", "error") == "marginal":
            found["rows"] += chunk * (width + D)
            found["temporary"] = min(_MARGINALS, chunk * 32 * D)
        if getattr(estimator, "metric", "euclidean") == "cosine":
            found["rows"] += chunk * (_LENGTH if narrow else width)
        bounds = 4 * (_ID + s) if plan.search.stores_bounds else 0
        kept = (_ID + s) if exact else 2 * plan.n_kept * (_ID + s) + bounds
        found["kept"] = (min(N, 2 * chunk) if spilled else N) * kept
        init = _start(estimator, data, plan)
        near = 20 if graph or init == "two-level" else 2
        found["temporary"] += chunk * (16 if exact else near if plan.n_kept == 1 else 8 * plan.n_kept + 16 + 12 * graph)
        if not sizes.kernels:
            found["temporary"] += chunk * 8 * D * min(plan.n_kept, C)
        if sizes.n_numbers:
            limit = TABLE * resolve_threads(estimator.n_threads)
            found["temporary"] += _TABLE_ENTRY * min(limit, chunk * max(C * sizes.n_numbers, D))
        if init == "k-means++":
            found["temporary"] = max(found["temporary"], trial_bytes(N, C, s))
        elif init == "jumps":
            found["temporary"] += min(N, PER_CLUSTER * C) * width
        if getattr(estimator, "size_max", None) is not None or getattr(estimator, "size_min", None) is not None:
            piece = min(chunk * width, CHUNK_BYTES)
            found["temporary"] = max(found["temporary"], bounded_sizes_bytes(N, C, s, data.weighted) + piece)
    found["labels"] = 0 if spilled or not rows.here else N * _ID
    merged = 0 if not many else math.ceil(math.log2(len(data.sizes)))
    models, sums = (_PARAMETERS_IN_PLACE, _SUMS_IN_PLACE) if sizes.in_place else (PARAMETERS, SUMS)
    found["parameters"] = int(models * (C * sizes.component + sizes.shared) + C * sizes.made)
    found["sums"] = int((sums + merged) * C * sizes.sums)
    if not plan.search.exact:
        G = getattr(plan.search, "n_neighbors", None) or (33 if plan.n_kept == 1 else 65)
        found["lists"] = min(G, C) * (_LIST_ENTRY * C if C <= EXACT_LISTS else 12 * C + 72 * min(C, _LIST_ROWS))
        if not sizes.by_distances:
            found["lists"] += _MEAN_COSTS * min(C * C, _MOST_MEAN_COSTS)
    found["temporary"] += _FIXED
    return found


def _start(estimator: Any, data: Data, plan: em.FitPlan) -> str | None:
    """Return the name of the initialization of the fit; None if the user gives initial centers.

    If the fit uses several initializations in turn, the result is the one that needs most memory.
    """
    init = name_of(getattr(estimator, "init", getattr(estimator, "init_params", None)))
    if init is None:
        return None
    if init == "auto" and hasattr(estimator, "init_params"):
        return "k-means++" if estimator.n_init > 1 and data.in_memory else "kmeans"
    return str(resolve_init(init, options_of(estimator).n_components, data, plan.jumps, plan.improved))


def sizes_of(estimator: Any, n_features: int, dtype: np.dtype) -> Sizes:
    """Return the `Sizes` (numbers of bytes) of an estimator's model of n_features features.

    They are measured on small models of two and three components. If there are many features, they are measured for
    three smaller numbers of features, and extrapolated by the parabola through these.
    """
    view = unfitted_copy(estimator)
    for name, value in _ANY.items():
        if hasattr(view, name):
            setattr(view, name, value)
    n_factors = getattr(getattr(view, "covariance_type", None), "n_factors", "auto")
    first = _SMALL + (0 if isinstance(n_factors, str) else int(n_factors))
    if n_features <= 2 * first:
        return _measured(view, n_features, dtype)
    at = [first, 3 * first // 2, 2 * first]
    small = [_measured(view, D, dtype) for D in at]
    names = Sizes._fields[:5]  # Only these fields of `Sizes` depend on the number of features.
    curve = np.polyfit(at, [[getattr(size, name) for name in names] for size in small], 2)
    return small[0]._replace(**dict(zip(names, np.polyval(curve, n_features).tolist(), strict=True)))


def _measured(view: Any, n_features: int, dtype: np.dtype) -> Sizes:
    """Return the `Sizes` (numbers of bytes) of a model of n_features features.

    Models of two and of three components are made; their difference gives the bytes per component.
    view: the estimator, without fitted attributes; its number of components is changed
    """
    bare, models, sums = [], [], []
    for C in (2, 3):
        setattr(view, view._size_name, C)
        X = np.random.default_rng(0).standard_normal((C * (n_features + 2), n_features)).astype(dtype)
        data, centers = local(X), X[:C].copy()
        model = options_of(view).problem(data).first_model(data, centers, True)
        components = model.components()
        data.each(em.CostPass(model, Full().look(None, components, Key(0)), 1))
        data.commit()
        bare.append(_size(list(model.__getstate__().values())))
        models.append(_size(model))
        sums.append(_size(data.each(HardMoments(model))))
    rows = as_rows(X)
    embedded = model.embed(rows)
    per_row = 0.0 if embedded is rows else _size(embedded) / len(X)
    component, tables = bare[1] - bare[0], isinstance(components, TabulatedCosts)
    made, shared = models[1] - models[0] - component, 3 * models[0] - 2 * models[1]
    kernels, n_numbers = tables or isinstance(components, KernelComponents), components.n_numbers if tables else 0
    flags = model.in_place, components.squared_distances, components.steady, kernels, n_numbers
    return Sizes(component, made, shared, sums[1] - sums[0], per_row, *flags)


def _size(value: Any) -> int:
    """Return the total bytes of all arrays in a value, its attributes and its items; each array is counted once."""
    arrays: dict[int, int] = {}

    def collect(value: Any) -> None:
        if isinstance(value, np.ndarray):
            whole = value if value.base is None or not isinstance(value.base, np.ndarray) else value.base
            arrays[id(whole)] = whole.nbytes
        elif isinstance(value, tuple | list):
            for part in value:
                collect(part)
        elif hasattr(value, "tocsr"):
            collect((value.data, value.indices, value.indptr))
        elif hasattr(value, "__dict__"):
            collect(list(vars(value).values()))

    collect(value)
    return sum(arrays.values())


class ShapeSource(Source):
    """Source of random rows with a given shape and type, for predictions of the memory and time of a fit without data.

    It represents an array in memory, which is one chunk (`resident`), or a file that is read in chunks.
    """

    _keeps_narrow = True

    def __init__(self, shape: tuple[int, int], dtype: DTypeLike, resident: bool) -> None:
        super().__init__("X", shape[0], (np.dtype(dtype),) * shape[1])
        self.in_memory = self._is_one_chunk = resident

    def _fill(self, begin: int, end: int, out: NDArray) -> None:
        drawn = np.random.default_rng(begin).standard_normal(out.shape)
        out[...] = (40 * np.abs(drawn)).clip(max=127) if out.dtype.kind in "biu" else drawn
