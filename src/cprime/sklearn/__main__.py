"""Run an unchanged program with this library's estimators: ``python -m cprime.sklearn program.py arguments``.

With ``-m module arguments`` it runs a module, like Python's own option -m.
"""

import runpy
import sys
from pathlib import Path

from cprime.sklearn.patching import patch

USAGE = "usage: python -m cprime.sklearn [-m module | program.py] [arguments]\n"


def main(arguments: list[str]) -> None:
    """Run a Python program with this library's classes in place of scikit-learn's.

    arguments: command line, which begins with the program's path or with -m and a module
    """
    if arguments[:1] == ["-m"] and len(arguments) > 1:
        sys.argv, sys.path[0] = arguments[1:], ""
        patch()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments and not arguments[0].startswith("-"):
        if not Path(arguments[0]).exists():
            sys.exit(f"{USAGE}there is no program {arguments[0]}")
        sys.argv, sys.path[0] = arguments, str(Path(arguments[0]).resolve().parent)
        patch()
        runpy.run_path(arguments[0], run_name="__main__")
    else:
        asked = arguments in (["-h"], ["--help"])
        (sys.stdout if asked else sys.stderr).write(USAGE)
        sys.exit(0 if asked else 2)


if __name__ == "__main__":
    main(sys.argv[1:])
