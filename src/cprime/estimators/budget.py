"""The argument `max_memory`: choose chunks so that a fit stays within it, or raise an error before data are read."""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from cprime._utils.messages import bytes_of, shown_bytes
from cprime.estimators.memory import PlannedRows, needed, sizes_of
from cprime.search import Graph
from cprime.sources import is_source_like

LEAST_CHUNK = 1024  # Chunks are not made smaller than this number of rows to save memory.

_NAMED = 3  # largest number of changes of the data or of arguments that an error message proposes


def within_memory(estimator: Any, X: Any) -> tuple[Any, bool]:
    """Return X in a form whose fit stays within `max_memory`: a source in small enough chunks, other data unchanged.

    The second value is whether the fit may copy a chunk with its rows sorted by component.

    Raises
    ------
    ValueError
        If the fit exceeds the limit even with the smallest chunks. The message proposes changes of the fit that need
        less memory.
    """
    if estimator.max_memory is None:
        return X, True
    rows = lying_within(estimator, PlannedRows.from_data(X))
    limit, n_bytes = bytes_of(estimator.max_memory, "max_memory"), sum(needed(estimator, rows).values())
    if n_bytes <= limit:
        return rows.source if is_source_like(X) else X, rows.data.copies
    named = "; ".join(text for text, _ in remedies(estimator, rows, limit)[:_NAMED])
    raise ValueError(
        f"max_memory={estimator.max_memory!r} is too little: this fit takes {shown_bytes(n_bytes)} beyond what "
        f"the process holds. What takes less: {named or 'fewer rows, columns or components'}."
    )


def lying_within(estimator: Any, rows: PlannedRows) -> PlannedRows:
    """Return a description of the data with the largest chunks for which a fit needs at most `max_memory`.

    The present size of chunks is tried first, then its half, and so on, down to 1024 rows. If the fit needs more memory
    even with the smallest chunks, the description has these. A size of chunks is tried with and then without copies of
    chunks whose rows are sorted by component; `data.copies` of the description is the choice that fits, or False if
    none does.
    rows: description of the data (shape, type, present chunks)
    """
    limit = bytes_of(estimator.max_memory, "max_memory")
    sizes = sizes_of(estimator, rows.data.n_features, rows.data.dtype)
    for candidate in chunked(rows):
        for tried in (candidate.with_copies(True), candidate.with_copies(False)):
            if sum(needed(estimator, tried, sizes).values()) <= limit:
                return tried
    return tried


def chunked(rows: PlannedRows) -> Iterator[PlannedRows]:
    """Yield `PlannedRows` (descriptions of the data) with smaller and smaller chunks, beginning with `rows`.

    The chunk size is halved each time, down to 1024 rows. If it cannot be changed, only `rows` is yielded.
    """
    yield rows
    if not rows.is_cut:
        return
    size = max(rows.data.sizes)
    while size > LEAST_CHUNK:
        size = max(LEAST_CHUNK, (size + 1) // 2)
        yield rows.with_chunk_rows(size)


def remedies(estimator: Any, rows: PlannedRows, limit: float = 0.0) -> list[tuple[str, int]]:
    """Return changes of a fit that save at least a tenth of its memory, as pairs (text, bytes of the changed fit).

    The text tells the user what to change. Changes with the least drawbacks come first. If a limit is given [bytes, 0
    is none], changes after which the fit needs at most this memory precede the others.    rows: description of the data
    """
    now = sum(needed(estimator, rows).values())
    found = []
    for text, other, lying in _variants(estimator, rows):
        try:
            n_bytes = _least(other, lying, limit)
        except (ValueError, TypeError):  # The change is invalid with the other arguments, so it is not proposed.
            continue
        if n_bytes <= 0.9 * now:
            found.append((f"{text} (then {shown_bytes(n_bytes)})", n_bytes))
    return sorted(found, key=lambda remedy: remedy[1] > limit) if limit else found


def _least(estimator: Any, rows: PlannedRows, limit: float) -> int:
    """Return the bytes that a fit needs with the largest chunks by which it stays within a limit.

    Chunks are halved until the fit is within the limit, or until they have their smallest size.
    rows: description of the data, with its present chunks    limit: limit [bytes]; 0 keeps the present chunks
    """
    for candidate in chunked(rows):
        n_bytes = sum(needed(estimator, candidate).values())
        if not limit or n_bytes <= limit:
            break
    return n_bytes


def _variants(estimator: Any, rows: PlannedRows) -> Iterator[tuple[str, Any, PlannedRows]]:
    """Yield changes of a fit that may save memory, those with the least drawbacks first.

    Each is a triple: text for the user, estimator with the changed arguments, `PlannedRows` of the changed data.
    """
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
        yield 'spill="folder", for the active sets of the points', changed(estimator, spill="."), rows
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
    fixed = getattr(estimator, "fixed_centers", None)
    if C > 1 and getattr(estimator, "fixed", None) is None and (fixed is None or np.shape(fixed)[:1] <= (C // 2,)):
        yield f"{estimator._size_name}={C // 2}", changed(estimator, **{estimator._size_name: C // 2}), rows


def changed(estimator: Any, **arguments: Any) -> Any:
    """Return a copy of an estimator without fitted attributes; `arguments` replace its constructor arguments."""
    view = copy.copy(estimator)
    view.__dict__ = {name: value for name, value in vars(estimator).items() if name[-1] != "_"}
    for name, value in arguments.items():
        setattr(view, name, value)
    return view
