"""Whether the first line of a file of separated values names the columns, where all that it has are numbers.

Names may be numbers: years, wavelengths, or 0, 1, 2 as pandas counts columns. They are told from a row of numbers by
what sets the first line apart from all others.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_MANY = 100  # rows, from which on one difference is enough
_SOME = 10  # rows, from which on values far from all others are no chance
_SEVERAL = 6  # columns, from which on a row of data rarely rises throughout
_YEARS = (1900, 2100)


def is_header(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool | None:
    """Whether the first line has names, given the cells of the lines below it; None where it cannot be told.

    All cells of `first` are numbers, or missing and then empty. A cell may be quoted.
    """
    rows = [row for row in rows if len(row) == len(first)]
    names = [_bare(cell) for cell in first]
    n_index = next((j for j, name in enumerate(names) if name), len(names))
    named = names[n_index:]
    if not named or "" in named or len(set(named)) < len(named):
        return False
    if not rows:
        return _counts(named)
    if _only_the_first_is_quoted(first, rows):
        return True
    cells = [[_bare(cell) for cell in row] for row in rows]
    values = np.array([[_number(cell) for cell in row] for row in cells])
    missing = np.array([[cell == "" for cell in row] for row in cells])
    if (np.isnan(values) & ~missing).all(axis=0).any() or _counts_rows(values[:, :n_index]):
        return True
    any_whole = any(all(cell == "" or _is_whole(cell) for cell in row[n_index:]) for row in cells)
    return _differs(named, values[:, n_index:], any_whole)


def _differs(names: Sequence[str], values: NDArray[np.float64], any_whole: bool) -> bool | None:
    """Whether names that are numbers differ from the values of the rows below them, (n, D).

    any_whole: whether a row is written as whole numbers alone

    A row of data may look like names by chance. So what is said of the first line must not be true of any other row,
    and it counts the more, the more rows there are.
    """
    n, D = values.shape
    first = np.array([[_number(name) for name in names]])
    whole = all(name.isdecimal() for name in names)
    years = bool(_years(first)[0])
    ordered = years or bool(_ordered(first)[0])
    counts = _counts(names)
    above = whole and not any_whole  # whole numbers above decimal ones
    consecutive = (np.diff(values, axis=1) == 1).all(axis=1) & (D > 1)
    alike = (_years(values) | _ordered(values, steps=bool(_equal_steps(first)[0])) | consecutive).mean()
    alone = ordered and alike == 0
    apart = whole and n >= (_SOME if D == 1 else 2) and _far_from_all(first[0], values)
    if (above and (ordered or counts)) or (apart and ordered):
        return True
    if n >= _MANY and (above or (alone and (D >= _SEVERAL or years))):
        return True
    unlike = consecutive.mean() < 1 / _SOME and not (values == first).all(axis=1).any()
    if counts and unlike and (D > 2 or (D == 2 and n >= _SOME)):
        return True
    unclear = (ordered and alike < 1 / _MANY) or counts or (n >= _SOME and (above or (apart and D > 1)))
    return None if unclear else False


def _years(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows are years of our time, each later than the one before."""
    with np.errstate(invalid="ignore", over="ignore"):
        found = (values == np.rint(values)) & (values >= _YEARS[0]) & (values <= _YEARS[1])
        return np.asarray(found.all(axis=1) & (np.diff(values, axis=1) > 0).all(axis=1))


def _equal_steps(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows have three numbers or more at equal steps."""
    D = values.shape[1]
    if D < 3:
        return np.zeros(len(values), dtype=bool)
    with np.errstate(invalid="ignore", over="ignore"):
        steps = np.diff(values, axis=1)
        return np.asarray((steps != 0).all(axis=1) & (np.ptp(steps, axis=1) <= 1e-9 * np.abs(values).max(axis=1)))


def _ordered(values: NDArray[np.float64], *, steps: bool = False) -> NDArray[np.bool_]:
    """Which rows are in an order that names often have, and rows of data rarely.

    These are 0, 1 and 1, 2; three to five numbers at equal steps; and more numbers that all rise or all fall, with
    `steps` only those at equal steps.
    """
    D = values.shape[1]
    if D == 2:
        return (values == [0, 1]).all(axis=1) | (values == [1, 2]).all(axis=1)
    if D < _SEVERAL or steps:
        return _equal_steps(values)
    with np.errstate(invalid="ignore", over="ignore"):
        differences = np.diff(values, axis=1)
        return np.asarray((differences > 0).all(axis=1) | (differences < 0).all(axis=1))


def _far_from_all(first: NDArray[np.float64], values: NDArray[np.float64]) -> bool:
    """Whether each number is further from all values of its column than these are from each other."""
    least, most = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
    with np.errstate(invalid="ignore", over="ignore"):
        return bool((np.maximum(first - most, least - first) > most - least).all())


def _is_whole(cell: str) -> bool:
    return cell.lstrip("+-").isdecimal()


def _counts(names: Sequence[str]) -> bool:
    """Whether names are 0, 1, 2 and so on."""
    return list(names) == [str(j) for j in range(len(names))]


def _counts_rows(values: NDArray[np.float64]) -> bool:
    """Whether a column, whose first cell is empty, numbers the rows."""
    return len(values) > 1 and bool((np.diff(values, axis=0) == 1).all(axis=0).any())


def _only_the_first_is_quoted(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    return all('"' in cell for cell in first) and not any('"' in cell for row in rows for cell in row)


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan


def _bare(cell: str) -> str:
    return cell.strip(' \t"')
