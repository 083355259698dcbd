"""`python -m reliability COMMAND`: run one of the long checks."""

import os
import sys
from importlib import import_module

COMMANDS = {
    "surface": "generated cases of every estimator, checked against NumPy",
    "load": "many threads that fit and predict at once, each result compared with that of one alone",
    "sanitize": "contracts of the kernels and fits at once, with the core under sanitizers",
    "attack": "sizes beyond 32 bits, little memory, kills, damaged and hostile files, in twenty minutes",
    "files": "mutated model files, checkpoints and tables, guided by what they cover",
    "mutants": "the mathematical modules with one thing changed at a time, which tests should notice",
}


os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # cases are small


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in COMMANDS:
        print(__doc__, *(f"  {name:<10}{about}" for name, about in COMMANDS.items()), sep="\n")
        return 0 if arguments in ([], ["--help"]) else 2
    return import_module(f"reliability.{arguments[0]}").main(arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
