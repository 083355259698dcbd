"""Rules of the source code: imports point down, only `kernels` imports `_core`, files are short, builds portable."""

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Packages from top to bottom. Each may import packages below it, and those of its own line if no cycle results.
# "" is cprime itself, whose __init__.py imports the estimators lazily and is therefore not checked.
LAYERS = (
    ("__main__",),
    ("cli",),
    ("sklearn",),
    (
        "",
        "combining",
        "coresets",
        "selection",
        "theory",
        "plots",
        "report",
        "loading",
        "datasets",
        "faiss",
        "tl",
    ),
    ("estimators",),
    ("persistence",),
    ("em",),
    ("seeding",),
    ("search", "model"),
    ("neighbors", "execution"),
    ("kernels", "sources", "callbacks"),
)
DOORS = {("estimators", "report")}  # allowed upward imports: a method imports the package above it when it is called
BOTTOM = len(LAYERS)  # level of `_core` and `_utils`
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
MOST_LINES = 800
NOT_PORTABLE = re.compile(r"-m(arch|cpu|tune)=native|[-/]f?openmp\b|pragma\s+omp\b|OpenMP::", re.IGNORECASE)


def level_of(room: str) -> int:
    """Return the index in LAYERS of a package; raise KeyError for a public one that is not listed."""
    return BOTTOM if room not in LEVEL and room.startswith("_") else LEVEL[room]


def imported_names(tree: ast.AST, package: list[str]) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name below cprime) of every import of the package, also of imports inside functions.

    `package` is the origin of relative imports: ["cprime", "seeding"] for a file of the folder seeding.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name == "cprime" or name.startswith("cprime."):
                yield node.lineno, name.removeprefix("cprime").removeprefix(".")


def room_of(name: str, rooms: set[str]) -> str:
    """Return the package of an imported name; "" if it belongs to cprime itself, as KMeans does."""
    first = name.split(".")[0]
    return first if first in rooms or first == "_core" else ""


def violations(package: Path) -> list[str]:
    """Return the violations of the rules in the Python files of a package's folder."""
    found = []
    files = sorted(package.rglob("*.py"))
    rooms = {path.relative_to(package).parts[0].removesuffix(".py") for path in files} - {"__init__"}
    unknown = {room for room in rooms if not room.startswith("_") and room not in LEVEL}
    found += [f"{room}: on no line of LAYERS" for room in sorted(unknown)]
    uses: dict[str, set[str]] = {room: set() for room in rooms}
    for path in files:
        file = path.relative_to(package)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                found.append(f"{file}:{node.lineno}: calls print")
        room = file.parts[0].removesuffix(".py")
        for line, name in imported_names(tree, ["cprime", *file.parts[:-1]]):
            target = room_of(name, rooms)
            if target == "_core" and not file.match("kernels/*.py"):
                found.append(f"{file}:{line}: only kernels may import _core")
            if (
                room == "__init__"
                or name == "__version__"
                or target == room
                or {room, target} & unknown
                or (room, target) in DOORS
            ):
                continue
            if level_of(target) < level_of(room):
                found.append(f"{file}:{line}: {room} may not import {target or 'cprime'}, which is above it")
            elif level_of(target) == level_of(room):
                uses[room].add(target)
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as error:
        found.append(f"imports go in a circle: {' < '.join(error.args[1])}")
    return found


def too_long(files: list[Path]) -> list[str]:
    lengths = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    return [f"{file}: {length} lines" for file, length in lengths.items() if length > MOST_LINES]


def not_portable(files: list[Path]) -> list[str]:
    return [str(file) for file in files if NOT_PORTABLE.search(file.read_text(encoding="utf-8"))]


def test_imports_point_down():
    assert violations(ROOT / "src" / "cprime") == []


def test_files_are_short():
    suffixes = {".py", ".pyi", ".cpp", ".h"}
    folders = [ROOT / name for name in ("src", "cpp", "tests", "benchmarks")]
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in suffixes]
    assert ROOT / "cpp" / "module.cpp" in files
    assert Path(__file__) in files
    assert too_long(files) == []


def test_the_build_suits_every_processor_and_has_no_openmp():
    files = [ROOT / "CMakeLists.txt", ROOT / "pyproject.toml", ROOT / "Makefile", *(ROOT / "cpp").iterdir()]
    assert not_portable(files) == []


