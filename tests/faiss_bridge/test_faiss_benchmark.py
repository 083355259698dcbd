"""The benchmark of inverted files and its figure, on small data."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("faiss", reason="faiss is not installed")
pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


@pytest.mark.long
def test_both_are_trained_and_compared(tmp_path, rng, capsys, monkeypatch):
    from benchmarks.__main__ import main
    from benchmarks.records import read

    from benchmarks import blas, machine

    monkeypatch.setattr(machine, "sgemm_rate", partial(machine.sgemm_rate, n=64))
    monkeypatch.setattr(blas, "fastest", lambda *_: blas.OWN_CHOICE)  # the trial of its kernels takes seconds

    centers = 3 * rng.standard_normal((30, 8), dtype=np.float32)
    np.save(tmp_path / "x.npy", centers[rng.integers(0, 30, 1500)] + rng.standard_normal((1500, 8), dtype=np.float32))
    output = tmp_path / "results.jsonl"
    command = [
        "inverted-files",
        "--data",
        str(tmp_path / "x.npy"),
        "-C",
        "20",
        "--queries",
        "300",
        "--probes",
        "1,4,20",
    ]
    main([*command, "--ours", "3,10", "--size-max", "1.2x", "--threads", "1", "--output", str(output)])
    records = [record for record in read(output) if record["measure"] == "inverted-files"]
    assert [(record["trainer"], record["niter"], record.get("size_max")) for record in records] == [
        ("cprime", 3, None),
        ("cprime", 3, "1.2x"),
        ("cprime", 10, None),
        ("cprime", 10, "1.2x"),
        ("faiss", 10, None),
    ]
    for record in records:
        recall = [found["recall"] for found in record["search"]]
        assert recall == sorted(recall)
        assert recall[-1] > 0.99
        assert record["seconds"] > 0
        assert record["search"][-1]["visited"] == pytest.approx(1200)
        assert record["largest"] <= 1.2 or "size_max" not in record
    assert "times faster than faiss (niter=10)" in capsys.readouterr().out
    for figure in ("x.npy-20", "x.npy-20-visited"):
        assert (tmp_path / f"results-inverted-files-{figure}.png").stat().st_size > 10_000
