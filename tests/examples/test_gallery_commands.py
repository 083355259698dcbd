"""`python -m examples`, and the page: all examples, what is missing, and the committed page as it is made."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from example_lines import numbers

import cprime

pytest.importorskip("matplotlib")
ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "docs" / "examples"


@pytest.fixture
def command(monkeypatch):
    """The command, with two examples only: one that runs, and one whose library is made to be missing."""
    from examples import __main__ as command

    monkeypatch.setattr(command, "_MODULES", {"old-faithful": "old_faithful", "vector-search": "vector_search"})
    for name in ("examples.vector_search", *(name for name in sys.modules if name.startswith("cprime.faiss"))):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delitem(vars(cprime), "faiss", raising=False)  # asked for as an attribute it would be imported
    monkeypatch.setitem(sys.modules, "faiss", None)
    return command.main


def test_vector_search_in_a_process_of_its_own(tmp_path):
    """faiss brings threads of its own, which do not meet those of the tests there."""
    pytest.importorskip("faiss")
    arguments = [sys.executable, "-m", "examples", "vector-search", "--small", "--output", str(tmp_path)]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        arguments, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "vector-search.txt").read_text(encoding="utf-8").splitlines()
    errors = {line.split(":")[0]: float(line.split(" error ")[1].split()[0]) for line in lines[1:3]}
    assert errors["cprime"] <= errors["faiss"]
    rows = np.array([numbers(line) for line in lines[4:9]])
    assert rows[:, 0].tolist() == [1, 2, 4, 8, 16]
    recall, milliseconds = rows[:, [1, 3]], rows[:, [2, 4]]
    assert (np.diff(recall, axis=0) >= 0).all()
    assert (recall[0] < recall[-1]).all()
    assert (recall[-1] > 0.99).all()
    assert (recall <= 1).all()
    assert (milliseconds > 0).all()
    assert "on less data (--small)" in lines[-1]


def test_all_goes_on_without_a_library_and_ends_with_the_page(command, tmp_path, capsys):
    command(["--all", "--small", "--output", str(tmp_path)])
    out = capsys.readouterr().out
    assert "vector-search is skipped: " in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "old-faithful.png", "old-faithful.txt"]
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    lines = (tmp_path / "old-faithful.txt").read_text(encoding="utf-8")
    assert "## Old Faithful by k-means, k-means-C′ and EM\n" in page
    assert "(old-faithful.png)" in page
    assert f"```text\n{lines}```" in page
    assert "python -m examples old-faithful\n" in page
    assert "`vector-search`" in page.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "either the name of an example or --all is needed"),
        (["old-faithful", "--all"], 2, "either the name of an example or --all is needed"),
        (["old-fatihful"], 2, "invalid choice: 'old-fatihful'"),
        (["vector-search"], 1, "faiss"),
        (["page"], 1, "has no results of examples"),
    ],
)
def test_what_cannot_be_done_is_said(command, tmp_path, capsys, arguments, code, message):
    with pytest.raises(SystemExit) as end:
        command([*arguments, "--output", str(tmp_path / "nothing")])
    assert end.value.code == code
    assert message in capsys.readouterr().err


def test_every_module_with_a_main_is_an_example():
    from examples import EXAMPLES, page

    folder = ROOT / "examples"
    found = {path.stem for path in folder.glob("*.py") if "def main(output: Path" in path.read_text(encoding="utf-8")}
    assert found == set(EXAMPLES)
    for module in EXAMPLES:
        title, text = page.described(module)
        assert title
        assert len(text) > 200
        assert len((folder / f"{module}.py").read_text(encoding="utf-8").splitlines()) < 150


def test_committed_page_is_that_of_a_whole_run(tmp_path):
    from examples import EXAMPLES, page

    folder = shutil.copytree(COMMITTED, tmp_path / "examples")
    committed = (COMMITTED / "README.md").read_text(encoding="utf-8")
    assert page.write(folder).read_text(encoding="utf-8") == committed
    for module in EXAMPLES:
        assert (COMMITTED / f"{module.replace('_', '-')}.png").is_file()
        lines = (COMMITTED / f"{module.replace('_', '-')}.txt").read_text(encoding="utf-8")
        assert "--small" not in lines
