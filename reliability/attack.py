"""Run checks that may break the library, in at most twenty minutes: `python -m reliability attack --seed 0`, or `make
attack`.

They are sizes beyond 32 bits, fits in little memory, killed fits, damaged folders and hostile files. Each check has its
own process and prints one line. The run ends with an error if a check fails or exceeds its time. `--only NAME...`
selects checks.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Module and function of each check that runs in a process with its own folder; those of damage also get the seed.
OWN = {
    "rows beyond 32 bits": ("large", "rows_beyond_32_bits"),
    "many rows": ("large", "many_rows_times_columns"),
    "many columns": ("large", "many_columns_times_rows"),
    "sparse rows": ("large", "sparse_rows"),
    "memory of a mixture": ("limits", "a_mixture"),
    "memory of a million": ("limits", "a_million_clusters"),
    "damaged Parquet": ("damage", "parquet_folders"),
    "damaged checkpoints": ("damage", "checkpoint_folders"),
}
ADDRESSES = 8 * 2**30  # bytes that a process may allocate


def others(seed: int) -> dict[str, list[str]]:
    """Return the checks that are commands of their own, with their arguments."""
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
    hostile = ("hostile_models", "hostile_checkpoints", "changed_files")
    return {
        "killed fits": [*tests, "tests/faults/test_killed_processes.py"],
        "hostile files": [
            *tests,
            *(f"tests/faults/test_{name}.py" for name in hostile),
            "tests/cli/test_cli_faults.py",
        ],
        "mutated files": ["-m", "reliability", "files", "--cases", "100000", "--seconds", "30", "--seed", str(seed)],
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m reliability attack", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, default=12, help="how many fits are killed")
    parser.add_argument("--seconds", type=float, default=1200, help="in which all must end")
    parser.add_argument("--only", nargs="+", choices=(*OWN, *others(0)), default=None)
    parser.add_argument("--child", choices=tuple(OWN), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child is not None:
        return _child(options.child, options.seed)
    begin, failures = time.monotonic(), 0
    environment = os.environ | {"CPRIME_KILLS": str(options.kills), "CPRIME_KILLS_SEED": str(options.seed)}
    commands = {name: ["-m", "reliability", "attack", "--seed", str(options.seed), "--child", name] for name in OWN}
    commands |= others(options.seed)
    for name, command in commands.items():
        if options.only is not None and name not in options.only:
            continue
        if name == "mutated files" and find_spec("atheris") is None:
            print(f"{name:<24} left out: atheris is not installed", flush=True)
            continue
        left = options.seconds - (time.monotonic() - begin)
        failures += not _run(name, command, left, environment)
    print(f"attack: seed {options.seed}, {time.monotonic() - begin:.0f} s; failures: {failures}")
    return 1 if failures else 0


def _run(name: str, command: list[str], seconds: float, environment: dict[str, str]) -> bool:
    """Run one check and return whether it succeeds; print one line, and the whole output if it fails."""
    begin = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        output, _ = process.communicate(timeout=max(seconds, 1.0))
    except subprocess.TimeoutExpired:
        process.kill()
        output = process.communicate()[0] + f"\nkilled after {seconds:.0f} s"
    well = process.returncode == 0
    last = [line for line in output.splitlines() if line.strip()][-1:] or ["nothing said"]
    print(f"{name:<24} {'ok' if well else 'FAILED'}, {time.monotonic() - begin:.0f} s: {last[0]}", flush=True)
    if not well:
        print(output, flush=True)
    return well


def _child(name: str, seed: int) -> int:
    import resource

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_DATA, (ADDRESSES,) * 2)
    module, function = OWN[name]
    attack: Callable[..., str] = getattr(import_module(f"reliability.{module}"), function)
    with tempfile.TemporaryDirectory(prefix="cprime-attack-") as folder:
        print(attack(Path(folder), *([seed] if module == "damage" else [])))
    return 0
