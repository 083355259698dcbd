"""The gallery: docstrings of the examples with the pictures and lines that a run has left. Runs nothing itself."""

import ast
from pathlib import Path

from examples import EXAMPLES
from examples.result import file_name

_INTRODUCTION = """# Examples

Each is a short script in [examples/](../../examples); this page is made of their docstrings and of what they wrote, by
`python -m examples page`, and not edited. `make examples` runs them all."""


def described(module: str) -> tuple[str, str]:
    """Title and text of an example, from its docstring; it is not imported, for it may want what is not installed."""
    source = Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8")
    title, _, text = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    return title, text.strip()


def write(folder: Path) -> Path:
    """Write README.md into a folder of results.

    Raises FileNotFoundError where there are none.
    """
    made = [module for module in EXAMPLES if (folder / f"{file_name(module)}.txt").is_file()]
    if not made:
        raise FileNotFoundError(f"{folder} has no results of examples: python -m examples --all --output {folder}")
    parts = [_INTRODUCTION, *(_section(folder, module) for module in made)]
    missing = [f"`{file_name(module)}`" for module in EXAMPLES if module not in made]
    if missing:
        parts.append(f"Not run here: {', '.join(missing)}.")
    path = folder / "README.md"
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def _section(folder: Path, module: str) -> str:
    name, (title, text) = file_name(module), described(module)
    lines = (folder / f"{name}.txt").read_text(encoding="utf-8").rstrip()
    command = f"```sh\npython -m examples {name}\n```"
    return "\n\n".join([f"## {title}", text, f"![{title}]({name}.png)", f"```text\n{lines}\n```", command])
