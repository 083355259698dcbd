"""Fuzz files with coverage of the package as guide: `python -m reliability files --cases 100000 --seed 0`.

Model files, their headers, checkpoints and tables (`reliability.file_targets`) are mutated by libFuzzer, through
atheris (`pip install atheris`), which records the branches of Python modules. Each must end in a model, in rows or in
an error that says what is wrong with the file. Another error, a crash, more than ten seconds or 2 GiB is a failure, and
its file is stored in `--output`. Cases are divided equally among targets. `--replay FILE...` runs stored files.
"""

import argparse
import gc
import re
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from types import FunctionType

LIMIT, MEMORY = 10, 2048  # seconds, MiB
TRIES = 20  # processes per target; each one but the last has crashed or hung
_FAILURE = "failure:"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m reliability files", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=0, help="stop each target after so long")
    parser.add_argument("--target", action="append", choices=("model", "header", "checkpoint", "table"))
    parser.add_argument("--output", type=Path, default=Path("build/fuzz"), help="where files that failed are kept")
    parser.add_argument("--replay", type=Path, nargs="+", default=None, help="files named TARGET-...")
    parser.add_argument("--child", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child is not None:
        _fuzz(options.target[0], options.output, options.child)
        return 0
    if options.replay is not None:
        return _replay(options.replay)
    begin = time.perf_counter()
    targets = options.target or ["model", "header", "checkpoint", "table"]
    options.output.mkdir(parents=True, exist_ok=True)
    n_runs = n_failures = 0
    for i, target in enumerate(targets):
        cases = options.cases // len(targets) + (i < options.cases % len(targets))
        runs, failures = _campaign(target, cases, options)
        n_runs, n_failures = n_runs + runs, n_failures + failures
    seconds = time.perf_counter() - begin
    print(f"files: seed {options.seed}, {n_runs} cases in {seconds:.0f} s; failures: {n_failures}")
    return 1 if n_failures or not n_runs else 0


def _campaign(target: str, cases: int, options: argparse.Namespace) -> tuple[int, int]:
    """Fuzz one target; return the numbers of runs and of failures. After a crash or a hang, a new process continues."""
    done = failures = 0
    begin = time.monotonic()
    for attempt in range(TRIES):
        left = options.seconds - int(time.monotonic() - begin) if options.seconds else 0
        if done >= cases or (options.seconds and left < 1):
            break
        with tempfile.TemporaryDirectory() as folder:
            flags = [f"-runs={cases - done}", f"-seed={options.seed + 1 + attempt}", f"-timeout={LIMIT}"]
            flags += [f"-rss_limit_mb={MEMORY}", f"-max_total_time={left}", "-max_len=8192", "-print_final_stats=1"]
            flags += [f"-artifact_prefix={options.output.resolve()}/{target}-", folder]
            command = [sys.executable, "-m", "reliability", "files", "--target", target]
            command += ["--output", str(options.output), "--child", *flags]
            process = subprocess.run(command, capture_output=True, text=True, errors="replace")
        runs = re.findall(r"number_of_executed_units: (\d+)", process.stderr)
        done += int(runs[-1]) if runs else 0
        found = [line for line in process.stdout.splitlines() if line.startswith(_FAILURE)]
        if process.returncode:
            found.append(f"process ended with {process.returncode}\n{_told(process.stderr)}")
        failures += len(found)
        covered = re.findall(r"cov: (\d+)", process.stderr)
        print(f"{target}: {done} cases, {covered[-1] if covered else 0} branches", *found, sep="\n  ", flush=True)
        if not runs:
            break
    return done, failures


def _told(output: str) -> str:
    """Return the lines of a process's output that explain why it ended."""
    lines = output.splitlines()
    wanted = re.compile(r"Error|Exception|File \"|==\d+==|SUMMARY|Test unit written|Warning|Fatal")
    return "\n".join(f"    {line[:300]}" for line in lines if wanted.search(line))[-3000:]


def _fuzz(target: str, output: Path, flags: list[str]) -> None:
    """Run libFuzzer in this process; libFuzzer ends it."""
    import atheris

    from reliability import file_targets

    _import_all()
    for found in gc.get_objects():  # not at import, because an editable install has its own loader
        if isinstance(found, FunctionType) and (found.__module__ or "").startswith("cprime."):
            atheris.instrument_func(found)
    for i, content in enumerate(file_targets.seeds(target)):
        Path(flags[-1], f"seed-{i:03d}").write_bytes(content)
    seen: set[str] = set()

    def attempt(content: bytes) -> None:
        try:
            file_targets.TARGETS[target](content)
        except Exception as error:  # reported once; the process continues
            frames = traceback.extract_tb(error.__traceback__)
            ours = [frame for frame in frames if "cprime" in frame.filename] or frames
            what = f"{type(error).__name__}-{Path(ours[-1].filename).stem}-{ours[-1].lineno}"
            if what not in seen:
                seen.add(what)
                (output / f"{target}-{what}").write_bytes(content)
                print(f"{_FAILURE} {what}: {error!s:.200}", flush=True)

    atheris.Setup([sys.argv[0], *flags], attempt)
    atheris.Fuzz()


def _import_all() -> None:
    """Import the modules that read files, so that their branches can be instrumented; usually they are imported on
    demand.
    """
    from importlib import import_module
    from pkgutil import iter_modules

    for room in ("cprime.loading", "cprime.persistence.checkpoints", "cprime.sources"):
        module = import_module(room)
        for found in iter_modules(getattr(module, "__path__", ())):
            import_module(f"{room}.{found.name}")


def _replay(paths: list[Path]) -> int:
    from reliability.file_targets import TARGETS

    for path in paths:
        TARGETS[path.name.partition("-")[0]](path.read_bytes())
        print(f"{path}: ends as it must")
    return 0