LEGAL = {
    "__init__.py": "from cprime.estimators import KMeans",
    "_utils/threads.py": "import os",
    "__main__.py": "from cprime.cli import main",
    "cli/app.py": "import cprime\nfrom cprime import KMeans\nfrom cprime.datasets import patches",
    "theory.py": "from cprime import KMeans\nfrom cprime.em import fit",
    "datasets/data.py": "import numpy",
    "estimators/kmeans.py": "from cprime import em, persistence\nfrom .validation import check",
    "estimators/base.py": "from ..search import Full",
    "estimators/validation.py": "from cprime._utils.threads import resolve_threads",
    "persistence/model_files.py": "from cprime import __version__",
    "em.py": "from . import kernels\nfrom cprime.model.tied import Tied",
    "seeding/start.py": "from cprime.execution import Data",
    "execution/local.py": "from cprime.sources import ahead\nfrom cprime.execution.statistics import merge",
    "search/full.py": "from cprime import kernels\nfrom cprime.neighbors import Cells",
    "report/page.py": "from cprime.estimators import KMeans",
    "estimators/savable.py": "def report(self):\n    from cprime.report import report_of",
    "execution/block.py": "from cprime.execution.statistics import merge",
    "neighbors/cells.py": "from cprime import kernels\nfrom cprime.execution import block",
    "sources/ahead.py": "import numpy",
    "model/tied.py": "from cprime.execution.statistics import Sums",
    "execution/statistics.py": "import numpy",
    "kernels/__init__.py": "from cprime.kernels.nearest import nearest",
    "kernels/nearest.py": "from cprime import _core\nfrom cprime._utils.threads import resolve_threads",
    "kernels/partial.py": "from cprime import _core",
}

ILLEGAL = [
    ("em.py", "from cprime.estimators import KMeans", "em.py:1: em may not import estimators"),
    ("em.py", "import cprime.estimators.kmeans", "em.py:1: em may not import estimators"),
    ("em.py", "def fit():\n    from cprime import cli", "em.py:2: em may not import cli"),
    ("em.py", "from cprime import KMeans", "em.py:1: em may not import cprime"),
    ("em.py", "import cprime", "em.py:1: em may not import cprime"),
    ("search/full.py", "from ..seeding import place", "search/full.py:1: search may not import seeding"),
    ("search/full.py", "from .. import em", "search/full.py:1: search may not import em"),
    (
        "estimators/a.py",
        "from cprime import datasets",
        "estimators/a.py:1: estimators may not import datasets",
    ),
    (
        "persistence/a.py",
        "from cprime.estimators import KMeans",
        "persistence/a.py:1: persistence may not import estimators",
    ),
    ("datasets/data.py", "from cprime.cli import app", "datasets/data.py:1: datasets may not import cli"),
    ("kernels/a.py", "from cprime.search import full", "kernels/a.py:1: kernels may not import search"),
    ("_utils/a.py", "from cprime import kernels", "_utils/a.py:1: _utils may not import kernels"),
    ("neighbors/a.py", "from cprime.model import Model", "neighbors/a.py:1: neighbors may not import model"),
    ("execution/a.py", "from cprime import neighbors", "imports go in a circle: "),
    ("neighbors/near.py", "from .._core import nearest", "neighbors/near.py:1: only kernels may"),
    ("em.py", "import cprime._core", "em.py:1: only kernels may import _core"),
    ("__init__.py", "from cprime import _core", "__init__.py:1: only kernels may import _core"),
    ("helpers.py", "import os", "helpers: on no line of LAYERS"),
    ("em.py", "def fit():\n    print('x')", "em.py:2: calls print"),
]


def write(package: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, encoding="utf-8")
    return package


def test_checker_passes_a_legal_package(tmp_path):
    assert violations(write(tmp_path, LEGAL)) == []


@pytest.mark.parametrize(("file", "text", "expected"), ILLEGAL)
def test_checker_sees_a_violation(tmp_path, file, text, expected):
    found = violations(write(tmp_path, {**LEGAL, file: text}))
    assert len(found) == 1
    assert found[0].startswith(expected)


def test_checker_sees_long_and_unportable_files(tmp_path):
    write(tmp_path, {"short.py": "\n" * 800, "long.py": "\n" * 801})
    assert too_long(sorted(tmp_path.iterdir())) == [f"{tmp_path / 'long.py'}: 801 lines"]
    flags = ["-march=native", "-mtune=native", "-fopenmp", "#pragma omp parallel", "OpenMP::OpenMP_CXX"]
    for number, flag in enumerate(flags):
        write(tmp_path / "cpp", {f"{number}.txt": f"x {flag} y"})
    assert len(not_portable(list((tmp_path / "cpp").iterdir()))) == len(flags)
    assert not_portable([tmp_path / "short.py"]) == []
