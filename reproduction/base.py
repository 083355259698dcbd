"""What a table or figure of a source is here: how it is computed, what came of it, how it is drawn.

Owns the forms and the rule of comparison. Knows no particular table, no file format and no terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST = 3  # runs that have a spread: that of two is worth nothing
_QUANTILE = (1 + 0.95) / 2
TOO_FEW = "too few runs to judge"

RULE = """A published mean of m runs is judged against ours of n runs, with s the standard deviation between ours, by
two margins: a = t s √(1/n + 1/m), which two such means differ by in 95 of 100 cases, t being Student's quantile, and
b = 1.96 s √(2/m), the same for as many runs as the source's. They *agree* if they differ by no more than the smaller
of both and the tolerance that the row's note states; they *do not* if they differ by more than a and the tolerance; in
between more runs are needed to tell, and the row is *not judged*. Of one or two runs the spread is not known: they
agree within the tolerance alone, and beyond it are not judged. Fewer runs therefore never make agreement easier, they
leave more rows unjudged. A statement agrees by the criterion in its note."""


class Missing(Exception):
    """What an entry needs is not there, such as a file of data; the message says what and where it was looked for."""


class Row(NamedTuple):
    """One quantity beside its published value.

    quantity: what it is, with its setting    published: the source's value, None where it gives none
    ours: mean over our runs, or a statement    spread: standard error of that mean, None where there is none
    met: whether it agrees, within the spread or the tolerance that the entry states; None where nothing was
    published, or too little was run to judge    note: anything a reader must know to read the row
    why: the reason if it is not met, where it is known
    """

    quantity: str
    published: float | str | None
    ours: float | str
    spread: float | None
    met: bool | None
    note: str = ""
    why: str = ""


@dataclass
class Result:
    """What an entry came to. It is written as JSON, and the picture is drawn from what is read again.

    runs: how many runs were made    data: every number of the picture, and the statistics behind the rows: numbers,
    text, lists, NumPy arrays (lists when drawn) and dictionaries whose keys are text; no NaN (None instead)
    skipped: the parts that could not be computed here, each with its reason
    """

    name: str
    title: str
    source: str
    runs: int
    rows: list[Row]
    data: dict[str, Any]
    skipped: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Context:
    """How to run: runs asked for, the seed, threads (None is all that the process may use), where progress goes."""

    runs: int
    random_state: int = 0
    n_threads: int | None = None
    report: Callable[[str], None] = lambda _: None


class Entry(NamedTuple):
    """A table or figure of a source.

    name: as `cprime reproduce` calls it    source: paper, and number of the table or figure there
    runs: those asked for by default, which makes as many as the source; an entry makes fewer of what takes long
    compute: raises `Missing` where it cannot be done here
    draw: puts the picture of a result, in the source's layout, on an empty figure, whose size it sets
    """

    name: str
    title: str
    source: str
    runs: int
    compute: Callable[[Context], Result]
    draw: Callable[[Result, Figure], None]

    def result(self, runs: int, rows: list[Row], data: dict[str, Any], skipped: Sequence[str] = ()) -> Result:
        """A result that bears the entry's name, title and source."""
        return Result(self.name, self.title, self.source, runs, rows, data, list(skipped))


def standard_error(values: Sequence[float]) -> float | None:
    """Of the mean of independent runs; None for one run."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def compare(
    quantity: str,
    published: float | None,
    values: Sequence[float],
    published_runs: int,
    tolerance: float = 0.0,
    note: str = "",
    why: str = "",
) -> Row:
    """The mean of our runs beside a published mean of so many runs, judged by `RULE`.

    `tolerance` is half a unit of the last digit printed, or what the entry allows; `why` is kept where they differ.
    """
    ours, error = float(np.mean(values)), standard_error(values)
    if published is None:
        return Row(quantity, None, ours, error, None, note)
    agreeing, differing = margins(values, published_runs)
    distance = abs(ours - published) - tolerance
    if distance <= agreeing:
        return Row(quantity, published, ours, error, True, note)
    if distance > differing:
        return Row(quantity, published, ours, error, False, note, why)
    return Row(quantity, published, ours, error, None, f"{TOO_FEW}; {note}" if note else TOO_FEW)


def margins(values: Sequence[float], published_runs: int) -> tuple[float, float]:
    """How far a published mean may lie from ours to agree, and from where on it does not; between them nobody knows.

    The first is never more than it would be with as many runs as the source's, whose number is `published_runs`.
    """
    n = len(values)
    if n < FEWEST:
        return 0.0, np.inf
    deviation = float(np.std(values, ddof=1))
    differing = student.ppf(_QUANTILE, n - 1) * deviation * np.sqrt(1 / n + 1 / published_runs)
    return min(differing, norm.ppf(_QUANTILE) * deviation * np.sqrt(2 / published_runs)), differing
