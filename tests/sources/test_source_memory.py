"""A pass over a folder needs memory only for the requested blocks, not for the whole folder."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

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


@pytest.mark.skipif(not STATM.exists(), reason="resident memory is read from /proc")
@pytest.mark.parametrize("format", [pytest.param("parquet", marks=pytest.mark.long), "npy"])
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
