"""The command `demo`, which demonstrates the package, and a message about the former command `reproduce`."""

from pathlib import Path

import click

from cprime.cli import options as opt
from cprime.cli.errors import one_line_errors
from cprime.cli.options import data_option, output_file
from cprime.cli.panels import Command


@click.command(cls=Command)
@output_file("Folder to write to; it is created if it does not exist.", metavar="DIR", default=Path("demo"))
@data_option("--small", is_flag=True, help="Use one small photograph and 64 clusters.")
@opt.threads
@opt.as_json
@one_line_errors
def demo(output: Path, small: bool, threads: int | None, as_json: bool) -> None:
    """Cluster the half million patches of two photographs."""
    from cprime.cli.demo import demo as run

    run(output, small=small, threads=threads, as_json=as_json)


@click.command(cls=Command, hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("names", metavar="NAME…", nargs=-1, help="Not used.")
@one_line_errors
def reproduce(names: tuple[str, ...]) -> None:
    """Report where the tables and figures of the papers are computed."""
    raise ValueError("reproduce has moved: in a copy of the source code, call `python -m reproduction list`")
