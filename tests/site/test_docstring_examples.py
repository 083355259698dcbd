"""Every public name has an example and is on the API page, and every docstring example prints the stated output."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest
from page_reading import DOCS
from sklearn.base import BaseEstimator

import cprime

# Names for internal use or for authors of searches and starts, and names that are documented elsewhere.
NOT_HERE = {
    "cprime.callbacks": {"resolve", "shown"},
    "cprime.search": {"Look", "Lookup", "Sample", "Search", "SearchStats"},
    "cprime.selection": {"DPMeans", "GMeans", "MixtureClassifier", "XMeans"},
    "cprime.seeding": {"OwnStart", "Start", "is_given", "place", "seed", "start"},
    "cprime.sources": {
        *("SparseSource", "ahead", "array_of", "as_matrix", "is_source_like", "open_data", "reopened", "unmasked"),
    },
    "cprime.report": {"Light", "Names", "State", "report_of"},
}
NEEDED = {
    "faiss": ("faiss",),
    "report": ("jinja2", "PIL"),
    "plots": ("matplotlib",),
    "photographs": ("PIL",),
    "tl": ("anndata",),
}
SLOW = ("cprime.theory.divergence", "cprime.theory.loss")


def documented() -> dict[str, set[str]]:
    """Return the names listed in docs/api.rst by their module."""
    found: dict[str, set[str]] = {}
    module = ""
    for line in (DOCS / "api.rst").read_text(encoding="utf-8").splitlines():
        if head := re.match(r"\.\. currentmodule:: (\S+)$", line):
            module = head[1]
        elif name := re.match(r"   (\w+)$", line):
            found.setdefault(module, set()).add(name[1])
    return found


def with_examples() -> list[object]:
    """Return the modules of the package with an example, marked as long if they integrate densities."""
    folder = Path(cprime.__file__).parent
    found = []
    for path in sorted(folder.rglob("*.py")):
        name = ".".join(["cprime", *path.relative_to(folder).with_suffix("").parts]).removesuffix(".__init__")
        if ">>> " in path.read_text(encoding="utf-8"):
            found.append(pytest.param(name, marks=pytest.mark.long if name in SLOW else ()))
    return found


# A Source is created by open_data, which has the example.
NAMES = [(module, name) for module, names in documented().items() for name in sorted(names) if name != "Source"]
PUBLIC = ["cprime", *(f"cprime.{room}" for room in (*cprime._PACKAGES, "report", "sources"))]


@pytest.fixture
def module(request) -> str:
    """Return the name of a module; skip if a required library is not installed."""
    for room, libraries in NEEDED.items():
        for library in libraries if room in request.param.split(".") else ():
            pytest.importorskip(library)
    return request.param


@pytest.mark.parametrize(("module", "name"), NAMES, indirect=["module"])
def test_every_name_has_an_example(module, name):
    assert ">>> " in (inspect.getdoc(getattr(importlib.import_module(module), name)) or "")


@pytest.mark.parametrize("module", PUBLIC, indirect=True)
def test_every_public_name_is_on_the_page(module):
    room = importlib.import_module(module)
    public = {name for name in room.__all__ if name[0] != "_"}
    public -= {name for name in public if inspect.ismodule(getattr(room, name))}
    assert public - NOT_HERE.get(module, set()) <= documented()[module]
    assert documented()[module] <= set(room.__all__)
    if module != "cprime.faiss":  # which also offers every name of faiss
        assert dir(room) == sorted(room.__all__)


@pytest.mark.parametrize("module", with_examples(), indirect=True)
def test_examples_are_right(module):
    results = doctest.testmod(importlib.import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize(("module", "name"), NAMES, indirect=["module"])
def test_every_parameter_and_attribute_of_an_estimator_is_described(module, name):
    found = getattr(importlib.import_module(module), name)
    if inspect.isclass(found) and issubclass(found, BaseEstimator) and "Parameters\n" in (inspect.getdoc(found) or ""):
        text = inspect.getdoc(found).partition("See Also\n")[0].partition("Notes\n")[0]
        assert re.findall(r"^(\w+) : .*\n(?! {4})", text, re.MULTILINE) == []
