"""`python -m reproduction list | run NAME … | all | redraw`: recompute the tables and figures of the papers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from cprime.cli.errors import one_line_errors
from reproduction import command

_OUTPUT = click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="DIR", default=Path("reproduced"), show_default=True,
    help="Folder to write to; made if it is missing.",
)  # fmt: skip


def _settings(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a run."""
    threads = click.option("--threads", type=click.IntRange(1), help="Threads; as many as possible if left out.")
    seed = click.option("--random-state", type=click.IntRange(0, 2**31 - 1), default=0, help="Seed of random numbers.")
    runs = click.option("--runs", type=click.IntRange(1), help="Runs to make; as many as the source's if left out.")
    return runs(seed(threads(_OUTPUT(function))))


@click.group(help=__doc__)
def main() -> None:
    """Group of the commands."""


@main.command("list")
def show_list() -> None:
    """Show the names of all tables and figures."""
    command.list_entries()


@main.command()
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@_settings
@one_line_errors
def run(names: tuple[str, ...], output: Path, runs: int | None, random_state: int, threads: int | None) -> None:
    """Compute some entries; print their tables and write numbers (JSON) and pictures (PNG)."""
    for name in names:
        if name not in command.ENTRIES:
            raise click.BadParameter(f"there is no {name!r}; `list` shows what there is", param_hint="NAME")
    command.reproduce(names, output, runs=runs, random_state=random_state, threads=threads)


@main.command("all")
@_settings
@one_line_errors
def run_all(output: Path, runs: int | None, random_state: int, threads: int | None) -> None:
    """Compute all entries, which takes hours."""
    command.reproduce(list(command.ENTRIES), output, runs=runs, random_state=random_state, threads=threads)


@main.command("redraw")
@_OUTPUT
@one_line_errors
def redraw_all(output: Path) -> None:
    """Draw the pictures and the page again from the JSON files of a folder."""
    command.redraw(output)


if __name__ == "__main__":
    main(prog_name="python -m reproduction")
