"""Documentation pages: one is written from a results file alone, and tables are filled into a page of prose."""

import os
import re
from pathlib import Path

from benchmarks.measures import MEASURES, scale
from benchmarks.records import Record, read
from benchmarks.tables import grouped

_INTRODUCTION = """# Benchmarks

This page is made from [{results}]({results}) by `python -m benchmarks page`: measured figures, not edited.

Every competitor is called through a small adapter (`benchmarks/peers/`) in a process of its own, with the same float32
data, the same number of threads and, where it takes one, the same start: distinct random rows, drawn anew for each
round. Where it makes its own start, that is timed with the rest. A peer that multiplies matrices by OpenBLAS is given
the kernels that it is fastest with (`benchmarks/blas.py`) where its own choice is slower. Competitors take turns, round
by round. What a result is worth is computed from the centers that came back, over all centers and from differences,
never taken from a peer's report.

`make bench` runs a short profile in at most ten minutes on two processors, `make bench-full` the whole.
`python -m benchmarks time-to-quality --data my.npy -C 5000` compares on a file of your own, and
`python -m benchmarks --help` has the rest."""


def write(results: Path, page: Path) -> None:
    """Write the page, and its figures into a folder of the same name beside it.

    Raises ValueError if the file has no machine or no measurements.
    """
    records = read(results)
    headers = [record for record in records if record["measure"] == "machine"]
    measured = [record for record in records if record["measure"] in MEASURES]
    unknown = {record["measure"] for record in records} - {*MEASURES, "machine"}
    if unknown:
        raise ValueError(f"{results} has records of unknown measures: {', '.join(sorted(unknown))}")
    if not headers or not measured:
        raise ValueError(f"{results} must have a line for the machine and records after it")
    folder = page.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    link = Path(os.path.relpath(results, page.parent)).as_posix()
    parts = [_INTRODUCTION.format(results=link), "## The machine", *map(machine, _distinct(headers))]
    for name, module in MEASURES.items():
        mine = [record for record in measured if record["measure"] == name]
        if not mine:
            continue
        parts += [f"## {module.TITLE}", _description(module.__doc__)]
        for group in grouped(mine, "command"):
            parts.append(f"```sh\npython -m benchmarks {group[0]['command']}\n```")
            parts.append(module.report(group))
            for key, figure in module.figures(group).items():
                path = _free(folder / f"{key}.png")
                figure.savefig(path, dpi=200)
                parts.append(f'<img src="{folder.name}/{path.name}" width="525" alt="{module.TITLE}: {key}">')
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


_TABLE = re.compile(r"(<!-- scale: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill(results: Path, page: Path) -> None:
    """Replace the marked tables of a prose page by those of the measure `scale`, and draw its figure beside the page.

    Raises ValueError for an unknown mark, or if the file has no such records.
    """
    records = read(results)
    mine = [record for record in records if record["measure"] == "scale"]
    if not mine or records[0]["measure"] != "machine":
        raise ValueError(f"{results} must have a line for the machine and records of the measure scale")
    command = f"```sh\npython -m benchmarks {mine[0]['command']}\n```"
    found = {"machine": machine(records[0]), "command": command, **scale.tables(mine)}
    text = page.read_text(encoding="utf-8")
    for _, name, _ in _TABLE.findall(text):
        if name not in found:
            raise ValueError(f"{page} wants {name}: it can have {', '.join(found)}")
    page.write_text(_TABLE.sub(lambda at: f"{at[1]}\n{found[at[2]]}\n\n{at[3]}", text), encoding="utf-8")
    for name, figure in scale.figures(mine).items():
        figure.savefig(results.with_name(f"{name}.png"), dpi=150)


def _description(text: str | None) -> str:
    return (text or "").strip()


def _free(path: Path) -> Path:
    """Return the path, with a number appended if this file exists."""
    number = 2
    while path.exists():
        path = path.with_stem(f"{path.stem.removesuffix(f'-{number - 1}')}-{number}")
        number += 1
    return path


def _distinct(headers: list[Record]) -> list[Record]:
    """Return the first run of each machine in each state."""
    return [group[0] for group in grouped(headers, "processor", "threads", "kernels", "commit")]


def machine(header: Record) -> str:
    """Return a sentence that describes the machine of a run."""
    versions = ", ".join(
        f"{name} {version}" if version else f"{name} not installed" for name, version in header["versions"].items()
    )
    memory = f", {header['memory_gb']:g} GB" if header["memory_gb"] else ""
    commit = f" (commit {header['commit']})" if header["commit"] else ""
    return (
        f"{header['date']}: {header['processor']}, {header['architecture']}, {header['threads']} thread(s){memory},"
        f" {header['system']}; kernels for {header['kernels']}, sgemm {header['sgemm_gflops']:.0f} GFLOP/s, one"
        f" threaded read {header['read_gb_per_second']:.1f} GB/s; Python {header['python']}, NumPy {header['numpy']},"
        f" {versions}{commit}."
    )
