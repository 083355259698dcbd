"""Programs in processes forked from one that has already loaded the libraries, because loading takes a second."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Reads a program from each line of stdin and answers with one line. Forked processes inherit loaded modules only.
DRIVER = """
import importlib, json, os, signal, sys, tempfile, types

def run(streams, code, arguments, folder, seconds):
    signal.alarm(seconds)
    os.chdir(folder)
    for number, stream in enumerate((open(os.devnull), *streams)):
        os.dup2(stream.fileno(), number)
    sys.argv = ["-c", *arguments]
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    exec(compile(code, "<string>", "exec"), vars(main))

for name in sys.argv[1:]:
    importlib.import_module(name)
for line in sys.stdin:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            run((out, err), **json.loads(line))
            break
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read().decode())
    print(json.dumps((status, *said)), flush=True)
"""
PACKAGE = ("cprime.estimators", "cprime.cli.app")


class Forks:
    """Runner of programs, one after the other, in forked processes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(
        self, code: str, *arguments: object, folder: str | os.PathLike[str] = ".", seconds: int = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as `python -c` does, in a folder and with a time limit, and return its exit code and output."""
        asked = {
            "code": code,
            "arguments": [*map(str, arguments)],
            "folder": os.path.abspath(folder),
            "seconds": seconds,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        return subprocess.CompletedProcess(code, *json.loads(self._process.stdout.readline()))


@contextmanager
def forks(*modules: str) -> Iterator[Forks]:
    """Yield a runner of programs in processes that have already loaded these modules."""
    command = [sys.executable, "-W", "ignore:This process", "-c", DRIVER, *modules]  # it has threads, and forks
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1) as process:
        yield Forks(process)
