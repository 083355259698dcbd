"""`cprime report`: write the report of a fitted model on data as one HTML page."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cprime import load
from cprime.cli.files import Request, hinted, load_model, opened
from cprime.cli.outputs import check_output, print_json
from cprime.report import Names, Report, State, report_of

_SIGNS = {State.GOOD: ("good", "green"), State.LOOK: ("look", "yellow"), State.POOR: ("poor", "red")}


def report(
    model: Path,
    data: Sequence[str],
    request: Request,
    output: Path,
    page: dict[str, Any],
    compare: Path | None,
    threads: int | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run `cprime report`. page: keyword arguments of `report_of` that determine what the page shows"""
    check_output(output, (".html", ".htm"), (model, *map(Path, data), *filter(None, (compare, page["profile"]))))
    begin = perf_counter()
    estimator, other = load_model(model), None if compare is None else load(compare)
    if threads is not None:
        estimator.set_params(n_threads=threads)
    # The rows are not filled or scaled here, because the methods of the estimator do this.
    found = opened(data, request, estimator)
    X, weights = found.training_data()
    called = Names(Path(found.stored.name).name, model.name, None if compare is None else compare.name)
    with hinted(fills=False):
        made = report_of(estimator, X, sample_weight=weights, compare=other, names=called, **page)
    made.save(output)
    if as_json:
        print_json(
            {
                "output": output,
                "bytes": output.stat().st_size,
                "n_samples": made.n_rows,
                "n_samples_looked_at": len(made.rows),
                "lights": [vars(light) for light in made.lights],
                "seconds": perf_counter() - begin,
            }
        )
    elif not quiet:
        _print(made, output)


def _print(made: Report, output: Path) -> None:
    """Print the results of the checks as a table, and the path of the page."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column()
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for light in made.lights:
        word, style = _SIGNS[light.state]
        remedy = f" Try {light.remedy}" if light.remedy else ""
        table.add_row(f"[{style}]{word}[/]", light.name, Text(light.finding + remedy))
    table.add_row("", "written to", Text(str(output)))
    Console().print(table, highlight=False)
