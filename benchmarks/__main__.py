"""`python -m benchmarks COMMAND`: run one measure, run a profile of several, or write a page of the documentation.

Every run prints its tables, appends its records to a file of JSON lines, and draws its figures beside this file.
"""

import argparse
import shlex
import sys
from datetime import datetime
from pathlib import Path
from time import perf_counter

_FOLDER = Path("build/benchmarks")


def _parser() -> argparse.ArgumentParser:
    from benchmarks.measures import MEASURES
    from benchmarks.measures.options import add_threads
    from benchmarks.profiles import PROFILES

    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in MEASURES.items():
        summary, _, rest = module.__doc__.partition("\n\n")
        command = commands.add_parser(name, help=summary, description=f"{summary}\n\n{rest}")
        module.add_arguments(command)
        add_threads(command)
        _add_output(command)
    for name, (_, summary) in PROFILES.items():
        command = commands.add_parser(name, help=summary, description=summary)
        add_threads(command)
        _add_output(command)
    commands.add_parser("list", help="the peers with their versions, and the data")
    page = commands.add_parser("page", help="a page of the documentation from a results file")
    page.add_argument("results", type=Path, help="JSON lines that a run has written")
    page.add_argument("--output", type=Path, default=Path("docs/benchmarks.md"), help="default: docs/benchmarks.md")
    fill = commands.add_parser("fill", help="the tables of the measure scale in a page of prose")
    fill.add_argument("results", type=Path, help="JSON lines that a run has written")
    fill.add_argument("--output", type=Path, default=Path("docs/scale.md"), help="default: docs/scale.md")
    return parser


def _add_output(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help=f"append the records to this file (default: a new one in {_FOLDER})",
    )


def main(arguments: list[str] | None = None) -> None:
    from benchmarks.measures import MEASURES
    from benchmarks.profiles import PROFILES

    arguments = sys.argv[1:] if arguments is None else arguments
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        if options.command == "list":
            _list()
        elif options.command == "page":
            from benchmarks.page import write

            write(options.results, options.output)
        elif options.command == "fill":
            from benchmarks.page import fill

            fill(options.results, options.output)
        elif options.command in PROFILES:
            threads = ["--threads", str(options.threads)]
            commands = [[*shlex.split(line), *threads] for line in PROFILES[options.command][0]]
            _run(parser, commands, options)
        else:
            assert options.command in MEASURES
            _run(parser, [arguments], options)
    except (ValueError, OSError, argparse.ArgumentTypeError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")


def _run(parser: argparse.ArgumentParser, commands: list[list[str]], options: argparse.Namespace) -> None:
    """Run each command in turn: append its records to the file, print its tables, draw its figures beside the file."""
    from benchmarks.machine import describe
    from benchmarks.measures import MEASURES
    from benchmarks.page import machine
    from benchmarks.records import append

    begin = perf_counter()
    output = options.output or _FOLDER / f"{options.command}-{datetime.now():%Y%m%d-%H%M%S}.jsonl"
    header = {"measure": "machine", **describe(options.threads)}
    append(output, [header])
    print(machine(header), flush=True)
    for command in commands:
        print(f"\n$ python -m benchmarks {shlex.join(command)}", flush=True)
        chosen = parser.parse_args(command)
        module = MEASURES[chosen.command]
        records = []
        for found in module.measure(chosen):
            append(output, [{**record, "command": _without_output(command)} for record in found])
            records += found
        print(f"\n## {module.TITLE}\n\n{module.report(records)}\n", flush=True)
        for name, figure in module.figures(records).items():
            path = output.with_name(f"{output.stem}-{name}.png")
            figure.savefig(path, dpi=200)
            print(f"figure: {path}")
    print(f"records: {output}\n{perf_counter() - begin:.0f} s in all")


def _without_output(command: list[str]) -> str:
    """Return the command for the records, without its --output option."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--output")
    return shlex.join(parser.parse_known_args(command)[1])


def _list() -> None:
    from benchmarks.data import FOLDER, SOURCES
    from benchmarks.peers import PEERS
    from benchmarks.tables import table

    rows = [
        (name, f"{peer.distribution} {peer.version or 'not installed'}", peer.model, peer.note, peer.start)
        for name, peer in PEERS.items()
    ]
    print(table(("peer", "version", "model", "what it is", "start"), rows))
    print(f"\nData; real ones are looked for in {FOLDER}, which CPRIME_DATA names:\n")
    print(table(("data", "what they are", "C"), [(n, s.description, s.n_clusters) for n, s in SOURCES.items()]))


if __name__ == "__main__":
    main()
