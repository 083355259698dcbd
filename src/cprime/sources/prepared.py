"""Preparation of rows: missing values are replaced by means, and columns are scaled to mean 0 and variance 1.

Parameters of a model that is fitted to prepared rows are in the units of these rows. `Preparation` converts in both
directions: rows before they are compared with the parameters, and results for the user.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

from cprime._utils.declared import Array
from cprime.sources.base import Source
from cprime.sources.derived import AS_HELD, DerivedSource


class _Arrays(TypedDict):
    fill: Annotated[NDArray[np.float64], Array("D", "float64")] | None
    shift: Annotated[NDArray[np.float64], Array("D", "float64")] | None
    scale: Annotated[NDArray[np.float64], Array("D", "float64", above=0)] | None


# Type of the fitted attribute `preparation_`.
PreparationArrays = Annotated[_Arrays, lambda value, sizes: (value["shift"] is None) == (value["scale"] is None)]


@dataclass(frozen=True)
class Preparation:
    """Transformation of rows x: replace missing x_d by fill_d, then replace all x_d by (x_d − shift_d)/scale_d.

    fill, shift, scale: arrays (D,). If `fill` is None, missing values remain; if `scale` is None, x is not scaled.
    Without any of them, nothing is changed.
    """

    fill: NDArray[np.float64] | None = None
    shift: NDArray[np.float64] | None = None
    scale: NDArray[np.float64] | None = None

    def apply(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Transform rows (n, D) in place and return the same array."""
        if self.fill is not None:
            np.copyto(X, self.fill, where=np.isnan(X))
        if self.shift is not None and self.scale is not None:
            X -= self.shift
            X /= self.scale
        return X

    def applied(self, X: NDArray) -> NDArray:
        """Return the transformed rows (n, D) in the dtype of X; X itself if nothing is changed."""
        return X if self.is_identity else self.apply(X.astype(np.float64)).astype(X.dtype)

    def filled(self, X: NDArray) -> NDArray:
        """Return rows (n, D) in their own units, with missing values replaced if `apply` replaces them."""
        return X if self.fill is None else np.where(np.isnan(X), self.fill, X).astype(X.dtype)

    def restored(self, Z: NDArray) -> NDArray:
        """Return scaled values (…, D) in the units before the scaling, in their dtype: x_d = scale_d z_d + shift_d."""
        if self.scale is None or self.shift is None:
            return Z
        return (Z * self.scale + self.shift).astype(Z.dtype)

    def restored_spread(self, Z: NDArray) -> NDArray:
        """Return standard deviations or differences (…, D) of scaled values in the units before the scaling."""
        return Z if self.scale is None else (Z * self.scale).astype(Z.dtype)

    def restored_covariances(self, Z: NDArray) -> NDArray:
        """Return covariance matrices (…, D, D) of scaled values in products of the units before the scaling."""
        return Z if self.scale is None else (Z * np.outer(self.scale, self.scale)).astype(Z.dtype)

    @property
    def is_identity(self) -> bool:
        """Return whether `apply` changes nothing."""
        return self.fill is None and self.scale is None

    @property
    def log_volume(self) -> float:
        """Return Σ_d log scale_d: log density of scaled rows − log density of the rows before the scaling [nats]."""
        return 0.0 if self.scale is None else float(np.log(self.scale).sum())

    def select(self, columns: Any) -> Self:
        """Return the preparation of some columns, given by their indices."""
        chosen = np.asarray(columns, dtype=np.intp)
        return type(self)(**{key: None if value is None else value[chosen] for key, value in self.as_dict().items()})

    def equals(self, other: "Preparation") -> bool:
        """Return whether the other preparation has the same arrays."""
        one, two = self.as_dict(), other.as_dict()
        return all(
            (one[key] is None) == (two[key] is None) and (one[key] is None or np.array_equal(one[key], two[key]))  # type: ignore[arg-type]
            for key in one
        )

    def as_dict(self) -> dict[str, NDArray[np.float64] | None]:
        """Return the arrays fill, shift and scale as a dict, for storage in a model."""
        return {"fill": self.fill, "shift": self.shift, "scale": self.scale}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Return the `Preparation` that a dict from `as_dict` describes; values are arrays, lists or None."""
        return cls(
            **{name: None if value is None else np.asarray(value, dtype=np.float64) for name, value in stored.items()}
        )


class PreparedSource(DerivedSource):
    """Source of the rows of another source after a `Preparation`: missing values replaced, columns scaled."""

    def __init__(self, base: Source, preparation: Preparation) -> None:
        super().__init__(base.name, base.n_rows, (base.dtype,) * base.n_features, base.columns, base._files)
        self._base, self._preparation = base.as_type("float64"), preparation
        self._list_column = base.list_column
        self.in_memory = self._is_one_chunk = base.in_memory
        self._weights = base._weights
        self._weights_spec = None if base._weights_spec is None else AS_HELD
        self._chunk_rows = base._chunk_rows
        self._opened_with = _reopening(base, prepared=preparation)

    def _fill(self, begin: int, end: int, out: NDArray) -> None:
        out[...] = self._pick(self._preparation.apply(self._base.read(begin, end).copy()))

    def _gather(self, rows: NDArray[np.int64], out: NDArray) -> None:
        out[...] = self._pick(self._preparation.apply(self._base.take(rows)))

    def _identity(self) -> bytes:
        found = [b"" if value is None else value.tobytes() for value in self._preparation.as_dict().values()]
        return self._base._identity() + b"".join(found)


def complete(source: Source) -> Source:
    """Return a source of only the rows without missing values; one pass over the data finds them."""
    found = source.subset(complete_rows(source)).with_chunk_rows(source._chunk_rows)
    found._weights_spec = None if source._weights_spec is None else AS_HELD
    found._opened_with = _reopening(source)
    return found


def _reopening(base: Source, prepared: Preparation | None = None) -> dict[str, Any] | None:
    """Return a description from which `reopened` opens a source derived from `base`; None if `base` has no path.

    prepared: the `Preparation` of the derived source; None for the source of rows without missing values
    """
    spec = base.opened_from
    if spec is None or prepared is None:
        return None if spec is None else {"complete": spec}
    stored = {name: None if value is None else value.tolist() for name, value in prepared.as_dict().items()}
    return {"prepared": spec, "preparation": stored}


def complete_rows(source: Source) -> NDArray[np.int64]:
    """Return the ascending indices (m,) of the rows without missing values, found in one pass."""
    found = [begin + np.flatnonzero(~np.isnan(X).any(axis=1)) for begin, X, _ in _blocks(source)]
    return np.concatenate(found).astype(np.int64)


def learned(source: Source, *, fill: bool, scale: bool) -> Preparation:
    """Return a `Preparation` from the columns' weighted means and variances (without missing values), in 1 or 2 passes.

    fill: whether missing values become means    scale: whether columns are then scaled to mean 0 and variance 1

    Raises ValueError for a column without any value.
    """
    weight, sums = np.zeros(source.n_features), np.zeros(source.n_features)
    for _, X, w in _blocks(source):
        there = ~np.isnan(X)
        weight += w @ there
        sums += w @ np.where(there, X, 0)
    if not weight.all():
        j = int(np.flatnonzero(weight == 0)[0])
        raise ValueError(f"{source.name}: column {source.columns[j] if source.columns else j!r} has no values")
    mean = sums / weight
    if not scale:
        return Preparation(mean if fill else None)
    total, squares = 0.0, np.zeros(source.n_features)
    for _, X, w in _blocks(source):
        squares += w @ np.square(np.where(np.isnan(X), mean, X) - mean)
        total += float(w.sum())
    deviation = np.sqrt(squares / total)
    return Preparation(mean if fill else None, mean, np.where(deviation > 0, deviation, 1.0))


def _blocks(source: Source) -> Iterator[tuple[int, NDArray[np.float64], NDArray[np.float64]]]:
    """Yield a triple for each chunk: index of its first row, its values (n, D), and its weights (n,).

    Both arrays are float64. The weights are 1 if the source has none.
    """
    begin = 0
    doubled = source.as_type("float64")
    for size in doubled.sizes:
        weights = doubled.weights(begin, begin + size)
        yield begin, doubled.read(begin, begin + size), np.ones(size) if weights is None else weights
        begin += size
