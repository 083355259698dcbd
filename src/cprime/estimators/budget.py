"""The argument `max_memory`: choose chunks so that a fit stays within it, or raise an error before data are read."""

import copy
from collections.abc import Iterator
from typing import Any

from cprime._utils.container import container_memory
from cprime._utils.messages import shown_bytes, warn
from cprime.estimators.constraints import n_fixed
from cprime.estimators.covariances import family_of
from cprime.estimators.memory import PlannedRows, needed, sizes_of
from cprime.estimators.memory_limit import as_memory
from cprime.estimators.problems import options_of
from cprime.estimators.validation import check_enough
from cprime.execution import Data
from cprime.sources import is_source_like

_BYTES_OF_SMALL = 1024  # more than a fit needs for each pair of a row or parameter and a feature or component
LEAST_CHUNK = 1024  # Chunks are not made smaller than this number of rows to save memory.

_NAMED = 3  # largest number of changes of the data or of arguments that an error message proposes


def opened_within(estimator: Any, X: Any, sample_weight: Any) -> Data:
    """Return training data X as `Data`, in chunks so small that the fit stays within `max_memory`.

    Without `max_memory`, the limit is what the container of the process still allows; if the fit exceeds it even with
    the smallest chunks, a warning says so. `Data.copies` is whether the fit may copy a chunk with its rows sorted by
    component.

    Raises
    ------
    ValueError
        If there are fewer points than components, or the fit exceeds `max_memory` even with the smallest chunks. The
        message proposes changes of the fit that need less memory.
    """
    given = as_memory(estimator.max_memory).n_bytes
    limit = container_memory() if given is None and estimator._has_plan else given
    from_source = is_source_like(X)
    if limit is not None and from_source:
        rows = lying_within(estimator, PlannedRows.from_data(estimator, X), limit)
        X = rows.source
    data: Data = estimator._opened(X, sample_weight, reset=True)
    check_enough(estimator, data.n_points)
    if limit is None or (given is None and not from_source and _is_small(estimator, data, limit)):
        return data
    if not from_source:
        rows = lying_within(estimator, PlannedRows.opened(data, X), limit)
    data.copies = rows.data.copies
    n_bytes = sum(needed(estimator, rows).values())
    if n_bytes > limit:
        named = "; ".join(text for text, _ in remedies(estimator, rows, limit)[:_NAMED])
        less = f"What takes less: {named or 'fewer rows, columns or components'}."
        taken = f"this fit takes {shown_bytes(n_bytes)} beyond what the process holds"
        if given is not None:
            raise ValueError(f"max_memory={estimator.max_memory!r} is too little: {taken}. {less}")
        warn(f"{taken}, and its container has {shown_bytes(limit)} left. {less}", UserWarning)
    return data


def _is_small(estimator: Any, data: Data, limit: int) -> bool:
    """Return whether a fit surely needs less than `limit` bytes, because its plan would take milliseconds."""
    N, D, C = data.n_points, data.n_features, getattr(estimator, estimator._size_name)
    return limit > _BYTES_OF_SMALL * (N + C * D) * (D + C)


def lying_within(estimator: Any, rows: PlannedRows, limit: int) -> PlannedRows:
    """Return a description of the data with the largest chunks for which a fit needs at most `limit` bytes.

    The present size of chunks is tried first, then its half, and so on, down to 1024 rows. If the fit needs more memory
    even with the smallest chunks, the description has these. A size of chunks is tried with and then without copies of
    chunks whose rows are sorted by component; `data.copies` of the description is the choice that fits, or False if
    none does.
    rows: description of the data (shape, type, present chunks)
    """
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
    memory = as_memory(estimator.max_memory)
    if memory.spill is None and rows.here:
        text = f"max_memory={memory.with_params(spill='folder')!r}, for the active sets of the points"
        yield text, changed(estimator, max_memory=memory.with_params(spill=".")), rows
    options = options_of(estimator)
    plan, C = options.plan(rows.data), options.n_components
    if plan.regroup:
        yield (
            "search=Graph(regroup=False)",
            changed(estimator, search=plan.search.with_params(regroup=False)),
            rows,
        )
    if rows.data.dtype.itemsize == 8 and rows.here:
        yield "float32 in place of float64", estimator, rows.as_float32()
    if 1 < plan.n_kept < C:
        yield "n_active=2", changed(estimator, n_active=2), rows
    if family_of(getattr(estimator, "covariance_type", "diag")) != "diag":
        yield 'covariance_type="diag"', changed(estimator, covariance_type="diag"), rows
    if C > 1 and n_fixed(estimator) <= C // 2:
        yield f"{estimator._size_name}={C // 2}", changed(estimator, **{estimator._size_name: C // 2}), rows


def changed(estimator: Any, **arguments: Any) -> Any:
    """Return a copy of an estimator without fitted attributes; `arguments` replace its constructor arguments."""
    view = copy.copy(estimator)
    view.__dict__ = {name: value for name, value in vars(estimator).items() if name[-1] != "_"}
    for name, value in arguments.items():
        setattr(view, name, value)
    return view
