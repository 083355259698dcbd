"""Types of all entries (tables and figures of a paper), of their results, and the rule that compares with published
values.
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

FEWEST = 3  # least number of runs with a usable spread
_QUANTILE = (1 + 0.95) / 2
TOO_FEW = "too few runs to judge"

RULE = """A published mean of m runs is judged against ours of n runs, with s the standard deviation between ours, by
two margins: a = t s √(1/n + 1/m), which two such means differ by in 95 of 100 cases, t being Student's quantile, and
b = 1.96 s √(2/m), the same for as many runs as the source's. They *agree* if they differ by no more than the smaller
of both and the tolerance that the row's note states; they *do not* if they differ by more than a and the tolerance; in
between more runs are needed to tell, and the row is *not judged*. Of one or two runs the spread is not known: they
agree within the tolerance alone, and beyond it are not judged. Fewer runs therefore never make agreement easier, they
leave more rows unjudged. A statement agrees by the criterion in its note.

Some rules are *generous*: the value follows from the settings by arithmetic; or the source says "close" and the
tolerance is ours; or the source does not say how it chose a parameter, and ours was chosen by the result or moves it by
more than the source's digits tell apart. Rows that agree by such a rule are counted apart; rows that do not agree are
counted with the others."""


class Missing(Exception):
    """A requirement of an entry is missing, such as a data file; the message says what, and where it was expected."""


class Row(NamedTuple):
    """One quantity beside its published value.

    quantity: what it is, with its setting    published: the paper's value, None if it gives none
    ours: mean over our runs, or a statement    spread: standard error of that mean, None if there is none
    met: whether it agrees, within the spread or the entry's tolerance; None if nothing is published, or too few runs
    were made to judge    note: remarks needed to understand the row
    why: the reason if it does not agree, if known    generous: whether its rule is generous, as `RULE` defines it
    """

    quantity: str
    published: float | str | None
    ours: float | str
    spread: float | None
    met: bool | None
    note: str = ""
    why: str = ""
    generous: bool = False


@dataclass
class Result:
    """Result of an entry. It is written as JSON, and the picture is drawn from the JSON.

    runs: number of runs    data: all numbers of the picture, and the statistics behind the rows: numbers, text, lists,
    NumPy arrays (lists when drawn) and dictionaries with text keys; None in place of NaN
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
    """Options of a run: requested runs, seed, threads (None: all available), and a function that reports progress."""

    runs: int
    random_state: int = 0
    n_threads: int | None = None
    report: Callable[[str], None] = lambda _: None


class Entry(NamedTuple):
    """A table or figure of a paper.

    name: as in the command line    source: paper, and number of the table or figure there
    runs: number requested by default, the paper's; an entry makes fewer of runs that take long
    compute: computes the result; raises `Missing` if this is impossible here
    draw: draws the picture of a result in the paper's layout on an empty figure, and sets its size
    """

    name: str
    title: str
    source: str
    runs: int
    compute: Callable[[Context], Result]
    draw: Callable[[Result, Figure], None]

    def result(self, runs: int, rows: list[Row], data: dict[str, Any], skipped: Sequence[str] = ()) -> Result:
        """Return a result with the entry's name, title and source."""
        return Result(self.name, self.title, self.source, runs, rows, data, list(skipped))


def standard_error(values: Sequence[float]) -> float | None:
    """Return the standard error of the mean of independent runs; None for one run."""
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
    """Compare the mean of our runs with a published mean of `published_runs` runs by `RULE`; return the row.

    `tolerance` is half a unit of the last printed digit, or the entry's own; `why` is stored if the values differ.
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
    """Return the largest distance of agreeing means and the least distance of differing ones; in between is undecided.

    The first is never larger than it would be with `published_runs` runs, the number of the paper.
    """
    n = len(values)
    if n < FEWEST:
        return 0.0, np.inf
    deviation = float(np.std(values, ddof=1))
    differing = student.ppf(_QUANTILE, n - 1) * deviation * np.sqrt(1 / n + 1 / published_runs)
    return min(differing, norm.ppf(_QUANTILE) * deviation * np.sqrt(2 / published_runs)), differing
