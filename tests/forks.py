"""Programs in processes of their own, forked from one that has loaded the libraries, which takes a second."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Gets a line for each program, and answers with one. What a child inherits is modules alone: nothing has been computed.
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
    """Runs programs, one after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(
        self, code: str, *arguments: object, folder: str | os.PathLike[str] = ".", seconds: int = 120
    ) -> subprocess.CompletedProcess[str]:
        """What `python -c` does with a program and its arguments, in a folder; it is ended after so many seconds."""
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
    """Programs that have loaded these modules already."""
    command = [sys.executable, "-W", "ignore:This process", "-c", DRIVER, *modules]  # that it has threads, and forks
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1) as process:
        yield Forks(process)
