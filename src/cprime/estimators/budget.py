"""`max_memory`: a fit that keeps to so many bytes, or that is refused before anything is read."""

import copy
from collections.abc import Iterator
from typing import Any

from cprime._bytes import bytes_of, shown_bytes
from cprime.estimators.memory import Rows, needed, sizes_of
from cprime.search import Graph
from cprime.sources import is_source_like

LEAST_CHUNK = 1024  # rows of the smallest chunks
_NAMED = 3  # remedies of a message


def within_memory(estimator: Any, X: Any) -> Any:
    """X as a fit within `max_memory` takes it: a source in chunks that fit, all else as it is.

    Says on the way whether the fit may have a regrouped copy of a chunk: `_copies`.

    Raises
    ------
    ValueError
        If no chunks are small enough; the message has the remedies that cost least.
    """
    estimator.__dict__.pop("_copies", None)
    if estimator.max_memory is None:
        return X
    rows = lying_within(estimator, Rows.of(X))
    most, parts = bytes_of(estimator.max_memory, "max_memory"), needed(estimator, rows)
    if total(parts) <= most:
        return rows.source if is_source_like(X) else X
    named = "; ".join(text for text, _ in remedies(estimator, rows, most)[:_NAMED])
    del estimator._copies
    raise ValueError(
        f"max_memory={estimator.max_memory!r} is too little: this fit takes {shown_bytes(total(parts))} beyond what "
        f"the process holds. What takes less: {named or 'fewer rows, columns or components'}."
    )


def lying_within(estimator: Any, rows: Rows) -> Rows:
    """The rows in the largest chunks that `max_memory` has room for, or in the smallest; sets `_copies`."""
    most = bytes_of(estimator.max_memory, "max_memory")
    sizes = sizes_of(estimator, rows.data.n_features, rows.data.dtype)
    for candidate in chunked(rows):
        for copies in (True, False):
            estimator._copies = copies
            if total(needed(estimator, candidate, sizes)) <= most:
                return candidate
    return candidate


def total(parts: dict[str, int]) -> int:
    return sum(parts.values())


def chunked(rows: Rows) -> Iterator[Rows]:
    """The rows as they come, and those of a source in chunks that are halved down to the smallest."""
    yield rows
    if not rows.is_cut:
        return
    size = max(rows.data.sizes)
    while size > LEAST_CHUNK:
        size = max(LEAST_CHUNK, (size + 1) // 2)
        yield rows.with_chunk_rows(size)


def remedies(estimator: Any, rows: Rows, most: float = 0.0) -> list[tuple[str, int]]:
    """What takes less memory, in words, and the bytes that a fit takes then.

    Those that cost least come first, where a budget is given those before all that keep to it; each takes a tenth less
    at least.
    """
    now = total(needed(estimator, rows))
    found = []
    for text, other, lying in _variants(estimator, rows):
        try:
            n_bytes = _least(other, lying, most)
        except (ValueError, TypeError):  # arguments that do not go with each other
            continue
        if n_bytes <= 0.9 * now:
            found.append((f"{text} (then {shown_bytes(n_bytes)})", n_bytes))
    return sorted(found, key=lambda remedy: remedy[1] > most) if most else found


def _least(estimator: Any, rows: Rows, most: float) -> int:
    """What a fit takes; within a budget, in the largest chunks that keep to it, or else in the smallest."""
    n_bytes = total(needed(estimator, rows))
    for candidate in chunked(rows) if most else ():
        n_bytes = total(needed(estimator, candidate))
        if n_bytes <= most:
            break
    return n_bytes


def _variants(estimator: Any, rows: Rows) -> Iterator[tuple[str, Any, Rows]]:
    """Other ways to fit the same rows, the cheapest first: in words, the estimator, and how rows lie."""
    if rows.resident and rows.here and not rows.data.sparse:
        yield "a path in place of an array: rows are read by chunks", estimator, rows.in_a_file()
    if rows.is_cut and len(rows.data.sizes) < 8:
        smaller = max(LEAST_CHUNK, max(rows.data.sizes) // 8)
        yield (
            f"chunks of {smaller:,} rows: open_data(path, chunk_rows={smaller})",
            estimator,
            rows.with_chunk_rows(smaller),
        )
    if estimator.spill is None and rows.here:
        yield 'spill="folder", for what points keep', changed(estimator, spill="."), rows
    plan = estimator._plan(rows.data)
    if plan.regroup:
        yield (
            "search=Graph(regroup=False)",
            changed(estimator, search=Graph(plan.search.n_neighbors, regroup=False)),
            rows,
        )
    if rows.data.dtype.itemsize == 8 and rows.here:
        yield "float32 in place of float64", estimator, rows.as_float32()
    C = estimator._n_components()
    if 1 < plan.n_kept < C:
        yield "n_active=2", changed(estimator, n_active=2), rows
    if getattr(estimator, "covariance_type", "diag") != "diag":
        yield 'covariance_type="diag"', changed(estimator, covariance_type="diag"), rows
    if C > 1:
        name = "n_clusters" if hasattr(estimator, "n_clusters") else "n_components"
        yield f"{name}={C // 2}", changed(estimator, **{name: C // 2}), rows


def changed(estimator: Any, **arguments: Any) -> Any:
    """A copy with other arguments, and without what the estimator has found."""
    view = copy.copy(estimator)
    view.__dict__ = {name: value for name, value in vars(estimator).items() if name[-1] != "_"}
    for name, value in arguments.items():
        setattr(view, name, value)
    return view
