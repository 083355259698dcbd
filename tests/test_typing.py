"""Types as users see them: mypy and pyright accept a program that uses each public class, and find its faults."""

import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cprime
from cprime._utils.declared import attribute_types

PROGRAM = Path(__file__).with_name("typed_program.py")
FAULTS = (  # statements that have a wrong type
    "text: str = km.inertia_",
    "rows: int = gm.score(X)",
    "dense = gm.predict_proba(X).nnz",
    "known = cprime.KMeans(2, search=3)",
    "n_iter: str = loaded.n_iter_",
)


def mypy(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", ".mypy"]
    source = {"MYPYPATH": str(Path(cprime.__file__).parents[1])}
    return subprocess.run(
        [*command, "program.py"], cwd=folder, env=os.environ | source, capture_output=True, text=True, check=False
    )


def pyright(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run pyright, which needs Node.js and, at its first run, the network."""
    pytest.importorskip("pyright", reason="pyright is not installed")
    source = {"PYTHONPATH": str(Path(cprime.__file__).parents[1])}
    run = [sys.executable, "-m", "pyright"]
    version = subprocess.run([*run, "--version"], capture_output=True, text=True, check=False)
    if version.returncode:
        pytest.skip(f"pyright cannot run here: {version.stderr.strip().splitlines()[-1:]}")
    command = [*run, "--pythonpath", sys.executable, "program.py"]
    return subprocess.run(command, cwd=folder, env=os.environ | source, capture_output=True, text=True, check=False)


@pytest.mark.long
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_program_of_all_public_classes_is_well_typed(checker, tmp_path):
    shutil.copy(PROGRAM, tmp_path / "program.py")
    run = checker(tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    (tmp_path / "program.py").write_text("\n".join([PROGRAM.read_text(encoding="utf-8"), *FAULTS]), encoding="utf-8")
    run, n = checker(tmp_path), len(PROGRAM.read_text(encoding="utf-8").splitlines())
    found = {int(line.split(":")[1]) for line in run.stdout.splitlines() if " error" in line and "program.py:" in line}
    assert found == {n + 2 + i for i in range(len(FAULTS))}, run.stdout + run.stderr


ESTIMATORS = [each for name in cprime.__all__ if hasattr(each := getattr(cprime, name), "get_metadata_routing")]


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_every_documented_attribute_has_a_declared_type(cls):
    text = inspect.cleandoc(cls.__doc__).split("Attributes\n----------\n")[1]
    entries = [line for line in re.split(r"\n\n(?=\w)", text)[0].replace(",\n", ", ").split("\n") if line[0] != " "]
    names = {name for entry in entries for name in entry.split(" : ")[0].split(", ")}
    assert {"n_features_in_"} <= names <= set(attribute_types(cls))


def test_the_program_runs_and_uses_every_public_class():
    text = PROGRAM.read_text(encoding="utf-8")
    classes = [name for name in cprime.__all__ if isinstance(getattr(cprime, name), type)]
    assert [name for name in classes if f"cprime.{name}" not in text and name != "SearchQualityWarning"] == []
    subprocess.run([sys.executable, PROGRAM], check=True)
