"""The installed package: few modules loaded by an import, one version, and stubs that match the compiled core."""

import ast
import json
import subprocess
import sys
from importlib import metadata, resources

import pytest

import cprime
from cprime import _core

OPTIONAL = {"matplotlib", "pandas", "polars", "pyarrow", "PIL", "rich", "click", "torch"}


def imported_by(*statements: str) -> set[str]:
    """Return the top-level modules that the last of some statements loads in a new interpreter."""
    *first, last = statements
    before = "\n".join([*first, "import json, sys; before = set(sys.modules)"])
    code = f"{before}\n{last}\nsys.stdout.write(json.dumps([*(set(sys.modules) - before)]))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in json.loads(run.stdout)}


def test_import_of_the_package_is_light():
    modules = imported_by("import cprime")
    assert "cprime" in modules
    assert modules & (OPTIONAL | {"numpy", "scipy", "sklearn", "safetensors"}) == set()


@pytest.mark.long
def test_import_of_the_estimators_adds_nothing_optional_to_scikit_learn():
    modules = imported_by("import sklearn.cluster", "from cprime import KMeans, GaussianMixture")
    assert "cprime" in modules
    assert not modules & OPTIONAL


def test_version_is_the_installed_one():
    assert cprime.__version__ == metadata.version("cprime")


def test_every_public_name_is_there():
    assert [name for name in cprime.__all__ if not hasattr(cprime, name)] == []
    assert set(cprime.__all__) <= set(dir(cprime))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = cprime.no_such_name


def test_types_are_shipped():
    assert resources.files("cprime").joinpath("py.typed").is_file()


def test_stub_names_what_the_core_has():
    stub = ast.parse(resources.files("cprime").joinpath("_core.pyi").read_text(encoding="utf-8"))
    defined = {node.name for node in stub.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    defined |= {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}
    assert {name for name in defined if not name.startswith("_")} == {
        name for name in dir(_core) if not name.startswith("_")
    }
