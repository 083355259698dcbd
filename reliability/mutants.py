"""Find mutants of small mathematical modules that no test detects; each runs against the tests that reach its line.

    python -m reliability mutants --module em/stages.py --seed 1 --sample 50

Everything is imported and collected once. A first child process runs all tests and records the lines each of them
reaches and its time. Then every mutant has its own child process, in which its functions and constants replace the
originals. It runs the tests that reach the changed statement, the fastest first, until one fails. Tests beyond
`--budget` seconds are not run, so more time might kill a surviving mutant. Mutants that are known to change nothing are
listed with the reason in `equivalent.toml` and count on neither side.
"""

import argparse
import contextlib
import json
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from reliability.mutations import Mutant, mutants_of

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "cprime"
MODULES = (
    *("model", "neighbors/components.py", "em", "execution/statistics.py", "_utils/random.py"),
    "search/full.py",
)
TESTS = ("laws", "model", "theory", "mixtures", "hard_and_soft", "estimators", "family", "search", "execution")
SKIPPED = ("*dask*", "*scikit_learn_checks*", "*memory*")  # clusters, copies of one check, measurements of the process
KILLED, TIMEOUT, CRASHED, SURVIVED, EQUIVALENT = "killed", "out of time", "crashed", "survived", "equivalent"


