"""Embeddings of narrow types: the generated data, their rounding, and the quality of fits of them."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.__main__ import main
from benchmarks.directions import STORED, directions
from benchmarks.peers import PEERS
from benchmarks.quality import inertia, mean_cosine
from benchmarks.records import read
from benchmarks.worker import Worker

from benchmarks import quality


def test_directions_have_length_one_and_what_is_asked_for():
    D = 24
    plain, falling, shared = (directions(3000, D, 20, *more) for more in ((), (0.6,), (0.0, 3.0)))
    for X in (plain, falling, shared):
        np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-5)
        assert X.dtype == np.float32
    spread, steep = (np.sqrt(np.linalg.eigvalsh(np.cov(X, rowvar=False)))[::-1] for X in (plain, falling))
    assert spread[0] / spread[-1] < steep[0] / steep[-1] / 2
    middle = np.polyfit(np.log(np.arange(1, D + 1)), np.log(steep), 1)[0]
    assert middle == pytest.approx(-0.6, abs=0.2)
    turned = np.abs(np.linalg.eigh(np.cov(falling, rowvar=False))[1][:, -1])
    assert turned.max() < 0.9  # the direction of largest variance is not a coordinate axis
    assert np.linalg.norm(shared.mean(axis=0)) > 2 * np.linalg.norm(plain.mean(axis=0))


def test_bytes_use_their_range_and_keep_angles_or_distances():
    X = directions(500, 16, 5, 0.6, 1.0)
    signed, unsigned = STORED["int8"](X), STORED["uint8"](X)
    assert (signed.dtype, unsigned.dtype) == (np.int8, np.uint8)
    assert np.abs(signed.astype(int)).max() == 127
    assert (unsigned.min(), unsigned.max()) == (0, 255)
    unit = signed / np.linalg.norm(signed.astype(float), axis=1, keepdims=True)
    assert (unit * X).sum(axis=1).min() > 0.999
    there, here = (np.linalg.norm(np.diff(rows.astype(float), axis=0), axis=1) for rows in (unsigned, X))
    np.testing.assert_allclose(there / 255, here / (X.max() - X.min()), atol=0.02)
    np.testing.assert_allclose(STORED["float16"](X), X, atol=1e-3)
    assert STORED["float32"](X) is X


@pytest.mark.parametrize("dtype", [np.float16, np.int8])
def test_narrow_rows_are_judged_in_pieces_as_wide_ones_at_once(dtype, rng, monkeypatch):
    X = (20 * rng.standard_normal((300, 6)) + 5).astype(dtype)
    centers = 20 * rng.standard_normal((7, 6), dtype=np.float32)
    monkeypatch.setattr(quality, "_BLOCK", 500)
    wide = X.astype(np.float64)
    squares = np.square(wide[:, np.newaxis] - centers).sum(axis=2).min(axis=1)
    cosines = wide @ centers.T / np.linalg.norm(wide, axis=1)[:, np.newaxis] / np.linalg.norm(centers, axis=1)
    assert inertia(X, centers) == pytest.approx(squares.sum(), rel=1e-5)
    assert mean_cosine(X, centers) == pytest.approx(cosines.max(axis=1).mean(), rel=1e-5)


_FITS = ("cprime (default)", "cprime (metric=cosine)")


@pytest.mark.usefixtures("own_choice_of_kernels", "loaded_once")
def test_every_fit_has_a_process_and_absent_peers_are_said_to_be(tmp_path, monkeypatch, capsys):
    absent = replace(PEERS["superkmeans"], distribution="a-library-that-nobody-has")
    monkeypatch.setitem(PEERS, "superkmeans", absent)
    begun, begin = [], Worker._begin
    monkeypatch.setattr(Worker, "_begin", lambda self: (begun.append(self), begin(self))[1])
    output = tmp_path / "results.jsonl"
    small = ["--points", "600", "-D", "32", "-C", "12", "--types", "uint8", "--peers", "cprime,superkmeans"]
    main(["embeddings", *small, "--output", str(output)])
    text = capsys.readouterr().out
    assert "### uint8, 600 × 32, C = 12" in text
    assert "superkmeans: a-library-that-nobody-has is not installed" in text
    records = [record for record in read(output) if record["measure"] == "embeddings"]
    done = [record for record in records if "left_out" not in record]
    assert len(begun) == len(done) == 2
    for record in done:
        assert record["data_bytes"] == 600 * 32
        assert record["value"][0] > 0
        assert 0.5 < record["extra"][0]["cosine"] < 1
    first, by_angle = (next(line for line in text.splitlines() if line.startswith(f"| {fit}")) for fit in _FITS)
    assert "| 1.00 |" in first
    assert "|  |  |" in by_angle
