"""The command line: arguments, files, progress and tables; no numerics. `main` is the entry point."""

import faulthandler
import sys


def main() -> None:
    """Run `cprime` on the arguments of the process; should the system end it, it says where it was."""
    if sys.__stderr__ is not None:
        faulthandler.enable(sys.__stderr__)
    from cprime.cli.app import app

    app(prog_name="cprime")
