"""Detection of a header in a delimited text file whose first line has only numbers.

Column names may be numbers: years, wavelengths, or 0, 1, 2 as in pandas. A first line of names is distinguished from a
row of data by how it differs from all other lines.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# From this number of rows on, a single difference of the first line from the rows shows that it is a header.
_MANY = 100
# From this number of rows on, weaker evidence for a header counts, such as a first line far from all rows.
_SOME = 10
# From this number of columns on, a row of data is so rarely monotonic that a monotonic first line is a difference.
_SEVERAL = 6
_YEARS = (1900, 2100)
_AROUND = ' \t"'  # Characters that may surround the value of a cell of a text file and do not belong to it.


def is_header(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool | None:
    """Return whether the first line has column names, given the cells of the lines below; None if this is unclear.

    first: cells of the first line, each a number, or empty if missing. Cells may be quoted.
    """
    rows = [row for row in rows if len(row) == len(first)]
    names = [cell.strip(_AROUND) for cell in first]
    n_index = next((j for j, name in enumerate(names) if name), len(names))
    named = names[n_index:]
    if not named or "" in named or len(set(named)) < len(named):
        return False
    if not rows:
        return _counts(named)
    if all('"' in cell for cell in first) and not any('"' in cell for row in rows for cell in row):
        return True
    cells = [[cell.strip(_AROUND) for cell in row] for row in rows]
    values = np.array([[_number(cell) for cell in row] for row in cells])
    missing = np.array([[cell == "" for cell in row] for row in cells])
    if (np.isnan(values) & ~missing).all(axis=0).any():
        return True
    if len(rows) > 1 and (np.diff(values[:, :n_index], axis=0) == 1).all(axis=0).any():  # A column has row numbers.
        return True
    any_whole = any(all(cell == "" or cell.lstrip("+-").isdecimal() for cell in row[n_index:]) for row in cells)
    return _differs(named, values[:, n_index:], any_whole)


def _differs(names: Sequence[str], values: NDArray[np.float64], any_whole: bool) -> bool | None:
    """Return whether a first line of numbers, `names`, differs from the rows below it as column names do.

    Returns None if this is unclear. A row of data may look like names by chance. So a property of the first line counts
    only if almost no other row has this property. The evidence is stronger if there are more rows.

    values (n, D): the rows below the first line    any_whole: whether some of these rows has only whole numbers
    """
    n, D = values.shape
    first = np.array([[_number(name) for name in names]])
    whole = all(name.isdecimal() for name in names)
    years = bool(_years(first)[0])
    ordered = years or bool(_ordered(first)[0])
    counts = _counts(names)
    above = whole and not any_whole  # The first line has whole numbers, the rows have decimal numbers.
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
    """Return the mask (n,) of rows that look like column names because they have ascending years from 1900 to 2100."""
    with np.errstate(invalid="ignore", over="ignore"):
        found = (values == np.rint(values)) & (values >= _YEARS[0]) & (values <= _YEARS[1])
        return np.asarray(found.all(axis=1) & (np.diff(values, axis=1) > 0).all(axis=1))


def _equal_steps(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the mask (n,) of rows with at least three numbers and equal differences between neighboring numbers.

    Such rows look like column names, for example wavelengths.
    """
    D = values.shape[1]
    if D < 3:
        return np.zeros(len(values), dtype=bool)
    with np.errstate(invalid="ignore", over="ignore"):
        steps = np.diff(values, axis=1)
        return np.asarray((steps != 0).all(axis=1) & (np.ptp(steps, axis=1) <= 1e-9 * np.abs(values).max(axis=1)))


def _ordered(values: NDArray[np.float64], *, steps: bool = False) -> NDArray[np.bool_]:
    """Return the mask of rows whose values have an order that is typical of column names and rare in data.

    Two numbers have such an order if they are 0, 1 or 1, 2; three to five numbers, if their steps are equal; six or
    more numbers, if they ascend or descend. If `steps` is True, six or more numbers need equal steps, too.
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
    """Return whether each number of the first line is outside of its column's range by more than the range's width."""
    least, greatest = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
    with np.errstate(invalid="ignore", over="ignore"):
        return bool((np.maximum(first - greatest, least - first) > greatest - least).all())


def _counts(names: Sequence[str]) -> bool:
    """Return whether numeric column names are 0, 1, 2 and so on."""
    return list(names) == [str(j) for j in range(len(names))]


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan
