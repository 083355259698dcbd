"""What an example leaves: one picture, and the lines it says, printed and as text. Knows no particular example."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

_DPI = 150


def file_name(module: str) -> str:
    """Of the module examples.old_faithful: "old-faithful", as on the command line and in the names of files."""
    return module.rpartition(".")[2].replace("_", "-")


def write(output: Path, module: str, figure: Figure, lines: Iterable[str]) -> None:
    """Print the lines, and write them and the figure into the folder, under the name of the example."""
    text = "\n".join(lines)
    print(text)
    output.mkdir(parents=True, exist_ok=True)
    figure.savefig(output / f"{file_name(module)}.png", dpi=_DPI)
    (output / f"{file_name(module)}.txt").write_text(text + "\n", encoding="utf-8")


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table: the first column to the left, the others to the right."""
    cells = [tuple(headings), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(f"{cell:{'>' if i else '<'}{width}}" for i, (cell, width) in enumerate(zip(row, widths, strict=True)))
        for row in cells
    ]
