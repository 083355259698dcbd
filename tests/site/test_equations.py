"""The page of equations has every number of the sources; each row has a test of its own, which runs the row's calls."""

import ast
import re

import pytest
from page_reading import DOCS

import cprime

PAGE = (DOCS / "equations.md").read_text(encoding="utf-8")
SECTIONS = {part[:3]: part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE) if part.startswith("[")}
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| `(test_\w+)` \|$", re.MULTILINE)
ROWS = [(source, *cells) for source, text in SECTIONS.items() for cells in ROW.findall(text)]
TESTS = DOCS.parent / "tests" / "equations"


def definitions(file):
    """Return the functions and the constants that a file of tests defines, as syntax trees by name."""
    found = {}
    for node in ast.parse((TESTS / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            found |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
    return found


def defined(source):
    """Return the definitions of the file that a section of the page names."""
    (file,) = re.findall(r"`tests/equations/(test_\w+\.py)`", SECTIONS[source])
    return definitions(file)


def used_by(test, known):
    """Return the names and attributes in a test, and in the functions and constants in `known` that it uses."""
    found, rest, seen = set(), {test}, set()
    while rest:
        seen |= rest
        nodes = [inner for name in rest for inner in ast.walk(known[name])]
        found |= {node.id for node in nodes if isinstance(node, ast.Name)}
        found |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        rest = (found & known.keys()) - seen
    return found


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[L]", [str(n) for n in range(1, 32) if n not in (10, 11, 24, 25)]),
        ("[F]", [str(n) for n in range(1, 14)]),
        ("[B]", [f"9.{n}" for n in range(1, 30)]),
        ("[M]", ["20.7", "20.8", "20.9", *(f"22.{n}" for n in range(22, 29))]),
        ("[K]", [str(n) for n in range(1, 53)]),
    ],
)
def test_every_number_has_one_row(source, expected):
    numbers = [row[1].strip() for row in ROWS if row[0] == source]
    assert [each for each in numbers if re.fullmatch(r"[\d.]+", each)] == expected


def test_each_row_has_a_test_of_its_own_and_each_test_a_row():
    for source in SECTIONS:
        named = [row[4] for row in ROWS if row[0] == source]
        tests = [name for name in defined(source) if name.startswith("test_")]
        assert sorted(named) == sorted(tests)
        for row in ROWS:
            if row[0] == source and re.fullmatch(r"[\d.]+", row[1].strip()):
                assert row[4].startswith(f"test_{row[1].strip().replace('.', '_')}_")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[4]}")
def test_the_test_of_a_row_runs_its_calls(row):
    source, _, _, calls, test = row
    used = used_by(test, defined(source) | definitions("mixtures_of_rows.py"))
    named = re.findall(r"`([^`]+)`", calls)
    assert named
    for call in named:
        *owners, name = call.split(".")
        assert {name, *owners} - used <= {"theory", "search"}, call


@pytest.mark.parametrize("call", sorted({code for row in ROWS for code in re.findall(r"`([^`]+)`", row[3])}))
def test_a_call_exists(call):
    owner, _, name = call.rpartition(".")
    found = cprime
    for part in filter(None, owner.split(".")):
        found = getattr(found, part)
    assert hasattr(found, name) or (name.endswith("_") and re.search(rf"\b{name}\b.* : ", found.__doc__)), call
