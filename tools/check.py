"""`make check`: format, types and the quick tests of the files that changed, in about a minute.

Changed files differ from the last common commit with main, committed or not; if there are none, the last commit counts.
Tests of a package are those in its folders, and those that import a changed module by its name. `make test` runs all.
"""

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS, PACKAGE = ROOT / "tests", Path("src/cprime")
ALWAYS = ("test_layering.py",)
ROOMS = {  # folders and files of tests by the package or module they test, if their names differ
    "block.py": ("em", "execution"),
    "components.py": ("model", "search"),
    "em": ("em", "theory", "mixtures"),
    "estimators": ("estimators", "test_threads.py"),
    "faiss": ("faiss_bridge",),
    "fuzzy.py": ("family",),
    "kernels": ("contracts",),
    "medoids.py": ("family",),
    "model": ("model", "mixtures", "em"),
    "neighbors": ("search", "seeding"),
    "search": ("search",),
    "sklearn": ("dropin",),
    "statistics.py": ("em", "execution"),
    "storage.py": ("test_storage.py", "test_storage_searches.py", "checkpoints"),
    "theory": ("theory", "hard_and_soft"),
    "_storable.py": ("test_storage.py", "test_storage_searches.py", "checkpoints"),
    "_threads.py": ("test_threads.py",),
}
PLACES = {
    "benchmarks": "benchmarks",
    "cpp": "contracts",
    "docs": "site",
    "examples": "examples",
    "reliability": "fuzz",
    "reproduction": "reproduction",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="make check", description=__doc__)
    parser.add_argument("--list", action="store_true", help="what would be run, and nothing else")
    given, options = parser.parse_known_args()
    changed = changes()
    tests = sorted({*map(str, tests_of(changed)), *(f"tests/{name}" for name in ALWAYS)})
    print(f"{len(changed)} files have changed: {' '.join(tests)}", flush=True)
    if given.list:
        return 0
    python = [path for path in changed if path.suffix in (".py", ".pyi") and (ROOT / path).exists()]
    compiled = [path for path in changed if path.match("cpp/*") and path.suffix != ".md" and (ROOT / path).exists()]
    steps = [
        (python, "ruff", "check"),
        (python, "ruff", "format", "--check"),
        (compiled, "clang-format", "--dry-run", "--Werror"),
        (None, "mypy"),
        (tests, "pytest", "-n", "logical", "-m", "not long", *options),
    ]
    for files, name, *arguments in steps:
        if files != []:
            command = [Path(sys.executable).parent / name, *arguments, *(files or ())]
            status = subprocess.run(command, cwd=ROOT, check=False).returncode
            if status:
                return status
    return 0


def git(*arguments: str) -> list[str]:
    return subprocess.check_output(["git", *arguments], cwd=ROOT, text=True).splitlines()


def changes() -> list[Path]:
    """Return files that differ from main, or from the commit before the last one if none does."""
    base = git("merge-base", "HEAD", "main")[0]
    new = git("ls-files", "--others", "--exclude-standard")
    found = git("diff", "--name-only", base) + new or git("diff", "--name-only", "HEAD~1")
    return sorted(map(Path, found))


def tests_of(changed: Iterable[Path]) -> set[Path]:
    """Return folders and files of tests, relative to the root."""
    found, modules = set[Path](), set[str]()
    for path in changed:
        if path.is_relative_to(PACKAGE):
            inside = path.relative_to(PACKAGE)
            room = inside.parts[0]
            names = ROOMS.get(room, (room, f"test_{room}"))
            found.update(Path("tests") / name for name in names if (TESTS / name).exists())
            modules.add(".".join(["cprime", *inside.with_suffix("").parts]).removesuffix(".__init__"))
        elif path.parts[0] == "tests":
            alone = path.name.startswith("test_") and path.suffix == ".py"
            found.add(path if alone else path.parent)
        elif path.parts[0] in PLACES:
            found.add(Path("tests") / PLACES[path.parts[0]])
    found.update(importers(modules))
    found.discard(Path("tests"))  # files shared by all tests: `make test`
    return {path for path in found if (ROOT / path).exists() and found.isdisjoint(path.parents)}


def importers(modules: set[str]) -> Iterable[Path]:
    """Yield the test files that import one of these modules by its full name."""
    for file in sorted(TESTS.rglob("test_*.py")):
        names = set[str]()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.update([node.module, *(f"{node.module}.{alias.name}" for alias in node.names)])
        if any(module in names and module.count(".") > 1 for module in modules):
            yield file.relative_to(ROOT)


if __name__ == "__main__":
    sys.exit(main())
