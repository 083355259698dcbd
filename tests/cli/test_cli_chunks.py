"""Number and size of the chunks in which data are read are printed before a fit or a prediction begins."""

import numpy as np
import pytest

from cprime._utils.messages import shown_bytes


@pytest.fixture
def commands(cprime, model, write, X, tmp_path):
    """Return a function that runs `cprime fit` and `cprime predict` on one file of 180 rows, two float64 columns."""
    source = write("x.npy", X)

    def run(*options):
        return (
            cprime("fit", source, "-k", 9, "-o", tmp_path / "m.safetensors", *options),
            cprime("predict", model, source, "-o", tmp_path / "l.npy", *options),
        )

    return run


CUT = {
    (): ("one chunk of 2.8 KiB", 1, 180),
    ("--chunk-rows", 180): ("one chunk of 2.8 KiB", 1, 180),
    ("--chunk-rows", 1000): ("one chunk of 2.8 KiB", 1, 180),
    ("--chunk-rows", 50): ("4 chunks of at most 800 bytes", 4, 50),
    ("--chunk-rows", 64): ("3 chunks of at most 1.0 KiB", 3, 64),
}


@pytest.mark.parametrize("options", CUT)
def test_chunks_are_said_before_anything_begins(options, commands, tmp_path):
    text, n_chunks, rows = CUT[options]
    for outcome in commands(*options, "--json"):
        assert outcome.code == 0
        assert outcome.err == f"note: {tmp_path / 'x.npy'}: 180 rows of 2 columns, read in {text}\n"
        assert (outcome.json["n_chunks"], outcome.json["chunk_bytes"]) == (n_chunks, rows * 2 * 8)


def test_quiet_says_nothing_of_chunks(commands):
    for outcome in commands("-q", "--chunk-rows", 50):
        assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


def test_tables_have_the_chunks(commands):
    for outcome in commands("--chunk-rows", 50):
        words = " ".join(outcome.out.split())
        assert "chunks 4" in words
        assert "bytes of a chunk 800" in words


def test_bytes_are_those_of_the_columns_and_the_precision_that_are_read(cprime, write, X, tmp_path):
    table = dict(zip("abcd", np.hstack([X, X]).T, strict=True))
    path = tmp_path / "m.safetensors"
    options = ("--columns", "a,b,c", "--dtype", "float32", "--chunk-rows", 100)
    figures = cprime("fit", write("x.csv", table), "-k", 3, *options, "-o", path, "--json").json
    assert (figures["n_chunks"], figures["chunk_bytes"]) == (2, 100 * 3 * 4)
    options = ("--chunk-rows", 100, "-o", tmp_path / "l.npy", "--json")
    figures = cprime("predict", path, tmp_path / "x.csv", *options).json
    assert (figures["n_chunks"], figures["chunk_bytes"]) == (2, 100 * 3 * 4)


def test_scaled_data_and_rows_that_are_left_out(cprime, write, X, tmp_path):
    holes = X.copy()
    holes[:10, 0] = np.nan
    options = ("--missing", "drop", "--scale", "--chunk-rows", 100, "-o", tmp_path / "m.safetensors", "--json")
    outcome = cprime("fit", write("x.npy", holes), "-k", 3, *options)
    *_, line = outcome.err.splitlines()
    assert line.endswith("170 rows of 2 columns, read in 2 chunks of at most 1.6 KiB")
    assert (outcome.json["n_samples"], outcome.json["n_chunks"]) == (170, 2)


@pytest.mark.parametrize(
    ("n", "text"),
    [(1023, "1023 bytes"), (1024, "1.0 KiB"), (128 * 2**20, "128.0 MiB"), (3 * 2**40, "3,072.0 GiB")],
)
def test_bytes_are_shown_in_binary_units(n, text):
    assert shown_bytes(n) == text
