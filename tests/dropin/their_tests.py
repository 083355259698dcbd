"""scikit-learn's own tests, read from the installed package, with its classes replaced by this library's."""

import ast
import importlib.util
import sys
from types import ModuleType

import pytest

import cprime.sklearn

NAMES = {name for name in cprime.sklearn.__all__ if name not in ("patch", "unpatch")}


def with_ours(source: str) -> ast.Module:
    """Return the parsed source with imports of estimators redirected from scikit-learn to this library."""
    tree = ast.parse(source)
    for node in list(ast.walk(tree)):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for i, statement in reversed(list(enumerate(body))):
            if isinstance(statement, ast.ImportFrom) and statement.module in ("sklearn.cluster", "sklearn.mixture"):
                ours = [alias for alias in statement.names if alias.name in NAMES]
                rest = [alias for alias in statement.names if alias.name not in NAMES]
                found = [
                    ast.ImportFrom(module, names, 0)
                    for module, names in ((statement.module, rest), ("cprime.sklearn", ours))
                    if names
                ]
                body[i : i + 1] = [ast.copy_location(new, statement) for new in found]
    return ast.fix_missing_locations(tree)


def own_tests(path: str) -> ModuleType:
    """Return scikit-learn's test module of this dotted name, with this library's classes."""
    spec = importlib.util.find_spec(path)
    assert spec is not None
    assert spec.origin is not None
    with open(spec.origin, encoding="utf-8") as file:
        code = compile(with_ours(file.read()), spec.origin, "exec")
    module = ModuleType(f"dropin.{path}")
    sys.modules[module.__name__] = module
    exec(code, module.__dict__)
    return module


def functions_of(path: str) -> dict[str, object]:
    """Return the test functions of a scikit-learn module by name, to be added to the globals of a test module here."""
    tests = {name: value for name, value in vars(own_tests(path)).items() if name.startswith("test_")}
    for test in tests.values():
        marks = getattr(test, "pytestmark", [])
        test.pytestmark = [
            pytest.mark.parametrize(mark.args[0], list(mark.args[1]), *mark.args[2:], **mark.kwargs)
            if mark.name == "parametrize"  # its values may come from a generator, which newer pytests refuse
            else mark
            for mark in marks
        ]
    return tests
