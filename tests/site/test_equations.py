"""The page of equations has every number of the sources; its calls exist, and the tests that it names are collected."""

import ast
import re

import numpy as np
import pytest
from page_reading import DOCS

import cprime

PAGE = (DOCS / "equations.md").read_text(encoding="utf-8")
SECTIONS = {part[:3]: part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE) if part.startswith("[")}
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
ROWS = [(source, *cells) for source, text in SECTIONS.items() for cells in ROW.findall(text)[1:]]
TESTS = DOCS.parent / "tests"


def numbers(source):
    return [text.strip() for row in ROWS if row[0] == source for text in row[1].split(",")]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[L]", [str(n) for n in range(1, 32)]),
        ("[F]", [str(n) for n in range(1, 14)]),
        ("[B]", [f"9.{n}" for n in range(1, 7)]),
        ("[K]", [str(n) for n in range(1, 53) if n != 2]),
    ],
)
def test_every_number_has_one_row(source, expected):
    assert numbers(source) == expected


def test_the_page_is_read():
    assert set(SECTIONS) == {"[L]", "[F]", "[B]", "[K]", "[E]"}
    assert len(ROWS) > 75


@pytest.mark.parametrize("call", sorted({code for row in ROWS for code in re.findall(r"`([^`]+)`", row[3])}))
def test_a_call_exists(call):
    owner, _, name = call.rpartition(".")
    found = cprime
    for part in filter(None, owner.split(".")):
        found = getattr(found, part)
    assert hasattr(found, name) or (name.endswith("_") and re.search(rf"\b{name}\b.* : ", found.__doc__)), call


@pytest.mark.parametrize("test", sorted({code for row in ROWS for code in re.findall(r"`([^`]+)`", row[4])}))
def test_a_test_is_collected(test):
    file, _, name = test.partition("::")
    functions = {node.name for node in ast.parse((TESTS / file).read_text()).body if isinstance(node, ast.FunctionDef)}
    assert name in functions


def test_every_row_has_a_call_and_a_test():
    cells = np.array([[bool(re.search("`", cell)) for cell in row[3:]] for row in ROWS])
    assert cells.all()
