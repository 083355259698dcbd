"""Run generated cases of the Python interface: `python -m reliability surface --cases 1000 --seed 0`.

In each case an estimator is fitted to data, both drawn by `reliability.space`. The case must end in a result with the
required properties, or in an error that names an argument. Everything else is a failure: another error, a warning, a
crash, more than ten seconds. `--case K` runs case K alone in this process, with its traceback. `--laws` draws cases of
the laws (`reliability.laws`), `--laws NAME...` only of some. A law says what points of weight 0, another unit, or
another storage of the same chunks must not change.
"""

import argparse
import json
import logging
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from reliability import runner
from reliability.drawing import Draw, Seeded
from reliability.law_space import ASKED_FOR, LAWS, law_case
from reliability.space import ESTIMATORS, Case, surface_case


def attempt(describe: Callable[[Draw], Case], seed: int, number: int, folder: Path) -> str:
    """Run one case by its number; return how it ends."""
    from reliability.trial import run

    return run(describe(Seeded(seed, number)), folder)


def space(options: argparse.Namespace) -> Callable[[Draw], Case]:
    """Return the function that draws the requested type of cases."""
    own = {} if options.of is None else {"estimators": tuple(options.of)}
    if options.laws is None:
        return partial(surface_case, widest=options.widest, **own)
    return partial(law_case, laws=tuple(options.laws) or LAWS, **own)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m reliability surface", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--widest", type=int, default=300, help="numbers of up to so many powers of ten")
    parser.add_argument("--laws", nargs="*", choices=(*LAWS, *ASKED_FOR), help="cases of these laws, by default of all")
    parser.add_argument("--of", nargs="+", choices=sorted(set(ESTIMATORS)), help="cases of these estimators alone")
    parser.add_argument("--seconds", type=float, default=None, help="stop after so long")
    parser.add_argument("--case", type=int, default=None, help="this case alone, in this process")
    parser.add_argument("--replay", type=Path, default=None, help="a case from a JSON file, in this process")
    parser.add_argument("--failures", type=Path, default=None, help="write failing cases to this file, as JSON lines")
    options = parser.parse_args(arguments)
    logging.getLogger("cprime").addHandler(logging.NullHandler())  # log messages are no failure
    if options.case is not None or options.replay is not None:
        return _alone(options)
    import pandas  # noqa: F401, what cases need is imported once, before the workers are made

    import cprime.estimators
    import cprime.selection  # noqa: F401
    import reliability.trial  # noqa: F401

    begin = time.perf_counter()
    kinds: Counter[str] = Counter()

    def show(failure: dict) -> None:
        case = space(options)(Seeded(options.seed, failure["number"]))
        if options.failures is not None:
            with options.failures.open("a") as file:
                file.write(json.dumps({**failure, "case": case.as_json()}) + "\n")
        kinds[failure["message"][:40]] += 1
        if kinds[failure["message"][:40]] <= 5:
            print(f"case {failure['number']}: {failure['kind']}: {failure['message']}\n  {case}", flush=True)

    numbers = range(options.first, options.first + options.cases)
    trial = partial(attempt, space(options), options.seed)
    report = runner.run(trial, numbers, options.workers, options.seconds, show)
    done, seconds = sum(report.ends.values()), time.perf_counter() - begin
    print(f"surface: seed {options.seed}, {done} cases from {options.first} in {seconds:.0f} s: {dict(report.ends)}")
    print(f"slowest: {report.slowest[0]:.2f} s, case {report.slowest[1]}; begun anew: {report.late}")
    print(f"failures: {len(report.failures)}")
    return 1 if report.failures or not done else 0


def _alone(options: argparse.Namespace) -> int:
    from reliability.trial import run

    if options.replay is not None:
        values = json.loads(options.replay.read_text())
        case = Case.of_json(values.get("case", values))
    else:
        case = space(options)(Seeded(options.seed, options.case))
    print(json.dumps(case.as_json()))
    with tempfile.TemporaryDirectory() as folder:
        print(run(case, Path(folder)))
    return 0
