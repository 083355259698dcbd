"""Results as JSON, their rows as text, and counts of agreement."""

import json
import math
import platform
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from cprime import __version__, kernels
from reproduction.base import Context, Result, Row

HEADINGS = ("quantity", "published", "ours", "within the spread?")
_VERDICTS = {True: "yes", False: "no", None: "not judged"}
_NOT_PUBLISHED = "–"
_GENEROUS = "yes, by a generous rule"
_DIGITS = 9  # of numbers in a JSON file
_INNERMOST = re.compile(r"\[[^\[\]{}]*\]")
_PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib")


@dataclass(frozen=True)
class Report:
    """A result with its origin: command, seed, seconds, date, machine and versions."""

    result: Result
    about: dict[str, Any]


@dataclass(frozen=True)
class Count:
    """Numbers of published values and statements that agree, that agree by a generous rule, that do not agree, and that
    had too few runs to judge.
    """

    met: int
    generous: int
    unmet: int
    unjudged: int

    def __add__(self, other: "Count") -> "Count":
        return Count(*(sum(pair) for pair in zip(astuple(self), astuple(other), strict=True)))

    def __str__(self) -> str:
        parts = [f"{self.met} of {self.met + self.unmet} published numbers and statements reproduced"]
        parts += [f"{self.generous} more by a generous rule"] if self.generous else []
        parts += [f"{self.unjudged} not judged"] if self.unjudged else []
        return ", ".join(parts)


def count(rows: Iterable[Row]) -> Count:
    """Return the numbers of rows with a published value, by agreement."""
    judged = [row for row in rows if row.published is not None]
    met = [row.met for row in judged]
    generous = sum(row.met is True and row.generous for row in judged)
    return Count(met.count(True) - generous, generous, met.count(False), met.count(None))


def about(context: Context, command: Sequence[str], seconds: float) -> dict[str, Any]:
    """Return what is needed to repeat the run."""
    return {
        "command": shlex.join(command),
        "random_state": context.random_state,
        "n_threads": context.n_threads,
        "seconds": round(seconds, 1),
        "date": datetime.now().astimezone().isoformat(timespec="minutes"),
        "processor": _processor(),
        "kernels": kernels.instruction_set(),
        "versions": {
            "cprime": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in _PACKAGES},
        },
    }


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def as_json(report: Report) -> str:
    """Return the report as one JSON object, with numbers to nine digits; raise ValueError if one is not finite."""
    content = asdict(report.result) | {"rows": [row._asdict() for row in report.result.rows]}
    try:
        text = json.dumps(_plain(report.about | content), allow_nan=False, ensure_ascii=False, indent=1)
    except ValueError as error:
        raise ValueError(f"the result {report.result.name} has a number that JSON does not have: {error}") from error
    # Put a list of numbers on one line; text in JSON contains no line breaks.
    return _INNERMOST.sub(lambda found: re.sub(r"\n\s*", "", found[0]), text) + "\n"


def _plain(value: Any) -> Any:
    """Convert a value to JSON's types, with rounded numbers."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | int):
        return value
    raise TypeError(f"a result holds numbers, text, lists, arrays and dictionaries, got {type(value).__name__}")


def from_json(text: str) -> Report:
    """Read the output of `as_json`; arrays become lists."""
    content = json.loads(text)
    named = {field.name: content.pop(field.name) for field in fields(Result)}
    return Report(Result(**named | {"rows": [Row(**row) for row in named["rows"]]}), content)


def shown(rows: Iterable[Row]) -> tuple[list[tuple[str, str, str, str]], list[str]]:
    """Return the cells of the rows under `HEADINGS`, and the notes that the last cells refer to by number."""
    notes: dict[str, int] = {}
    cells = []
    for row in rows:
        quantity, published, ours, verdict = _cells(row)
        mark = f" ({notes.setdefault(row.note, len(notes) + 1)})" if row.note else ""
        cells.append((quantity, published, ours, verdict + mark))
    return cells, list(notes)


def _cells(row: Row) -> tuple[str, str, str, str]:
    if isinstance(row.ours, str):
        ours = row.ours
    else:
        ours = _number(row.ours, row.spread)
        ours += "" if row.spread is None else f" ± {_number(row.spread, row.spread)}"
    published = "" if row.published is None else row.published
    verdict = _GENEROUS if row.met and row.generous else _VERDICTS[row.met]
    return (
        row.quantity,
        published if isinstance(published, str) else _number(published, None),
        ours,
        _NOT_PUBLISHED if row.published is None else verdict,
    )


def _number(value: float, spread: float | None) -> str:
    """Format a number with two digits of its standard error or, without one, with five digits."""
    if spread and math.isfinite(spread):
        digits = 1 - math.floor(math.log10(spread))
        return f"{round(value, digits):,.{max(digits, 0)}f}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.5g}"
