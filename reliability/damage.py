"""Damage one file in folders of several files: the result must be correct, or an error that names the file."""

import contextlib
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import cprime
from cprime.persistence import checkpoints
from reliability.properties import Wrong

NAMED = (ValueError, TypeError, OSError)

Generator = np.random.Generator


def _flip(path: Path, rng: Generator) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(rng.integers(1, 9)):
        content[rng.integers(len(content))] ^= 1 << rng.integers(8)
    path.write_bytes(content)


def _cut(path: Path, rng: Generator) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: rng.integers(len(content))])


def _lengthen(path: Path, rng: Generator) -> None:
    path.write_bytes(path.read_bytes() + rng.bytes(int(rng.integers(1, 100))))


def _overwrite(path: Path, rng: Generator) -> None:
    content = bytearray(path.read_bytes())
    begin = rng.integers(len(content))
    content[begin : begin + 64] = rng.bytes(len(content[begin : begin + 64]))
    path.write_bytes(content)


def _take_another(path: Path, rng: Generator) -> None:
    others = sorted(other for other in path.parent.rglob("*") if other.is_file())
    path.write_bytes(others[rng.integers(len(others))].read_bytes())


def _remove(path: Path, rng: Generator) -> None:
    path.unlink()


_DAMAGES: tuple[Callable[[Path, Generator], None], ...] = (_flip, _cut, _lengthen, _overwrite, _take_another, _remove)


def _attacked(whole: Path, seed: int, n_tries: int, judge: Callable[[Path], str]) -> str:
    """Damage one random file in each of many copies of a folder; return counts of the results of `judge`."""
    found: Counter[str] = Counter()
    names = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
    copy = whole.with_name("copy")
    for number in range(n_tries):
        rng = np.random.default_rng([seed, number])
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(whole, copy)
        damage = _DAMAGES[rng.integers(len(_DAMAGES))]
        name = names[rng.integers(len(names))]
        damage(copy / name, rng)
        try:
            found[judge(copy)] += 1
        except NAMED:
            found["refused"] += 1
        except Exception as error:
            raise Wrong(f"{damage.__name__[1:]} of {name}, number {number}: {error!r}") from error
    return f"{n_tries} damages: " + ", ".join(f"{n} {end}" for end, n in sorted(found.items()))


def parquet_folders(folder: Path, seed: int) -> str:
    """Damage files of Parquet folders and check that fits of readable rows are finite; return the counts as text."""
    import pyarrow as pa
    from pyarrow import parquet

    whole = folder / "parquet"
    whole.mkdir()
    rng = np.random.default_rng(seed)
    for number in range(4):
        columns = {f"x{j}": rng.standard_normal(200) for j in range(3)}
        path = whole / f"part-{number}.parquet"
        parquet.write_table(pa.table(columns), path, row_group_size=70, compression=("none", "zstd")[number % 2])

    def judge(path: Path) -> str:
        model = cprime.KMeans(3, init="random", max_iter=3, random_state=0, n_threads=1).fit(str(path))
        if not np.isfinite(model.cluster_centers_).all() or not np.isfinite(model.inertia_):
            raise Wrong("a fit that is not finite")
        return "fitted"

    return _attacked(whole, seed, 400, judge)


def checkpoint_folders(folder: Path, seed: int) -> str:
    """Damage files of checkpoints and check that resumed fits are bit-identical; return the counts as text."""
    X = np.random.default_rng(seed).standard_normal((900, 3))
    source = folder / "X.npy"
    np.save(source, X)
    whole = folder / "checkpoint"
    given: dict[str, Any] = {"init": "random", "tol": 0, "max_iter": 12, "random_state": 0, "n_threads": 1}
    chunks = cprime.open_data(source, chunk_rows=300)
    expected = cprime.KMeans(9, **given).fit(chunks)
    seen: list[Any] = []

    def stop(row: Any) -> None:
        seen.append(row)
        if len(seen) == 5:
            raise KeyboardInterrupt

    checkpoints._SHARE = float("inf")  # write a state after every pass
    with contextlib.suppress(KeyboardInterrupt):
        cprime.KMeans(9, **given, checkpoint=whole, callbacks=stop).fit(chunks)
    if not list(whole.glob("state-*")):
        raise Wrong("the fit has left no state")

    def judge(path: Path) -> str:
        model = cprime.resume(path)
        if not np.array_equal(model.labels_, expected.labels_) or model.inertia_ != expected.inertia_:
            raise Wrong("the fit ends in other bits")
        return "gone on with"

    return _attacked(whole, seed, 100, judge)
