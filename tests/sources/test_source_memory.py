"""Memory of passes: a pass over a folder needs only that of the requested blocks; parsers read memory of Arrow."""

import gc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cprime.sources import open_data

STATM = Path("/proc/self/statm")
SCRIPT = """
import resource, sys
from pathlib import Path
import pyarrow.parquet
from cprime.sources import ahead, open_data

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20

source = open_data(sys.argv[1], chunk_rows=50_000)
start = most = resident()
ranges = [(a, min(a + 50_000, source.n_rows)) for a in range(0, source.n_rows, 50_000)]
for _ in range(2):
    for block in ahead(source, ranges):
        most = max(most, resident())
for begin, end in ranges:
    block = source.read(begin, end)
    most = max(most, resident())
source.take(range(0, source.n_rows, 1000))
most = max(most, resident())
sys.stdout.write(f"{source.n_bytes / 2**20} {most - start}")
"""


@pytest.mark.long
@pytest.mark.skipif(not STATM.exists(), reason="resident memory is read from /proc")
@pytest.mark.parametrize("format", ["parquet", "npy"])
def test_resident_memory_stays_flat(format, tmp_path):
    X = np.zeros((400_000, 64), "f4")
    for number in range(3):
        if format == "npy":
            np.save(tmp_path / f"{number}.npy", X)
        else:
            pa = pytest.importorskip("pyarrow")
            table = pa.table({str(j): X[:, j] for j in range(64)})
            pytest.importorskip("pyarrow.parquet").write_table(
                table, tmp_path / f"{number}.parquet", row_group_size=100_000, use_dictionary=False, compression=None
            )
    ran = subprocess.run([sys.executable, "-c", SCRIPT, tmp_path], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    stored, grown = map(float, ran.stdout.split())
    assert stored > 290
    assert grown < 150


@pytest.mark.long
@pytest.mark.parametrize(("format", "parser"), [("csv", "read_csv"), ("jsonl", "read_json")])
def test_text_is_parsed_in_memory_that_arrow_can_free_alone(format, parser, tmp_path, monkeypatch):
    """A thread of Arrow that frees memory of Python while the interpreter ends would abort the process."""
    module = pytest.importorskip(f"pyarrow.{'csv' if format == 'csv' else 'json'}")
    lines = ["a,b", *["0.5,0.25"] * 5000] if format == "csv" else ['{"a": 0.5, "b": 0.25}'] * 5000
    (tmp_path / f"x.{format}").write_text("".join(f"{line}\n" for line in lines))
    parse, kept = getattr(module, parser), []

    def keep(stream, *options):
        kept.append(stream)
        return parse(stream, *options)

    monkeypatch.setattr(module, parser, keep)
    open_data(tmp_path / f"x.{format}").select(["a", "b"]).read(0, 5000)
    n_bytes = sum(stream.size() for stream in kept)
    total = pytest.importorskip("pyarrow").total_allocated_bytes
    allocated = total()
    kept.clear()
    gc.collect()
    assert n_bytes > 0
    assert allocated - total() >= n_bytes
