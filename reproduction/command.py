"""Commands that recompute tables and figures, print them beside the published values, and write a page."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from cprime._utils.files import replacing, writable_target
from cprime.cli.errors import say
from reproduction import ENTRIES, Context, Entry, Missing, entry
from reproduction.page import page
from reproduction.report import HEADINGS, Report, about, as_json, count, from_json, shown

_DPI = 160
_PAGE = "README.md"


def list_entries() -> None:
    """Print a table of all entries."""
    table = Table(box=SIMPLE_HEAD)
    for heading in ("name", "source", "what it shows"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "name")
    table.add_column("--runs", justify="right")
    for name in ENTRIES:
        item = entry(name)
        table.add_row(name, item.source, item.title, str(item.runs))
    Console().print(table, highlight=False, markup=False)


def reproduce(names: Sequence[str], output: Path, *, runs: int | None, random_state: int, threads: int | None) -> None:
    """Compute each entry, print its table and write its files; then write the page of all results in the folder."""
    _need_matplotlib()
    output.mkdir(parents=True, exist_ok=True)
    writable_target(output / _PAGE)
    missing = {}
    options = {"--runs": runs, "--random-state": random_state or None, "--threads": threads}
    given = [text for name, value in options.items() if value is not None for text in (name, str(value))]
    for name in names:
        item = entry(name)
        try:
            command = ["python", "-m", "reproduction", "run", name, *given]
            _print(_run(item, output, command, runs or item.runs, random_state, threads))
        except Missing as reason:
            missing[name] = str(reason)
            say("skipped", f"{name}: {reason}")
    _write_page(output, missing)
    if len(missing) == len(names):
        raise ValueError(f"nothing was reproduced: {'; '.join(missing.values())}")


def _run(
    item: Entry, output: Path, command: Sequence[str], runs: int, random_state: int, threads: int | None
) -> Report:
    """Compute one entry and write its JSON file and its picture; return the report."""
    begin = perf_counter()
    with Console(stderr=True).status(item.name) as status:
        context = Context(runs, random_state, threads, lambda text: status.update(f"{item.name}: {text}"))
        result = item.compute(context)
        text = as_json(Report(result, about(context, command, perf_counter() - begin)))
        report = from_json(text)
        with replacing(output / f"{item.name}.json") as temporary:
            temporary.write_text(text, encoding="utf-8")
        _draw(item, report, output)
    return report


def _draw(item: Entry, report: Report, output: Path) -> None:
    """Draw the picture of a report that was read from JSON."""
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    item.draw(report.result, figure)
    with replacing(output / f"{item.name}.png") as temporary:
        figure.savefig(temporary, format="png", dpi=_DPI)


def _print(report: Report) -> None:
    """Print the table of a report, followed by its notes."""
    result = report.result
    rows, notes = shown(result.rows)
    table = Table(title=f"{result.name}: {result.title} ({result.source})", box=SIMPLE_HEAD)
    for heading, justify in zip(HEADINGS, ("left", "right", "right", "left"), strict=True):
        table.add_column(heading, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for cells in rows:
        table.add_row(*cells)
    console = Console()
    console.print(table, highlight=False, markup=False)
    for number, note in enumerate(notes, 1):
        console.print(f"({number}) {note}", highlight=False, markup=False)
    for reason in result.skipped:
        console.print(f"left out: {reason}", highlight=False, markup=False)
    console.print(
        f"{count(result.rows)}, {result.runs} run(s), {report.about['seconds']} s\n", highlight=False, markup=False
    )


def redraw(output: Path) -> None:
    """Draw the pictures and write the page again from the JSON files in a folder, without computing results."""
    _need_matplotlib()
    reports = _read(output)
    if not reports:
        raise ValueError(f"{output} has no result; its files are named as the entries are: {', '.join(ENTRIES)}")
    for report in reports:
        _draw(entry(report.result.name), report, output)
    _write_page(output, {}, least=1)


def _read(output: Path) -> list[Report]:
    """Return the results in a folder, in the order of `ENTRIES`."""
    files = (output / f"{name}.json" for name in ENTRIES)
    return [from_json(file.read_text(encoding="utf-8")) for file in files if file.is_file()]


def _write_page(output: Path, missing: dict[str, str], least: int = 2) -> None:
    """Write the page of all results in the folder, if there are at least `least`."""
    reports = _read(output)
    if len(reports) < least:
        return
    there = {report.result.name for report in reports}
    absent = {name: missing.get(name, "not run") for name in ENTRIES if name not in there}
    with replacing(output / _PAGE) as temporary:
        temporary.write_text(page(reports, absent), encoding="utf-8")
    Console().print(f"All of it: {output / _PAGE}", highlight=False, markup=False)


def _need_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        raise ImportError("figures need matplotlib, which is missing: pip install matplotlib")
