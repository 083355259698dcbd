"""Command line interface: arguments, files, progress and tables; no numerics. `main` is the entry point."""

import faulthandler
import sys


def main() -> None:
    """Run `cprime` with the command line arguments of the process; a fatal signal prints a traceback to stderr."""
    if sys.__stderr__ is not None:
        faulthandler.enable(sys.__stderr__)
    from cprime.cli.app import app

    app(prog_name="cprime")
