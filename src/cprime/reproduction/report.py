"""Results as JSON, and the page of all that lie in a folder. Knows no particular table and no terminal."""

import json
import math
import platform
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from cprime import __version__, kernels
from cprime.reproduction.base import Context, Result, Row

HEADINGS = ("quantity", "published", "ours", "within the spread?")
_VERDICTS = {True: "yes", False: "no", None: "–"}
_PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib")


@dataclass(frozen=True)
class Report:
    """A result with how it came about: command, seed, seconds, date, machine and versions."""

    result: Result
    about: dict[str, Any]


@dataclass(frozen=True)
class Count:
    """How many rows agree with the source, do not, and cannot be judged."""

    met: int
    unmet: int
    open: int

    def __add__(self, other: "Count") -> "Count":
        return Count(self.met + other.met, self.unmet + other.unmet, self.open + other.open)

    def __str__(self) -> str:
        return f"{self.met} of {self.met + self.unmet} published numbers and statements reproduced"


def count(rows: Iterable[Row]) -> Count:
    """The rows by whether they are met."""
    met = [row.met for row in rows]
    return Count(met.count(True), met.count(False), met.count(None))


def about(context: Context, command: Sequence[str], seconds: float) -> dict[str, Any]:
    """What must be known to run it again."""
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
    """The report as one JSON object; ValueError where a number is not finite."""
    content = asdict(report.result) | {"rows": [row._asdict() for row in report.result.rows]}
    try:
        return json.dumps(report.about | content, allow_nan=False, default=_plain, ensure_ascii=False, indent=1) + "\n"
    except ValueError as error:
        raise ValueError(f"the result {report.result.name} has a number that JSON does not have: {error}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"a result holds numbers, text, lists, arrays and dictionaries, got {type(value).__name__}")


def from_json(text: str) -> Report:
    """What `as_json` wrote; arrays come back as lists."""
    content = json.loads(text)
    named = {field.name: content.pop(field.name) for field in fields(Result)}
    return Report(Result(**named | {"rows": [Row(**row) for row in named["rows"]]}), content)


def shown(rows: Iterable[Row]) -> tuple[list[tuple[str, str, str, str]], list[str]]:
    """The cells of the rows under `HEADINGS`, and the notes that the last cells refer to by number."""
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
    return (
        row.quantity,
        published if isinstance(published, str) else _number(published, None),
        ours,
        _VERDICTS[row.met],
    )


def _number(value: float, spread: float | None) -> str:
    """With two digits of its standard error, or five digits of its own."""
    if spread and math.isfinite(spread):
        digits = 1 - math.floor(math.log10(spread))
        return f"{round(value, digits):,.{max(digits, 0)}f}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.5g}"


def page(reports: Sequence[Report], missing: Mapping[str, str]) -> str:
    """Markdown: what agrees and what does not, then each table with its picture.

    `missing` says of names that are not among the reports why.
    """
    total = sum((count(report.result.rows) for report in reports), Count(0, 0, 0))
    rule = (
        f"{total}; {total.open} rows have nothing published beside them, or too few runs to judge. A number agrees if "
        "it lies within the spread of the runs, or within the tolerance that its note states."
    )
    lines = [
        "# Tables and figures of the sources, recomputed",
        "",
        rule,
        "",
        *_table(("", "source", "agree", "do not", "not judged", "runs", "seconds"), map(_overview, reports)),
        "",
        *[f"- Not here: `{name}`: {reason}" for name, reason in missing.items()],
        *([""] if missing else []),
    ]
    for report in reports:
        lines += _section(report)
    return "\n".join(lines)


def _overview(report: Report) -> tuple[str, ...]:
    result, n = report.result, count(report.result.rows)
    name = f"[{result.name}](#{result.name})"
    cells = (n.met, n.unmet, n.open, result.runs, report.about["seconds"])
    return (name, result.source, *map(str, cells))


def _section(report: Report) -> list[str]:
    result, about = report.result, report.about
    cells, notes = shown(result.rows)
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    origin = (
        f"`{about['command']}`: {about['seconds']} s on {about['processor']} ({about['kernels']} kernels), "
        f"{about['date']}, {versions}. All numbers: [{result.name}.json]({result.name}.json)."
    )
    return [
        f"## {result.name}",
        "",
        f"{result.title}. Source: {result.source}.",
        "",
        f"![{result.title}]({result.name}.png)",
        "",
        *_table(HEADINGS, cells),
        "",
        *[f"{number}. {note}" for number, note in enumerate(notes, 1)],
        *([""] if notes else []),
        *[f"- Left out: {reason}" for reason in result.skipped],
        *([""] if result.skipped else []),
        origin,
        "",
    ]


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    cells = [headings, ["---"] * len(headings), *rows]
    return ["| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in cells]
