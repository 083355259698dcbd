"""Tables in Markdown."""

from collections.abc import Iterable, Sequence

from benchmarks.records import Record
from benchmarks.rounds import label, spread


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def left_out(records: Iterable[Record]) -> str:
    """Return a list of what was not run or not finished, with the first reason of each peer; empty if there is none."""
    first = {record["peer"]: record for record in reversed(list(records)) if "left_out" in record}
    return "\n".join(
        f"- {label(record) if record.get('settings') else record['peer']}: {record['left_out']}"
        for record in reversed(first.values())
    )


def case(record: Record) -> str:
    """Return data, sizes and clusters as one line."""
    return f"{record['data']}, {record['N']:,} × {record['D']}, C = {record['C']:,}"


def megabytes(peaks: Iterable[int | None]) -> str:
    """Return peak memory as one table cell."""
    known = [peak / 1e6 for peak in peaks if peak is not None]
    return spread(known, ",.0f") if known else "not known on this system"


def grouped(records: Iterable[Record], *keys: str) -> list[list[Record]]:
    """Return groups of records that agree in the keys, in order of first occurrence."""
    groups: dict[tuple, list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(record.get(key) for key in keys), []).append(record)
    return list(groups.values())
