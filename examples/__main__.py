"""`python -m examples NAME`: run an example, all of them, or make the page of what they wrote.

Every example writes NAME.png and NAME.txt into the folder of --output; --all ends with the page, README.md.
"""

import argparse
import importlib
import time
from pathlib import Path

from cprime.reproduction.base import Context
from cprime.reproduction.report import about
from examples import EXAMPLES, page
from examples.result import file_name

_MODULES = {file_name(module): module for module in EXAMPLES}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m examples", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", choices=[*_MODULES, "page"], help="the example, or the page alone")
    parser.add_argument("--all", action="store_true", help="every example whose libraries are installed")
    parser.add_argument("--output", type=Path, default=Path("build/examples"), help="default: build/examples")
    parser.add_argument("--small", action="store_true", help="in seconds, on less data")
    options = parser.parse_args(arguments)
    if options.all == (options.name is not None):
        parser.error("either the name of an example or --all is needed")
    try:
        if options.all:
            for name in _MODULES:
                try:
                    run(name, options.output, options.small)
                except ImportError as error:
                    print(f"{name} is skipped: {error}\n")
        elif options.name != "page":
            run(options.name, options.output, options.small)
        if options.all or options.name == "page":
            print(page.write(options.output))
    except (ImportError, OSError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")


def run(name: str, output: Path, small: bool) -> None:
    """One example, under its title; how long it took and where is added to its lines."""
    print(f"# {page.described(_MODULES[name])[0]}")
    module = importlib.import_module(f"examples.{_MODULES[name]}")
    begin = time.perf_counter()
    module.main(output, small)
    facts = about(Context(1), ["python", "-m", "examples", name], time.perf_counter() - begin)
    size = ", on less data (--small)" if small else ""
    line = f"{facts['seconds']} s on {facts['processor']} ({facts['kernels']} kernels), {facts['date']}{size}"
    print(f"{line}\n")
    with (output / f"{name}.txt").open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")


if __name__ == "__main__":
    main()
