"""The commands that show what the package can do, which need no data: `demo` and `reproduce`."""

from pathlib import Path

import click

from cprime.cli import options as opt
from cprime.cli.errors import one_line_errors
from cprime.cli.options import PATH, argument, option
from cprime.cli.panels import Command, Whole


@click.command(cls=Command)
@option(
    "-o",
    "--output",
    panel="Output",
    type=PATH,
    metavar="DIR",
    default=Path("demo"),
    help="Folder to write to; made if it is missing.",
)
@option("--small", panel="Data", is_flag=True, help="One small photograph and 64 clusters.")
@opt.threads
@opt.as_json
@one_line_errors
def demo(output: Path, small: bool, threads: int | None, as_json: bool) -> None:
    """Cluster the half million patches of two photographs."""
    from cprime.cli.demo import demo as run

    run(output, small=small, threads=threads, as_json=as_json)


@click.command(cls=Command)
@argument("names", metavar="NAME…", nargs=-1, explained="Tables and figures; --list shows what there is.")
@option("--all", "every", panel="Data", is_flag=True, help="All of them.")
@option("--list", "show", panel="Output", is_flag=True, help="Show the names, and end.")
@option(
    "--redraw",
    "again",
    panel="Output",
    is_flag=True,
    help="Make pictures and page anew from the JSON in the folder, and end.",
)
@option(
    "--runs",
    panel="Search",
    type=Whole(1),
    otherwise="as the source",
    help="Runs to make; of what takes long, fewer.",
)
@option(
    "--random-state",
    panel="Search",
    type=Whole(0, 2**31 - 1),
    default=0,
    help="Seed of the random numbers.",
)
@opt.threads
@option(
    "-o",
    "--output",
    panel="Output",
    type=PATH,
    metavar="DIR",
    default=Path("reproduction"),
    help="Folder to write to; made if it is missing.",
)
@one_line_errors
def reproduce(
    names: tuple[str, ...],
    every: bool,
    show: bool,
    again: bool,
    runs: int | None,
    output: Path,
    random_state: int,
    threads: int | None,
) -> None:
    """Compute tables and figures of the papers anew, beside what was published."""
    from cprime.cli.reproduce import list_entries, redraw
    from cprime.cli.reproduce import reproduce as run
    from cprime.reproduction import ENTRIES

    if show:
        list_entries()
        return
    if again:
        if names or every:
            raise click.UsageError("--redraw takes all that the folder holds, and neither names nor --all")
        redraw(output)
        return
    if bool(names) == every:
        raise click.UsageError("give the names of tables and figures, or --all for all; --list shows them")
    for name in names:
        if name not in ENTRIES:
            raise click.BadParameter(f"there is no {name!r}; --list shows what there is", param_hint="NAME")
    run(list(names or ENTRIES), output, runs=runs, random_state=random_state, threads=threads)