def main(argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    files = [file for name in options.module or MODULES for file in _files(name)]
    mutants = [m for file in files for m in mutants_of(file.read_text(), str(file.relative_to(SOURCE)))]
    total, known = len(mutants), equivalents()
    if options.sample is not None and options.sample < total:
        mutants = sorted(random.Random(options.seed).sample(mutants, options.sample), key=str)
    print(f"seed {options.seed}: {len(mutants)} of {total} mutants of {len(files)} modules", flush=True)
    runner = Runner(mutants, known, options.budget, options.jobs)
    folders = [str(ROOT / "tests" / name) for name in options.tests or TESTS]
    arguments = [
        *folders,
        *(f"--ignore-glob={pattern}" for pattern in SKIPPED),
        "-m",
        "not long",
        "--full-products",
        "pairs",
        "-s",
        "-q",
    ]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
        status = pytest.main(
            [*arguments, "-p", "no:cacheprovider", "-p", "no:faulthandler", "--no-header", "--no-summary"],
            plugins=[runner],
        )
    if status != 0 or len(runner.results) < len(mutants):
        print(f"the tests themselves do not run: pytest ended with {status}", file=sys.stderr)
        return 1
    share = runner.report()
    print(f"\n{time.monotonic() - begin:.0f} s with {options.jobs} job(s)")
    return 0 if share >= options.least else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reliability mutants", description=__doc__.split("\n")[0])
    parser.add_argument("--module", action="append", help="below src/cprime, a file or a folder; may come again")
    parser.add_argument("--tests", action="append", help="a folder or file below tests; may come again")
    parser.add_argument("--sample", type=int, help="how many mutants, drawn at random; all of them if not given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of tests that a mutant has to outlive")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--least", type=float, default=0.9, help="share to be killed, or the exit status is 1")
    return parser


def _files(name: str) -> list[Path]:
    path = SOURCE / name
    if not path.exists():
        raise SystemExit(f"no module {name!r} below {SOURCE}")
    return sorted(path.glob("*.py")) if path.is_dir() else [path]


def equivalents() -> dict[tuple[str, str, str, str], str]:
    """Return why mutants change nothing, by module, place, and the line before and after."""
    listed = tomllib.loads((ROOT / "reliability" / "equivalent.toml").read_text())["mutant"]
    return {(m["module"], m["place"], m["before"], m["after"]): m["reason"] for m in listed}


class Runner:
    """Plugin of pytest that runs all mutants within pytest's run loop."""

    def __init__(self, mutants: list[Mutant], known: dict, budget: float, jobs: int):
        self.mutants, self.known, self.budget, self.jobs = mutants, known, budget, jobs
        self.results: list[tuple[Mutant, str]] = []
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            print(report.longrepr, file=sys.stderr)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            return True
        reached, seconds = self._baseline(session)
        print(f"{len(session.items)} tests, {sum(seconds):.0f} s of them", flush=True)
        waiting, running = list(reversed(self.mutants)), {}
        while waiting or running:
            if waiting and len(running) < self.jobs:
                mutant = waiting.pop()
                if _key(mutant) in self.known:
                    self._note(mutant, EQUIVALENT)
                    continue
                chosen = self._chosen(mutant, reached, seconds)
                limit = 20 + 5 * sum(seconds[i] for i in chosen)
                running[_fork(lambda m=mutant, c=chosen: self._outlives(session, m, c), limit)] = mutant
            else:
                pid, status = os.wait()
                self._note(running.pop(pid), _verdict(status))
        return True

    def report(self) -> float:
        """Print the table by module; return the share of killed mutants."""
        counts: dict[str, Counter] = {}
        for mutant, verdict in self.results:
            counts.setdefault(mutant.module, Counter())[verdict] += 1
        total = sum(counts.values(), Counter())
        print("\n| module | mutants | killed | of them by time, crash | equivalent | survived | share killed |")
        print("|---|---|---|---|---|---|---|")
        for module, count in [*sorted(counts.items()), ("all", total)]:
            killed = count[KILLED] + count[TIMEOUT] + count[CRASHED]
            print(
                f"| {module} | {count.total()} | {killed} | {count[TIMEOUT]}, {count[CRASHED]} "
                f"| {count[EQUIVALENT]} | {count[SURVIVED]} | {_share(count):.1%} |"
            )
        return _share(total)

    def _note(self, mutant: Mutant, verdict: str) -> None:
        self.results.append((mutant, verdict))
        if verdict not in (KILLED, EQUIVALENT):
            print(f"{verdict}: {mutant}", flush=True)

    def _baseline(self, session: pytest.Session) -> tuple[list[dict[str, set[int]]], list[float]]:
        """Return the lines of each module that each test reaches, and the seconds of each test."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "baseline.json"
            pid = _fork(lambda: self._measured(session, file), None)
            os.waitpid(pid, 0)
            found = json.loads(file.read_text())
        failed = [item.nodeid for item, test in zip(session.items, found, strict=True) if test["failed"]]
        if failed:
            raise pytest.UsageError(f"tests that fail before anything is changed: {failed}")
        lines = [{module: set(rows) for module, rows in test["lines"].items()} for test in found]
        return lines, [test["seconds"] for test in found]

    def _measured(self, session: pytest.Session, file: Path) -> bool:
        tracer = Tracer({str(SOURCE / m.module): m.module for m in self.mutants})
        found = []
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            self.failed, tracer.lines, begin = False, {}, time.process_time()
            with tracer:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            lines = {module: sorted(rows) for module, rows in tracer.lines.items()}
            found.append({"lines": lines, "seconds": time.process_time() - begin, "failed": self.failed})
        file.write_text(json.dumps(found))
        return True

    def _chosen(self, mutant: Mutant, reached: list[dict[str, set[int]]], seconds: list[float]) -> list[int]:
        """Return the indices of tests that reach the mutant, the fastest first, within the budget."""
        there = [
            i
            for i, lines in enumerate(reached)
            if mutant.module in lines and (not mutant.inside or not lines[mutant.module].isdisjoint(mutant.lines))
        ]
        chosen, spent = [], 0.0
        for i in sorted(there, key=seconds.__getitem__):
            if chosen and spent + seconds[i] > self.budget:
                break
            chosen.append(i)
            spent += seconds[i]
        return chosen

    def _outlives(self, session: pytest.Session, mutant: Mutant, chosen: list[int]) -> bool:
        graft(import_module(_name(mutant.module)), mutant)
        items = [session.items[i] for i in chosen]
        for item, following in zip(items, [*items[1:], None], strict=True) if items else ():
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                return False
        return True


class Tracer:
    """Recorder of the executed lines of some files during the context, as module -> lines."""

    def __init__(self, modules: dict[str, str]):
        self.modules = modules
        self.lines: dict[str, set[int]] = {}

    def __enter__(self) -> None:
        threading.settrace(self._call)
        sys.settrace(self._call)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    def _call(self, frame: Any, event: str, _: Any) -> Any:
        module = self.modules.get(frame.f_code.co_filename)
        if module is None:
            return None
        lines = self.lines.setdefault(module, set())
        lines.add(frame.f_lineno)

        def line(frame: Any, event: str, _: Any) -> Any:
            lines.add(frame.f_lineno)
            return line

        return line


def graft(live: ModuleType, mutant: Mutant) -> None:
    """Replace the functions and constants of the imported module by those of a mutant."""
    new = {"__name__": live.__name__, "__file__": live.__file__, "__builtins__": __builtins__}
    exec(mutant.code(), new)
    _graft_names(live, new, live.__name__)


def _graft_names(owner: Any, new: dict[str, Any], module: str) -> None:
    for name, value in new.items():
        old = vars(owner).get(name)
        if name.startswith("__") and not callable(value):
            continue
        if isinstance(value, type):
            if value.__module__ == module and isinstance(old, type) and old is not value:
                _graft_names(old, dict(vars(value)), module)
        elif isinstance(value, (bool, int, float, str)):
            if old != value:
                setattr(owner, name, value)
        else:
            for mine, theirs in zip(_functions(old), _functions(value), strict=True):
                mine.__code__, mine.__defaults__ = theirs.__code__, theirs.__defaults__
                mine.__kwdefaults__ = theirs.__kwdefaults__


def _functions(value: Any) -> list[FunctionType]:
    """Return the functions behind an attribute: the function itself, or those of a property or a method."""
    if isinstance(value, FunctionType):
        return [value]
    names = ("fget", "func", "__func__")
    return [f for f in (getattr(value, name, None) for name in names) if isinstance(f, FunctionType)]


def _fork(action: Any, limit: float | None) -> int:
    """Fork a child that exits with 1 if the action returns False; limit: its processor seconds. Return its id."""
    pid = os.fork()
    if pid:
        return pid
    status = 2
    try:
        with contextlib.suppress(BaseException), open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 1)
            os.dup2(nothing.fileno(), 2)
            if limit is not None:
                signal.setitimer(signal.ITIMER_PROF, limit)  # the signal ends the process
                signal.alarm(int(20 * limit))  # so does waiting too long
                used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
                resource.setrlimit(resource.RLIMIT_AS, (used + 2**32, used + 2**32))
            status = 0 if action() else 1
    finally:
        os._exit(status)


def _verdict(status: int) -> str:
    if os.WIFSIGNALED(status):
        return TIMEOUT if os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM) else CRASHED
    return SURVIVED if os.WEXITSTATUS(status) == 0 else KILLED


def _key(mutant: Mutant) -> tuple[str, str, str, str]:
    return mutant.module, mutant.place, mutant.before, mutant.after


def _name(module: str) -> str:
    return "cprime." + module.removesuffix(".py").replace("/", ".")


def _share(count: Counter) -> float:
    judged = count.total() - count[EQUIVALENT]
    return 1 - count[SURVIVED] / judged if judged else 1.0
