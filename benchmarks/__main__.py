"""`python -m benchmarks [NAME ...]`: every benchmark, or those named."""

import argparse
import importlib

from benchmarks.timing import machine

NAMES = ("exact", "partial")

parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)}; all of them by default")
parser.add_argument("--list", action="store_true", help="list the names and end")
arguments = parser.parse_args()
unknown = sorted(set(arguments.names) - set(NAMES))
if unknown:
    parser.error(f"NAME must be one of {', '.join(NAMES)}, got {', '.join(unknown)}")
if arguments.list:
    print("\n".join(NAMES))
else:
    print(machine(), flush=True)
    for name in arguments.names or NAMES:
        importlib.import_module(f"benchmarks.{name}").main()
