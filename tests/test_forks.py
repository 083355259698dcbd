"""Programs in forked processes give the same output and exit code as in new processes."""

import os
import subprocess
import sys

import pytest

from marks import long_but

PROGRAMS = {
    "arguments and folder": "import os, sys; print(sys.argv, os.getcwd(), __name__); print('é', file=sys.stderr)",
    "a status": "import sys; sys.exit(3)",
    "a message": "import sys; sys.exit('what is wrong')",
    "a signal": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "no input": "import sys; print(sys.stdin.read())",
    "streams by their number": "import os; os.write(1, b'out'); os.write(2, b'err')",
    "what is done at the end": "import atexit; atexit.register(print, 'the end')",
}


@pytest.mark.parametrize("program", long_but(["arguments and folder"], PROGRAMS))
def test_a_program_ends_as_in_an_interpreter_of_its_own(program, forked, tmp_path):
    expected = subprocess.run(
        [sys.executable, "-c", PROGRAMS[program], "a", "b c"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    found = forked(PROGRAMS[program], "a", "b c", folder=tmp_path)
    assert (found.returncode, found.stdout, found.stderr) == (expected.returncode, expected.stdout, expected.stderr)


def test_an_error_is_shown_and_the_next_program_knows_nothing_of_it(forked):
    failed = forked("import sys; sys.leftover = 1; x = 1 / 0")
    assert failed.returncode == 1
    assert failed.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert forked("import sys; print(hasattr(sys, 'leftover'))").stdout == "False\n"


@pytest.mark.long
def test_a_program_that_takes_too_long_is_ended(forked):
    assert forked("import time; time.sleep(60)", seconds=1).returncode != 0


def test_libraries_are_there_already(forked):
    assert forked("import sys; print('sklearn.base' in sys.modules)").stdout == "True\n"
    assert os.getpid() != int(forked("import os; print(os.getpid())").stdout)
