"""The checker of docstrings and comments finds bad phrases, and no others."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "tools" / "language.py"
pytestmark = pytest.mark.skipif(not PATH.exists(), reason="the tools are not part of a source distribution")


@pytest.fixture(scope="module")
def language():
    spec = importlib.util.spec_from_file_location("language", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("code", "rules"),
    [
        ('def f():\n    """Return the sum."""', []),
        ('def f():\n    """Of rows that differ, the first."""', ["opening"]),
        ('def f():\n    """The same in double precision."""', ["opening"]),
        ('def f():\n    """Theorem 3 holds."""', []),
        ('"""What the tests share."""', []),
        ("x = 1  # is asked once", ["phrase"]),
        ("x = '# is asked once'", []),
        ("class _Kept:\n    pass", ["participle"]),
        ("class KeptIds:\n    pass", []),
    ],
)
def test_phrases_are_found_in_code(language, code, rules):
    assert [hit.rule for hit in language.hits_of_code(Path("f.py"), code)] == rules


def test_subjects_of_more_than_72_characters_are_found(language, monkeypatch):
    log = f"abc {'x' * 72}\ndef {'x' * 73}\n"
    monkeypatch.setattr(language.subprocess, "run", lambda *args, **options: type("Log", (), {"stdout": log}))
    assert [hit.place for hit in language.hits_of_commits("abc")] == ["def"]
