"""Every piece of code in README.md and docs/*.md runs, page by page, from top to bottom, in a fresh folder."""

import doctest
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from page_reading import DOCS, PAGES, ROOT, Block, blocks, name

from forks import Forks
from reproduction import ENTRIES

OPTIONAL = ("dask", "faiss", "h5py", "jinja2", "matplotlib", "pandas", "pyarrow", "zarr")
WITH_CODE = {page: found for page in PAGES if (found := blocks(page.read_text(encoding="utf-8")))}
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"])


def missing(code: list[Block]) -> list[str]:
    """Return the optional libraries that a page's code names and that are not installed."""
    text = "\n".join(block.text for block in code)
    return [library for library in OPTIONAL if library in text and importlib.util.find_spec(library) is None]


def run_python(block: Block, page: str, known: dict) -> str:
    """Run a block and return its output; examples with prompts must give their stated output, and none may raise."""
    if ">>> " not in block.text:
        with redirect_stdout(StringIO()) as printed:
            exec(compile("\n" * (block.line - 1) + block.text, page, "exec"), known)
        return printed.getvalue()
    test = doctest.DocTestParser().get_doctest(block.text, known, page, page, block.line - 1)
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert runner.run(test, out=output.append, clear_globs=False).failed == 0, "".join(output)
    known.update(test.globs)
    return ""


def commands(text: str) -> list[str]:
    """Return the commands of a shell block, without comments; continued lines are joined."""
    lines = text.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def check_command(command: str) -> bool:
    """Return whether a command has to be run; for other commands, check that the things they name exist.

    Raises AssertionError for an unknown command.
    """
    words = shlex.split(command, comments=True)
    if words[0] == "make":
        assert words[1] in TARGETS, command
    elif words[:2] == ["pip", "install"]:
        assert set(re.findall(r"\w+", (re.search(r"\[(.*)\]", command) or " ")[0])) <= EXTRAS, command
    elif words[:2] == ["python", "-m"] and (ROOT / words[2]).is_dir():
        assert (ROOT / words[2] / "__main__.py").is_file(), command
        assert words[2:4] != ["reproduction", "run"] or words[4] in ENTRIES, command
    elif words != ["cprime", "demo"]:
        assert "cprime" in words or words[:2] == ["python", "-m"], command
        return True
    return False


def run_commands(block: Block, page: str, forked: Forks) -> None:
    """Run all commands that can be run; a failing command is an error with its line and its output.

    Commands without shell syntax run in a forked process that has already imported the package.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for command in filter(check_command, commands(block.text)):
        name, *words = shlex.split(command, comments=True)
        if name == "cprime" and not set(command) & set("|&;<>*?$`~{}"):
            done = forked("from cprime.cli import main; main()", *words, folder=os.getcwd())
        else:
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command],
                env={**os.environ, "PATH": path},
                capture_output=True,
                text=True,
                check=False,
            )
        assert done.returncode == 0, f"{page}:{block.line}: {command}\n{done.stderr}"


def marked(page: Path) -> object:
    """Return a page as a parameter; all pages except the README are marked as long."""
    return pytest.param(page, id=name(page), marks=() if page.name == "README.md" else pytest.mark.long)


@pytest.mark.parametrize("page", [marked(page) for page in WITH_CODE])
@pytest.mark.filterwarnings("ignore:Best performing initialization:sklearn.exceptions.ConvergenceWarning")
def test_code_runs(page, forked, tmp_path, monkeypatch):
    code = WITH_CODE[page]
    if missing(code):
        pytest.skip(f"not installed: {', '.join(missing(code))}")
    if any(block.language == "sh" for block in code) and shutil.which("bash") is None:
        pytest.skip("there is no bash")
    monkeypatch.chdir(tmp_path)
    known: dict = {"__name__": "__page__"}
    printed = ""
    for block in code:
        if block.language == "python":
            printed = run_python(block, name(page), known)
        elif block.language == "text":
            assert block.text == printed, f"{name(page)}:{block.line}"
        else:
            run_commands(block, name(page), forked)


def test_pages_have_code():
    assert {ROOT / "README.md", DOCS / "migrating.md", DOCS / "searches.md"} <= set(WITH_CODE)


def test_a_page_that_is_wrong_is_seen(forked):
    (good, bad) = blocks("```python\n>>> 1 + 1\n2\n```\n::::{tab-set}\n```python\n>>> 1 + 1\n3\n```\n::::\n")
    run_python(good, "page", {})
    assert bad.line == 7
    with pytest.raises(AssertionError, match="Expected"):
        run_python(bad, "page", {})
    assert run_python(Block("python", "print(1)\n", 1), "page", {}) == "1\n"
    with pytest.raises(ZeroDivisionError):
        run_python(Block("python", "1 / 0\n", 1), "page", {})
    with pytest.raises(AssertionError, match="absent"):
        run_commands(Block("sh", "cprime fit absent.npy -k 2 -o model\n", 1), "page", forked)
    for wrong in ("make nothing", "pip install '.[nothing]'", "python -m reproduction run nothing", "rm x"):
        with pytest.raises(AssertionError):
            check_command(wrong)
    assert not check_command("make test")
    assert check_command("zcat x.csv.gz | cprime fit - -k 2")
