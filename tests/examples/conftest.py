"""The folder from which `examples` is imported, and what a test asks of an example."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


@pytest.fixture
def run(tmp_path, capsys):
    """Runs an example on little data, in a folder that it makes, and gives its lines: `run("old_faithful", "PIL")`."""

    def lines(module: str, *wanted: str) -> list[str]:
        for library in ("matplotlib", *wanted):
            pytest.importorskip(library)
        name, folder = module.replace("_", "-"), tmp_path / "made" / "here"
        importlib.import_module(f"examples.{module}").main(folder, small=True)
        assert sorted(path.name for path in folder.iterdir()) == [f"{name}.png", f"{name}.txt"]
        assert (folder / f"{name}.png").stat().st_size > 10_000
        text = (folder / f"{name}.txt").read_text(encoding="utf-8")
        assert capsys.readouterr().out == text
        return text.splitlines()

    return lines
