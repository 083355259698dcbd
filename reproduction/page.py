"""The page of all results in a folder, as Markdown, made from their JSON alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple

from reproduction.base import RULE
from reproduction.report import HEADINGS, Count, Report, count, shown

_INTRODUCTION = """# Tables and figures of the sources, recomputed

This page is made from the JSON files beside it by `python -m reproduction`, and not edited. Each file has the
statistics behind the rows (means, standard errors, best runs), how they came about, and all that the picture shows."""
_UNKNOWN = "The reason is not known."


def page(reports: Sequence[Report], missing: Mapping[str, str]) -> str:
    """Return the page: what agrees, what does not and why, then each table with its picture.

    `missing` gives, for names without a report, the reason.
    """
    parts = [
        _INTRODUCTION,
        *_overview(reports),
        *_listed("Not here", [f"`{name}`: {reason}" for name, reason in missing.items()]),
        f"## When a row agrees\n\n{RULE}",
        *_unmet(reports),
        *[part for report in reports for part in _section(report)],
    ]
    return "\n\n".join(parts) + "\n"


def _overview(reports: Sequence[Report]) -> list[str]:
    """Return a table with a line for each entry and one for all."""
    total = sum((count(report.result.rows) for report in reports), Count(0, 0, 0, 0))
    seconds = sum(report.about["seconds"] for report in reports)
    headings = ("", "source", "command", "agree", "by a generous rule", "do not", "not judged", "seconds")
    lines = [_line(report) for report in reports]
    last = ("all", "", "", *_cells(total), f"{seconds:.0f}")
    return [f"**{total}**.", _table(headings, [*lines, last])]


def _line(report: Report) -> tuple[str, ...]:
    result = report.result
    name = f"[{result.name}](#{result.name})"
    command, seconds = f"`{report.about['command']}`", str(report.about["seconds"])
    return (name, result.source, command, *_cells(count(result.rows)), seconds)


def _cells(n: Count) -> tuple[str, ...]:
    return tuple(map(str, astuple(n)))


def _unmet(reports: Sequence[Report]) -> list[str]:
    """Return a table of every row that does not agree, with the reason."""
    rows = [
        (f"[{report.result.name}](#{report.result.name})", *cells[:3], row.why or _UNKNOWN)
        for report in reports
        for row, cells in zip(report.result.rows, shown(report.result.rows)[0], strict=True)
        if row.met is False
    ]
    table = _table(("", *HEADINGS[:3], "why"), rows)
    return ["## What is not reproduced, and why", table] if rows else []


def _section(report: Report) -> list[str]:
    result, about = report.result, report.about
    cells, notes = shown(result.rows)
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    origin = (
        f"{about['seconds']} s on {about['processor']} ({about['kernels']} kernels), {about['date']}, {versions}. All "
        f"numbers: [{result.name}.json]({result.name}.json)."
    )
    return [
        f"## {result.name}",
        f"{result.title}. Source: {result.source}. {count(result.rows)}.",
        f"```sh\n{about['command']}\n```",
        f"![{result.title}]({result.name}.png)",
        _table(HEADINGS, cells),
        *(["\n".join(f"{number}. {note}" for number, note in enumerate(notes, 1))] if notes else []),
        *_listed("Left out", result.skipped),
        origin,
    ]


def _listed(heading: str, items: Sequence[str]) -> list[str]:
    return ["\n".join([f"{heading}:\n", *(f"- {item}" for item in items)])] if items else []


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(text.replace("|", "\\|") for text in line) + " |" for line in lines)
